"""Temporary folders that are removed even if the process that has made them can't: by the next one that makes some."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tw_autogen.safe_folder.safe_folder import remove_folder

if sys.platform != "win32":
    import fcntl

PREFIX = "tw-"
_RECORD = "tw-made-"
_MAX_BYTES = 1 << 20
_NAME = re.compile(r"tw-(?:[a-z]{1,20}-)?[a-z0-9_]{8}")
"""What `mkdtemp` makes of our prefixes; a checkout beside them is hardly called so."""
_MAKING = threading.Lock()


def temporary_folder(prefix: str = PREFIX, *, place: Path | str | None = None) -> Path:
    """Make a temporary folder for this user alone.

    Args:
        prefix: What its name begins with; it begins with `tw-` itself.
        place: Where it is made; None: where the system makes temporary files.

    Returns:
        Its path, without links. Whoever makes it removes it. Where the process ends by a signal or `os._exit` before
        that, the first temporary folder of a later process of the same user removes it. Not on Windows.

    Raises:
        OSError: it can't be made.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place)).resolve()
    if sys.platform != "win32":
        with _MAKING, contextlib.suppress(OSError):  # without a record it is removed by its maker only
            _own_record(str(folder.parent)).add(folder)
    return folder


@contextlib.contextmanager
def private_folder(prefix: str = PREFIX) -> Iterator[Path]:
    """Make a temporary folder for this user alone, and remove it at the end with all in it; see `temporary_folder`.

    Args:
        prefix: What its name begins with; it begins with `tw-` itself.

    Raises:
        OSError: it can't be made.
    """
    folder = temporary_folder(prefix)
    try:
        yield folder
    finally:
        remove_folder(folder)


class _Record:
    """The folders that a process has made: a file with a lock, which ends with the process, however it ends.

    Args:
        place: The folder in which it lies.

    Raises:
        OSError: it can't be made.
    """

    def __init__(self, place: str) -> None:
        self._folders: list[Path] = []
        self._file, self._path = tempfile.mkstemp(prefix=_RECORD, dir=place)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._process = os.getpid()

    @property
    def counts(self) -> bool:
        """Whether it is this process's, and no other process has taken it for a left one before it was locked."""
        return self._process == os.getpid() and os.fstat(self._file).st_nlink > 0

    def add(self, folder: Path) -> None:
        """Note a folder with its number, since another one may have its name later."""
        found = folder.lstat()
        os.write(self._file, json.dumps([folder.name, found.st_dev, found.st_ino]).encode() + b"\n")
        self._folders.append(folder)

    def end(self) -> None:
        """Remove the file, unless a folder is still there."""
        if self._process == os.getpid() and not any(folder.exists() for folder in self._folders):
            with contextlib.suppress(OSError):
                os.unlink(self._path)


_RECORDS: dict[str, _Record] = {}


@atexit.register  # with the import, so that it runs after what removes the folders
def _end_records() -> None:
    for record in _RECORDS.values():
        record.end()


def _own_record(place: str) -> _Record:
    """Return this process's record of a folder; the first call removes what ended processes have left there."""
    if place not in _RECORDS or not _RECORDS[place].counts:
        _RECORDS[place] = _Record(place)
        _clean_up(place)
    return _RECORDS[place]


def _clean_up(place: str) -> None:
    """Remove the folders of processes that have ended, and their records, but where one of the folders stays."""
    with os.scandir(place) as found:
        records = [one.path for one in found if one.name.startswith(_RECORD)]
    for path in records:
        with contextlib.suppress(OSError):  # it is in use, or another process has removed it
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                _clean_up_after(file, path)
            finally:
                os.close(file)


def _clean_up_after(file: int, path: str) -> None:
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    stays = False
    for line in os.read(file, _MAX_BYTES).decode("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError, OSError, RecursionError):  # cut off, not ours, or removed by its maker
            name, device, number = json.loads(line)
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                continue  # no record of ours: only what lies beside it, and is named so, is removed
            folder = os.path.join(os.path.dirname(path), name)
            there = os.lstat(folder)
            if stat.S_ISDIR(there.st_mode) and (there.st_dev, there.st_ino) == (device, number):
                remove_folder(folder)
                stays = stays or os.path.lexists(folder)  # a kernel that is being ended may write there still
    if not stays:
        os.unlink(path)
