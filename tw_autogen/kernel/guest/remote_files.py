"""Where the kernel doesn't see the host's folder: files travel in pieces over the channel that carries host calls.

The kernel asks for each piece, in a cell as well as between two, so neither side ever sends what nobody reads.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import inspect
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .exchange_folder import FOLDER

FILES = "files"
"""The `op` of a request about files."""

PIECE = 1 << 20
"""Bytes in one message; in base64 far below the 10 MiB at which a gateway closes its websocket."""

MAX_FILES = 1000
"""How many files a folder may have that are kept the same on both sides."""

NOT_COPIED = " was not copied: "
"""Stands between the name of a file and the reason."""


class HostFiles:
    """The files of the host's folder, as seen from a kernel that is elsewhere.

    Args:
        ask: Sends one request to the host, and gives its answer.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def fetch(self, name: str, file: BinaryIO) -> None:
        """Copy a file of the host's into an open one.

        Args:
            name: The file's name below the session's folder.
            file: Open for writing.
        """
        place = 0
        while True:
            data = base64.b64decode(self._ask(what="read", file=name, place=place, size=PIECE))
            file.write(data)
            place += len(data)
            if len(data) < PIECE:
                return

    def send(self, name: str, file: BinaryIO) -> None:
        """Make a file of the host's, or replace it, once all of it has come.

        Args:
            name: The file's name below the session's folder.
            file: Open for reading.
        """
        place, last = 0, False
        while not last:
            data = file.read(PIECE)
            last = len(data) < PIECE
            self._ask(what="write", file=name, place=place, data=base64.b64encode(data).decode(), last=last)
            place += len(data)

    def remove(self, name: str) -> None:
        """Remove a file that crossed."""
        self._ask(what="remove", file=name)

    def changed(self) -> tuple[list[tuple[str, int]], list[str]]:
        """Return what is new in the host's folder, see `SyncState.changed`."""
        found, left = self._ask(what="changed")
        return found, left


class RemoteTableStore:
    """Tables that cross: made in memory here, sent when they are closed.

    Args:
        files: The host's.
        token: As of `InsideExchange`.
    """

    def __init__(self, files: HostFiles, token: str) -> None:
        self._files = files
        self._token = token
        self._count = 0

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a new file; give its name and the open file."""
        self._count += 1
        name = f"kernel-{self._token}-{os.getpid()}-{self._count}{suffix}"
        return name, _Outgoing(lambda file: self._files.send(f"{FOLDER}/{name}", file))

    def open(self, name: str) -> BinaryIO:
        """Fetch a file that the host wrote."""
        file = io.BytesIO()
        self._files.fetch(f"{FOLDER}/{name}", file)
        file.seek(0)
        return file

    def remove(self, name: str) -> None:
        """Remove a file that was read."""
        self._files.remove(f"{FOLDER}/{name}")

    def as_write_error(self, error: OSError) -> Exception:
        """Return the error itself: only memory is written here."""
        return error


class _Outgoing(io.BytesIO):
    def __init__(self, send: Callable[[BinaryIO], None]) -> None:
        super().__init__()
        self._send: Callable[[BinaryIO], None] | None = send

    def close(self) -> None:
        send, self._send = self._send, None
        if send is not None:
            self.seek(0)
            send(self)
        super().close()


class SyncState:
    """Tells which files below a folder the other side has not seen; hidden ones and links stay where they are.

    Here it reads the kernel's folder by path; in the host a subclass does so without following a link.

    Args:
        folder: The host's, or the kernel's.
        max_bytes: Larger files don't travel.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._seen: dict[str, tuple[int, int]] = {}
        self._looked: dict[str, tuple[int, int]] = {}
        self._full = False

    def changed(self) -> tuple[list[tuple[str, int]], list[str]]:
        """Return names and sizes of new and changed files, and in words which of them don't travel."""
        found, left = [], []
        self._looked = self._walk()
        full, self._full = self._full, len(self._looked) >= MAX_FILES
        if self._full and not full:
            left.append(f"the folder holds {MAX_FILES} files or more: those further down by name stay where they are")
        for name, state in self._looked.items():
            if self._seen.get(name) == state:
                continue
            if state[1] > self._max_bytes:
                left.append(f"{name} stays where it is: {state[1]} bytes, and at most {self._max_bytes} travel")
                self._seen[name] = state
            else:
                found.append((name, state[1]))
        return found, left

    def note(self, name: str) -> None:
        """Take down that both sides have this file as it is now."""
        with contextlib.suppress(OSError):
            self._seen[name] = self._state(name)

    def note_sent(self, name: str) -> None:
        """Take down that both sides have this file as it was when `changed` looked at it."""
        if name in self._looked:
            self._seen[name] = self._looked[name]

    def _walk(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for top, folders, names in os.walk(self._folder):
            folders[:] = sorted(folder for folder in folders if not folder.startswith((".", "__")))
            for name in sorted(names):
                path = Path(top, name)
                if name.startswith(".") or path.is_symlink() or not path.is_file():
                    continue
                with contextlib.suppress(OSError):  # gone meanwhile
                    inner = path.relative_to(self._folder).as_posix()
                    found[inner] = self._state(inner)
                if len(found) >= MAX_FILES:  # somebody's whole tree: not what a session works on
                    return found
        return found

    def _state(self, name: str) -> tuple[int, int]:
        stat = (self._folder / name).stat()
        return stat.st_mtime_ns, stat.st_size


class RemoteFolder:
    """The kernel's own folder, and what crosses between it and the host's.

    Args:
        files: The host's.
        max_bytes: Larger files don't travel.
    """

    def __init__(self, files: HostFiles, max_bytes: int) -> None:
        self._folder = Path.cwd()
        self._files = files
        self._mirror = SyncState(self._folder, max_bytes)
        self._untold: list[str] = []

    def changed(self) -> tuple[list[tuple[str, int]], list[str]]:
        """Return what the host has not seen, see `SyncState.changed`."""
        found, left = self._mirror.changed()
        told, self._untold = [*self._untold, *left], []
        return found, told

    def give_new(self) -> None:
        """Send what the host has not seen, before one of its functions is called."""
        found, left = self._mirror.changed()
        self._untold += [*left, *self.send_to_host([name for name, _ in found])]

    def take_new(self) -> None:
        """Fetch what is new in the host's folder, behind a call."""
        found, left = self._files.changed()
        self._untold += [*left, *self.take([name for name, _ in found])]

    def take(self, names: Sequence[str]) -> list[str]:
        """Fetch files of the host's; say in words what could not be."""
        return self._move_each(names, self._fetch_file, self._mirror.note)

    def send_to_host(self, names: Sequence[str]) -> list[str]:
        """Send files to the host; say in words what could not be."""
        return self._move_each(names, self._send_file, self._mirror.note_sent)

    def _move_each(self, names: Sequence[str], do: Callable[[str], None], note: Callable[[str], None]) -> list[str]:
        failed = []
        for name in names:
            try:
                do(name)
            except (OSError, RuntimeError) as error:  # the disk here, or what the host said
                failed.append(f"{name}{NOT_COPIED}{error}")
            else:
                note(name)
        return failed

    def _fetch_file(self, name: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        try:
            with open(part, "wb") as file:
                self._files.fetch(name, file)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def _send_file(self, name: str) -> None:
        with open(self._folder / name, "rb") as file:
            self._files.send(name, file)


class RunOnce:
    """Stands before a kernel's handler of cells; one that is sent again, lest it never came, is not run again.

    Args:
        run: The handler.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self._last: Any = None

    async def __call__(self, stream: Any, ident: Any, parent: Any) -> None:
        """Run a cell, unless it is the one before."""
        number = parent["header"]["msg_id"]
        if number == self._last:
            return
        self._last = number
        done = self._run(stream, ident, parent)
        if inspect.isawaitable(done):
            await done


def set_up_remote_session(environment: Mapping[str, str], *, folder_name: str, leftover: str) -> None:
    """Move a kernel that anybody started into a folder of its own, removed when it ends.

    Args:
        environment: Variables to set.
        folder_name: What the folder is called; the host knows it, so that it can be removed by the next kernel.
        leftover: The folder of the kernel before, which may have been killed.
    """
    for name in (leftover, folder_name):
        if name and not re.fullmatch(r"tw-kernel-[0-9a-f]{32}", name):  # one of them is removed, with all below it
            raise ValueError(f"not the name of a kernel's folder: {name!r}")
    if leftover:
        shutil.rmtree(Path(tempfile.gettempdir(), leftover), ignore_errors=True)
    folder = Path(tempfile.gettempdir(), folder_name)
    folder.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chdir(folder)
    os.environ.update(environment)
    sys.path[:] = [*(one for one in sys.path if one), ""]  # modules beside the data shadow nothing
