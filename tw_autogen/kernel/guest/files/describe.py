"""`Describer`: describes files in forked children with limits, so that no file harms the kernel; code's `describe`."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import os
import select
import signal
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from json import dumps, loads  # held here: code may overwrite them in the module
from pathlib import Path
from typing import Any, NoReturn

from .column_profile import Column
from .file_description import MAX_CHARS, describe_file
from .file_kinds import kind_of
from .file_size import size_words
from .fitted_lines import fitted_lines, line_begun
from .folder_listing import listing
from .join_keys import join_lines

NAME = "describe"
"""What code calls it."""
_OWN_SECONDS, _OWN_CHARS = 20.0, 6000
_MEMORY_BYTES = 1 << 30
_DIGESTED_BYTES = 1_000_000
"""A larger file counts as the same by its size, time and number: each request looks whether any has changed."""
_KEPT = 32
_TEXTS = ("txt", "md", "rst", "log", "")
_TERMS = 2000

Described = dict[str, Any]
"""`name`, `size` in words, `headline`, `lines`, `whole` (all of a small file, where that is shorter), `columns` (their
names), `problem`."""


class UnquotedText(str):
    """A text whose `repr` is the text itself: as the last expression of a cell it is shown as it stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Describer:
    """Describes files by what they hold; the same files with the same content are read once.

    Args:
        folder: What relative paths are relative to.
        apart: Read in forked children, where the system has them; otherwise nothing bounds memory and time.
    """

    fitted_lines, line_begun = staticmethod(fitted_lines), staticmethod(line_begun)
    """By which the host cuts descriptions too."""

    def __init__(self, folder: Path, *, apart: bool = True) -> None:
        self._folder = folder
        self._apart = apart and hasattr(os, "fork")
        self._known: dict[tuple[Any, ...], tuple[list[Described], list[str]]] = {}

    def install(self) -> None:
        """Make `describe(path)` one of Python's built-in functions; a variable of that name hides it."""
        setattr(builtins, NAME, self.describe)

    def describe(self, path: str | os.PathLike[str]) -> str:
        """Describe a file, or list a folder; the text is shown as it stands.

        Args:
            path: Of a file or folder that code can read.

        Raises:
            FileNotFoundError: there is none.
        """
        name = os.fsdecode(path)
        if os.path.isdir(name):
            listed = self.list_folder(name, layouts=True, max_lines=100, seconds=_OWN_SECONDS)
            return UnquotedText("\n".join(listed["lines"]) or listed["problem"])
        os.stat(name)
        (described,), _ = self.describe_all([(os.path.abspath(name), name)], seconds=_OWN_SECONDS)
        first = f"{described['name']!r}: {described['size']}, {described['headline']}".rstrip(", ")
        lines = [f"  {line}" for line in described["whole"] or described["lines"]]
        return UnquotedText("\n".join([first, *fitted_lines(lines, _OWN_CHARS - len(first))]))

    def list_folder(self, folder: str, *, layouts: bool, max_lines: int, seconds: float) -> dict[str, Any]:
        """List the files of a folder; files of one pattern, and of one layout, are one line.

        Args:
            folder: Its path.
            layouts: Read the first lines of tables, to find those of one layout.
            max_lines: How many lines at most.
            seconds: How long it may take.

        Returns:
            `lines`; `files`: the name of each family's first file, how many there are, and what they are found by;
            `problem`.
        """
        if not os.path.isdir(folder):
            return {"lines": [], "files": [], "problem": "code can't see it"}
        produce = partial(_list_folder, folder, layouts=layouts, max_lines=max_lines, seconds=seconds)
        (found,) = self._run_producer(produce, 1, seconds, time.monotonic() + seconds)
        return {"files": [], "problem": "", **found}

    def describe_all(
        self, files: Sequence[tuple[str, str]], *, seconds: float, all_seconds: float | None = None
    ) -> tuple[list[Described], list[str]]:
        """Describe files; what can't be read, takes too long or too much memory is described by its size and why.

        Args:
            files: Path and name of each; the name is what code opens it by.
            seconds: How long one file may take.
            all_seconds: How long all of them may take; None: as long as each may.

        Returns:
            What is said of each, in order; and lines about columns that join them.
        """
        key = tuple(self._cache_key(path, name) for path, name in files)
        if key not in self._known:
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            ends = time.monotonic() + (all_seconds if all_seconds is not None else seconds * len(files))
            self._known[key] = self._describe(files, seconds, ends)
            if all_seconds is not None and time.monotonic() > ends:  # the next time there may be time for more
                return self._known.pop(key)
        return self._known[key]

    def _cache_key(self, path: str, name: str) -> tuple[Any, ...]:
        """Return what is the same as long as a file has the same content."""
        try:
            full = os.path.join(self._folder, path)
            about = os.stat(full)
            if about.st_size > _DIGESTED_BYTES or not stat.S_ISREG(about.st_mode):
                return name, about.st_size, about.st_mtime_ns, about.st_ino
            with open(full, "rb") as file:
                return name, about.st_size, hashlib.sha256(file.read(_DIGESTED_BYTES)).digest()
        except OSError:
            return name, path, time.monotonic()

    def _describe(
        self, files: Sequence[tuple[str, str]], seconds: float, ends: float
    ) -> tuple[list[Described], list[str]]:
        found: dict[int, Described] = {}
        joins: list[str] = []
        order = sorted(range(len(files)), key=lambda index: kind_of(files[index][0]) in _TEXTS)
        while order and time.monotonic() < ends:
            terms = {term for one in found.values() for term in one["columns"]}
            left = [files[index] for index in order]
            for message in self._run_producer(
                partial(_file_messages, self._folder, left, terms), len(left), seconds, ends
            ):
                if "joins" in message:
                    joins = message["joins"]
                    order = []
                else:
                    at = order.pop(0)
                    found[at] = {"name": files[at][1], "size": self._size(files[at][0]), **message}
        for at in order:
            found[at] = {
                **_failed_description(""), "name": files[at][1], "size": self._size(files[at][0]), "late": True,
            }  # fmt: skip
        return [found[index] for index in range(len(files))], joins

    def _run_producer(
        self, produce: Callable[[], Iterator[Described]], count: int, seconds: float, ends: float
    ) -> Iterator[Described]:
        return _in_child(produce, count, seconds, ends) if self._apart else produce()

    def _size(self, path: str) -> str:
        try:
            return size_words(os.stat(os.path.join(self._folder, path)).st_size)
        except OSError:
            return "size not known"


def _failed_description(why: str) -> Described:
    return {"headline": why, "lines": [], "whole": [], "columns": [], "problem": why}


def _in_child(
    produce: Callable[[], Iterator[Described]], count: int, seconds: float, ends: float
) -> Iterator[Described]:
    """Yield what a forked child produces; if it ends before `count` messages, the last one is the reason.

    Args:
        produce: Called in the child.
        count: How many messages come at least.
        seconds: How long each may take.
        ends: When the child is ended, by the monotonic clock.
    """
    memory = data_bytes() + _MEMORY_BYTES
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of 3.12: the child must start no thread, and doesn't
        child = os.fork()
    if child == 0:
        _run_child(produce, writing, memory)
    os.close(writing)
    try:
        yield from _read_messages(reading, count, seconds, ends)
    finally:
        os.close(reading)
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # somebody's `os.wait()` has taken it
            os.waitpid(child, 0)


def _read_messages(reading: int, count: int, seconds: float, ends: float) -> Iterator[Described]:
    """Yield the messages of a child; the last one says why it ended if that was before the end."""
    pending, received = b"", 0
    until = min(ends, time.monotonic() + seconds)
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            if received < count:
                yield _failed_description(f"not looked through: that took more than {seconds:g} s")
            return
        piece = os.read(reading, 1 << 16)
        if not piece:
            if received < count:
                yield _failed_description("not looked through: reading it took too much, or broke its reader")
            return
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            received += 1
            until = min(ends, time.monotonic() + seconds)
            yield loads(line)


def data_bytes() -> int:
    """Return how much memory of this process counts against its limit, in bytes; 0 where the system doesn't tell.

    Behind Landlock a child can't read its own.
    """
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _run_child(produce: Callable[[], Iterator[Described]], writing: int, memory: int) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        if sys.platform.startswith("linux"):
            import resource  # not on Windows

            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            memory = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        warnings.simplefilter("ignore")
        with open(writing, "wb", buffering=0) as out:
            for message in produce():
                line = memoryview(dumps(message).encode() + b"\n")
                while line:
                    line = line[out.write(line) or 0 :]
    finally:
        os._exit(0)


def _file_messages(folder: Path, files: Sequence[tuple[str, str]], terms: set[str]) -> Iterator[Described]:
    """Yield what is said of each file, tables before texts, and at last what joins them."""
    tables: list[tuple[str, list[Column]]] = []
    terms = set(terms)
    for path, name in files:
        found = describe_file(os.path.join(folder, path), name, terms=terms)
        tables += found.tables
        columns = list(dict.fromkeys(column.name for _, some in found.tables for column in some))[:_TERMS]
        terms.update(columns)
        lines = fitted_lines(found.lines, MAX_CHARS)
        whole = found.whole if _prompt_chars(found.whole) < _prompt_chars(lines) else []
        yield {
            "headline": found.headline[:1000], "lines": lines, "whole": whole, "columns": columns,
            "problem": found.problem[:1000],
        }  # fmt: skip
    yield {"joins": join_lines(tables)[:10]}


def _prompt_chars(lines: Sequence[str]) -> int:
    """Return how much of a prompt indented lines take."""
    return sum(len(line) + 3 for line in lines)


def _list_folder(folder: str, *, layouts: bool, max_lines: int, seconds: float) -> Iterator[Described]:
    yield listing(folder, layouts=layouts, max_lines=max_lines, seconds=seconds)
