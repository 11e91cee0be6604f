"""Other names of a folder: what is mounted at a second place has one there, too."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tw_autogen.kernel.launcher.known_paths import is_below

_MOUNTS = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    device: str
    root: str
    """What of the device's file system is mounted."""
    point: str


def mounted_names(folder: str) -> list[str]:
    """Return a folder's other names: its own, and those of folders in it that are mounted elsewhere, or from elsewhere.

    Args:
        folder: Absolute, without links.

    Returns:
        Absolute paths. None where the system doesn't tell (only Linux does), or for what a file server shows twice.
    """
    mounts = _mounts()
    inside = [one for one in mounts if is_below(one.point, folder) and one.point != folder]
    around = [one for one in mounts if is_below(folder, one.point)]
    if not around:
        return []
    last = max(reversed(around), key=lambda one: len(one.point))  # of two at one place the later one is seen
    places = [(last.device, _joined(last.root, folder, last.point)), *((one.device, one.root) for one in inside)]
    by_device: dict[str, list[_Mount]] = {}
    for one in mounts:
        by_device.setdefault(one.device, []).append(one)
    names = dict.fromkeys(name for device, place in places for name in _names(by_device[device], place))
    return [one for one in names if not is_below(one, folder)]


def all_names(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return folders, each followed by its other names as `mounted_names` gives them.

    Args:
        folders: Absolute, without links.
    """
    return tuple(name for one in folders for name in (one, *map(Path, mounted_names(str(one)))))


def _names(mounts: Sequence[_Mount], place: str) -> Iterator[str]:
    """Yield where a place of a device's file system, or something in it, is mounted, of the mounts of that device."""
    for one in mounts:
        if is_below(place, one.root):
            yield _joined(one.point, place, one.root)
        elif is_below(one.root, place):
            yield one.point


def _joined(above: str, path: str, folder: str) -> str:
    """Return the path that lies to a folder as another one does to a folder around it."""
    inner = path[len(folder.rstrip(os.sep)) :].lstrip(os.sep)
    return os.path.join(above, inner) if inner else above


def _mounts() -> tuple[_Mount, ...]:
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            return _parsed(file.read())
    except OSError:
        return ()


@lru_cache(maxsize=1)
def _parsed(text: str) -> tuple[_Mount, ...]:
    lines = [line.split(" ", 5) for line in text.splitlines()]
    return tuple(_Mount(one[2], _plain(one[3]), _plain(one[4])) for one in lines if len(one) > 4)


def _plain(path: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), path)
