"""What all processes of a kernel take up together is bounded, though no limit of the system's says so."""

import os
import socket
import sys

import pytest

from tw_autogen.errors import ConfigError, KernelError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.launcher.socket_memory import in_flight, open_sockets

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


SOCKETS = """
import socket, time
kept = []
for _ in range(1900):
    one, other = socket.socketpair()
    one.setblocking(False)
    try:
        while True: one.send(bytes(65536))
    except BlockingIOError:
        pass
    kept += {kept}
time.sleep(30)
"""
LET_GO = """
import mmap, time
kept = []
for _ in range(12):
    kept.append(mmap.mmap(-1, 40 << 20))
    kept[-1].write(bytes(40 << 20))
    kept[-1].madvise(mmap.MADV_DONTNEED)
time.sleep(30)
"""
TABLES = """
import ctypes, time
map = ctypes.CDLL(None).mmap
map.restype = ctypes.c_void_p
map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
kept = map(None, 1 << 38, 1, 0x4022, -1, 0)
for place in range(kept, kept + (1 << 38), 1 << 21):
    ctypes.c_char.from_address(place).value
time.sleep(30)
"""
WRITTEN = """
for number in range(30):
    with open(f"{folder}/{number}.bin", "wb") as file:
        file.write(bytes(10 << 20))
time.sleep(30)
"""
DEEP = f"""
import os, time
for _ in range(60):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
folder = "."
{WRITTEN}
"""
UNLISTED = """
import os, time
os.mkdir("unlisted", 0o300)
folder = os.open("unlisted", os.O_PATH)
for number in range(30):
    file = os.open(f"{number}.bin", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
    os.write(file, bytes(10 << 20))
    os.close(file)
time.sleep(30)
"""
IN_FLIGHT = """
import os, socket, time
one, other = socket.socketpair()
two, another = socket.socketpair()
for number in range(30):
    file = os.open("sent", os.O_RDWR | os.O_CREAT)
    os.unlink("sent")
    os.write(file, bytes(10 << 20))
    socket.send_fds(one, [b"x"], [file])
    os.close(file)
    if number == 3 and {nested}:
        socket.send_fds(two, [b"x"], [other.fileno()])
        other.close()
time.sleep(30)
"""
RUNTIME = f"""
import os, time
folder = os.path.dirname(os.environ["IPYTHONDIR"])
{WRITTEN}
"""
MOVED = f"""
import os, time
folder = os.path.dirname(os.environ["IPYTHONDIR"])
try:
    os.rename(os.path.dirname(folder), "/tmp/elsewhere")
    os.makedirs(folder)
    folder = "/tmp/elsewhere/" + os.path.basename(folder)
except OSError:
    pass
{WRITTEN}
"""
UNSEEN = {
    "sockets": ("memory_mb", 300, SOCKETS.format(kept="one, other")),
    "sockets whose sender is gone": ("memory_mb", 300, SOCKETS.format(kept="[other]")),
    "shared memory that is let go": ("memory_mb", 300, LET_GO),
    "tables of pages": ("memory_mb", 300, TABLES),
    "a path without end": ("disk_mb", 100, DEEP),
    "a folder that is not to be listed": ("disk_mb", 100, UNLISTED),
    "descriptors in flight": ("disk_mb", 100, IN_FLIGHT.format(nested=False)),
    "descriptors in flight in one in flight": ("disk_mb", 100, IN_FLIGHT.format(nested=True)),
    "the kernel's own folder": ("disk_mb", 100, RUNTIME),
    "the kernel's own folder, moved with what is above it": ("disk_mb", 100, MOVED),
}


@pytest.mark.parametrize("level", ["auto", "landlock"])
@pytest.mark.parametrize(("limit", "most", "code"), UNSEEN.values(), ids=UNSEEN)
def test_what_no_list_of_files_or_pages_shows_counts_too(tmp_path, level, limit, most, code):
    with LocalKernel(tmp_path, settings=KernelSettings(sandbox=level, **{limit: most})) as kernel:
        try:
            kernel.execute("1", seconds=30)
        except (ConfigError, KernelError) as error:
            if level == "auto" or os.environ.get("TW_SANDBOXES") == "all":
                raise
            pytest.skip(f"not on this system: {error}")
        execution = kernel.execute(code, seconds=15)

        assert f"(kernel.{limit})" in execution.error
        assert execution.seconds < 14


IN_MEMORY = """
import os, time
for name in ("/tmp/a", "/dev/shm/a"):
    with open(name, "wb") as file: file.write(bytes(95 << 20))
for _ in range(3):
    if os.fork() == 0:
        kept = b"x" * (80 << 20)
        time.sleep(30)
        os._exit(0)
time.sleep(30)
"""


def test_files_in_memory_count_as_memory(tmp_path):
    with LocalKernel(tmp_path, settings=KernelSettings(memory_mb=400)) as kernel:
        execution = kernel.execute(IN_MEMORY, seconds=14)
        if "PermissionError" in execution.error:
            pytest.skip("code can write no files in memory at this level")

        assert "(kernel.memory_mb)" in execution.error


def test_a_file_in_memory_without_a_folder_cannot_be_made(tmp_path):
    with LocalKernel(tmp_path, settings=KernelSettings(memory_mb=300)) as kernel:
        assert "Function not implemented" in kernel.execute("import os\nos.memfd_create('x')", seconds=30).error


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
        execution = kernel.execute(code, seconds=60)

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


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_sockets_of_which_the_system_tells_less_are_counted_too():
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    kinds = [(socket.AF_INET, stream), (socket.AF_INET6, stream), (socket.AF_INET, datagram), (socket.AF_UNIX, stream)]
    made = [socket.socket(*kind) for kind in kinds]
    try:
        assert in_flight(open_sockets(os.getpid())) == 0
    finally:
        for one in made:
            one.close()


@pytest.mark.parametrize("level", ["auto", "landlock"])
def test_a_kernel_with_network_lives_on_with_open_sockets_of_the_internet(level):
    settings = KernelSettings(sandbox=level, allow_network=True)
    code = "import socket, time\nheld = [socket.create_server(('127.0.0.1', 0)) for _ in range(3)]\ntime.sleep(1.5)"

    with LocalKernel(settings=settings) as kernel:
        assert kernel.execute(code, seconds=60).ok
        assert kernel.execute("len(held)", seconds=60).result == "3"


@pytest.mark.parametrize(
    "way",
    [
        "socket.socket(socket.AF_UNIX).connect(place)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect(place)",
        "socket.socketpair(type=socket.SOCK_DGRAM)[0].connect(place)",
    ],
)
def test_with_network_at_landlock_code_reaches_no_unix_socket_of_another_program(tmp_path, way):
    place = str(tmp_path / "agent")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if "DGRAM" in way else socket.SOCK_STREAM) as agent,
        LocalKernel(settings=KernelSettings(sandbox="landlock", allow_network=True)) as kernel,
    ):
        agent.bind(place)
        if "DGRAM" not in way:
            agent.listen()
        execution = kernel.execute(f"import socket\nplace = {place!r}\n{way}", seconds=30)

        assert "PermissionError: [Errno 1]" in execution.error
        assert kernel.execute("a, b = socket.socketpair()\na.send(b'x')\nb.recv(1)", seconds=30).result == "b'x'"
