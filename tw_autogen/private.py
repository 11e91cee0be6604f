"""Folders and files that only their owner can read, whatever the umask: they hold what was said in sessions."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_PASSABLE_MODE = 0o711
"""Of root's folders above those where kernels work: these run as other users, which have to pass through."""


def make_private_folder(folder: Path, *, passable: bool = False) -> None:
    """Make a folder, and those above it that are missing, for this user alone.

    A folder that exists keeps its mode: it may be one that the user shares on purpose.

    Args:
        folder: The folder.
        passable: A kernel works in a folder below it: where the host is root, others can pass through by name, and not
            list it. Those above it that are made are always such.

    Raises:
        OSError: it can't be made, or a file of that name exists.
    """
    missing = []
    for one in (folder, *folder.parents):
        if one.exists():
            break
        missing.append(one)
    mode = _PASSABLE_MODE if hasattr(os, "geteuid") and os.geteuid() == 0 else FOLDER_MODE
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another thread or process was first
            one.mkdir(mode=FOLDER_MODE)
            one.chmod(mode if passable or one != folder else FOLDER_MODE)
    if not folder.is_dir():
        folder.mkdir()


def open_private(path: Path) -> TextIO:
    """Open a file for appending text, readable by its owner alone; one that exists and is this user's is tightened.

    Raises:
        OSError: it can't be opened.
    """
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
    _tighten(number)
    return os.fdopen(number, "a", encoding="utf-8", newline="\n")


def touch_private(path: Path) -> None:
    """Make an empty file that only its owner can read, or tighten one that exists and is this user's.

    Raises:
        OSError: it can't be opened for writing.
    """
    open_private(path).close()


def _tighten(number: int) -> None:
    """Take the group's and the others' permissions from an open file of this user's; Windows has none."""
    if not hasattr(os, "fchmod"):
        return
    found = os.fstat(number)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != FILE_MODE:
        os.fchmod(number, FILE_MODE)


def cache_folder(host: Mapping[str, str]) -> Path:
    """Return a folder of this user's that outlives sessions; kernels share matplotlib's font cache there."""
    wanted = [Path(cache) / "tw-autogen"] if os.path.isabs(cache := host.get("XDG_CACHE_HOME", "")) else []
    with contextlib.suppress(RuntimeError):  # this user has no home
        wanted.append(Path.home() / ".cache" / "tw-autogen")
    for folder in wanted:
        with contextlib.suppress(OSError):  # a home that can't be written to: the next one
            (folder / "matplotlib").mkdir(parents=True, exist_ok=True)
            if os.access(folder / "matplotlib", os.W_OK):
                return folder
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir(), f"tw-autogen-{user}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or (hasattr(os, "getuid") and state.st_uid != os.getuid()):
        folder = Path(tempfile.mkdtemp(prefix="tw-autogen-"))  # somebody else has put that there
    (folder / "matplotlib").mkdir(exist_ok=True)
    return folder
