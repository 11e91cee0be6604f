"""Folders and files as the host has checked them: opened without following a link, and compared with what they were."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence

from .system_calls import open_without_links

Known = Mapping[str, Sequence[int]]
"""Device and number by absolute path."""

PATH = getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)
"""Opens something without a right to it, for `fstat` and mounts."""

SESSIONS = ".tw"
"""Where sessions lie by default, below the folder in which the command line was started."""

_MAX_LINKS = 40


class FolderRefusedError(Exception):
    """The sandbox works here, but not with these folders: code could reach, or change, what was not granted."""


def open_beneath(at: int, path: str) -> int:
    """Open what a path means below a folder, component by component and over no link; return an `O_PATH` descriptor.

    Args:
        at: Descriptor of the folder; stays open.
        path: Relative to it; a `/` at its beginning means nothing.

    Raises:
        OSError: it is missing, or a link or a file is in the way. A link at the end is opened itself.
    """
    fd = os.dup(at)
    for part in path.split("/"):
        if part:
            try:
                inner = os.open(part, PATH | os.O_NOFOLLOW, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
    return fd


def is_below(path: str, folder: str) -> bool:
    """Return whether an absolute path is a folder, or lies in it; the file system is not asked.

    Args:
        path: An absolute path without links.
        folder: An absolute path without links; a slash at its end does not matter.
    """
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def resolve(path: str, written: Iterable[str]) -> str:
    """Return a path without links; empty if one of its links lies in a folder that code may write to.

    Args:
        path: Absolute.
        written: Those folders, without links.
    """
    places = list(written)
    here, left, links = "", [one for one in path.split("/") if one][::-1], 0
    while left:
        part = left.pop()
        if part == "..":
            here = os.path.dirname(here).rstrip("/")
        elif part != ".":
            try:
                target = os.readlink(f"{here}/{part}")
            except OSError:  # no link; what is missing is seen by whoever opens it
                here = f"{here}/{part}"
                continue
            links += 1
            if links > _MAX_LINKS or any(is_below(here or "/", place) for place in places):
                return ""
            here = "" if target.startswith("/") else here
            left += [one for one in target.split("/") if one][::-1]
    return here or "/"


def crosses(path: str, written: Iterable[str]) -> bool:
    """Return whether a path lies in, or leads over or into, a folder that code may write to.

    Args:
        path: A path of the host, whose links are followed; True also after too many, or one that code may have made.
        written: Folders that code may write to, absolute and without links.
    """
    places = list(written)
    resolved = resolve(os.path.abspath(path), places)
    return not resolved or any(is_below(one, place) for one in (path, resolved) for place in places)


def open_granted(path: str, known: Known, written: Iterable[str]) -> int:
    """Open what code is granted; return a descriptor of `O_PATH`.

    Args:
        path: Absolute.
        known: What the host has checked; of such a path no link is followed.
        written: Folders that code may write to; no link there is followed either.

    Raises:
        FolderRefusedError: as of `open_known`, for a path that is known.
        OSError: it is missing, or a link that code may have made is in the way.
    """
    if path in known:
        return open_known(path, known)
    with contextlib.suppress(OSError):  # over a link, missing, or an older system: looked at below
        return open_without_links(path, PATH)
    resolved = resolve(path, written)
    at = os.open("/", PATH)
    try:
        opened = open_beneath(at, resolved) if resolved else -1
    finally:
        os.close(at)
    if not resolved or stat.S_ISLNK(os.fstat(opened).st_mode):
        if resolved:
            os.close(opened)
        raise FileNotFoundError(errno.ENOENT, "a link that code may have made is in the way", path)
    return opened


def open_known(path: str, known: Known, *, root: str = "/") -> int:
    """Open a path whose identity the host has taken down; return a descriptor of `O_PATH`.

    Args:
        path: Absolute.
        known: What it has to be; of a path that is missing here, that it leads over no link.
        root: The folder in which it is looked up.

    Raises:
        FolderRefusedError: it is something else now, is missing, or leads over a link.
        OSError: there is no `root`.
    """
    try:
        fd = open_without_links(f"{root.rstrip('/')}{path}", PATH)
    except OSError:  # as a link at the end, or an older system
        at = os.open(root, PATH | os.O_NOFOLLOW)
        try:
            fd = open_beneath(at, path)
        except OSError:
            raise exchanged(path) from None
        finally:
            os.close(at)
    try:
        _check_unchanged(path, os.fstat(fd), known)
    except BaseException:
        os.close(fd)
        raise
    return fd


def closed_folder(path: str) -> str:
    """Return the innermost folder on the way to a path that is closed to other users; empty if there is none.

    Args:
        path: Absolute.
    """
    while path != "/":
        path = os.path.dirname(path)
        with contextlib.suppress(OSError):
            if not os.stat(path).st_mode & stat.S_IXOTH:
                return path
    return ""


def exposed_sessions_reason(granted: str, own: str, reached: Iterable[str]) -> str:
    """Return the reason why code that keeps the right to pass closed folders may not have a folder; empty if it may.

    Closed files, as the journals of root's sessions, are open to it too, in all that it is granted.

    Args:
        granted: The folder, absolute and without links.
        own: Where its kernel works.
        reached: What code has to reach: it keeps that right if a folder on the way there is closed to others.
    """
    way = own[len(granted) :].split(os.sep) if is_below(own, granted) else ()
    if not (SESSIONS in way or os.path.lexists(os.path.join(granted, SESSIONS))):
        return ""
    closed = next(filter(None, map(closed_folder, reached)), "")
    return closed and (
        f"where sessions are kept ({SESSIONS}), all of which root's code could read: {closed} is closed to others, and "
        f"the right by which code passes it at the level landlock opens closed files too; chmod o+x {closed}, or set "
        "kernel.sandbox to 'namespaces' or 'bubblewrap'"
    )


def check_known(known: Known) -> None:
    """Check that every path shows in this process what it has to be; errors as of `open_known`."""
    for path in known:
        os.close(open_known(path, known))


def exchanged(path: str) -> FolderRefusedError:
    """Return the error for a path that is not what the host has checked."""
    return FolderRefusedError(f"{path}: exchanged while the kernel was started, so no code is run there")


def _check_unchanged(path: str, about: os.stat_result, known: Known) -> None:
    """Raise an error if what was found at a path is a link, or not what the host has checked."""
    if stat.S_ISLNK(about.st_mode) or identity(about) != list(known.get(path, identity(about))):
        raise exchanged(path)


def identity(about: os.stat_result) -> list[int]:
    """Return device and number, as `Known` holds them."""
    return [about.st_dev, about.st_ino]
