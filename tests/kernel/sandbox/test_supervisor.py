"""Code can neither read nor change the supervisor of its kernel, which is a process of the same ordinary user."""

import os
import signal
import time
from pathlib import Path

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.sandbox_levels import available_level

SECONDS = 60.0
WAYS = {
    "limits": "resource.prlimit(one, resource.RLIMIT_NOFILE, (3, 3))",
    "limits read": "resource.prlimit(one, resource.RLIMIT_NOFILE)",
    "priority": "os.setpriority(os.PRIO_PROCESS, one, 19)",
    "priority of its group": "os.setpriority(os.PRIO_PGRP, one, 19)",
    "memory read": "open(f'/proc/{one}/mem', 'rb')",
    "memory written": "open(f'/proc/{one}/mem', 'r+b')",
    "open files": "os.listdir(f'/proc/{one}/fd')",
    "environment": "open(f'/proc/{one}/environ').read()",
    "folder": "os.listdir(f'/proc/{one}/cwd/')",
    "choice when memory ends": "open(f'/proc/{one}/oom_score_adj', 'w').write('1000')",
    "name": "open(f'/proc/{one}/comm', 'w').write('other')",
}


@pytest.fixture(scope="module", params=["namespaces", "bubblewrap", "landlock"])
def sandboxed(request):
    settings = KernelSettings(sandbox=request.param)
    try:
        available_level(settings)
    except SandboxError as error:  # it does not stand on this machine
        pytest.skip(str(error))
    with LocalKernel(settings=settings) as kernel:
        kernel.execute("import os, resource", seconds=SECONDS)
        yield kernel


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_way_to_the_supervisor_is_closed(sandboxed, way):
    ran = sandboxed.execute(f"one = os.getppid()\n{way}", seconds=SECONDS)

    assert "PermissionError" in ran.error


def test_a_schedule_is_not_changed(sandboxed):
    code = "one = os.getppid()\ntry:\n    os.sched_setscheduler(one, os.SCHED_IDLE, os.sched_param(0))\n"
    ran = sandboxed.execute(f"{code}except PermissionError:\n    pass\nos.sched_getscheduler(one)", seconds=SECONDS)

    assert ran.result == "0"  # SCHED_OTHER


def test_what_code_does_to_its_own_processes_still_works(sandboxed):
    code = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '9'])\n"
        "for one in (0, os.getpid()):\n    resource.prlimit(one, resource.RLIMIT_CORE, (0, 0))\n"
        "    os.sched_setaffinity(one, os.sched_getaffinity(one))\n"
        "    os.setpriority(os.PRIO_PROCESS, one, os.getpriority(os.PRIO_PROCESS, one) + 1)\n"
        "child.kill()\nchild.wait()"
    )
    ran = sandboxed.execute(code, seconds=SECONDS)

    assert ran.result == "-9", ran.error


def pids_of(argument):
    """Return the processes of this machine that have an argument, and are more than a number."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if argument.encode() in (path / "cmdline").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:  # it has just ended
            continue
    return found


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_what_code_started_ends_with_a_kernel_whose_supervisor_answers_no_more(level):
    settings = KernelSettings(sandbox=level)
    try:
        available_level(settings)
    except SandboxError as error:
        pytest.skip(str(error))
    seconds = str(10**6 + time.time_ns() % 10**6)
    with LocalKernel(settings=settings) as kernel:
        started = f"import subprocess\nchild = subprocess.Popen(['sleep', '{seconds}'], start_new_session=True)"
        assert kernel.execute(started, seconds=SECONDS).ok
        deadline = time.monotonic() + SECONDS
        while not pids_of(seconds) and time.monotonic() < deadline:  # its arguments are shown a moment after its start
            time.sleep(0.01)
        (child,) = pids_of(seconds)
        os.kill(parent_of(parent_of(child)), signal.SIGSTOP)

    deadline = time.monotonic() + 20
    while pids_of(seconds) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not pids_of(seconds)
