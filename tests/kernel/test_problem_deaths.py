"""Cells that end their process, take all there is, or leave processes behind: told with the reason, nothing stays."""

import contextlib
import gc
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.kernel.filled import filled, keep, linux, run, works
from tw_autogen.errors import KernelError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.pool import KernelPool

pytestmark = pytest.mark.skipif(not linux, reason="limits and processes are looked at through /proc")

_KILL = "import os, signal\nos.kill(os.getpid(), signal.{})"
DEATHS = {
    "_exit": ("import os\nos._exit(3)", "exit code 3"),
    "a crash": ("import ctypes\nctypes.string_at(0)", "killed by SIGSEGV"),
    "abort": ("import os\nos.abort()", "killed by SIGABRT"),
    "SIGKILL": (_KILL.format("SIGKILL"), "killed by SIGKILL"),
    "SIGTERM": (_KILL.format("SIGTERM"), "killed by SIGTERM"),
    "a fork bomb's own end": ("import os\nif os.fork(): os._exit(7)", "exit code 7"),
    "an exit in a thread": (
        "import os, threading\nthreading.Thread(target=os._exit, args=(4,)).start()\nwhile True: pass", "exit code 4",
    ),
    "all descriptors closed": ("import os\nos.closerange(3, 4096)\nprint('x', flush=True)", "killed by"),
}  # fmt: skip


@pytest.fixture(scope="module")
def kernel():
    with filled() as kernel:
        yield kernel


_CLASS = "class M(type):\n    {}\nclass C(metaclass=M):\n    'doc'\nc = object.__new__(C)\n"
_METHOD = "def {}(cls, *args, **options):\n        raise {}"
_PROPERTY = "@property\n    def {}(cls):\n        raise {}"
RAISING = {
    **{
        f"{name} of a metaclass raises {what}": _CLASS.format(_METHOD.format(name, what)) + end
        for name in ("__getattribute__", "__eq__", "__instancecheck__", "__repr__")
        for what, end in (("SystemExit('now')", "c"), ("GeneratorExit", ""))
    },
    **{
        f"{name} as a metaclass's property": _CLASS.format(_PROPERTY.format(name, "SystemExit('now')")) + "C"
        for name in ("__doc__", "__name__", "__module__", "__mro__")
    },
    "a date's text": "import datetime\nclass D(datetime.date):\n def __str__(self): raise SystemExit\nc = D(1, 1, 1)",
    "a frame's shape": (
        "import pandas as pd\nclass D(pd.DataFrame):\n    @property\n    def shape(self): raise KeyboardInterrupt\n"
        "c = D({'a': [1]})"
    ),
    "a class of errors": (
        "class M(type):\n    def __getattribute__(cls, name): raise SystemExit\n"
        "class c(Exception, metaclass=M): pass\nraise c"
    ),
    "an error's text": "class c(Exception):\n    def __str__(self): raise SystemExit\nraise c",
}  # fmt: skip


@pytest.mark.parametrize("code", RAISING.values(), ids=RAISING)
def test_what_a_class_raises_while_a_cells_end_is_reported_ends_no_kernel(kernel, code):
    pid = kernel.pid
    execution = run(kernel, code, seconds=30)

    assert execution.ok or "Exit" in execution.error or "its text could not be made" in execution.error
    with contextlib.suppress(TypeError, KeyError, KernelError):
        kernel.get("c")
    works(kernel)
    assert kernel.pid == pid
    run(kernel, "globals().pop('c', None) is None", seconds=30)


LAST_WORDS = {
    "flushed": "print('last words', flush=True)\nos._exit(3)",
    "not flushed": "print('last words')\nos._exit(3)",
    "by a descriptor": "os.write(1, b'last words')\nos._exit(3)",
    "much, the end of it": "print('x' * 10**6, 'last words')\nos._exit(3)",
    "before an abort": "print('last words', flush=True)\nos.abort()",
    "from a thread": (
        "import threading\ndef end():\n    print('last words')\n    os._exit(3)\n"
        "thread = threading.Thread(target=end)\nthread.start()\nthread.join()"
    ),
}


@pytest.mark.parametrize("code", LAST_WORDS.values(), ids=LAST_WORDS)
def test_what_a_process_has_printed_before_it_ends_itself_is_shown(kernel, code):
    execution = run(kernel, f"import os\n{code}", seconds=30, within=2)

    assert "last words" in execution.stdout
    assert execution.state_lost
    works(kernel, kept=False)


CRASHES = {
    "one print": "print('last words', flush=True)\n",
    "stderr": "import sys\nsys.stderr.write('last words')\nsys.stderr.flush()\n",
    "several": "for number in range(50):\n    print(number, flush=True)\nprint('last words', flush=True)\n",
    "another script": "print('größer 木', end=' ', flush=True)\nprint('last words', flush=True)\n",
}


@pytest.mark.parametrize("code", CRASHES.values(), ids=CRASHES)
def test_what_was_flushed_right_before_a_crash_is_shown_each_time(kernel, code):
    for _ in range(5):
        heard = []
        crash = f"{code}import ctypes\nctypes.string_at(0)"
        execution = kernel.execute(crash, seconds=30, on_output=lambda *one, heard=heard: heard.append(one))

        said = execution.stdout + execution.stderr
        assert "killed by SIGSEGV" in execution.error
        assert said.count("last words") == 1
        assert "".join(text for _, text in heard) == said
        if "range" in code:
            assert execution.stdout.split() == [*map(str, range(50)), "last", "words"]
    works(kernel, kept=False)


def test_a_file_that_takes_the_place_of_what_keeps_the_flushed_gets_nothing_of_it(kernel):
    execution = kernel.execute(
        "import ctypes, glob, os\n"
        "print('first', flush=True)\n"
        "links = {one: os.readlink(one) for one in glob.glob('/proc/self/fd/*') if os.path.exists(one)}\n"
        "number, = (int(os.path.basename(one)) for one, to in links.items() if 'crash-output' in to)\n"
        "os.close(number)\n"
        "file = os.open('mine.txt', os.O_RDWR | os.O_CREAT)\n"
        "print('last words', file == number, flush=True)\n"
        "print(os.path.getsize('mine.txt'), flush=True)\n"
        "ctypes.string_at(0)",
        seconds=30,
    )

    assert "killed by SIGSEGV" in execution.error
    assert execution.stdout == "first\nlast words True\n0\n"
    works(kernel, kept=False)


def test_a_crash_shows_nothing_of_the_cell_before(kernel):
    assert kernel.execute("print('earlier', flush=True)", seconds=30).ok

    assert kernel.execute("import ctypes\nctypes.string_at(0)", seconds=30).stdout == ""
    works(kernel, kept=False)


def below(pid):
    """Give a process's children, their children, and so on, with their command lines."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            line = (status.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if fields[0] != "Z":
            found[int(status.parent.name)] = (int(fields[1]), line)
    ours = {pid}
    while more := {one for one, (parent, _) in found.items() if parent in ours and one not in ours}:
        ours |= more
    return {our: found[our][1] for our in ours if our in found and our != pid}


def parent(pid):
    """Give a process's parent."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def until(condition, seconds=10.0):
    """Wait until something is so; tell whether it is."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    return condition()


@pytest.mark.parametrize(("code", "how"), DEATHS.values(), ids=DEATHS.keys())
def test_a_death_is_told_at_once_with_its_reason(kernel, code, how):
    keep(kernel)
    execution = run(kernel, code, seconds=30, within=3)

    assert execution.error.startswith(f"The kernel died while this cell ran: {how}")
    assert execution.state_lost
    works(kernel, kept=False)


@pytest.mark.parametrize(
    "code", ["x = []\nwhile True: x.append(bytearray(10_000_000))", "x = bytearray(10 ** 11)", "x = 'a' * 10 ** 10"]
)
def test_memory_without_end_is_a_memory_error_and_the_session_lives(code):
    with filled(memory_mb=600) as kernel:
        execution = run(kernel, code, seconds=20)

        assert "MemoryError\nThe sandbox allows 600 MB" in execution.error
        works(kernel)


def test_memory_of_several_processes_is_bounded_together_and_the_setting_named():
    with filled(memory_mb=600) as kernel:
        child = "if os.fork() == 0:\n        x = b'a' * 200_000_000\n        time.sleep(99)\n"
        execution = run(kernel, f"import os, time\nfor _ in range(6):\n    {child}time.sleep(99)", seconds=20)

        assert "of 600 (kernel.memory_mb)" in execution.error
        works(kernel, kept=False)


@pytest.mark.parametrize(
    "code",
    ["import os\nwhile True: os.fork()", "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass"],
    ids=["that ends", "that swallows errors"],
)
def test_a_fork_bomb_is_bounded_and_nothing_is_left_of_it(code):
    before = set(below(os.getpid()))
    most = []
    with filled(processes=40) as kernel:
        looks = threading.Event()

        def look():
            over = False
            while not over:
                most.append(len(set(below(os.getpid())) - before))
                over = looks.wait(0.1)

        looking = threading.Thread(target=look)
        looking.start()
        execution = run(kernel, code, seconds=1)
        looks.set()
        looking.join()
        assert not execution.ok
        if not execution.state_lost:  # what is left of it belongs to the session still
            kernel.restart()
        keep(kernel)
        works(kernel)
    assert max(most) < 60
    # the fork server, the supervisor that waits there, a kernel that is kept ready, and one for the test before
    assert until(lambda: len(set(below(os.getpid())) - before) <= 6)


@pytest.mark.parametrize(
    "code",
    [
        "file = open('big', 'wb')\nwhile True: file.write(b'x' * 1_000_000)",
        "for number in range(10 ** 9):\n    with open(f'big-{number}', 'wb') as file: file.write(b'x' * 1_000_000)",
    ],
    ids=["in one file", "in many"],
)
def test_a_folder_that_grows_without_end_is_told_and_can_be_tidied_up(code):
    with filled(disk_mb=50) as kernel:
        execution = run(kernel, code, seconds=20)

        assert "of 50 (kernel.disk_mb)" in execution.error
        works(kernel, kept=False)
        folder = str(kernel.folder)
        assert folder.startswith("/tmp/")
        tidy = f"import pathlib\nfor one in pathlib.Path({folder!r}).glob('big*'): one.unlink()"
        assert run(kernel, tidy, seconds=30).ok
        assert run(kernel, "open('small', 'wb').write(b'x' * 9_000_000)", seconds=30).ok
        works(kernel)


def test_a_file_beyond_its_limit_is_an_error_of_the_code():
    with filled(file_mb=5) as kernel:
        execution = run(kernel, "open('big', 'wb').write(b'x' * 20_000_000)", seconds=30)
        assert "OSError: [Errno 27] File too large" in execution.error
        run(kernel, "import os\nos.system('head -c 20000000 /dev/zero');", seconds=30)
        assert kernel.execute("import os\nos.system('echo heard');", seconds=30).stdout.endswith("heard\n")
        works(kernel)


LEFT = {
    "Popen": "import subprocess\nchild = subprocess.Popen(['sleep', '987653'])",
    "a session of its own": "import subprocess\nsubprocess.Popen(['sleep', '987653'], start_new_session=True)",
    "a double fork": "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
    "        os.execlp('sleep', 'sleep', '987653')\n    os._exit(0)\nos.wait()",
    "nohup": "import os\nos.system('nohup sleep 987653 >/dev/null 2>&1 &')",
}


@pytest.mark.parametrize("code", LEFT.values(), ids=LEFT.keys())
def test_a_process_left_behind_lives_with_the_session_and_is_gone_after_close(code):
    def sleepers():
        return [line for line in below(os.getpid()).values() if "987653" in line]

    with filled() as kernel:
        run(kernel, code, seconds=30)
        works(kernel)
        assert until(lambda: len(sleepers()) == 1)
        works(kernel)
    assert until(lambda: not sleepers())


def test_a_thread_left_behind_lives_with_the_session():
    with filled() as kernel:
        run(kernel, "import threading, time\nseen = []\ndef tick():\n    while True: seen.append(1), time.sleep(0.01)\n"
            "threading.Thread(target=tick).start()", seconds=30)  # fmt: skip
        works(kernel)
        pid = kernel.pid
        assert run(kernel, "time.sleep(0.2)\nlen(seen) > 5", seconds=30).result == "True"
    assert not Path(f"/proc/{pid}").exists()


def test_a_forked_process_that_comes_to_the_cells_end_is_no_second_kernel(kernel):
    keep(kernel)
    execution = run(
        kernel, "import os\nchild = os.fork()\nif child: os.waitpid(child, 0)\nelse: print('from it')", seconds=30
    )
    assert execution.ok
    for number in range(50):
        assert kernel.execute(f"child > 0, {number}", seconds=30).result == f"(True, {number})"
    works(kernel)


def killed_at_work(kernel, pid):
    """Run a cell, and kill a process once the cell has begun."""
    killed = []

    def kill(stream, text):
        if not killed:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    execution = kernel.execute("import time\nprint('begun', flush=True)\ntime.sleep(60)", seconds=90, on_output=kill)
    assert killed
    assert execution.seconds < 30
    return execution


@pytest.mark.parametrize("when", ["between", "during"])
def test_a_kernel_killed_from_outside_is_told_and_replaced(kernel, when):
    keep(kernel)
    if when == "between":
        os.kill(kernel.pid, signal.SIGKILL)
        assert until(lambda: kernel.pid is None)
        execution = run(kernel, "'not run'", seconds=30, within=3)
        assert "The kernel died between two cells: killed by SIGKILL" in execution.error
        assert "This cell was not run" in execution.error
    else:
        execution = killed_at_work(kernel, kernel.pid)
        assert "The kernel died while this cell ran: killed by SIGKILL" in execution.error
    assert execution.state_lost
    works(kernel, kept=False)


@pytest.mark.parametrize("when", ["between", "during"])
def test_a_supervisor_killed_from_outside_takes_its_kernel_along_and_is_told(kernel, when):
    keep(kernel)
    pid = kernel.pid
    supervisor = parent(pid)
    assert {pid, supervisor} <= below(os.getpid()).keys()
    if when == "between":
        os.kill(supervisor, signal.SIGKILL)
        assert until(lambda: kernel.pid is None)
        execution = run(kernel, "'not run'", seconds=30, within=3)
    else:
        execution = killed_at_work(kernel, supervisor)

    assert "killed with its supervisor" in execution.error
    assert execution.state_lost
    assert until(lambda: not Path(f"/proc/{pid}").exists())
    works(kernel, kept=False)


def test_a_fork_server_killed_from_outside_ends_no_session_and_new_ones_start(kernel):
    keep(kernel)
    ours = ("tw_launcher.fork_server", " many ")
    servers = [one for one, line in below(os.getpid()).items() if all(word in line for word in ours)]
    served = [server for server in servers if parent(server) == os.getpid()]
    assert served
    for one in served:
        os.kill(one, signal.SIGKILL)

    works(kernel)
    with filled() as another:
        works(another)


def own_objects():
    """Count the objects of our own types and of the sockets beneath, by type; others come and go by themselves."""
    gc.collect()
    kinds = (type(one) for one in gc.get_objects())
    ours = ("tw_autogen", "jupyter_client")
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).partition(".")[0] in ours)


def test_deaths_leave_nothing_in_the_host(tmp_path):
    settings = KernelSettings(preload=(), warm=0)

    def die(kernel, times):
        for _ in range(times):
            assert kernel.execute("import os\nos._exit(3)", seconds=30).state_lost
        assert kernel.execute("f()", seconds=30).result == "1"

    with KernelPool() as pool, LocalKernel(tmp_path, settings=settings, pool=pool) as kernel:
        kernel.serve("f", lambda: 1)
        assert pool.wait(settings)
        die(kernel, 3)  # what is made once
        before = own_objects()
        assert before["LocalKernel"] >= 1  # those of other tests may be there too

        deaths = 20
        die(kernel, deaths)

        def left():  # one for each death; a pool of other tests may have made a kernel meanwhile
            return {kind: more for kind, more in (own_objects() - before).items() if more >= deaths}

        assert until(lambda: not left()), left()
