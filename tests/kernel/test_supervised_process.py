"""What a supervisor said before its end is heard, whenever that came."""

import json
import signal
import socket
import subprocess
import sys

import pytest

from tw_autogen.errors import KernelError
from tw_autogen.kernel.launcher.packets import unpack
from tw_autogen.kernel.launcher_client import SupervisedProcess, channel_pair

fcntl = pytest.importorskip("fcntl", reason="kernels have a supervisor on Linux only")
resource = pytest.importorskip("resource", reason="kernels have a supervisor on Linux only")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels have a supervisor on Linux only")


def test_a_death_keeps_its_reason_when_the_host_says_something_meanwhile():
    ours, theirs = channel_pair()
    process = SupervisedProcess(ours)
    with theirs:
        theirs.send(json.dumps({"kind": "ended", "how": "killed by SIGKILL"}).encode())
        process.watch()  # never read: the system tells of that first

    assert not process.alive()
    assert process.end() == "killed by SIGKILL"


def test_a_supervisor_that_says_nothing_before_its_end_is_missed():
    ours, theirs = channel_pair()
    process = SupervisedProcess(ours)
    with theirs:
        process.watch()

    assert not process.alive()
    assert process.end() == "killed with its supervisor"


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_number_that_another_process_has_by_now_is_not_interrupted(has_ended):
    ours, theirs = channel_pair()
    process = SupervisedProcess(ours)
    with theirs, subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        process.pid = other.pid
        if has_ended:
            theirs.send(json.dumps({"kind": "ended", "how": "exit code 0"}).encode())

        process.interrupt()

        if has_ended:
            assert other.poll() is None
            other.kill()
        assert other.wait(60) == -(signal.SIGKILL if has_ended else signal.SIGINT)
    process.end()


@pytest.mark.parametrize(
    ("packets", "said"),
    [
        ([b"[]"], "its supervisor said what can't be read"),
        ([b"\xff{"], "its supervisor said what can't be read"),
        ([b"[" * 30_000], "its supervisor said what can't be read"),
        ([b'{"kind": "ended"}'], "None"),
        ([b"{}"] * 101, "its supervisor said more than it ever does"),
    ],
    ids=["a list", "no JSON", "nested", "half a message", "many"],
)
def test_a_supervisor_that_says_anything_else_is_ended(packets, said):
    ours, theirs = channel_pair()
    process = SupervisedProcess(ours)
    with theirs:
        for packet in packets:
            theirs.send(packet)
        alive = process.alive()

    assert (alive, process.end()) == (False, said)


@pytest.fixture
def beyond_select():
    """Give a number of a file that `select` takes no more, as in a process with a hundred kernels."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip(f"this user may have {hard} files open only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    yield 1500
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_it_is_waited_for_also_where_more_than_a_thousand_files_are_open(beyond_select):
    low, theirs = channel_pair()
    with low, theirs:
        process = SupervisedProcess(socket.socket(fileno=fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, beyond_select)))
        with pytest.raises(KernelError, match="was not ready within 0.01 s"):
            process.await_assignment(0.01)
        theirs.send(json.dumps({"kind": "assigned"}).encode())
        process.await_assignment(10)
    process.end()


def test_as_many_folders_as_can_be_granted_arrive():
    ours, theirs = channel_pair()
    process = SupervisedProcess(ours)
    read = [f"/home/ada/project/measurements/station_{number:04}{'.' * 60}.csv" for number in range(4000)]
    with theirs:
        theirs.send(json.dumps({"kind": "assigned"}).encode())
        process.assign({"read": read}, 10)
        told = unpack(theirs.recv(1 << 20))
    process.end()

    assert told == {"op": "assign", "read": read}
