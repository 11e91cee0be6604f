"""The host's side of files that travel: answers a kernel that sees another folder, and keeps both the same."""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tw_autogen.kernel.exchange_folder import hidden_folder
from tw_autogen.kernel.guest.bounds import check_fields, shown
from tw_autogen.kernel.guest.exchange_folder import FOLDER
from tw_autogen.kernel.guest.remote_files import MAX_FILES, NOT_COPIED, PIECE, SyncState
from tw_autogen.kernel.kernel import Log
from tw_autogen.safe_folder import SafeFolder

_AT_ONCE_BYTES = 16 << 20
"""How much one request to the kernel moves, so that none takes longer than its time limit."""

_LONGEST_NAME = 1000
_MAX_LEFT = 2 * MAX_FILES
"""Of how many files it is said that they could not travel."""
_MAX_NAMES = 4 * MAX_FILES
_MAX_PARTS = 100
"""How many files may be under way at once; the oldest is given up for one more."""
_LONGEST_COMPONENT = 255
_DEEPEST = 30
_COUNTED_SECONDS = 1.0
"""How often it is looked at most whether files are still there."""
_MAX_ENTRIES = 20 * MAX_FILES
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "changed": {},
    "read": {"file": (str,), "place": (int,), "size": (int,)},
    "write": {"file": (str,), "place": (int,), "data": (str,), "last": (bool,)},
    "remove": {"file": (str,)},
}
"""What a kernel can ask, with the fields of each and their types."""

Ask = Callable[[str, Sequence[str], float], dict[str, Any]]


class FileTransfer:
    """Reads and writes files of the host's folder for a kernel that is elsewhere; nothing hidden, nothing by a link.

    The two folders are made the same at the edges of a cell, and of each call from it to the host; what is deleted on
    one side stays on the other.

    Args:
        folder: The host's.
        max_bytes: Longer files don't travel, tables that cross excepted.
        max_total_bytes: How many bytes all that the kernel has sent may take here, tables included; 0: no limit.
    """

    def __init__(self, folder: Path, max_bytes: int, *, max_total_bytes: int = 0) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._most_in_all = max_total_bytes
        self._written: dict[str, int] = {}
        self._counted = -_COUNTED_SECONDS
        self._mirror = _HostSyncState(folder, max_bytes)
        self._parts: dict[str, tuple[str, int]] = {}

    def send(self, ask: Ask, *, seconds: float) -> list[Log]:
        """Send the kernel what is new here; return what could not travel.

        Args:
            ask: Asks the kernel for some files, and is told how long that may take.
            seconds: How long all of it may take; what is left then is tried again with the next call.
        """
        changed, left = self._mirror.changed()
        return self._move(ask, "take", changed, left, seconds)

    def fetch(self, ask: Ask, report: Mapping[str, Any], *, seconds: float) -> list[Log]:
        """Fetch what the kernel's report calls new there; return what could not travel.

        Args:
            ask: As in `send`.
            report: What the kernel says after a cell.
            seconds: As in `send`.
        """
        # Said by the kernel, so it may be anything.
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            changed, left = report["files"]
            named = [(str(name), int(size)) for name, size in changed[:MAX_FILES]]
            return self._move(ask, "give", named, _short_texts(left), seconds)
        return []

    def _move(
        self, ask: Ask, op: str, changed: Sequence[tuple[str, int]], left: list[str], seconds: float
    ) -> list[Log]:
        until = time.monotonic() + seconds
        rest = [name for name, _ in changed]
        for names in _batch_names(changed):
            remaining = until - time.monotonic()
            answer = ask(op, names, remaining) if remaining > 0 else {"error": f"{seconds:g} s were over"}
            failed = answer.get("ok")
            if not isinstance(failed, list):
                left += _short_texts([_not_moved(rest, str(answer.get("error") or "no answer"))])
                break
            left += _short_texts(failed)[: max(_MAX_LEFT - len(left), 0)]
            note = self._mirror.note_sent if op == "take" else self._mirror.note
            for name in set(names) - {str(failure).partition(NOT_COPIED)[0] for failure in failed}:
                note(name)
            del rest[: len(names)]
        return [Log("warning", "files", line) for line in left]

    def answer(self, asked: Mapping[str, Any]) -> Any:
        """Do what a kernel asks; its words may be anything.

        Raises:
            OSError: there is no such file, or it is none that travels.
            LookupError: nothing of that kind can be asked.
            ValueError: a field is of a wrong type.
        """
        what = asked.get("what")
        if not isinstance(what, str) or what not in _FIELDS:
            raise LookupError(f"files are not asked to {shown(what)}")
        check_fields(asked, _FIELDS[what], f"a request to {what!r} files")
        if what == "changed":
            return self._mirror.changed()
        name = _allowed_name(asked["file"])
        if what == "read":
            return self._read(name, asked["place"], min(asked["size"], PIECE))
        if what == "write":
            return self._write(name, asked["place"], base64.b64decode(asked["data"]), last=asked["last"])
        if name.startswith(f"{FOLDER}/"):
            return self._unlink(name)
        raise LookupError(f"files are not asked to {what!r}")

    def _read(self, name: str, place: int, size: int) -> str:
        if place < 0 or size < 0:  # a read of -1 is one of the whole file
            raise PermissionError(f"{name!r}: {size} bytes at {place}")
        with SafeFolder(self._folder) as folder, folder.open_file(name) as file:
            file.seek(place)
            data = file.read(size)
        if len(data) < size:
            self._mirror.note_sent(name)
        return base64.b64encode(data).decode()

    def _write(self, name: str, place: int, data: bytes, *, last: bool) -> None:
        with SafeFolder(self._folder) as folder:
            if place == 0:
                self._drop_part(folder, name)
                while len(self._parts) >= _MAX_PARTS:
                    self._drop_part(folder, next(iter(self._parts)))
                with hidden_folder(folder, FOLDER):
                    self._parts[name] = f"{FOLDER}/part-{os.urandom(8).hex()}", 0
            part, size = self._parts[name]
            if place != size:
                raise PermissionError(f"{name!r}: a piece for byte {place}, expected byte {size}")
            size += len(data)
            if size > self._max_bytes and not name.startswith(f"{FOLDER}/"):
                self._drop_part(folder, name)
                raise PermissionError(f"more than {self._max_bytes} bytes: {name!r}")
            try:
                self._check_room(folder, name, len(data))
            except PermissionError:
                self._drop_part(folder, name)
                raise
            with folder.create_file(part) if place == 0 else folder.append_file(part) as file:
                file.write(data)
            self._parts[name] = part, size
            if last:
                above = name.rpartition("/")[0]
                try:
                    if above:
                        folder.make_folder(above, parents=True)
                    folder.move(part, name)
                except OSError as error:
                    self._drop_part(folder, name)
                    raise type(error)(error.errno, error.strerror, name) from None
                del self._parts[name]
                self._written[name] = size
                self._mirror.note(name)

    def _check_room(self, folder: SafeFolder, name: str, more: int) -> None:
        """Raise an error if all that the kernel has sent, with a piece that comes now, takes too much."""
        for again in (False, True):
            files = self._written.keys() | {name}
            size = sum(self._written.values()) + sum(size for _, size in self._parts.values()) + more
            if len(files) <= _MAX_NAMES and not 0 < self._most_in_all < size:
                return
            if not again and time.monotonic() > self._counted + _COUNTED_SECONDS:
                self._counted = time.monotonic()
                self._written = {name: size for name, size in self._written.items() if folder.has_file(name)}
        raise PermissionError(
            f"{name!r}: files of this kernel take more than {self._most_in_all} bytes, or are more than {_MAX_NAMES}, "
            "together"
        )

    def close(self) -> None:
        """Remove what has come of files that were not completed."""
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            for name in list(self._parts):
                self._drop_part(folder, name)

    def _drop_part(self, folder: SafeFolder, name: str) -> None:
        """Remove what has come of a file that will not be completed."""
        part, _ = self._parts.pop(name, ("", 0))
        if part:
            with contextlib.suppress(OSError):
                folder.remove(part)

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            folder.remove(name)
            self._written.pop(name, None)


class _HostSyncState(SyncState):
    """A mirror of the host's folder, read without following a link."""

    def _walk(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        with SafeFolder(self._folder) as folder:
            entries = folder.walk(enter=lambda name: not name.startswith((".", "__")))
            for entry in itertools.islice(entries, _MAX_ENTRIES):
                if entry.is_file and not entry.name.rpartition("/")[2].startswith("."):
                    found[entry.name] = entry.info.st_mtime_ns, entry.info.st_size
                    if len(found) >= MAX_FILES:
                        break
        return found

    def _state(self, name: str) -> tuple[int, int]:
        with SafeFolder(self._folder) as folder:
            info = folder.info(name)
        return info.st_mtime_ns, info.st_size


def _batch_names(changed: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Yield names in groups that are moved at once."""
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


def _not_moved(names: Sequence[str], why: str) -> str:
    few = ", ".join(names[:_MAX_PARTS])
    return f"not copied, or not wholly, and tried again with the next cell ({why[:300]}): {len(names)} files: {few}"


def _short_texts(said: Sequence[Any]) -> list[str]:
    """Return what a kernel says of files that could not travel, as few short texts."""
    return [str(line)[:_LONGEST_NAME] for line in said[:MAX_FILES]]


def _allowed_name(name: str) -> str:
    """Return the name of a file that may travel.

    Raises:
        PermissionError: it is hidden, leads out of the folder, is longer than a system's paths, or lies too deep.
    """
    if len(name) > _LONGEST_NAME:
        raise PermissionError(f"a name of {len(name)} characters: {name[:100]!r}…")
    parts = PurePosixPath(name).parts
    if any(len(os.fsencode(part)) > _LONGEST_COMPONENT for part in parts):
        raise PermissionError(f"a name that no file system takes: {name[:100]!r}…")
    if len(parts) > _DEEPEST:  # each folder above a file takes room that no limit counts
        raise PermissionError(f"a name that lies more than {_DEEPEST} deep: {name[:100]!r}…")
    inner = parts[1:] if parts[:1] == (FOLDER,) else parts
    if not inner or any(part.startswith(".") for part in inner) or PurePosixPath(name).is_absolute() or "\\" in name:
        raise PermissionError(f"not a file that travels: {name!r}")
    return name
