"""What all processes of one kernel may take up together, looked at again and again: memory, disk."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import disk
from .memory import Unseen, held, share

_TICKS = os.sysconf("SC_CLK_TCK")
_ROUNDS = 100
_CLOSE, SOON, _LATE = 0.02, 0.1, 3.0


class ResourceWatch:
    """Watches one kernel; limits for single processes are the system's own (`limits`).

    Args:
        folders: Where its code writes: its session's folder, and its own ones.
        limits: `memory_bytes` and `disk_bytes`, 0 for none.
        unseen: Counts its memory that lies in no process.
    """

    def __init__(self, folders: Sequence[str], limits: Mapping[str, Any], unseen: Unseen) -> None:
        self._folders = folders
        self._memory = limits["memory_bytes"]
        self._disk = limits["disk_bytes"]
        self._unseen = unseen
        self._room = self._first_room = disk.room(folders)
        self._written = self._first_written = 0
        self._moved = 0
        self._size = self._first_size = disk.size(folders)[0] if self._disk else 0
        self._most = 0
        self._bound_disk()
        self._spent = 0.0
        self._taken = 0
        self.seconds = SOON

    def look(self, kernel: int) -> str:
        """Return which bound was passed, empty if none; and look again soon (`seconds`) if somebody computes meanwhile.

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
        room, written = disk.room(self._folders), disk.written([*pids, os.getpid()])
        before, self._moved = self._moved, _moved(self._room, room) + abs(written - self._written)
        if self._moved - before > self._disk >> 8:
            self.seconds = _CLOSE
        if self._moved > self._disk // 8:
            self._room, self._written, self._moved = room, written, 0
            self._size = self._counted(pids)
            if self._size > self._most:
                return f"its folder grew to {self._size >> 20} MB, of {self._disk >> 20} (kernel.disk_mb)"
            self._bound_disk()
        return ""

    def _counted(self, pids: list[int]) -> int:
        """Return what lies on the disk; where not all can be seen, what was written and has gone from the disk since.

        A folder that nobody may list hides what is in it, and a file whose descriptor lies in a socket is nobody's.
        """
        seen, whole = disk.size(self._folders)
        seen += disk.nameless(pids)
        if whole and not disk.hidden(pids):
            return seen
        gone = max(0, self._first_room[0] - self._room[0])
        return max(seen, self._first_size + min(gone, self._written - self._first_written))

    def _used(self, pids: list[int], kernel: int) -> int:
        """Return the memory that all hold together; what the kernel's children share with it counts once.

        It is counted as if they shared all that the kernel has: too little, so that nobody is blamed wrongly. The exact
        way takes a while, and is gone only where the number has stopped growing.
        """
        unseen = self._unseen.memory(pids, self._memory)
        before, self._taken = self._taken, held(pids) + unseen
        if self._taken > self._memory // 2:
            self.seconds = _CLOSE
        least = self._taken - (len(pids) - 1) * held([kernel])
        if self._taken <= self._memory or least > self._memory:
            return least
        return share(pids) + unseen if abs(self._taken - before) < self._taken // 100 else least

    def _bound_disk(self) -> None:
        """Accept a folder that is too large already, so that it can be tidied up: it may not grow much more."""
        over = self._size + self._disk // 4 if self._size > self._disk else 0
        self._most = max(self._disk, min(self._most, over) if self._most else over)


def below(pid: int) -> Iterator[int]:
    """Yield a process's children, their children, and so on."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                for child in map(int, file.read().split()):
                    yield child
                    yield from below(child)


def busy(pid: int) -> float:
    """Return the seconds that a process, and the children that it has buried, have computed so far."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


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


def _moved(before: tuple[int, int], now: tuple[int, int]) -> int:
    return max(abs(before[0] - now[0]), abs(before[1] - now[1]))
