"""Probes of amounts: processes, memory, disk, watches. Each stops at a bound and gives back what it took."""

import ctypes
import mmap
import os
import select
import signal
import tempfile
import threading

from tests.kernel.sandbox.inside import LIBC, call, remove_tree

GB = 1 << 30


class ManyProcesses:
    """Code has 300 processes or threads at once."""

    seconds = 30

    def forks(w):
        readable, writing = os.pipe()
        children = []
        try:
            while len(children) < 300:
                child = os.fork()
                if child == 0:
                    LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)
                    os.close(writing)
                    select.select([readable], [], [], 20)  # ends when the other end is closed
                    os._exit(0)
                children.append(child)
            return True
        finally:
            os.close(writing)
            for child in children:
                os.waitpid(child, 0)

    def threads(w):
        end, some = threading.Event(), []
        threading.stack_size(65536)
        try:
            while len(some) < 300:
                one = threading.Thread(target=end.wait, args=(20,), daemon=True)
                one.start()
                some.append(one)
            return True
        finally:
            end.set()


class MuchMemory:
    """One process of the code's uses 4 GB."""

    seconds = 20

    def anonymous(w):
        memory = mmap.mmap(-1, 4 * GB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)  # sooner done
        return _use(memory)

    def shared(w):
        return len(mmap.mmap(-1, 4 * GB, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)) == 4 * GB  # not touched

    def in_a_file_without_a_name(w):
        fd = call("memfd_create", b"much", 0)
        os.posix_fallocate(fd, 0, 4 * GB)
        return os.fstat(fd).st_blocks * 512 >= 4 * GB

    def in_shared_memory(w):
        path = f"/dev/shm/tw-sandbox-made-{w.nonce}"
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        os.unlink(path)
        os.posix_fallocate(fd, 0, 4 * GB)
        return os.fstat(fd).st_blocks * 512 >= 4 * GB

    def in_pieces(w):
        return len([bytearray(256 << 20) for _ in range(16)]) == 16  # not touched


class LargeFile:
    """Code makes one file of 1.3 GB."""

    seconds = 30

    def reserved(w):
        return _filled(f"large-{w.nonce}", lambda fd: os.posix_fallocate(fd, 0, 1300 << 20))

    def written(w):
        def write(fd):
            text = bytes(16 << 20)
            for _ in range(82):
                os.write(fd, text)

        return _filled(f"written-{w.nonce}", write)

    def in_temporary_files(w):
        return _filled(f"{tempfile.gettempdir()}/large-{w.nonce}", lambda fd: os.posix_fallocate(fd, 0, 1300 << 20))


class ManyFiles:
    """Code fills the disk with many files: 1.3 GB in files of 65 MB."""

    seconds = 30

    def middling(w):
        folder = os.path.abspath(f"many-{w.nonce}")
        os.mkdir(folder)
        try:
            for number in range(20):
                with open(f"{folder}/{number}", "wb") as file:
                    os.posix_fallocate(file.fileno(), 0, 65 << 20)
            return sum(entry.stat().st_blocks * 512 for entry in os.scandir(folder)) >= 1300 << 20
        finally:
            remove_tree(folder, below=os.getcwd())

    def without_names(w):
        files = []
        for number in range(20):
            path = f"nameless-{w.nonce}-{number}"
            files.append(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            os.unlink(path)
            os.posix_fallocate(files[-1], 0, 65 << 20)
        return sum(os.fstat(file).st_blocks * 512 for file in files) >= 1300 << 20


class Watches:
    """Code takes half of what watches the user may have, which editors and servers need."""

    def instances(w):
        for _ in range(max(8, min(w.watches // 2, 200))):
            if LIBC.inotify_init1(os.O_CLOEXEC) < 0:
                raise OSError(ctypes.get_errno(), "inotify_init1")
        return True


def _touch(memory):
    view = (ctypes.c_char * len(memory)).from_buffer(memory)
    ctypes.memset(ctypes.addressof(view), 1, len(memory))


def _use(memory):
    """Use memory, where the machine has it; else the reservation is as far as a probe goes."""
    with open("/proc/meminfo") as file:
        spare = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
    if spare > 8 * GB:
        _touch(memory)
    return True


def _filled(path, fill):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    os.unlink(path)
    fill(fd)
    return os.fstat(fd).st_blocks * 512 >= 1300 << 20
