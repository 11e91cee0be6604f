"""The host's hands in a kernel's folder: no link that code made there leads them out of it."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from tw_autogen.kernel.inside.exchange import FOLDER, make_folder

SESSION_FILES = "files"
"""The folder in a session's own in which its code runs."""
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # a pipe by that name must not hold the host up
_BINARY = getattr(os, "O_BINARY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd


def session_name(folder: Path) -> str:
    """Return the name of the session that works in a folder: the folder's own, or its parent's for a session's `files`.

    Example:
        >>> session_name(Path(".tw/sessions/session-3be272b9ccf6/files")), session_name(Path("work"))
        ('session-3be272b9ccf6', 'work')
    """
    return folder.parent.name if folder.name == SESSION_FILES else folder.name


def open_inside(folder: Path, name: str, flags: int = os.O_RDONLY) -> int:
    """Open a plain file below a folder, step by step, without following a link.

    Args:
        folder: Itself trusted.
        name: Relative; what a kernel said, so it may be anything.
        flags: As of `os.open`.

    Returns:
        A file descriptor.

    Raises:
        OSError: there is none, it is not a plain file, or a link is in the way.
    """
    parts = _parts(name)
    if not _BY_DESCRIPTOR:
        return _open_by_path(folder, Path(*parts), flags)
    with _parent(folder, parts) as here:
        found = os.open(parts[-1], flags | _NOFOLLOW | _NONBLOCK, 0o644, dir_fd=here)
    return _checked(found, name, folder)


def remove_inside(folder: Path, name: str) -> None:
    """Remove a plain file below a folder; a link on the way is not followed.

    Raises:
        OSError: there is none, it is not a plain file, or a link is in the way.
    """
    os.close(open_inside(folder, name))
    parts = _parts(name)
    if not _BY_DESCRIPTOR:
        (folder / Path(*parts)).unlink()
        return
    with _parent(folder, parts) as here:
        os.unlink(parts[-1], dir_fd=here)


def _parts(name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name.replace(os.sep, "/")).parts
    if not parts or ".." in parts or PurePosixPath(*parts).is_absolute() or "\0" in name:
        raise FileNotFoundError(f"not a file below the folder: {name!r}")
    return parts


@contextlib.contextmanager
def _parent(folder: Path, parts: tuple[str, ...]) -> Iterator[int]:
    """Open the folder that a file is in, step by step."""
    here = os.open(folder, os.O_RDONLY | _DIRECTORY | _NOFOLLOW)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | _DIRECTORY | _NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def plain_file(folder: Path, name: str) -> Path | None:
    """Give the absolute path of a plain file below a folder; None if it is none, or a link is in the way."""
    try:
        os.close(open_inside(folder, name))
    except (OSError, ValueError):
        return None
    return folder / name


class HostExchange:
    """The host's side of the folder in which tables cross.

    Args:
        folder: The kernel's.
        uid: The user that the kernel is, where the host is root; 0: the same as the host.
    """

    def __init__(self, folder: Path, uid: int = 0) -> None:
        self._folder = folder
        self._uid = uid
        self._numbers = itertools.count(1)
        self._make_folder()

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a new file; give its name and the open file."""
        name = f"host-{os.getpid()}-{next(self._numbers)}{suffix}"
        self.remove(name)
        self._make_folder()  # the code may have removed it
        found = open_inside(self._folder, f"{FOLDER}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY)
        return name, os.fdopen(found, "wb")

    def open(self, name: str) -> BinaryIO:
        """Open a file that the kernel wrote."""
        if "/" in name or os.sep in name:
            raise FileNotFoundError(f"not a file of the exchange: {name!r}")
        return os.fdopen(open_inside(self._folder, f"{FOLDER}/{name}", os.O_RDONLY | _BINARY), "rb")

    def remove(self, name: str) -> None:
        """Remove a file that was read; what is not there, or no longer in the folder, stays as it is."""
        with contextlib.suppress(OSError):
            remove_inside(self._folder, f"{FOLDER}/{name}")

    def _make_folder(self) -> None:
        if make_folder(self._folder / FOLDER) and self._uid:
            os.chown(self._folder / FOLDER, self._uid, self._uid, follow_symlinks=False)

    def close(self) -> None:
        """Remove the hidden folder, unless it has become a link."""
        shutil.rmtree(self._folder / FOLDER, ignore_errors=True)


def _open_by_path(folder: Path, name: Path, flags: int) -> int:
    """Open where the system knows no open relative to a directory: Windows, where making links needs a privilege."""
    path = folder / name
    if not path.parent.resolve().is_relative_to(folder.resolve()) or path.is_symlink():
        raise FileNotFoundError(f"a link is in the way: {name}")
    return _checked(os.open(path, flags, 0o644), str(name), folder)


def _checked(found: int, name: str, folder: Path) -> int:
    """Give the file again, if it is a plain one, and no second name of one that belongs to somebody else."""
    about = os.fstat(found)
    shared = about.st_nlink > 1 and about.st_uid != os.stat(folder, follow_symlinks=False).st_uid
    if shared or not stat.S_ISREG(about.st_mode):
        os.close(found)
        raise FileNotFoundError(f"not a plain file of this folder: {name!r}")
    return found
