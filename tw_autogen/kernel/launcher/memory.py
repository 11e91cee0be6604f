"""How much memory processes hold, as /proc shows it, and what it doesn't show there."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator, Mapping

from .sockets import Sockets

_PER_INODE = 1024


class Unseen:
    """Counts memory that is not in the pages which processes have mapped: files in memory, shared memory, sockets.

    Args:
        folders: File systems in memory that only these processes write to.
        sockets: Counts what lies in sockets.
    """

    def __init__(self, folders: Iterable[str], sockets: Sockets) -> None:
        self._folders = tuple(folders)
        self._sockets = sockets
        self._shared = _shared_of_all()

    def memory(self, pids: list[int], most: int) -> int:
        """Return about how many bytes that is.

        Shared memory without a file counts as far as it is mapped, but not more than what all of this system has grown
        by: pages of it that no process has touched lately are shown nowhere else.

        Args:
            pids: The processes.
            most: What they may take; a small part of it is not looked at closely.
        """
        files = sum(map(_in_memory, self._folders))
        grown = max(0, _shared_of_all() - self._shared - files)
        nameless = min(grown, mapped_shared(pids)) if grown > most >> 4 else 0
        shown = added_up(pids, "status", (b"RssShmem:",)) if files + nameless > most >> 6 else 0
        return max(0, files + nameless - shown) + self._sockets.memory(pids)


def held(pids: Iterable[int]) -> int:
    """Add up the bytes that processes hold for themselves, of shared memory, and of tables of pages.

    What forked processes share counts for each.
    """
    return added_up(pids, "status", (b"RssAnon:", b"RssShmem:", b"VmPTE:"))


def share(pids: Iterable[int]) -> int:
    """Add up the same exactly: what several processes share counts once. It takes some milliseconds for each."""
    return added_up(pids, "smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) + added_up(pids, "status", (b"VmPTE:",))


def added_up(pids: Iterable[int], name: str, lines: tuple[bytes, ...]) -> int:
    """Add up lines of a file that each process has in /proc, in bytes; one that has ended counts nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/{name}", "rb") as file:
            total += sum(int(line.split()[1]) << 10 for line in file if line.startswith(lines))
    return total


def mapped_nameless(pid: int) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Yield what a process has mapped of files that have no name: device and inode, where in the file, how many bytes.

    How much of a file lies on the disk is told to the system's administrator alone: all that is mapped counts.
    """
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/maps", "rb") as file:
        for line in file:
            if line.endswith(b" (deleted)\n"):
                addresses, _, start, device, inode, _ = line.split(None, 5)
                major, minor = (int(one, 16) for one in device.split(b":"))
                first, last = (int(one, 16) for one in addresses.split(b"-"))
                yield (os.makedev(major, minor), int(inode)), int(start, 16), last - first


def mapped_shared(pids: Iterable[int]) -> int:
    """Add up the shared memory without a file that processes have mapped; what several have mapped counts once."""
    found: dict[tuple[int, int], dict[int, int]] = {}
    for pid in pids:
        for file, start, length in mapped_nameless(pid):
            if file[0] in memory_devices():
                parts = found.setdefault(file, {})
                parts[start] = max(length, parts.get(start, 0))
    return sum(map(covered, found.values()))


def covered(parts: Mapping[int, int]) -> int:
    """Add up parts of a file, start and length of each; where they overlap, once."""
    total = end = 0
    for start, length in sorted(parts.items()):
        total += max(0, start + length - max(start, end))
        end = max(end, start + length)
    return total


@functools.cache
def memory_devices() -> frozenset[int]:
    """Return the devices whose files are memory, which is bounded as such: what processes share."""
    found = set()
    with contextlib.suppress(OSError):
        found.add(os.stat("/dev/shm").st_dev)
    with contextlib.suppress(OSError, AttributeError):  # AttributeError where this is not Linux
        anonymous = os.memfd_create("tw")
        found.add(os.fstat(anonymous).st_dev)
        os.close(anonymous)
    return frozenset(found)


def _in_memory(folder: str) -> int:
    """Return what the files of a file system in memory take."""
    with contextlib.suppress(OSError):
        found = os.statvfs(folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize + (found.f_files - found.f_ffree) * _PER_INODE
    return 0


def _shared_of_all() -> int:
    """Return the shared memory of all processes of this system."""
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", "rb") as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith(b"Shmem:")), 0)
    return 0
