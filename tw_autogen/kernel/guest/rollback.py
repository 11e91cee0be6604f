"""`Rollback`: the user's variables are copied before a cell, so that a cell that fails can be undone."""

from __future__ import annotations

import contextlib
import gc
import re
import signal
import time
import types
import unicodedata
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from .object_snapshot import NOTHING, Contents, Undo, contents, is_a, is_fixed

_WORD = re.compile(r"\w+")
_ANY_NAME = {
    *("globals", "locals", "vars", "dir", "exec", "eval", "compile", "get_ipython", "sys", "gc", "inspect", "ctypes"),
    *("importlib", "builtins", "__main__", "__import__", "__globals__", "__builtins__", "f_globals", "f_locals"),
    "user_ns",
}
"""Words with which code reaches variables that it doesn't name."""

_MAGIC = re.compile(r"^\s*[%!]|=\s*[%!]", re.MULTILINE)
_SHELLS_OWN = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_exit_code")
_MAX_TOLD = 20


class Snapshot:
    """The variables before a cell: their names, and a copy of what the cell can change.

    A cell changes only what it can reach: the words in its text that are variables, what these hold, and what the
    functions and classes name that cells have defined. Nothing else is copied, so tables and arrays that a cell doesn't
    name cost nothing. DataFrames that it names are not copied either where pandas copies on write (pandas 3, or the
    option `mode.copy_on_write`): a column is copied when the cell first writes to it. Arrays, lists, dictionaries, sets
    and the attributes of objects are copied, within the limits.

    What a cell takes without this, with it, and when it fails and is undone, in milliseconds, as the host sees it;
    median [10th to 90th percentile] of 15 runs on 4 cores with a load of 8:

    - an array of 100 MB that the cell doesn't name: 6.8 [5-15], 7.7 [3-13], 20 [2-136]
    - a DataFrame of 400 MB that it only reads: 7.8 [5-23], 8.2 [6-16], 18 [15-78]
    - one of which it writes one column of 80 MB: 9 [3-19], 78 [47-133], 101 [68-265]
    - an array of 100 MB that it names: 7 [3-27], 57 [49-89], 90 [79-155]
    - a list of a million numbers: 9 [5-17], 66 [53-89], 96 [77-164]
    - a dictionary of a hundred thousand lists, beyond the limit of 0.3 s: 11 [8-46], 381 [369-410], 471 [439-765]

    What it can't undo: files and other effects outside; what modules and plugins remember; what threads of earlier
    cells do meanwhile; and, named by `rollback`, objects of a kind whose contents are hidden (generators, connections,
    what is written in C), and what exceeds the limits.

    Args:
        namespace: The kernel's user namespace.
        code: The cell.
        hidden: Names that are not the user's while they still hold the same object: plugins, IPython's own.
        max_bytes: How much is copied at most.
        max_seconds: How long that may take.
    """

    def __init__(
        self,
        namespace: MutableMapping[str, Any],
        code: str,
        *,
        hidden: Mapping[str, Any],
        max_bytes: int,
        max_seconds: float,
    ) -> None:
        self._namespace = namespace
        self._names = {name: value for name, value in namespace.items() if _is_kept(name)}
        self._bytes = max_bytes
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._end = time.monotonic() + max_seconds
        self._seen: dict[int, Any] = {}  # holds the objects, so that no other one gets their number meanwhile
        self._undo: list[tuple[bool, str, Undo]] = []
        self._left: dict[str, str] = {}
        named = {name: value for name, value in self._names.items() if is_a(name, str)}
        self._users = {name: value for name, value in named.items() if hidden.get(name, self) is not value}
        collects = gc.isenabled()
        gc.disable()  # it would look again and again at all that is being copied
        try:
            self._copy_values(_reachable_names(code, self._users))
        finally:
            if collects:
                gc.enable()

    def rollback(self) -> list[tuple[str, str]]:
        """Restore all of it; an interrupt doesn't stop it.

        Returns:
            Names of variables that may still be changed, and why.
        """
        try:
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        except ValueError:  # not in the main thread: nobody interrupts this one
            return self._put_back()
        try:
            return self._put_back()
        finally:
            signal.signal(signal.SIGINT, handler)

    def _put_back(self) -> list[tuple[str, str]]:
        for _, name, undo in sorted(self._undo, key=lambda one: one[0]):
            try:
                undo()
            except Exception as error:  # noqa: BLE001 - the object is foreign; all others are still put back
                self._left.setdefault(name, f"{type(error).__name__}: {error}")
        for name in [one for one in self._namespace if one not in self._names and _is_kept(one)]:
            del self._namespace[name]
        for name, value in self._names.items():
            if name not in self._namespace or self._namespace[name] is not value:
                self._namespace[name] = value
        told = list(self._left.items())
        more = [(f"{len(told) - _MAX_TOLD} more", "")] if len(told) > _MAX_TOLD else []
        return [*told[:_MAX_TOLD], *more]

    def _copy_values(self, names: Iterable[str]) -> None:
        """Walk over all that these variables hold, each object once."""
        roots = list(dict.fromkeys(names))
        todo = [(name, self._users[name]) for name in reversed(roots)]
        known = set(roots)
        while todo:
            name, value = todo.pop()
            if id(value) in self._seen:
                continue
            if time.monotonic() > self._end:
                for late in dict.fromkeys(one for one, held in [(name, value), *todo] if not is_fixed(held)):
                    self._left.setdefault(late, f"copying took longer than {self._max_seconds:g} s")
                return
            self._seen[id(value)] = value
            found = self._copy_contents(name, value)
            todo += [(name, inner) for inner in found.inner]
            for code in found.code:
                more = [one for one in _select_names(_words_of(code), self._users) if one not in known]
                todo += [(one, self._users[one]) for one in more]
                known.update(more)

    def _copy_contents(self, name: str, value: Any) -> Contents:
        """Copy one object's contents; give what it holds, nothing where that is not known."""
        try:
            found = contents(value)
            if found is None:
                self._left.setdefault(name, f"it holds a {type(value).__name__}, which is not copied")
                return NOTHING
            if found.copy is not None:
                if found.size > self._bytes:
                    most = self._max_bytes >> 20
                    self._left.setdefault(name, f"it takes {found.size >> 20} MB, and {most} are copied at most")
                else:
                    self._bytes -= found.size
                    self._undo.append((found.hashes, name, found.copy()))
        except Exception as error:  # noqa: BLE001 - a half-made or broken object must not end the cell before it begins
            self._left.setdefault(name, f"{type(error).__name__}: {error}")
            return NOTHING
        return found


class Rollback:
    """Undoes cells that fail.

    Args:
        namespace: The kernel's user namespace.
        max_bytes: See `Snapshot`.
        max_seconds: See `Snapshot`.
    """

    def __init__(self, namespace: MutableMapping[str, Any], *, max_bytes: int, max_seconds: float) -> None:
        self._namespace = namespace
        self._limits: dict[str, Any] = {"max_bytes": max_bytes, "max_seconds": max_seconds}
        self._before: Snapshot | None = None
        self._interrupted = False

    def begin(self, code: str, *, hidden: Mapping[str, Any]) -> None:
        """Copy what a cell may change.

        Args:
            code: The cell.
            hidden: Names that are no variables of the user's.
        """
        self._before, self._interrupted = None, False
        self._watch_interrupts()
        self._before = Snapshot(self._namespace, code, hidden=hidden, **self._limits)

    def end(self, *, failed: bool) -> list[tuple[str, str]] | None:
        """Undo the cell if it failed; see `undo`. A cell that swallowed an interrupt is the host's to judge."""
        if failed:
            return self.undo()
        if not self._interrupted:
            self._before = None
        return None

    def undo(self) -> list[tuple[str, str]] | None:
        """Undo the cell.

        Returns:
            What may still be changed, see `Snapshot.rollback`; None if nothing was copied, or it was undone before.
        """
        before, self._before = self._before, None
        return before.rollback() if before else None

    def _watch_interrupts(self) -> None:
        """Take note of interrupts; ipykernel sets a handler before each cell and takes it away behind it."""
        handler = signal.getsignal(signal.SIGINT)

        def note(number: int, frame: Any) -> None:
            self._interrupted = True
            if callable(handler):
                handler(number, frame)

        with contextlib.suppress(ValueError):  # not in the main thread, where no interrupt comes
            signal.signal(signal.SIGINT, note)


def _is_kept(name: Any) -> bool:
    """Return whether a key of the namespace, which may be no text, is put back: none of the shell's own."""
    return not (is_a(name, str) and _SHELLS_OWN.fullmatch(name))


def _reachable_names(code: str, names: Mapping[str, Any]) -> list[str]:
    """Return the variables that a cell can reach by name: those whose name is a word of it, in strings too."""
    words = _ANY_NAME if _MAGIC.search(code) else set(_WORD.findall(unicodedata.normalize("NFKC", code)))
    return _select_names(words, names)


def _select_names(words: set[str], names: Mapping[str, Any]) -> list[str]:
    return list(names) if words & _ANY_NAME else [name for name in names if name in words]


def _words_of(code: types.CodeType) -> set[str]:
    """Return every name and every word of a text in a function's body."""
    found = {*code.co_names}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= _words_of(const)
        elif isinstance(const, str):
            found.update(_WORD.findall(const))
    return found
