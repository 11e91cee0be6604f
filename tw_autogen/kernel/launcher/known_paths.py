"""Folders and files as the host has checked them: opened without following a link, and compared with what they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence

Known = Mapping[str, Sequence[int]]
"""Device and number by absolute path."""

PATH = getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)
"""Opens something without a right to it, for `fstat` and mounts."""


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
    found = os.dup(at)
    for part in path.split("/"):
        if part:
            try:
                inner = os.open(part, PATH | os.O_NOFOLLOW, dir_fd=found)
            finally:
                os.close(found)
            found = inner
    return found


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
    at = os.open(root, PATH | os.O_NOFOLLOW)
    try:
        found = open_beneath(at, path)
    except OSError:
        raise exchanged(path) from None
    finally:
        os.close(at)
    try:
        _compare(path, os.fstat(found), known)
    except BaseException:
        os.close(found)
        raise
    return found


def check_known(known: Known) -> None:
    """Check that every path shows in this process what it has to be; errors as of `open_known`."""
    for path in known:
        os.close(open_known(path, known))


def exchanged(path: str) -> FolderRefusedError:
    """Return the error for a path that is not what the host has checked."""
    return FolderRefusedError(f"{path}: exchanged while the kernel was started, so no code is run there")


def _compare(path: str, about: os.stat_result, known: Known) -> None:
    """Raise an error if what was found at a path is a link, or not what the host has checked."""
    if stat.S_ISLNK(about.st_mode) or identity(about) != list(known.get(path, identity(about))):
        raise exchanged(path)


def identity(about: os.stat_result) -> list[int]:
    """Return device and number, as `Known` holds them."""
    return [about.st_dev, about.st_ino]
