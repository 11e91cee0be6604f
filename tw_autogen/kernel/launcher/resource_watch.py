"""What all processes of one kernel may take up together, looked at again and again: memory, disk."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .mount_check import mount_number
from .process_tree import below
from .socket_memory import Sockets, in_flight, open_sockets

MIN = 4096
"""What each file and folder counts at least, so that a disk is not filled with empty ones."""
_LONGEST = 2000
"""Bytes of a relative path, from which on a folder is opened and its contents are named from there."""
_MAX_OPEN = 128
_AT_ONCE = 4096
"""How many files are counted before memory, and what the host says, is looked at again."""
_ANY = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0)
_LOOK = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def held(folders: Iterable[str]) -> list[str | int]:
    """Open folders before code runs, so that they are the same ones wherever code moves them or what is above them.

    Returns:
        A descriptor of each; its path where it can't be opened.
    """
    found: list[str | int] = []
    for folder in folders:
        try:
            found.append(os.open(folder, _LOOK))
        except OSError:
            found.append(folder)
    return found


def disk_size(
    folders: Iterable[str | int], *, enough: float = math.inf, between: Callable[[], None] = lambda: None
) -> tuple[int, bool]:
    """Add up the bytes on disk below folders, some for each file and folder; links are not followed.

    What is mounted below them doesn't count.

    Args:
        folders: Where to look; paths, or descriptors as of `held`.
        enough: Beyond so many bytes the rest is not looked at: code could move folders on, to be counted for ever.
        between: Called after some thousand files; what it raises ends the count.

    Returns:
        The bytes, and whether all could be seen: not a folder that nobody may list, or one of endless depth.
    """
    total, whole, number = 0, True, itertools.count(1)

    def each() -> None:
        if next(number) % _AT_ONCE == 0:
            between()

    for folder in folders:
        with contextlib.suppress(OSError):
            top = os.open(".", _FOLDER, dir_fd=folder) if isinstance(folder, int) else os.open(folder, _FOLDER)
            found, seen = _folder_size(top, enough - total, each)
            total, whole = total + found, whole and seen
    return total, whole


def _folder_size(top: int, enough: float, each: Callable[[], None]) -> tuple[int, bool]:
    """Add up what lies below an open folder, and close it; paths of any length, because they begin at open folders.

    Folders that code puts in the place of others meanwhile, as by a link above them, are not listed.
    """
    about = os.fstat(top)
    total, whole, many = 0, True, 1
    # A folder by an open one, its path from there, and its identity; one without a path is closed when it comes.
    waiting: list[tuple[int, str, tuple[int, int]]] = [(top, "", (0, 0)), (top, ".", (about.st_dev, about.st_ino))]
    try:
        while waiting:
            here, path, identity = waiting.pop()
            if not path:
                os.close(here)
                many -= 1
                continue
            try:
                fd = _open_same_folder(path, here, identity)
            except OSError:
                whole = False
                continue
            far = len(os.fsencode(path)) > _LONGEST
            if far and many < _MAX_OPEN:
                many += 1
                waiting.append((fd, "", (0, 0)))
                here, path = fd, "."
            elif far:
                whole = False
                os.close(fd)
                continue
            try:
                for name, status in _entries(fd, identity[0], each):
                    total += max(MIN, status.st_blocks * 512)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((here, f"{path}/{name}", (status.st_dev, status.st_ino)))
                    if total > enough:
                        return total, False
            finally:
                if fd != here:
                    os.close(fd)
    finally:
        for here, path, _ in waiting:
            if not path:
                os.close(here)
    return total, whole


def _entries(folder: int, device: int, each: Callable[[], None]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield name and status of what lies in an open folder, and is not mounted there; `each` is called for all.

    A device of its own is no sign of a mount: layers of overlays and subvolumes have some too.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            each()
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if status.st_dev == device or _is_on_mount_of(folder, entry.name):
                    yield entry.name, status


def _is_on_mount_of(folder: int, name: str) -> bool:
    fd = os.open(name, _ANY, dir_fd=folder)
    try:
        return mount_number(fd) == mount_number(folder)
    finally:
        os.close(fd)


def _open_same_folder(path: str, here: int, identity: tuple[int, int]) -> int:
    """Open a folder, if it is the one that was found there: a folder above it may have become a link since.

    Raises:
        OSError: it is another one, or can't be opened.
    """
    looked_at = os.open(path, _LOOK, dir_fd=here)
    try:
        about = os.fstat(looked_at)
        if (about.st_dev, about.st_ino) != identity:
            raise FileNotFoundError(errno.ENOENT, "it was exchanged", path)
        return os.open(".", _FOLDER, dir_fd=looked_at)
    finally:
        os.close(looked_at)


def nameless_bytes(pids: Iterable[int]) -> int:
    """Add up the bytes on disk of files that were removed while these processes have them open or mapped."""
    pids, found = list(pids), dict[tuple[int, int], int]()
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
    inodes = {inode for _, inode in found}  # by the inode alone: some file systems tell another device in the maps
    mapped = _mapped_files(pids, in_memory=False)
    return sum(found.values()) + sum(size for (_, inode), size in mapped.items() if inode not in inodes)


def hides_files(pids: Iterable[int]) -> bool:
    """Return whether files may be open that no process shows: their descriptors were sent and not yet received."""
    return in_flight(socket for pid in pids for socket in open_sockets(pid)) > 0


def written_bytes(pids: Iterable[int], more: int = -1) -> int:
    """Add up the bytes that processes, and the children that they have buried, have caused to be written so far.

    Args:
        pids: The processes.
        more: An open `/proc/<pid>/io` of one more; -1: none.
    """
    found = []
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/io", "rb") as file:
            found.append(file.read())
    if more >= 0:
        with contextlib.suppress(OSError):
            found.append(os.pread(more, 4096, 0))
    total = 0
    for one in found:
        with contextlib.suppress(ValueError, IndexError):
            total += int(one.partition(b"\nwrite_bytes:")[2].split(None, 1)[0])
    return total


def free_disk(folders: Iterable[str | int]) -> tuple[int, int]:
    """Return the bytes that are free on the disks of folders, and what their free inodes would count."""
    disks = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            space = os.statvfs(folder)
            disks[os.stat(folder).st_dev] = space.f_bavail * space.f_frsize, space.f_favail * MIN
    return sum(one for one, _ in disks.values()), sum(one for _, one in disks.values())


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


def private_bytes(pids: Iterable[int]) -> int:
    """Add up the bytes that processes hold for themselves, of shared memory, and of tables of pages.

    What forked processes share counts for each.
    """
    return added_up(pids, "status", (b"RssAnon:", b"RssShmem:", b"VmPTE:"))


def exact_shared_bytes(pids: Iterable[int]) -> int:
    """Add up the same exactly: what several processes share counts once. It takes some milliseconds for each."""
    return added_up(pids, "smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) + added_up(pids, "status", (b"VmPTE:",))


def added_up(pids: Iterable[int], name: str, lines: tuple[bytes, ...]) -> int:
    """Add up lines of a file that each process has in /proc, in bytes; one that has ended counts nothing.

    Args:
        pids: The processes.
        name: The file below `/proc/<pid>`.
        lines: Beginnings of the lines that count.
    """
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
                major, minor = (int(part, 16) for part in device.split(b":"))
                first, last = (int(part, 16) for part in addresses.split(b"-"))
                yield (os.makedev(major, minor), int(inode)), int(start, 16), last - first


def mapped_shared(pids: Iterable[int]) -> int:
    """Add up the shared memory without a file that processes have mapped; what several have mapped counts once."""
    return sum(_mapped_files(pids, in_memory=True).values())


def _mapped_files(pids: Iterable[int], *, in_memory: bool) -> dict[tuple[int, int], int]:
    """Return how much of each file without a name processes have mapped; files in memory, or those on disks."""
    found: dict[tuple[int, int], dict[int, int]] = {}
    for file, start, length in itertools.chain.from_iterable(map(mapped_nameless, pids)):
        if (file[0] in memory_devices()) == in_memory:
            parts = found.setdefault(file, {})
            parts[start] = max(length, parts.get(start, 0))
    return {file: covered_bytes(parts) for file, parts in found.items()}


def covered_bytes(parts: Mapping[int, int]) -> int:
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
        space = os.statvfs(folder)
        return (space.f_blocks - space.f_bfree) * space.f_frsize + (space.f_files - space.f_ffree) * _PER_INODE
    return 0


def _shared_of_all() -> int:
    """Return the shared memory of all processes of this system."""
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", "rb") as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith(b"Shmem:")), 0)
    return 0


_TICKS = os.sysconf("SC_CLK_TCK")
_CLOSE, SOON, _LATE = 0.02, 0.1, 3.0


class _LookEnded(Exception):
    """Why a look at the disk was ended: a bound was passed meanwhile, or the host ends the kernel."""


class ResourceWatch:
    """Watches one kernel; limits for single processes are the system's own (`limits`).

    Args:
        folders: Where its code writes: its session's folder, and its own ones; as of `disk_size`.
        limits: `memory_bytes` and `disk_bytes`, 0 for none.
        unseen: Counts its memory that lies in no process.
        attend: Does what the host says meanwhile; returns how the kernel ends, or nothing. A look may take seconds.
        written: The open `/proc/<pid>/io` of this process, which buries what the kernel leaves behind; -1: none.
    """

    def __init__(
        self,
        folders: Sequence[str | int],
        limits: Mapping[str, Any],
        unseen: Unseen,
        attend: Callable[[], str],
        written: int = -1,
    ) -> None:
        self._attend = attend
        self._own = written
        self._folders = folders
        self._memory = limits["memory_bytes"]
        self._disk = limits["disk_bytes"]
        self._unseen = unseen
        self._room = self._first_room = free_disk(folders)
        self._written = self._first_written = 0
        self._disk_change_bytes = 0
        self._size = self._first_size = disk_size(folders)[0] if self._disk else 0
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
        if kernel not in pids:  # what can't be seen would count nothing
            return "its memory and disk could not be watched any more"
        spent = sum(cpu_seconds(pid) for pid in pids)
        self.seconds = SOON if spent != self._spent else min(2 * self.seconds, _LATE)
        self._spent = spent
        try:
            return self._limit_passed(pids, kernel)
        except _LookEnded as end:
            return str(end)

    def _limit_passed(self, pids: list[int], kernel: int) -> str:
        return self._memory_passed(pids, kernel) or (self._disk_passed(pids, kernel) if self._disk else "")

    def _memory_passed(self, pids: list[int], kernel: int) -> str:
        used = self._memory_bytes(pids, kernel) if self._memory else 0
        if used <= self._memory:
            return ""
        return f"its processes took {used >> 20} MB of memory together, of {self._memory >> 20} (kernel.memory_mb)"

    def _disk_passed(self, pids: list[int], kernel: int) -> str:
        """Count what lies on the disk, whenever much was written or removed since it was counted: perhaps by us.

        That room on the disk stays the same says nothing: others may remove as much as is written here.
        """
        room, written = free_disk(self._folders), written_bytes(pids, self._own)
        before, self._disk_change_bytes = (
            self._disk_change_bytes,
            _disk_change_bytes(self._room, room) + abs(written - self._written),
        )
        if self._disk_change_bytes - before > self._disk >> 8:
            self.seconds = _CLOSE
        if self._disk_change_bytes > self._disk // 8:
            self._room, self._written, self._disk_change_bytes = room, written, 0
            self._size = self._disk_bytes(pids, kernel)
            if self._size > self._most:
                return f"its folder grew to {self._size >> 20} MB, of {self._disk >> 20} (kernel.disk_mb)"
            self._bound_disk()
        return ""

    def _disk_bytes(self, pids: list[int], kernel: int) -> int:
        """Return what lies on the disk; where not all can be seen, what was written and has gone from the disk since.

        A folder that nobody may list hides what is in it, and a file whose descriptor lies in a socket is nobody's.
        """

        def between() -> None:
            if end := self._attend() or self._memory_passed(list(below(os.getpid())), kernel):
                raise _LookEnded(end)

        seen, whole = disk_size(self._folders, enough=self._most, between=between)
        if seen > self._most:
            return seen
        seen += nameless_bytes(pids)
        if whole and not hides_files(pids):
            return seen
        gone = max(0, self._first_room[0] - self._room[0])
        return max(seen, self._first_size + min(gone, self._written - self._first_written))

    def _memory_bytes(self, pids: list[int], kernel: int) -> int:
        """Return the memory that all hold together; what the kernel's children share with it counts once.

        It is counted as if they shared all that the kernel has: too little, so that nobody is blamed wrongly. The exact
        way takes a while, and is gone only where the number has stopped growing.
        """
        unseen = self._unseen.memory(pids, self._memory)
        before, self._taken = self._taken, private_bytes(pids) + unseen
        if self._taken > self._memory // 2:
            self.seconds = _CLOSE
        least = self._taken - (len(pids) - 1) * private_bytes([kernel])
        if self._taken <= self._memory or least > self._memory:
            return least
        return exact_shared_bytes(pids) + unseen if abs(self._taken - before) < self._taken // 100 else least

    def _bound_disk(self) -> None:
        """Accept a folder that is too large already, so that it can be tidied up: it may not grow much more."""
        over = self._size + self._disk // 4 if self._size > self._disk else 0
        self._most = max(self._disk, min(self._most, over) if self._most else over)


def cpu_seconds(pid: int) -> float:
    """Return the seconds that a process, and the children that it has buried, have computed so far."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def _disk_change_bytes(before: tuple[int, int], now: tuple[int, int]) -> int:
    return max(abs(before[0] - now[0]), abs(before[1] - now[1]))
