"""Folders and files that only their owner can read, whatever the umask: they hold what was said in sessions."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from tw_autogen.safe_folder import HeldFolder, SafeFolder, innermost_held_folder, real_path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_PASSABLE_MODE = 0o711
"""Of root's folders above those where kernels work: these run as other users, which have to pass through."""


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone.

    A folder that exists keeps its mode: it may be one that the user shares on purpose. Links above it are followed,
    but not in a held folder.

    Args:
        folder: The folder.

    Raises:
        OSError: it can't be made, or a file of that name exists.
    """
    present = _nearest_existing(folder)
    if not present.is_dir():
        raise FileExistsError(errno.EEXIST, "a file of this name is there", str(present))
    with SafeFolder(real_path(present)) as opened:
        _make_missing(opened, folder.relative_to(present).parts, FOLDER_MODE)


def open_private_folder(folder: Path) -> SafeFolder:
    """Open a folder, made as of `make_private_folder` but over no link; the caller closes it.

    Args:
        folder: Absolute, without links; one that appears on the way to it is not followed.

    Raises:
        OSError: it can't be made, or a link or a file is in the way.
    """
    present = _nearest_existing(folder)
    names = folder.relative_to(present).parts
    opened = SafeFolder.without_links(present)
    if not names:
        return opened
    with opened:
        _make_missing(opened, names, FOLDER_MODE)
        return opened.open_folder("/".join(names))


def create_held_folder(folder: Path, *, mode: int = _PASSABLE_MODE) -> HeldFolder:
    """Make the folder of a session or kernel, and those above it that are missing, and keep it open.

    So nobody can exchange it. Where the host is root, and a kernel works below, others can pass through the new folders
    by name, not list them.

    Args:
        folder: Absolute, without links; one that appears on the way to it is not followed.
        mode: Of the folder itself, where it is made.

    Returns:
        The folder, which the caller closes.

    Raises:
        OSError: it can't be made, a link is in the way, or it is another user's.
    """
    present = _nearest_existing(folder)
    names = folder.relative_to(present).parts
    with SafeFolder.without_links(present) as opened:
        _make_missing(opened, names, mode)
        found = opened.info("/".join(names) or ".")
    if names and not belongs_to_user(found):
        raise PermissionError(errno.EPERM, "another user has put a folder of theirs there", str(folder))
    held = HeldFolder(folder)
    if held.identity not in (None, (found.st_dev, found.st_ino)):
        held.close()
        raise PermissionError(errno.EPERM, "it was exchanged while it was made", str(folder))
    return held


def _nearest_existing(folder: Path) -> Path:
    """Return the held folder that a folder is or lies in, else the nearest one that exists."""
    return Path(
        innermost_held_folder(folder) or next(parent for parent in (folder, *folder.parents) if parent.exists())
    )


def _make_missing(opened: SafeFolder, names: Sequence[str], last_mode: int) -> None:
    """Make folders one in the other; those above the last one are passable where kernels run as other users."""
    above = _PASSABLE_MODE if hasattr(os, "geteuid") and os.geteuid() == 0 else FOLDER_MODE
    last = last_mode & above
    for depth in range(1, len(names) + 1):
        name = "/".join(names[:depth])
        try:
            opened.make_folder(name, mode=last if depth == len(names) else above)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(opened.path / name)) from error


def open_private(path: Path) -> TextIO:
    r"""Open a file of a session for appending text, readable by its owner alone; one that exists is tightened.

    Half a surrogate pair, as in a file's name that is no UTF-8, is written as JSON has it: `\udcff`.

    Raises:
        OSError: it can't be opened, or is a link, no regular file, another user's, or one with a second name.
    """
    with SafeFolder(path.parent) as folder:
        file = folder.append_file(path.name)
    try:
        found = os.fstat(file.fileno())
        if found.st_nlink > 1 or not belongs_to_user(found):
            raise PermissionError(errno.EPERM, "not a file of this user's alone", str(path))
        if hasattr(os, "fchmod") and stat.S_IMODE(found.st_mode) != FILE_MODE:  # the group's and others' permissions
            os.fchmod(file.fileno(), FILE_MODE)
    except BaseException:
        file.close()
        raise
    return io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return a folder of this user's that outlives sessions; kernels share matplotlib's font cache there.

    `XDG_CACHE_HOME` and the temporary folder count unless they lead into the current folder, or to what others have
    made or may write to: matplotlib takes settings from its cache.
    """
    given, home = environ.get("XDG_CACHE_HOME", ""), ""
    with contextlib.suppress(RuntimeError):  # this user has no home
        home = str(Path.home())
    wanted = [Path(given, "tw-autogen")] if os.path.isabs(given) and not _in_project(given, home) else []
    wanted += [Path(home, ".cache", "tw-autogen")] if home else []
    for folder in wanted:
        with contextlib.suppress(OSError):  # a home that can't be written to: the next one
            for one in (folder, folder / "matplotlib"):
                one.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            if os.access(folder / "matplotlib", os.W_OK) and all(map(_is_own, (folder, folder / "matplotlib"))):
                return folder
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir(), f"tw-autogen-{user}")
    if _in_project(tempfile.gettempdir(), home):
        folder = _new_cache()
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=FOLDER_MODE)
    if not _is_own(folder):
        folder = _new_cache()  # somebody else has put that there
    (folder / "matplotlib").mkdir(mode=FOLDER_MODE, exist_ok=True)
    return folder


def _in_project(path: str, home: str) -> bool:
    """Return whether a folder lies in the current one, and that holds no more of the user's than a project."""
    try:
        here = os.path.realpath(os.curdir)
    except OSError:  # it is gone
        return False
    whole = here == os.path.dirname(here) or (home and lies_in(os.path.realpath(home), here))
    return not whole and lies_in(os.path.realpath(path), here)


@functools.cache
def _new_cache() -> Path:
    return Path(tempfile.mkdtemp(prefix="tw-autogen-"))


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or lies in it.

    Args:
        path: Absolute, without links.
        folder: Likewise.
    """
    return os.path.join(path, "").startswith(os.path.join(folder, ""))


def belongs_to_user(info: os.stat_result) -> bool:
    """Return whether a file or folder is this user's; on Windows each is."""
    return not hasattr(os, "geteuid") or info.st_uid == os.geteuid()


def _is_own(folder: Path) -> bool:
    """Return whether it is a folder of this user's, no link, that nobody else may write to but the user's own group."""
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or not hasattr(os, "geteuid"):
        return stat.S_ISDIR(state.st_mode)
    others = stat.S_IWOTH if state.st_gid == os.getegid() else stat.S_IWOTH | stat.S_IWGRP
    return state.st_uid == os.geteuid() and not state.st_mode & others
