"""What all processes of one kernel may take up together, looked at again and again: memory, disk."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_ROUNDS = 100
_CLOSE, SOON, _LATE = 0.02, 0.1, 3.0
_LEAST = 4096
"""What each file and folder counts at least, so that a disk is not filled with empty ones."""


class Bounds:
    """Watches one kernel; limits for single processes are the system's own (`limits`).

    Args:
        folder: Where its code writes.
        limits: `memory_bytes` and `disk_bytes`, 0 for none.
    """

    def __init__(self, folder: str, limits: Mapping[str, Any]) -> None:
        self._folder = folder
        self._memory = limits["memory_bytes"]
        self._disk = limits["disk_bytes"]
        self._room = _room(folder)
        self._written = 0
        self._moved = 0
        self._size = size(folder) if self._disk else 0
        self._most = 0
        self._bound_disk()
        self._spent = 0.0
        self._taken = 0
        self.seconds = SOON

    def look(self, kernel: int) -> str:
        """Say which bound was passed, empty if none; and look again soon (`seconds`) if somebody computes meanwhile.

        Args:
            kernel: The kernel's process.
        """
        pids = list(below(os.getpid()))
        spent = sum(busy(one) for one in pids)
        self.seconds = SOON if spent != self._spent else min(2 * self.seconds, _LATE)
        self._spent = spent
        return self._passed(pids, kernel)

    def _passed(self, pids: list[int], kernel: int) -> str:
        used = self._used(pids, kernel) if self._memory else 0
        if used > self._memory:
            return f"its processes took {used >> 20} MB of memory together, of {self._memory >> 20} (kernel.memory_mb)"
        return self._grown(pids) if self._disk else ""

    def _grown(self, pids: list[int]) -> str:
        """Count what lies on the disk, whenever much was written or removed since it was counted: perhaps by us.

        That room on the disk stays the same says nothing: others may remove as much as is written here.
        """
        room, written = _room(self._folder), _written([*pids, os.getpid()])
        before, self._moved = self._moved, _moved(self._room, room) + abs(written - self._written)
        if self._moved - before > self._disk >> 8:
            self.seconds = _CLOSE
        if self._moved > self._disk // 8:
            self._room, self._written, self._moved = room, written, 0
            self._size = size(self._folder) + nameless(pids)
            if self._size > self._most:
                return f"its folder grew to {self._size >> 20} MB, of {self._disk >> 20} (kernel.disk_mb)"
            self._bound_disk()
        return ""

    def _used(self, pids: list[int], kernel: int) -> int:
        """Give the memory that all hold together; what the kernel's children share with it counts once.

        It is counted as if they shared all that the kernel has: too little, so that nobody is blamed wrongly. The exact
        way takes a while, and is gone only where the number has stopped growing.
        """
        before, self._taken = self._taken, memory(pids)
        if self._taken > self._memory // 2:
            self.seconds = _CLOSE
        least = self._taken - (len(pids) - 1) * memory([kernel])
        if self._taken <= self._memory or least > self._memory:
            return least
        return share(pids) if abs(self._taken - before) < self._taken // 100 else least

    def _bound_disk(self) -> None:
        """Let a folder that is too large already be tidied up: it may not grow much more, and what it lost is lost."""
        over = self._size + self._disk // 4 if self._size > self._disk else 0
        self._most = max(self._disk, min(self._most, over) if self._most else over)


def below(pid: int) -> Iterator[int]:
    """Give a process's children, their children, and so on."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                for child in map(int, file.read().split()):
                    yield child
                    yield from below(child)


def memory(pids: Iterable[int]) -> int:
    """Add up the bytes that processes hold for themselves, and of shared memory; forked ones share some of it."""
    return _added_up(pids, "status", (b"RssAnon:", b"RssShmem:"))


def share(pids: Iterable[int]) -> int:
    """Add up the same exactly: what several processes share counts once. It takes some milliseconds for each."""
    return _added_up(pids, "smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:"))


def _added_up(pids: Iterable[int], name: str, lines: tuple[bytes, ...]) -> int:
    """Add up lines of a file that each process has in /proc, in bytes; one that has ended counts nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/{name}", "rb") as file:
            total += sum(int(line.split()[1]) << 10 for line in file if line.startswith(lines))
    return total


def busy(pid: int) -> float:
    """Give the seconds that a process, and the children that it has buried, have computed so far."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def size(folder: str) -> int:
    """Add up the bytes on disk below a folder, some for each file and folder; links are not followed."""
    total = 0
    for where, folders, files in os.walk(folder):
        total += _LEAST * len(folders)
        for name in files:
            with contextlib.suppress(OSError):
                total += max(_LEAST, os.lstat(os.path.join(where, name)).st_blocks * 512)
    return total


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
        for file, start, length in _mapped_nameless(pid):
            parts = mapped.setdefault(file, {})
            parts[start] = max(length, parts.get(start, 0))
    inodes = {inode for _, inode in found}  # by the inode alone: some file systems tell another device in the maps
    return sum(found.values()) + sum(_covered(parts) for (_, inode), parts in mapped.items() if inode not in inodes)


def _mapped_nameless(pid: int) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Give what a process has mapped of files that were removed: device and inode, where in the file, how many bytes.

    How much of a file lies on the disk is told to the system's administrator alone: all that is mapped counts.
    """
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/maps", "rb") as file:
        for line in file:
            if line.endswith(b" (deleted)\n"):
                addresses, _, start, device, inode, _ = line.split(None, 5)
                major, minor = (int(one, 16) for one in device.split(b":"))
                first, last = (int(one, 16) for one in addresses.split(b"-"))
                if os.makedev(major, minor) not in _memory_devices():
                    yield (os.makedev(major, minor), int(inode)), int(start, 16), last - first


def _covered(parts: Mapping[int, int]) -> int:
    """Add up parts of a file, start and length of each; where they overlap, once."""
    total = end = 0
    for start, length in sorted(parts.items()):
        total += max(0, start + length - max(start, end))
        end = max(end, start + length)
    return total


@functools.cache
def _memory_devices() -> frozenset[int]:
    """Give the devices whose files are memory, which is bounded as such: what processes share."""
    found = set()
    with contextlib.suppress(OSError):
        found.add(os.stat("/dev/shm").st_dev)
    with contextlib.suppress(OSError, AttributeError):  # AttributeError where this is not Linux
        anonymous = os.memfd_create("tw")
        found.add(os.fstat(anonymous).st_dev)
        os.close(anonymous)
    return frozenset(found)


def kill_below(pid: int) -> None:
    """Kill all that a process started and adopted, until nothing is left."""
    for _ in range(_ROUNDS):
        left = list(below(pid))
        if not left:
            return
        for one in left:
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _written(pids: Iterable[int]) -> int:
    """Add up the bytes that processes, and the children that they have buried, have caused to be written so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/io", "rb") as file:
            total += int(file.read().partition(b"\nwrite_bytes:")[2].split(None, 1)[0])
    return total


def _room(folder: str) -> tuple[int, int]:
    """Give the bytes that are free on a folder's disk, and what its free inodes would count."""
    with contextlib.suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize, found.f_favail * _LEAST
    return 0, 0


def _moved(before: tuple[int, int], now: tuple[int, int]) -> int:
    return max(abs(before[0] - now[0]), abs(before[1] - now[1]))
