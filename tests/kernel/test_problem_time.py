"""Cells that don't end by themselves, or take all that recursion can take: bounded, told, and the next one runs."""

import threading
import time

import pytest

from tests.kernel.filled import filled, keep, margin, run, works
from tw_autogen.kernel import KernelSettings, LocalKernel

_IGNORE = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN);"
_TICK = """
import asyncio
seen = []
async def tick():
    while True:
        seen.append(1)
        await asyncio.sleep(0.01)
task = asyncio.create_task(tick())
"""

STOPPED = {
    "a silent loop": "while True: pass",
    "a number of a hundred million digits": "len(str(10 ** (10 ** 8)))",
    "a regular expression that tries everything": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "a sleep": "import time\ntime.sleep(1e9)",
    "a lock": "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    "a thread that is waited for": "import threading, time\nt = threading.Thread(target=time.sleep, args=(60,))\n"
    "t.daemon = True\nt.start()\nt.join()",
    "a command": "!sleep 1000",
    "a child": "import subprocess\nsubprocess.run(['sleep', '1000'])",
    "await": "import asyncio\nawait asyncio.sleep(1e9)",
    "await of a task": "import asyncio\nawait asyncio.create_task(asyncio.sleep(1e9))",
    "await of many": "import asyncio\nawait asyncio.gather(*(asyncio.sleep(1e9) for _ in range(9)))",
    "await again and again": "import asyncio\nwhile True: await asyncio.sleep(0)",
    "a loop behind await": "import asyncio\nawait asyncio.sleep(0)\nwhile True: pass",
    "a loop in a task": "import asyncio\nasync def spin():\n    while True: pass\nawait asyncio.create_task(spin())",
    "an await that swallows one interrupt": "import asyncio\ntry:\n    await asyncio.sleep(1e9)\n"
    "except BaseException: pass\nawait asyncio.sleep(1e9)",
    "a loop that swallows one interrupt": "try:\n    while True: pass\nexcept BaseException: pass\nwhile True: pass",
}
KILLED = {
    "a loop that swallows every interrupt": "import time\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n"
    "    except BaseException: pass",
    "await that swallows every interrupt": "import asyncio\nwhile True:\n    try:\n        await asyncio.sleep(1e9)\n"
    "    except BaseException: pass",
    "a loop that interrupts don't reach": f"{_IGNORE}\nwhile True: pass",
    "C code that looks at no signal and lets no thread run": "sum(iter(int, 1))",
}


@pytest.fixture(scope="module")
def kernel():
    with filled() as kernel:
        yield kernel


@pytest.mark.parametrize("code", STOPPED.values(), ids=STOPPED.keys())
def test_what_an_interrupt_stops_costs_no_variable(kernel, code):
    keep(kernel)
    execution = run(kernel, code, seconds=0.5)

    assert execution.error.startswith("Stopped after 0.5 s, its time limit, by an interrupt; variables are kept.")
    assert not execution.state_lost
    works(kernel)


@pytest.mark.parametrize("code", KILLED.values(), ids=KILLED.keys())
def test_what_no_interrupt_stops_is_killed_and_told(kernel, code):
    keep(kernel)
    execution = run(kernel, code, seconds=0.5)

    assert "did not react to an interrupt, so the kernel was killed. All variables are lost" in execution.error
    assert execution.state_lost
    works(kernel, kept=False)


def test_an_interrupt_from_another_thread_cancels_await_and_keeps_variables(kernel):
    keep(kernel)

    def stop(stream, text):
        threading.Thread(target=kernel.interrupt).start()

    began = time.monotonic()
    execution = kernel.execute(
        "import asyncio\nprint('on', flush=True)\nawait asyncio.sleep(1e9)", seconds=60, on_output=stop
    )

    assert time.monotonic() - began < 1 + margin()
    assert "by an interrupt; variables are kept" in execution.error
    works(kernel)


def test_a_cell_that_is_cancelled_before_it_begins_is_not_run(kernel):
    cancelled = threading.Event()
    cancelled.set()
    ran = kernel.execute("begun = True", seconds=60, cancelled=cancelled)
    assert ran.error == "Stopped on request: this cell was not run."
    assert kernel.execute("'begun' in globals()", seconds=60).result == "False"


def test_a_task_left_behind_goes_on_beside_other_cells_and_one_that_never_awaits_is_told(kernel):
    keep(kernel)
    run(kernel, f"{_TICK}await asyncio.sleep(0.1)", seconds=30)
    assert kernel.execute("await asyncio.sleep(0.1)\ntask.cancel() and len(seen) > 2", seconds=30).result == "True"
    works(kernel)

    run(kernel, "async def spin():\n    while True: pass\ntask = asyncio.create_task(spin())", seconds=30)
    assert run(kernel, "'not reached'", seconds=0.5).state_lost
    works(kernel, kept=False)


def test_sigint_ignored_in_one_cell_still_stops_the_next(kernel):
    keep(kernel)
    assert run(kernel, _IGNORE, seconds=30).ok
    assert not run(kernel, "while True: pass", seconds=0.5).state_lost
    works(kernel)


def test_recursion_is_an_error_like_others_and_told_at_once(kernel):
    keep(kernel)
    execution = run(kernel, "def down(n):\n    return down(n + 1)\ndown(0)", seconds=30, within=1)

    assert execution.error.splitlines()[-1].startswith("RecursionError")
    assert "line 3\n    down(0)" in execution.error
    assert len(execution.error) < 5000
    works(kernel)


@pytest.mark.parametrize("body", ["return down(n + 1)", "return max([n], key=down)"], ids=["in Python", "through C"])
def test_recursion_without_a_limit_takes_no_more_than_its_time_and_memory(body):
    with filled(memory_mb=600) as kernel:
        code = f"import sys\nsys.setrecursionlimit(10 ** 9)\ndef down(n):\n    {body}\ndown(0)"
        execution = run(kernel, code, seconds=4)

        assert not execution.ok
        works(kernel, kept=not execution.state_lost)


def test_two_hundred_failures_in_a_row_leave_the_kernel_as_it_was(kernel):
    keep(kernel)
    for number in range(200):
        assert kernel.execute(f"raise ValueError({number})", seconds=30).error.endswith(f"ValueError: {number}")
        assert kernel.execute(f"{number}", seconds=30).result == str(number)
    works(kernel)


@pytest.mark.slow
def test_a_cell_right_behind_an_interrupted_one_runs_two_hundred_times(kernel):
    keep(kernel)
    for number in range(200):
        assert not kernel.execute("while True: pass", seconds=0.003 + 0.001 * (number % 10)).state_lost
        assert kernel.execute(f"{number}", seconds=30).result == str(number)
    works(kernel)


FLOOD = """
import os, signal, socket, struct
for name in os.listdir("/proc/self/fd"):
    try:
        one = socket.socket(fileno=os.dup(int(name)))
    except OSError:
        continue
    if str(one.getsockname()).endswith("WHICH") and not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        found = one
    else:
        one.close()
def frame(part, more):
    return struct.pack(">BQ", 2 | more, len(part)) + part
parts = [b"<IDS|MSG>", b"0" * 64, b'{"msg_type": "x"}', b"{}", b"{}", b" " * 8_000_000]
flood = b"".join(frame(part, part is not parts[-1]) for part in parts)
found.setblocking(True)
if not os.fork():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        found.sendall(flood)
while True: pass
"""
"""A child that no interrupt reaches sends messages with a wrong signature as fast as the host takes them in."""


@pytest.mark.slow
@pytest.mark.parametrize("socket", ["k-1", "k-2"], ids=["shell", "iopub"])
def test_a_flood_of_messages_that_nobody_can_read_does_not_outrun_the_clock(socket):
    with filled(sandbox="namespaces") as kernel:
        ended = kernel.execute(FLOOD.replace("WHICH", socket), seconds=2)
        assert "time limit" in ended.error or "answered nothing any more" in ended.error
        kernel.restart()
        works(kernel, kept=False)


def test_a_kernel_that_takes_variables_back_slowly_is_ended_and_the_next_one_has_them(monkeypatch):
    with LocalKernel(settings=KernelSettings(load_seconds=1.0)) as kernel:
        for name in "abcdef":
            kernel.put(name, name)
        kernel.execute("1", seconds=30)
        put = kernel._put
        monkeypatch.setattr(kernel, "_put", lambda *how: time.sleep(0.6) or put(*how))
        began = time.monotonic()
        kernel.execute("%reset -f", seconds=30)
        took = time.monotonic() - began
        monkeypatch.undo()
        lost = kernel.execute("a", seconds=30)

        assert took < 3.0 + margin()
        assert lost.state_lost
        assert "took too long to take back" in lost.error
        assert kernel.execute("a + f", seconds=30).result == "'af'"
