"""What a steward said before its end is heard, whenever that came."""

import json
import sys

import pytest

from tw_autogen.kernel.stewarded_process import StewardedProcess, channel_pair

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels have a steward on Linux only")


def test_a_death_keeps_its_reason_when_the_host_says_something_meanwhile():
    ours, theirs = channel_pair()
    process = StewardedProcess(ours)
    with theirs:
        theirs.send(json.dumps({"kind": "ended", "how": "killed by SIGKILL"}).encode())
        process.watch()  # never read: the system tells of that first

    assert not process.alive()
    assert process.end() == "killed by SIGKILL"


def test_a_steward_that_says_nothing_before_its_end_is_missed():
    ours, theirs = channel_pair()
    process = StewardedProcess(ours)
    with theirs:
        process.watch()

    assert not process.alive()
    assert process.end() == "killed with its steward"
