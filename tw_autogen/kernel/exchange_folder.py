"""The host's side of the folder in which tables cross."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tw_autogen.errors import KernelError
from tw_autogen.kernel.guest.exchange_folder import FOLDER, write_error_reason
from tw_autogen.safe_folder import SafeFolder

_REMOVAL_SECONDS = 30.0
_LEFT_SECONDS = 24 * 3600.0
"""What nobody has written to for so long is of a kernel whose host was killed."""


class HostExchange:
    """The host's side of the folder in which tables cross; other kernels may have theirs in the same one.

    Args:
        folder: The kernel's.
        uid: The user that the kernel is, where the host is root; 0: the same as the host.
    """

    def __init__(self, folder: Path, uid: int = 0) -> None:
        self._folder = folder
        self._uid = uid
        self._closed = False
        self._unread: set[str] = set()
        self.token = secrets.token_hex(8)
        """Part of the names of all files of this kernel."""

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a new file; return its name and the open file."""
        if self._closed:  # a call that was given up has returned
            raise OSError("the kernel has ended")
        name = f"host-{self.token}-{secrets.token_hex(8)}{suffix}"  # code can't know it before
        with SafeFolder(self._folder) as folder, hidden_folder(folder, FOLDER, self._uid) as exchange:
            return name, exchange.create_file(name)

    def open(self, name: str) -> BinaryIO:
        """Open a file that the kernel wrote."""
        _check_plain(name)
        with self._open_exchange() as exchange:
            return exchange.open_file(name)

    def remove(self, name: str) -> None:
        """Remove a file that was read; what is not there, or no longer in the folder, stays as it is."""
        with contextlib.suppress(OSError), self._open_exchange() as exchange:
            _check_plain(name)
            exchange.remove(name)

    def sweep(self) -> None:
        """Remove the files that were there at the last sweep too: nobody reads them, such as those of failed calls."""
        with contextlib.suppress(OSError), self._open_exchange() as exchange:
            crossing = tuple(f"{side}-{self.token}-" for side in ("host", "kernel"))
            entries = exchange.walk(enter=lambda name: False)
            there = {entry.name for entry in entries if entry.is_file and entry.name.startswith(crossing)}
            for name in there & self._unread:
                exchange.remove(name)
            self._unread = there - self._unread

    @contextlib.contextmanager
    def _open_exchange(self) -> Iterator[SafeFolder]:
        with SafeFolder(self._folder) as folder, folder.open_folder(FOLDER, same_mount=True) as exchange:
            _check_owner(exchange, FOLDER, self._uid)
            yield exchange

    def as_write_error(self, error: OSError) -> Exception:
        """Return what is raised where a file can't be written: it names the folder."""
        return KernelError(write_error_reason(self._folder / FOLDER, error), folder=self._folder)

    def close(self) -> None:
        """Remove this kernel's files, and the hidden folder unless something else is there.

        Where the host is root, only files, and folders of the kernel's user: code may have moved others there.
        """
        self._closed = True
        as_root = hasattr(os, "geteuid") and os.geteuid() == 0
        ends = time.monotonic() + _REMOVAL_SECONDS
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            folder.unlock()  # code may have closed its own folder
            if not folder.has_entry(FOLDER):
                return
            with hidden_folder(folder, FOLDER, self._uid) as exchange:
                there, long_ago = list(exchange.walk(enter=lambda name: False)), time.time() - _LEFT_SECONDS
                over = [
                    entry
                    for entry in there
                    if (self.token in entry.name or entry.info.st_mtime < long_ago)
                    and (not (as_root and stat.S_ISDIR(entry.info.st_mode)) or entry.info.st_uid == self._uid > 0)
                ]
                for entry in over:
                    exchange.remove_tree(entry.name, seconds=ends - time.monotonic())
            if over == there:
                folder.remove_tree(FOLDER, seconds=ends - time.monotonic())


def _check_plain(name: str) -> None:
    if "/" in name or os.sep in name:
        raise FileNotFoundError(f"not a file of the exchange: {name!r}")


def _check_owner(hidden: SafeFolder, name: str, uid: int) -> None:
    if uid and hidden.info(".").st_uid != uid:
        raise FileNotFoundError(errno.ENOENT, "code has put a folder of another user's in its place", name)


@contextlib.contextmanager
def hidden_folder(folder: SafeFolder, name: str, uid: int = 0) -> Iterator[SafeFolder]:
    """Open a directory for the host's own files in a kernel's folder, made if it is missing or code has replaced it.

    Args:
        folder: The kernel's.
        name: Of the directory.
        uid: The user that a new one is given to; 0: the host's.

    Raises:
        OSError: it can't be made, something is mounted there, or code has put another user's in its place.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(folder.info(name).st_mode):
            folder.remove(name)
    folder.make_folder(name, owner=uid)
    with folder.open_folder(name, same_mount=True) as hidden:
        _check_owner(hidden, name, uid)
        with contextlib.suppress(OSError):
            hidden.unlock()
        yield hidden
