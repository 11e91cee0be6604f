"""Nothing hangs, and nothing is lost in silence: loops, deaths, interrupts, owners that go."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pandas as pd
import pytest

from tests.kernel.filled import margin
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel

PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"
QUICK = KernelSettings(grace_seconds=1.0)


@pytest.fixture(scope="module")
def kernel():
    with LocalKernel(settings=QUICK) as kernel:
        kernel.load(Loadable("double", PLUGIN))
        kernel.put("given", 7)
        kernel.serve("ask", lambda: "answered")
        yield kernel


@pytest.mark.parametrize("code", ["while True: pass", "import time\ntime.sleep(1e6)"])
def test_a_cell_beyond_its_time_is_interrupted_and_the_variables_are_kept(kernel, code):
    kernel.execute("kept = 5", seconds=30)
    started = time.monotonic()

    execution = kernel.execute(code, seconds=0.5)

    assert not execution.ok
    assert not execution.state_lost
    assert "Stopped" in execution.error
    assert time.monotonic() - started < 1 + margin()
    assert kernel.execute("kept", seconds=30).result == "5"


LOST = {
    "ignores interrupts": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "exits": "import os\nos._exit(3)",
    "is killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "import ctypes\nctypes.string_at(0)",
}


@pytest.mark.parametrize("code", LOST.values(), ids=LOST.keys())
def test_a_lost_kernel_is_told_and_the_next_cell_gets_a_fresh_one_with_all_that_was_put_in(kernel, code):
    kernel.execute("kept = 5", seconds=30)

    execution = kernel.execute(code, seconds=1.0)

    assert not execution.ok
    assert execution.state_lost
    assert "All variables are lost" in execution.error
    after = kernel.execute("('kept' in globals(), given, double(4), ask())", seconds=30)
    assert after.result == "(False, 7, 8, 'answered')"


def test_a_death_is_told_with_its_reason(kernel):
    assert "3" in kernel.execute("import os\nos._exit(3)", seconds=30).error
    assert "SIGKILL" in kernel.execute("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", seconds=30).error


def test_interrupt_from_another_thread_stops_the_cell(kernel):
    def stop(stream, text):
        threading.Thread(target=kernel.interrupt).start()

    execution = kernel.execute("kept = 9\nprint('on', flush=True)\nwhile True: pass", seconds=30, on_output=stop)

    assert "interrupt" in execution.error
    assert kernel.execute("kept", seconds=30).result == "9"


def test_interrupt_without_a_cell_does_nothing(kernel):
    kernel.interrupt()

    assert kernel.execute("1", seconds=30).result == "1"


def test_restart_gives_a_fresh_process_with_plugins_and_put_variables(kernel):
    kernel.execute("kept = 5", seconds=30)
    kernel.restart()

    assert kernel.execute("('kept' in globals(), given, double(1))", seconds=30).result == "(False, 7, 2)"


OWNER = """
import sys
from tw_autogen.kernel import LocalKernel
kernel = LocalKernel()
kernel.execute("1", seconds=30)
print(kernel.pid, flush=True)
{then}
"""


def gone(pid, seconds=10.0):
    """Wait until a process is no more (or is dead and waits for its parent)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):  # the second one: between opening and reading
            return True
        threading.Event().wait(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_outlives_an_owner_that_forgets_to_close_or_is_killed(monkeypatch, request):
    short = tempfile.TemporaryDirectory()  # what a killed owner leaves lies there; the path of a socket must be short
    request.addfinalizer(short.cleanup)
    monkeypatch.setenv("TMPDIR", short.name)
    forgets = subprocess.run(
        [sys.executable, "-c", OWNER.format(then="")], capture_output=True, text=True, timeout=60, check=True
    )
    assert gone(int(forgets.stdout))

    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(then="sys.stdin.read()")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with owner:
        pid = int(owner.stdout.readline())
        os.kill(owner.pid, signal.SIGKILL)
    assert gone(pid)


CTRL_C = """
from tw_autogen.kernel import LocalKernel
with LocalKernel() as kernel:
    try:
        kernel.execute("kept = 3\\nprint('on', flush=True)\\nwhile True: pass", seconds=60,
                       on_output=lambda stream, text: print(text, end="", flush=True))
    except KeyboardInterrupt:
        print("stopped", kernel.execute("kept", seconds=30).result, flush=True)
"""


def test_ctrl_c_stops_the_cell_and_keeps_kernel_and_variables():
    owner = subprocess.Popen([sys.executable, "-c", CTRL_C], stdout=subprocess.PIPE, text=True, start_new_session=True)
    with owner:
        assert owner.stdout.readline() == "on\n"
        owner.send_signal(signal.SIGINT)
        assert owner.stdout.readline() == "stopped 3\n"
        assert owner.wait(30) == 0


def test_a_kernel_starts_again_in_a_folder_that_code_has_closed():
    with LocalKernel() as kernel:
        assert kernel.execute(
            "import os\nos.makedirs('.tw-exchange', exist_ok=True)\nos.chmod('.tw-exchange', 0)\nos.chmod('.', 0)",
            seconds=30,
        ).ok
        kernel.restart()
        assert kernel.execute("open('made.txt', 'w').write('x')", seconds=30).ok
        kernel.put("table", pd.DataFrame({"n": [1]}))
        assert kernel.execute("table.n[0]", seconds=30).result in ("1", "np.int64(1)")
        kernel.execute("import os\nos.chmod('.', 0)", seconds=30)
        folder = kernel.folder
    assert not folder.exists()
