"""What is mounted in this mount namespace, and the check that another program has mounted nothing else.

`bwrap` looks up what it mounts, and where, by paths, which code of another kernel may be exchanging meanwhile. So what
it has mounted is compared, before any code runs, with what was to be mounted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import Any, NamedTuple

from .known_paths import FolderRefusedError, Known, exchanged, is_below, open_granted, open_known

_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """One line of `/proc/self/mountinfo`.

    Args:
        number: The mount's number in this namespace.
        system: Its file system: kind and device; a number is given anew once its file system is gone.
        root: Which folder or file of that file system it shows.
        point: Where.
        writable: Whether it may be written there.
    """

    number: int
    system: str
    root: str
    point: str
    writable: bool


def mounts(path: str = "/proc/self/mountinfo") -> tuple[Mount, ...]:
    """Return the mounts that this process sees, the later ones last."""
    with open(path, "rb") as file:
        return _parse_mounts(file.read())


def sources(paths: Mapping[str, bool], known: Known, written: Sequence[str]) -> dict[str, Any]:
    """Return what mounts of these paths show, as `check_mounts` takes it.

    Args:
        paths: Files and folders that are there, and whether each may be written.
        known: What the host has checked of these.
        written: Folders that code may write to; no link there is followed.

    Raises:
        FolderRefusedError: as of `open_known`.
        OSError: one is missing.
    """
    here = mounts()
    by_number = {one.number: one for one in here}
    found: set[tuple[str, str, bool]] = set()
    for path, writable in paths.items():
        with ExitStack() as undo:
            at = open_granted(path, known, written)
            undo.callback(os.close, at)
            real = os.readlink(f"/proc/self/fd/{at}")
            mount = by_number[mount_number(at)]
        below = os.path.relpath(real, mount.point)
        found.add((mount.system, os.path.normpath(os.path.join(mount.root, below)), writable))
        found |= {(one.system, one.root, writable) for one in here if is_below(one.point, real) and one.point != real}
    return {"systems": sorted({one.system for one in here}), "sources": sorted(found)}


def check_mounts(known: Known, wanted: Mapping[str, Any]) -> None:
    """Check that every folder is mounted at its place, and that nothing of the machine is mounted besides.

    Args:
        known: What the host has checked of the folders.
        wanted: `shown`: files and folders by path, and whether each may be written; and what `sources` returned where
            all were mounted from.

    Raises:
        FolderRefusedError: something else is mounted, or one of the folders is not, or may be written.
    """
    here, systems = mounts(), frozenset(wanted["systems"])
    for one in here:
        if one.system in systems and not any(_matches_source(one, source) for source in wanted["sources"]):
            raise exchanged(one.point)
    points = {one.point for one in here}
    for path, writable in wanted["shown"].items():
        at = open_known(path, known)
        try:
            read_only = bool(os.fstatvfs(at).f_flag & os.ST_RDONLY)
        finally:
            os.close(at)
        if path not in points or not (read_only or writable):
            raise exchanged(path)


def refuse_named(why: str, paths: Iterable[str]) -> None:
    """Raise an error if the reason why a program could not mount names one of the folders.

    Args:
        why: What the program wrote to stderr.
        paths: The folders that were to be mounted; of several in `why` the longest counts.

    Raises:
        FolderRefusedError: `why` contains one of them.
    """
    for path in sorted(paths, key=len, reverse=True):
        if path in why:
            raise FolderRefusedError(f"{path}: can't be shown to code, so none is run ({why})")


def _matches_source(mount: Mount, source: tuple[str, str, bool]) -> bool:
    system, root, writable = source
    return mount.system == system and is_below(mount.root, root) and (writable or not mount.writable)


def mount_number(at: int) -> int:
    """Return the number of the mount in which what is open lies."""
    with open(f"/proc/self/fdinfo/{at}", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("mnt_id:"))


@lru_cache(maxsize=1)
def _parse_mounts(text: bytes) -> tuple[Mount, ...]:
    return tuple(map(_parse_mount, filter(None, text.split(b"\n"))))


def _parse_mount(line: bytes) -> Mount:
    number, _, device, root, point, options, *more = (
        os.fsdecode(_ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), part)) for part in line.split(b" ")
    )
    kind = more[more.index("-") + 1]
    return Mount(int(number), f"{kind} {device}", root, point, "rw" in options.split(","))
