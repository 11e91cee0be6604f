"""`HeldFolder`: a folder that stays open, so that its path means this folder to every `SafeFolder` of the process."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tw_autogen.closing import Closing
from tw_autogen.safe_folder import directory_calls
from tw_autogen.safe_folder.directory_calls import PATH_MAX, At
from tw_autogen.safe_folder.symlink_resolution import walk_links

KERNEL_FOLDERS: set[Path] = set()
"""The folders of all kernels that this process has had, and what these could write to: code may have made links."""
_LOCK = threading.RLock()  # what is collected while it is held may open and close folders on the same thread
_HELD: dict[str, tuple[int, ...]] = {}
"""Descriptors by absolute path, the oldest first; those of one path are of one folder, but for removed ones."""
_UNUSED: deque[tuple[str, int]] = deque()
"""Descriptors to be closed, with their paths, once nobody is about to use one."""
_USERS: list[None] = []
"""As many as there are uses of `_keeping_descriptors_open` around one another."""


class HeldFolder(Closing):
    """A folder that is kept open while untrusted code works in it.

    Code that may write above the folder can rename it, or a folder above, and put something else in its place. Until
    `close`, whoever opens this path, or one below it, with `SafeFolder` or `read_unlinked` gets what lies in the folder
    that was here first. On Windows, which has no descriptors of folders, nothing is kept.

    Args:
        path: The folder; absolute, without links.

    Raises:
        PermissionError: the path is that of another held folder, which is still there, elsewhere.
        OSError: there is no such folder.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = os.path.abspath(path)
        self._at = -1
        if not directory_calls.BY_DESCRIPTOR:
            return
        with _keeping_descriptors_open():
            try:
                opened = _open(self._path)
            except OSError as error:
                raise directory_calls.explained(error, self._path) from None
            here = _HELD.get(self._path, ())
            if any(
                not _is_removed(one) and directory_calls.identity(one) != directory_calls.identity(opened)
                for one in here
            ):
                os.close(opened)
                why = "another folder than the one that is in use here, which was moved"
                raise PermissionError(errno.EPERM, why, self._path)
            _HELD[self._path] = (*here, opened)
        self._at = opened
        self._close = weakref.finalize(self, _release, self._path, opened)

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and number of the folder; None where nothing is kept."""
        return directory_calls.identity(self._at) if self._at >= 0 else None

    @property
    def removed(self) -> bool:
        """Whether the folder has been removed; False where nothing is kept."""
        return self._at >= 0 and _is_removed(self._at)

    def close(self) -> None:
        """Close it; the path means again what the system says. A second time nothing happens."""
        if self._at >= 0:
            self._at = -1
            self._close()


def innermost_held_folder(path: Path | str) -> str:
    """Return the path of the innermost held folder that a path lies in, or is; empty if there is none."""
    full = os.path.abspath(path) if _HELD else ""
    while full and full not in _HELD:
        full = full.rpartition(os.sep)[0]
    return full


def is_of_code(path: Path | str) -> bool:
    """Return whether a path lies in one of `KERNEL_FOLDERS`, or is one."""
    full = Path(os.path.abspath(path))
    return any(parent in KERNEL_FOLDERS for parent in (full, *full.parents))


def as_of_code(at: At, path: str) -> At:
    """Return an open directory, which becomes a `UntrustedDirFd` where it is one of `KERNEL_FOLDERS`.

    Args:
        at: The directory.
        path: Its absolute path; one that is relative, or `PATH_MAX` long, is no kernel's folder.
    """
    if not isinstance(at, int) or isinstance(at, directory_calls.UntrustedDirFd) or len(path) >= PATH_MAX:
        return at
    return directory_calls.UntrustedDirFd(at) if Path(path) in KERNEL_FOLDERS else at


def real_path(path: Path | str) -> Path:
    """Return a path as an absolute one without links; in a held folder, where links are never followed, as it is."""
    return Path(os.path.abspath(path)) if innermost_held_folder(path) else Path(path).resolve()


def held_above(path: Path | str) -> tuple[int, str] | None:
    """Return a descriptor, which the caller closes, of the held folder that a path lies in, and the rest of the path.

    Returns:
        None if there is none. The rest is empty for the held folder itself.
    """
    full = os.path.abspath(path)
    with _keeping_descriptors_open():
        found = innermost_held_folder(full)
        here = _HELD.get(found, ())
        if not here:
            return None
        at = next((one for one in here if not _is_removed(one)), here[-1])
        return os.dup(at), full[len(found) + 1 :]


def _open(path: str) -> int:
    """Open a folder by its path; below a held folder without following links."""
    above = held_above(os.path.dirname(path))
    if above is None:
        return int(directory_calls.open_folder(None, path))
    at, rest = above
    for name in [*filter(None, rest.split(os.sep)), os.path.basename(path)]:
        try:
            inner = int(directory_calls.open_folder(at, name))
        finally:
            os.close(at)
        at = inner
    return at


@contextlib.contextmanager
def _keeping_descriptors_open() -> Iterator[None]:
    """Keep every descriptor of `_HELD` open; close the unused ones before and after, but not inside another use."""
    with _LOCK:
        if not _USERS:
            _close_unused()
        _USERS.append(None)
        try:
            yield
        finally:
            _USERS.pop()
            if not _USERS:
                _close_unused()


def _release(path: str, at: int) -> None:
    """Close a descriptor, now or when the next folder is opened; never waits, because a collection may call it."""
    _UNUSED.append((path, at))
    if _LOCK.acquire(blocking=False):
        try:
            if not _USERS:
                _close_unused()
        finally:
            _LOCK.release()


def _close_unused() -> None:
    _USERS.append(None)  # what is collected meanwhile is queued, and closed by this very loop
    try:
        while _UNUSED:
            path, at = _UNUSED.popleft()
            left = tuple(one for one in _HELD.get(path, ()) if one != at)
            if left:
                _HELD[path] = left
            else:
                _HELD.pop(path, None)
            os.close(at)
    finally:
        _USERS.pop()


def _is_removed(at: int) -> bool:
    return os.fstat(at).st_nlink == 0


def over_no_link_of_code(path: Path | str) -> tuple[Path | str, bool]:
    """Return where a path leads and True, if that is a folder of code's by another name; else the path and False.

    Raises:
        PermissionError: it leads over a link in such a folder, which code may have made.
    """
    way = walk_links(path)
    if link := next(filter(is_of_code, way.links), ""):
        raise PermissionError(errno.EPERM, f"{link} is a link, which code may have made", os.fspath(path))
    of_code = bool(way.links) and is_of_code(way.target)
    return (way.target, True) if of_code else (path, False)
