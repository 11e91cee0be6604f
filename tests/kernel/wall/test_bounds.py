"""What all processes of a kernel take up together is bounded, though no limit of the system's says so."""

import pytest

from tw_autogen.kernel import KernelSettings, LocalKernel

MANY = """
import ctypes, mmap, os, time
for _ in range(4):
    if os.fork() == 0:
        memory = mmap.mmap(-1, 300 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        view = (ctypes.c_char * len(memory)).from_buffer(memory)
        ctypes.memset(ctypes.addressof(view), 1, len(memory))
        time.sleep(30)
        os._exit(0)
time.sleep(30)
"""
FILES = """
import time
for number in range(30):
    with open(f"{number}.bin", "wb") as file:
        file.write(bytes(10 << 20))
time.sleep(30)
"""
NAMELESS = """
import os, time
kept = []
for number in range(30):
    kept.append(open(f"{number}.bin", "wb"))
    os.unlink(f"{number}.bin")
    kept[-1].write(bytes(10 << 20))
    kept[-1].flush()
time.sleep(30)
"""
MAPPED = """
import ctypes, os, time
map = ctypes.CDLL(None).mmap
map.restype = ctypes.c_void_p
map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for number in range(30):
    file = os.open(f"{number}.bin", os.O_CREAT | os.O_RDWR)
    os.unlink(f"{number}.bin")
    os.posix_fallocate(file, 0, 10 << 20)
    map(None, 10 << 20, 3, 1, file, 0)
    os.close(file)
time.sleep(30)
"""
SHARED = """
import mmap, os, time
shared = mmap.mmap(-1, 300 << 20)
with open("read.bin", "wb+") as file:
    file.truncate(80 << 20)
    maps = [mmap.mmap(file.fileno(), 0) for _ in range(5)]
os.unlink("read.bin")
with open("written.bin", "wb") as file:
    file.write(bytes(60 << 20))
time.sleep(3)
"""
EMPTY = """
import time
for number in range(60_000):
    open(f"{number}.bin", "wb").close()
time.sleep(30)
"""
PACED = """
import time
for number in range(30):
    with open(f"{number}.bin", "wb") as file:
        file.write(bytes(10 << 20))
    print(number, flush=True)
time.sleep(30)
"""
FORKS = """
import os, time
children = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        time.sleep(5)
        os._exit(0)
    children.append(child)
time.sleep(1.5)
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize(
    ("limits", "code", "told"),
    [
        ({"memory_mb": 700}, MANY, "kernel.memory_mb"),
        ({"disk_mb": 100}, FILES, "kernel.disk_mb"),
        ({"disk_mb": 100}, NAMELESS, "kernel.disk_mb"),
        ({"disk_mb": 100}, MAPPED, "kernel.disk_mb"),
        ({"disk_mb": 100}, EMPTY, "kernel.disk_mb"),
    ],
    ids=["memory", "disk", "files without names", "files that are mapped alone", "empty files"],
)
def test_a_kernel_whose_processes_take_too_much_together_is_ended_and_says_why(tmp_path, limits, code, told):
    with LocalKernel(tmp_path, settings=KernelSettings(**limits)) as kernel:
        execution = kernel.execute(code, seconds=25)

        assert execution.state_lost
        assert told in execution.error
        assert execution.seconds < 20
        assert kernel.execute("1 + 1", seconds=30).result == "2"


def test_memory_that_is_shared_and_a_file_that_is_mapped_often_are_not_taken_for_more_on_the_disk(tmp_path):
    with LocalKernel(tmp_path, settings=KernelSettings(disk_mb=100)) as kernel:
        assert kernel.execute(SHARED, seconds=25).error == ""


def test_a_disk_is_bounded_though_others_free_as_much_of_it_meanwhile(tmp_path):
    ballast = [tmp_path / f"ballast-{number}" for number in range(30)]
    for one in ballast:
        one.write_bytes(bytes(10 << 20))

    def free(stream, text):
        for _ in range(text.count("\n")):
            ballast.pop().unlink()

    with LocalKernel(tmp_path / "session", settings=KernelSettings(disk_mb=100)) as kernel:
        execution = kernel.execute(PACED, seconds=25, on_output=free)

        assert "kernel.disk_mb" in execution.error
        assert execution.seconds < 20


def test_memory_that_processes_share_is_counted_once(tmp_path):
    with LocalKernel(tmp_path, settings=KernelSettings(memory_mb=700)) as kernel:
        kernel.execute("shared = bytearray(b'x' * (100 << 20))", seconds=30)
        execution = kernel.execute(FORKS, seconds=30)  # 20 children that have as much, and took nothing

        assert execution.ok, execution.error
