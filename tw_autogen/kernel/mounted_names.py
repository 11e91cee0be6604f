"""Other names of a folder, since what is mounted at a second place has one there, too; and what is mounted in it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from tw_autogen.kernel.launcher.known_paths import is_below
from tw_autogen.kernel.launcher.mount_check import Mount, mounts

_MOUNTS = "/proc/self/mountinfo"


def mounted_names(folder: str) -> list[str]:
    """Return a folder's other names: its own, and those of folders in it that are mounted elsewhere, or from elsewhere.

    Args:
        folder: Absolute, without links.

    Returns:
        Absolute paths. None where the system doesn't tell (only Linux does), or for what a file server shows twice.
    """
    every = _read_mounts()
    inside = [mount for mount in every if is_below(mount.point, folder) and mount.point != folder]
    around = [mount for mount in every if is_below(folder, mount.point)]
    if not around:
        return []
    last = max(reversed(around), key=lambda mount: len(mount.point))  # of two at one place the later one is seen
    places = [
        (last.system, _rebase_path(last.root, folder, last.point)),
        *((mount.system, mount.root) for mount in inside),
    ]
    by_system: dict[str, list[Mount]] = {}
    for one in every:
        by_system.setdefault(one.system, []).append(one)
    names = dict.fromkeys(name for system, place in places for name in _mount_paths(by_system[system], place))
    return [name for name in names if not is_below(name, folder)]


def all_names(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return folders, each followed by its other names as `mounted_names` gives them.

    Args:
        folders: Absolute, without links.
    """
    return tuple(name for folder in folders for name in (folder, *map(Path, mounted_names(str(folder)))))


def mounts_in(folders: Collection[str]) -> dict[tuple[str, str], str]:
    """Return what is mounted in folders, below them: where, by its file system and what it shows of that.

    Args:
        folders: Absolute, without links.
    """
    inside = (
        mount
        for mount in _read_mounts()
        if any(is_below(mount.point, each) and mount.point != each for each in folders)
    )
    return {(mount.system, mount.root): mount.point for mount in inside}


def _read_mounts() -> tuple[Mount, ...]:
    try:
        return mounts(_MOUNTS)
    except (OSError, ValueError):  # there is no such file, or it has another form
        return ()


def _mount_paths(mounted: Sequence[Mount], place: str) -> Iterator[str]:
    """Yield where a place of a file system, or something in it, is mounted, of the mounts of that file system."""
    for mount in mounted:
        if is_below(place, mount.root):
            yield _rebase_path(mount.point, place, mount.root)
        elif is_below(mount.root, place):
            yield mount.point


def _rebase_path(above: str, path: str, folder: str) -> str:
    """Return the path that lies to a folder as another one does to a folder around it."""
    inner = path[len(folder.rstrip(os.sep)) :].lstrip(os.sep)
    return os.path.join(above, inner) if inner else above
