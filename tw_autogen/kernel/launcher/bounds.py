"""What all processes of one kernel may take up together, looked at again and again: memory, disk."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_ROUNDS = 100
_CLOSE, SOON, _LATE = 0.02, 0.1, 3.0


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
        self._free = _free(folder)
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
        if self._disk:
            free = _free(self._folder)
            if abs(self._free - free) > self._disk // 8:  # somebody wrote or removed much: perhaps it was us
                self._free, self._size = free, size(self._folder)
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
    """Add up the bytes on disk below a folder; links are not followed."""
    total = 0
    for where, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
    return total


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


def _free(folder: str) -> int:
    with contextlib.suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize
    return 0
