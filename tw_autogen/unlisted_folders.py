"""Folders that can't be listed: what they hold counts as unknown, never as nothing, as programs may find it by name."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_REASON = "it can't be listed, so what it holds is not known; chmod u+r, or remove it"


def listed_names(folder: Path | str) -> list[str]:
    """Return the names in a folder, sorted; none where it is missing, no folder, or a closed one of another user.

    Raises:
        PermissionError: it can't be listed, and programs of this user may find files in it by their names.
    """
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        check_unlisted(error, os.fspath(folder))
        return []


def check_unlisted(error: OSError, name: str, *, at: int | str | None = None) -> None:
    """Raise if programs of this user may find files in a folder that could not be listed.

    They may in one that is theirs, since they can change its mode, and in one that they may pass.

    Args:
        error: Why it could not be listed.
        name: Its path, or its name in `at`.
        at: A descriptor of the folder that it is in, or that one's path.

    Raises:
        PermissionError: they may; `filename` is its path as far as it is known.
    """
    if error.errno in _NOT_THERE:
        return
    path = os.path.join(at, name) if isinstance(at, str) else name
    folder = at if isinstance(at, int) else None
    if os.name == "posix" and error.errno in (errno.EACCES, errno.EPERM):
        try:
            about = os.stat(path, dir_fd=folder)
        except OSError as gone:
            if gone.errno in _NOT_THERE:
                return
        else:
            theirs = about.st_uid == os.geteuid() or os.access(path, os.X_OK, dir_fd=folder)
            if not (stat.S_ISDIR(about.st_mode) and theirs):
                return
    raise PermissionError(errno.EACCES, _REASON, path) from error
