"""Folders and files as the host has checked them: opened without following a link, and compared with what they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence

Known = Mapping[str, Sequence[int]]
"""Device and number by absolute path."""

_PATH = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class FolderRefusedError(Exception):
    """The sandbox works here, but not with these folders: code could reach, or change, what was not granted."""


def open_known(path: str, known: Known, *, root: str = "/") -> int:
    """Open a path whose identity the host has taken down; return a descriptor of `O_PATH`.

    Args:
        path: Absolute, a key of `known`.
        known: What it has to be.
        root: The folder in which it is looked up.

    Raises:
        FolderRefusedError: it is something else now, is missing, or leads over a link.
        OSError: there is no `root`.
    """
    found = os.open(root, _PATH)
    try:
        for part in path.split("/"):
            if part:
                inner = os.open(part, _PATH, dir_fd=found)
                os.close(found)
                found = inner
    except OSError:  # of a link in the way too, which is opened itself
        os.close(found)
        raise _exchanged(path) from None
    try:
        compare(path, os.fstat(found), known)
    except BaseException:
        os.close(found)
        raise
    return found


def compare(path: str, about: os.stat_result, known: Known) -> None:
    """Check what was found at a path.

    Args:
        path: Absolute, a key of `known`.
        about: What `fstat` says of it.
        known: What it has to be.

    Raises:
        FolderRefusedError: it is not what the host has checked.
    """
    if stat.S_ISLNK(about.st_mode) or [about.st_dev, about.st_ino] != list(known[path]):
        raise _exchanged(path)


def check_known(known: Known) -> None:
    """Check that every path shows in this process what it has to be; errors as of `open_known`."""
    for path in known:
        os.close(open_known(path, known))


def _exchanged(path: str) -> FolderRefusedError:
    return FolderRefusedError(f"{path}: exchanged while the kernel was started, so no code is run there")
