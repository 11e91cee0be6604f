"""How much lies on the disk below folders that code writes, whatever names and rights it has given to what is there."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from .memory import covered, mapped_nameless, memory_devices
from .sockets import in_flight, open_sockets

LEAST = 4096
"""What each file and folder counts at least, so that a disk is not filled with empty ones."""
_LONGEST = 2000
"""Bytes of a relative path, from which on a folder is opened and its contents are named from there."""
_MOST_OPEN = 128
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def size(folders: Iterable[str]) -> tuple[int, bool]:
    """Add up the bytes on disk below folders, some for each file and folder; links are not followed.

    What is mounted below them doesn't count.

    Returns:
        The bytes, and whether all could be seen: not a folder that nobody may list, or one of endless depth.
    """
    total, whole = 0, True
    for folder in folders:
        with contextlib.suppress(OSError):
            top = os.open(folder, _FOLDER)
            found, seen = _below(top)
            total, whole = total + found, whole and seen
    return total, whole


def _below(top: int) -> tuple[int, bool]:
    """Add up what lies below an open folder, and close it; paths of any length, because they begin at open folders."""
    total, whole, many, device = 0, True, 1, os.fstat(top).st_dev
    waiting: list[tuple[int, str]] = [(top, ""), (top, ".")]  # the first closes it, when all that is above is done
    while waiting:
        here, path = waiting.pop()
        if not path:
            os.close(here)
            many -= 1
            continue
        try:
            found = os.open(path, _FOLDER, dir_fd=here)
        except OSError:
            whole = False
            continue
        far = len(os.fsencode(path)) > _LONGEST
        if far and many < _MOST_OPEN:
            many += 1
            waiting.append((found, ""))
            here, path = found, "."
        elif far:
            whole = False
            os.close(found)
            continue
        with contextlib.suppress(OSError), os.scandir(found) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_dev != device:  # something is mounted there
                        continue
                    total += max(LEAST, status.st_blocks * 512)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((here, f"{path}/{entry.name}"))
        if found != here:
            os.close(found)
    return total, whole


def nameless(pids: Iterable[int]) -> int:
    """Add up the bytes on disk of files that were removed while these processes have them open or mapped."""
    found: dict[tuple[int, int], int] = {}
    mapped: dict[tuple[int, int], dict[int, int]] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
        for file, start, length in mapped_nameless(pid):
            if file[0] not in memory_devices():
                parts = mapped.setdefault(file, {})
                parts[start] = max(length, parts.get(start, 0))
    inodes = {inode for _, inode in found}  # by the inode alone: some file systems tell another device in the maps
    return sum(found.values()) + sum(covered(parts) for (_, inode), parts in mapped.items() if inode not in inodes)


def hidden(pids: Iterable[int]) -> bool:
    """Return whether files may be open that no process shows: their descriptors were sent and not yet received."""
    return in_flight(one for pid in pids for one in open_sockets(pid)) > 0


def written(pids: Iterable[int]) -> int:
    """Add up the bytes that processes, and the children that they have buried, have caused to be written so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/io", "rb") as file:
            total += int(file.read().partition(b"\nwrite_bytes:")[2].split(None, 1)[0])
    return total


def room(folders: Iterable[str]) -> tuple[int, int]:
    """Return the bytes that are free on the disks of folders, and what their free inodes would count."""
    disks = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            found = os.statvfs(folder)
            disks[os.stat(folder).st_dev] = found.f_bavail * found.f_frsize, found.f_favail * LEAST
    return sum(one for one, _ in disks.values()), sum(one for _, one in disks.values())
