"""A copy of the variables on disk, written by a forked child while the kernel goes on, and read by a later kernel."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import hmac
import importlib
import io
import marshal
import os
import pickle
import signal
import struct
import sys
import time
import types
import typing
import warnings
from collections.abc import Callable, Container, Iterable, Mapping, MutableMapping
from json import dumps, loads  # held here: code may overwrite them in the module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from .object_snapshot import MAIN, is_a, is_users

_PLAIN = {types.ModuleType, types.BuiltinFunctionType, int, float, complex, str, bytes, bool, type(None)}
_NAMED = (type(functools.lru_cache(len)), typing.TypeVar, typing.ParamSpec, typing.NewType)
"""What pickle refers to by the name that a statement has given it, besides classes and functions."""


class CheckpointTooLarge(Exception):
    """More bytes than were allowed."""


class _Hashed:
    """Writes to a file and hashes what it writes with a key: others may be able to write to the file meanwhile."""

    def __init__(self, file: BinaryIO, key: bytes) -> None:
        self._file = file
        self._hash = hmac.new(key, digestmod="sha256")

    def write(self, data: Any) -> None:
        self._file.write(data)
        self._hash.update(data)

    def mark(self) -> tuple[int, hmac.HMAC]:
        """Return the place that `back` goes back to."""
        return self._file.tell(), self._hash.copy()

    def back(self, place: tuple[int, hmac.HMAC]) -> None:
        """Take back what was written behind a place."""
        self._file.seek(place[0])
        self._file.truncate()
        self._hash = place[1]

    def seal(self, header: bytes) -> None:
        """Write what stands at the end: a JSON object, with the hash as its last field, and its length."""
        self.write(header[:-1])
        size = _SIZE.pack(len(header) + _SEAL_BYTES)
        self._hash.update(size)
        self._file.write(_sealed_end(self._hash, size))


class _Bounded(io.RawIOBase):
    """Takes bytes up to a limit, and hands them on; looks at each piece whether this may go on."""

    def __init__(self, max_bytes: int, look: Callable[[], None], file: _Hashed | None = None) -> None:
        self.left = max_bytes
        self._look = look
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._look()
        size = memoryview(data).nbytes
        self.left -= size
        if self.left < 0:
            raise CheckpointTooLarge
        if self._file is not None:
            self._file.write(data)
        return size


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, known: frozenset[int], classes: Container[str]) -> None:
        super().__init__(file, protocol=5)
        self._known = known
        self._classes = classes

    def reducer_override(self, value: Any) -> Any:
        if is_a(value, type) and issubclass(value, _Missing):
            raise pickle.PicklingError(f"it holds {value.__name__}, which is not there")
        if isinstance(value, types.ModuleType):
            return _module, (value.__name__,)
        if isinstance(value, types.FunctionType) and value.__module__ == MAIN and id(value) not in self._known:
            cells = value.__closure__ or ()
            state = {
                "cells": [_cell_contents(cell) for cell in cells],
                "defaults": value.__defaults__,
                "kwdefaults": value.__kwdefaults__,
                "dict": dict(value.__dict__),
                "annotations": dict(value.__annotations__),
                "doc": value.__doc__,
            }
            start = (marshal.dumps(value.__code__), value.__name__, value.__qualname__, len(cells))
            return _empty_function, start, state, None, None, _fill_function
        if _is_named(value) and (name := getattr(value, "__qualname__", value.__name__)) not in self._classes:
            kind = "the class " if isinstance(value, type) else ""
            raise pickle.PicklingError(f"no statement at the top of a cell made {kind}{name}")
        return NotImplemented


def write(
    values: Mapping[str, Any],
    file: _Hashed,
    *,
    max_bytes: int,
    look: Callable[[], None],
    known: frozenset[int] = frozenset(),
    classes: Container[str] = (),
) -> dict[str, str]:
    """Write variables as one pickle, so that what two of them share stays shared.

    Args:
        values: By name.
        file: Takes the bytes.
        max_bytes: If they are more, the largest are left out.
        look: Called again and again; what it raises, if it is no `Exception`, ends the writing.
        known: Functions, by id, that will be there under their own name when this is read.
        classes: Names of classes of cells that will be there when this is read.

    Returns:
        What was left out, and why.
    """
    place = file.mark()
    try:
        _Pickler(_Bounded(max_bytes, look, file), known, classes).dump(dict(values))
    except Exception:  # noqa: BLE001 - pickling runs the objects' own code; below it is told whose
        file.back(place)
    else:
        return {}
    mega = (max_bytes + (1 << 20) - 1) >> 20
    sizes: dict[str, int] = {}
    left: dict[str, str] = {}
    for name, value in values.items():
        sink = _Bounded(max_bytes, look)
        try:
            _Pickler(sink, known, classes).dump(value)
            sizes[name] = max_bytes - sink.left
        except CheckpointTooLarge:
            left[name] = f"it takes more than {mega} MB"
        except Exception as error:  # noqa: BLE001 - as above
            left[name] = f"{type(error).__name__}: {str(error)[:200]}"
    kept: list[str] = []
    for name in sorted(sizes, key=lambda size: sizes[size]):
        if sum(sizes[one] for one in kept) + sizes[name] > max_bytes - 4096:
            left[name] = f"together they take more than {mega} MB"
        else:
            kept.append(name)
    _Pickler(file, known, classes).dump({name: values[name] for name in values if name in kept})
    return left


class _Missing:
    """Stands, as a subclass of its name, for what is not there; does nothing with what pickle does to it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __setstate__(self, state: Any) -> None: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class _Unpickler(pickle.Unpickler):
    """Puts something in the place of what can't be found, so that all else can be read."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.missed = False

    def find_class(self, module: str, name: str) -> Any:
        try:
            found = super().find_class(module, name)
        except Exception:  # noqa: BLE001 - a module that is imported runs its own code
            return self._stand_in(name)
        return self._import_or_stand_in if found is _module else found

    def _import_or_stand_in(self, name: str) -> Any:
        try:
            return _module(name)
        except Exception:  # noqa: BLE001 - as above
            return self._stand_in(name)

    def _stand_in(self, name: str) -> Any:
        self.missed = True
        return type(name, (_Missing,), {})


def _module(name: str) -> Any:
    return importlib.import_module(name)


def read(file: BinaryIO, classes: Container[str] = ()) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `write` wrote; runs whatever stands there, with all that code in this kernel may do.

    Args:
        file: Stands where the pickle begins.
        classes: Names of classes of cells that are there.

    Returns:
        The variables, and those that hold something which is not there, each with why it was left out.
    """
    unpickler = _Unpickler(file)
    found, left = dict(unpickler.load()), {}
    for name, value in found.items() if unpickler.missed else ():
        try:
            _Pickler(_Bounded(sys.maxsize, lambda: None), frozenset(), classes).dump(value)
        except Exception as error:  # noqa: BLE001 - pickling runs the objects' own code
            left[name] = str(error)[:200]
    return {name: value for name, value in found.items() if name not in left}, left


def define(sources: Iterable[tuple[str, str]], namespace: MutableMapping[str, Any]) -> dict[str, str]:
    """Run class statements; give those that failed, and why.

    Args:
        sources: Names with the text of class statements.
        namespace: Where they are run.
    """
    failed = {}
    for name, source in sources:
        try:
            exec(compile(source, f"<{name}>", "exec", dont_inherit=True), namespace)  # type: ignore[arg-type]  # a mapping does, too
        except Exception as error:  # noqa: BLE001 - the user's own statement
            failed[name] = f"{type(error).__name__}: {error}"
    return failed


def comes_first(value: Any) -> bool:
    """Return whether class statements may need a value that needs no class: modules, functions, library classes."""
    if isinstance(value, types.FunctionType) and value.__module__ == MAIN:
        holds = value.__closure__ or value.__defaults__ or value.__kwdefaults__ or value.__dict__
        return not holds and not value.__annotations__
    if isinstance(value, (type, types.FunctionType)):
        return value.__module__ != MAIN
    return type(value) in _PLAIN or (type(value).__module__ == "typing" and not hasattr(value, "__args__"))


def _is_named(value: Any) -> bool:
    return (is_a(value, type) or type(value) in _NAMED) and value.__module__ == MAIN


def _cell_contents(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty
        return ()


def _empty_function(code: bytes, name: str, qualname: str, cells: int) -> types.FunctionType:
    closure = tuple(types.CellType() for _ in range(cells))
    made = types.FunctionType(marshal.loads(code), vars(sys.modules[MAIN]), name, None, closure)
    made.__qualname__ = qualname
    made.__module__ = MAIN
    return made


def _fill_function(made: types.FunctionType, state: dict[str, Any]) -> None:
    for cell, content in zip(made.__closure__ or (), state["cells"], strict=True):
        if content:
            cell.cell_contents = content[0]
    made.__defaults__, made.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    made.__dict__.update(state["dict"])
    made.__annotations__, made.__doc__ = state["annotations"], state["doc"]


FOLDER = ".checkpoint"
"""Hidden, below the kernel's folder."""

_FILE = "variables"
_NICE = 10
_BUSY_SECONDS = 0.1
_POLL_SECONDS = 0.005
_SIZE = struct.Struct(">Q")
_SEAL = b', "seal": "'
_SEAL_BYTES = len(_SEAL) + 64 + 1
_END_BYTES = _SEAL_BYTES + 1 + _SIZE.size


class Checkpoint:
    """The last copy of the user's variables.

    Functions of cells are kept by their code, classes and cached functions as the statements that made them, modules by
    name, all else as pickle has it. It is made by a child that is forked while no code runs: the kernel waits for the
    fork only, and the copy is of one moment. `__reduce__` and `__getstate__` of the user's classes run in that child.

    Args:
        folder: The kernel's.
        namespace: The kernel's user namespace.
        key: Hexadecimal; a copy that was not written with it is not read. Code in this kernel can find it, and code of
            other kernels, which may be allowed to write to the folder, does not have it.
        later: Calls a function after some seconds, at a moment in which no code runs.
        every_seconds: How often it is made at most.
        max_bytes: How large it may get; what is larger is left out.
        max_seconds: After that time the child is ended, and the copy before stays.
        memory_bytes: How much this process and its children may take together, 0: no limit. Pages are shared with the
            child until one of both writes to them, as Python does when it looks at an object; where that comes near the
            limit there is no new copy.
    """

    def __init__(
        self,
        folder: Path,
        namespace: MutableMapping[str, Any],
        *,
        key: str,
        later: Callable[[float, Callable[[], object]], object],
        every_seconds: float,
        max_bytes: int,
        max_seconds: float,
        memory_bytes: int,
    ) -> None:
        self._folder = folder / FOLDER
        self._namespace = namespace
        self._key = bytes.fromhex(key)
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._classes: dict[str, str] = {}
        self._memory_bytes = memory_bytes
        self._child = 0
        self._later = later
        self._every = every_seconds
        self._began = float("-inf")
        self._wanted: tuple[int, Mapping[str, Any]] | None = None
        self._urgent = False
        self._changed = False

    def note_classes(self, code: str, transform: Callable[[str], str]) -> None:
        """Remember the statements of a cell that made classes.

        Args:
            code: As it was written.
            transform: Makes Python of IPython's additions.
        """
        if code.startswith("%%"):  # such as %%time
            code = code.partition("\n")[2]
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            for node in ast.parse(transform(code)).body:
                for name in _names_of(node):
                    if _is_named(self._namespace.get(name)):
                        self._classes.pop(name, None)  # order: as they were last made
                        self._classes[name] = ast.unparse(node)

    def want(self, position: int, hidden: Mapping[str, Any], *, urgent: bool) -> None:
        """Begin a copy as soon as one is due; until then it waits for a moment in which no code runs.

        Args:
            position: How many lines of the journal it covers.
            hidden: Names that are not the user's while they still hold the same object.
            urgent: It is due now.
        """
        self._wanted, self._urgent = (position, hidden), self._urgent or urgent
        self._begin_writing()

    def begin_cell(self) -> None:
        """Forget that a copy was wanted: from here on it would be neither of before the cell nor of behind it."""
        self._wanted = None
        self._changed = True

    def _begin_writing(self) -> None:
        if self._wanted is None or not hasattr(os, "fork"):
            return
        wait = 0.0 if self._urgent else self._began + self._every - time.monotonic()
        if wait <= 0 and self._is_writing():
            wait = _BUSY_SECONDS
        if wait > 0:
            wanted = self._wanted
            self._later(wait, lambda: self._begin_writing() if self._wanted is wanted else None)
            return
        position, hidden = self._wanted
        self._wanted, self._urgent, self._changed, self._began = None, False, False, time.monotonic()
        pages = _Pages(self._spare_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of 3.12: the child must start no thread, and doesn't
            self._child = os.fork()
        if self._child == 0:
            self._write_and_exit(position, hidden, pages)

    def finish(self, position: int, hidden: Mapping[str, Any], seconds: float) -> bool:
        """Wait for a copy of the variables as they are now, begun if there is none; return whether it is there.

        Args:
            position: As for `want`.
            hidden: As for `want`.
            seconds: How long to wait.
        """
        until = time.monotonic() + seconds
        copied = not self._changed and not self._is_writing() and (self.header() or {}).get("position") == position
        if copied or not hasattr(os, "fork"):
            return copied
        while self._is_writing() and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        self.want(position, hidden, urgent=True)
        while self._is_writing() and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        return (self.header() or {}).get("position") == position

    def header(self) -> dict[str, Any] | None:
        """Return what the copy says of itself: `position`, `seconds`, `left`; None if there is none for this Python."""
        try:
            with open(self._folder / _FILE, "rb") as file:
                found = _read_header(file)
            return found if found["python"] == list(sys.version_info[:2]) else None
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            return None

    def read(self, *, trust: bool = False) -> dict[str, Any]:
        """Make the variables of the copy; give its `position`, and what was `left` out or could not be made, and why.

        Args:
            trust: Read also one that no kernel of this user has written in this folder.

        Raises:
            ValueError: it is such a one.
        """
        with open(self._folder / _FILE, "rb") as whole:
            data = whole.read()  # at once: what is read is what was hashed
        if not (trust or _is_sealed(data, self._key)):
            raise ValueError("no kernel of this user has written it in this folder")
        file = io.BytesIO(data)
        header = _read_header(file)
        file.seek(0)
        variables, lost = read(file)
        self._namespace.update(variables)
        self._classes = dict(header["classes"])
        failed, begin = define(self._classes.items(), self._namespace), file.tell()
        while True:
            file.seek(begin)
            variables, left = read(file, self._classes.keys() - failed)
            self._namespace.update(variables)
            before, failed = failed, define([(one, self._classes[one]) for one in failed], self._namespace)
            if len(failed) == len(before):
                break  # else the variables were what class statements needed: those of these classes can be read now
        return {"position": header["position"], "left": [*header["left"], *{**lost, **left, **failed}.items()]}

    def _is_writing(self) -> bool:
        if self._child:
            with contextlib.suppress(ChildProcessError):  # somebody's `os.wait()` has taken it
                if os.waitpid(self._child, os.WNOHANG) == (0, 0):
                    return True
        self._child = 0
        return False

    def _write_and_exit(self, position: int, hidden: Mapping[str, Any], pages: _Pages) -> NoReturn:
        part = self._folder / f"{_FILE}.part"
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, self._max_seconds)
            with contextlib.suppress(OSError):
                os.setpgid(0, 0)  # interrupts go to the kernel's group
                os.nice(_NICE)
            pages.begin()
            gc.disable()  # it would copy pages that are shared
            self._folder.mkdir(exist_ok=True)
            with open(os.devnull, "w", encoding="utf-8") as nowhere:
                sys.stdout = sys.stderr = nowhere
                part.unlink(missing_ok=True)
                self._write(part, position, hidden, pages.look)
            os.replace(part, self._folder / _FILE)
        except BaseException:  # noqa: BLE001 - the copy before stays; nobody waits for this process
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        finally:
            os._exit(0)

    def _spare_bytes(self) -> int:
        """Return half of what the kernel leaves free of the limit; the other half is for its own next cell."""
        if not self._memory_bytes or not sys.platform.startswith("linux"):
            return sys.maxsize
        with open("/proc/self/statm", "rb") as file:  # behind Landlock the child can't read its own
            _, resident, shared = map(int, file.read().split()[:3])
        return max(0, self._memory_bytes - (resident - shared) * os.sysconf("SC_PAGE_SIZE")) // 2

    def _write(self, part: Path, position: int, hidden: Mapping[str, Any], look: Callable[[], None]) -> None:
        began = time.monotonic()
        values = {
            name: value
            for name, value in self._namespace.items()
            if is_users(name) and hidden.get(name, self) is not value
        }
        classes = {name: source for name, source in self._classes.items() if _is_named(values.get(name))}
        first = {name: value for name, value in values.items() if name not in classes and comes_first(value)}
        rest = {name: value for name, value in values.items() if name not in first and name not in classes}
        functions = ((name, one) for name, one in first.items() if isinstance(one, types.FunctionType))
        known = frozenset(id(function) for name, function in functions if function.__qualname__ == name)
        with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as whole:
            file = _Hashed(whole, self._key)
            left = write(first, file, max_bytes=self._max_bytes, look=look)
            spare = max(0, self._max_bytes - whole.tell())
            left.update(write(rest, file, max_bytes=spare, look=look, known=known, classes=classes))
            header = {
                "position": position,
                "python": list(sys.version_info[:2]),
                "seconds": time.monotonic() - began,
                "left": list(left.items()),
                "classes": list(classes.items()),
            }
            file.seal(dumps(header).encode())
            whole.flush()
            os.fsync(whole.fileno())


class _Pages:
    """Ends the writing when this process has got more pages of its own than it may."""

    def __init__(self, max_bytes: int) -> None:
        import resource  # not on Windows, where no child is forked

        self._faults: Callable[[], int] = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self._most = max_bytes // os.sysconf("SC_PAGE_SIZE")

    def begin(self) -> None:
        """Count from here on."""
        self._most += self._faults()

    def look(self) -> None:
        if self._faults() > self._most:
            raise SystemExit


def _read_header(file: BinaryIO) -> dict[str, Any]:
    """Read what stands at the end, in front of its own length."""
    file.seek(-_SIZE.size, os.SEEK_END)
    size = _SIZE.unpack(file.read(_SIZE.size))[0]
    file.seek(-_SIZE.size - size, os.SEEK_END)
    return dict(loads(file.read(size)))


def _sealed_end(whole: hmac.HMAC, size: bytes) -> bytes:
    return b"".join((_SEAL, whole.hexdigest().encode("ascii"), b'"}', size))


def _is_sealed(data: bytes, key: bytes) -> bool:
    """Return whether a copy was written with a key."""
    end = max(0, len(data) - _END_BYTES)
    whole = hmac.new(key, memoryview(data)[:end], "sha256")
    whole.update(data[-_SIZE.size :])
    return hmac.compare_digest(_sealed_end(whole, data[-_SIZE.size :]), data[end:])


def seal_anew(source: BinaryIO, target: BinaryIO, key: bytes, new_key: bytes) -> None:
    """Copy a copy of variables, sealed with another key; one that was not sealed stays so.

    Args:
        source: Read from its beginning.
        target: Written to.
        key: With which it was sealed.
        new_key: With which it is now.
    """
    before, after = hmac.new(key, digestmod="sha256"), hmac.new(new_key, digestmod="sha256")
    end = b""
    while piece := source.read(1 << 20):
        end += piece
        body, end = end[:-_END_BYTES], end[-_END_BYTES:]
        before.update(body)
        after.update(body)
        target.write(body)
    size = end[-_SIZE.size :]
    before.update(size)
    after.update(size)
    held = hmac.compare_digest(_sealed_end(before, size), end)
    target.write(_sealed_end(after, size) if held else end)


def _names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, ast.Assign):  # Point = namedtuple("Point", "x y")
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []
