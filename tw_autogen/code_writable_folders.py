"""Folders that code of kernels may write to, known to all processes of this user: programs there are trusted no longer.

What a program loads is more than any list of files says. So trust that starts programs ends when a kernel begins whose
code may write where they lie, and is not remembered while a process lives that has had one.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import secrets
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from tw_autogen.private_files import make_private_folder
from tw_autogen.session_layout import FILES
from tw_autogen.trust_store import TrustStore, lie_together, state_folder

if sys.platform != "win32":
    import fcntl

_LOG = logging.getLogger(__name__)
_SUFFIX = ".folders"
_SESSIONS = (".tw", "sessions")
"""Where sessions lie; no program is looked for in their folders of files."""
_MAX_FOLDERS = 10_000
"""Of one process; more count as all folders there are."""
_MAX_BYTES = 1 << 24


class _FolderRegistry:
    """The file in which this process writes its folders, locked for as long as it lives.

    Args:
        place: The user's folder of such files.
    """

    def __init__(self, place: Path) -> None:
        make_private_folder(place)
        for one in _files_in(place):
            with contextlib.suppress(OSError):  # one of another user, as after `sudo`
                _folders_of(one)
        path = place / f"{os.getpid()}-{secrets.token_hex(8)}"
        self.folders: set[str] = set()
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_SH)
        os.rename(path, f"{path}{_SUFFIX}")  # it is seen by others once it is locked
        self._made = os.getpid()
        atexit.register(self._remove, f"{path}{_SUFFIX}")

    def _remove(self, path: str) -> None:
        if os.getpid() == self._made:  # not in a process that was forked from this one
            with contextlib.suppress(OSError):
                os.unlink(path)

    def add(self, folder: str) -> None:
        if len(self.folders) < _MAX_FOLDERS:
            os.write(self._file, os.fsencode(folder if len(self.folders) < _MAX_FOLDERS - 1 else os.sep) + b"\0")
        self.folders.add(folder)


_REGISTRIES: dict[tuple[int, Path], _FolderRegistry] = {}


def note_code_folders(folders: Iterable[Path]) -> None:
    """Note that code may write to folders until this process ends, and end trust that starts programs there.

    The files of sessions in `.tw/sessions` are left out. Where it can't be noted, a warning says so.

    Args:
        folders: Absolute.
    """
    state = state_folder()
    wanted = {os.path.realpath(folder) for folder in folders}
    wanted = {one for one in wanted if Path(one).parts[-4:-2] != _SESSIONS or os.path.basename(one) != FILES}
    if sys.platform == "win32" or not wanted:
        return
    problem: OSError | None = None
    try:
        if state is not None:  # before trust ends: what is trusted after that is compared with what is noted
            key = os.getpid(), state
            registry = _REGISTRIES.get(key) or _REGISTRIES.setdefault(key, _FolderRegistry(state / "writers"))
            for folder in wanted - registry.folders:
                registry.add(folder)
    except OSError as error:
        problem = error
    for one in wanted:  # each time: what this process holds may be new
        try:
            TrustStore.of_user().end(one)
        except OSError as error:
            problem = error
    if problem is not None:
        words = "%s can't be written (%s): trust of programs may go on where code of a kernel may write"
        _LOG.warning(words, state, problem)


def writable_by_code(places: Iterable[str]) -> str:
    """Return a folder that code of a living process's kernels may write to, if places lie in it; empty if none do.

    Args:
        places: Absolute, without links.

    Raises:
        OSError: what another process has noted can't be read, as after `sudo`; names the file.
    """
    state, here = state_folder(), list(places)
    if state is None or sys.platform == "win32" or not here:
        return ""
    for one in _files_in(state / "writers"):
        for folder in _folders_of(one):
            if any(lie_together(folder, place) for place in here):
                return folder
    return ""


def _files_in(place: Path) -> list[str]:
    try:
        return [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith(_SUFFIX)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _folders_of(path: str) -> list[str]:
    """Return what a living process has noted; the file of one that has ended is removed."""
    try:
        # For writing as well: NFS locks only what is open so.
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return []
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return [os.fsdecode(part) for part in os.read(file, _MAX_BYTES).split(b"\0") if part]
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return []
    finally:
        os.close(file)
