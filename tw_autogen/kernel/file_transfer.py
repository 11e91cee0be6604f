"""The host's side of files that travel: answers a kernel that sees another folder, and keeps both the same."""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tw_autogen.kernel.execution import Log
from tw_autogen.kernel.folder import open_inside
from tw_autogen.kernel.inside.exchange import FOLDER
from tw_autogen.kernel.inside.remote import PIECE, Mirror

_BINARY = getattr(os, "O_BINARY", 0)
_AT_ONCE_BYTES = 16 << 20
"""How much one request to the kernel moves, so that none takes longer than its time limit."""

Ask = Callable[..., dict[str, Any]]


class FileTransfer:
    """Reads and writes files of the host's folder for a kernel that is elsewhere; nothing hidden, nothing by a link.

    The two folders are made the same at the edges of a cell, and of each call from it to the host; what is deleted on
    one side stays on the other.

    Args:
        folder: The host's.
        most_bytes: Longer files don't travel, tables that cross excepted.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._mirror = Mirror(folder, most_bytes)
        self._parts: dict[str, str] = {}
        self._numbers = itertools.count(1)

    def send(self, ask: Ask) -> list[Log]:
        """Let the kernel take what is new here; give what could not travel."""
        changed, left = self._mirror.changed()
        return self._move(ask, "take", changed, left)

    def fetch(self, ask: Ask, report: Mapping[str, Any]) -> list[Log]:
        """Let the kernel give what its report calls new there; give what could not travel."""
        with contextlib.suppress(KeyError, TypeError, ValueError):  # said by the kernel, so it may be anything
            changed, left = report["files"]
            return self._move(ask, "give", [(str(one), int(size)) for one, size in changed], [str(one) for one in left])
        return []

    def _move(self, ask: Ask, op: str, changed: Sequence[tuple[str, int]], left: list[str]) -> list[Log]:
        for names in _loads(changed):
            answer = ask(op, files=names)
            failed = answer.get("ok")
            left += map(str, failed) if isinstance(failed, list) else [str(answer.get("error") or "no answer")]
            for name in names:
                self._mirror.note(name)
        return [Log("warning", "files", one) for one in left]

    def answer(self, asked: Mapping[str, Any]) -> Any:
        """Do what a kernel asks; its words may be anything.

        Raises:
            OSError: there is no such file, or it is none that travels.
            LookupError: nothing of that kind can be asked.
        """
        if asked["what"] == "changed":
            return self._mirror.changed()
        what, name = asked["what"], _plain(str(asked["file"]))
        if what == "read":
            return self._read(name, int(asked["place"]), min(int(asked["size"]), PIECE))
        if what == "write":
            return self._write(name, int(asked["place"]), base64.b64decode(asked["data"]), last=bool(asked["last"]))
        if what == "remove" and name.startswith(f"{FOLDER}/"):
            return self._unlink(name)
        raise LookupError(f"files are not asked to {what!r}")

    def _read(self, name: str, place: int, size: int) -> str:
        with os.fdopen(open_inside(self._folder, name, os.O_RDONLY | _BINARY), "rb") as file:
            file.seek(place)
            data = file.read(size)
        if len(data) < size:
            self._mirror.note(name)
        return base64.b64encode(data).decode()

    def _write(self, name: str, place: int, data: bytes, *, last: bool) -> None:
        if place + len(data) > self._most_bytes and not name.startswith(f"{FOLDER}/"):
            raise PermissionError(f"more than {self._most_bytes} bytes: {name!r}")
        flags = os.O_WRONLY | os.O_APPEND | _BINARY
        if place == 0:
            self._parts[name] = f"{FOLDER}/part-{os.getpid()}-{next(self._numbers)}"
            flags |= os.O_CREAT | os.O_EXCL
        part = self._parts[name]
        (self._folder / FOLDER).mkdir(exist_ok=True)
        with os.fdopen(open_inside(self._folder, part, flags), "ab") as file:
            file.write(data)
        if last:
            del self._parts[name]
            target = self._folder / name
            if not target.parent.resolve().is_relative_to(self._folder.resolve()):
                raise PermissionError(f"a link is in the way: {name!r}")
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self._folder / part, target)
            self._mirror.note(name)

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.close(open_inside(self._folder, name))
            (self._folder / name).unlink()


def _loads(changed: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Give names in groups that are moved at once."""
    names: list[str] = []
    held = 0
    for name, size in changed:
        if names and held + size > _AT_ONCE_BYTES:
            yield names
            names, held = [], 0
        names.append(name)
        held += size
    if names:
        yield names


def _plain(name: str) -> str:
    """Give the name of a file that may travel.

    Raises:
        PermissionError: it is hidden, or leads out of the folder.
    """
    parts = PurePosixPath(name).parts
    inner = parts[1:] if parts[:1] == (FOLDER,) else parts
    if not inner or any(one.startswith(".") for one in inner) or PurePosixPath(name).is_absolute() or "\\" in name:
        raise PermissionError(f"not a file that travels: {name!r}")
    return name
