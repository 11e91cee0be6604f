"""All that a process has started is killed, and nothing that has got the number of one of these."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("fcntl", reason="kernels have a supervisor on Linux only")
from tw_autogen.kernel.launcher import process_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels have a supervisor on Linux only")

STARTS = """\
import subprocess, time
from tw_autogen.kernel.launcher.system_calls import PR_SET_CHILD_SUBREAPER, prctl
prctl(PR_SET_CHILD_SUBREAPER, 1)
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sh", "-c", "sleep 600 & exec sleep 600"])
print(flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent():
    """Give a process that adopts what its children leave, as a supervisor does."""
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def below(process, count):
    deadline = time.monotonic() + 60
    while len(found := list(process_tree.below(process.pid))) != count and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


@pytest.mark.parametrize("descriptors", ["some are left", "none is left"])
def test_all_that_a_process_has_started_is_killed(parent, monkeypatch, descriptors):
    def refuse(pid):
        raise OSError(errno.EMFILE, "Too many open files")

    found = below(parent, 3)
    if descriptors == "none is left":
        monkeypatch.setattr(os, "pidfd_open", refuse)

    process_tree.kill_below(parent.pid)

    deadline = time.monotonic() + 60
    while not all(map(is_gone, found)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(found) == 3
    assert all(map(is_gone, found))
    assert parent.poll() is None


def test_a_process_that_has_the_number_of_one_that_ended_is_left_alone(parent, monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as other:
        monkeypatch.setattr(process_tree, "below", lambda pid: iter([other.pid]))

        process_tree.kill_below(parent.pid)

        assert other.poll() is None
        other.kill()
        assert other.wait(60) == -signal.SIGKILL
