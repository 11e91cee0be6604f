import time
from types import SimpleNamespace

import pytest

from tw_autogen.kernel.transport import Poller, WakeupSocket


@pytest.mark.parametrize("milliseconds", [None, 60_000])
def test_a_wait_ends_after_a_second_so_that_a_signal_that_came_just_before_it_is_handled(milliseconds):
    wakeup = WakeupSocket()
    poller = Poller(SimpleNamespace(sources={}), SimpleNamespace(death=None), wakeup)
    began = time.monotonic()
    try:
        woken = poller.wait(milliseconds)
    finally:
        poller.close()
        wakeup.close()

    assert (woken.channels, woken.rung) == ([], False)
    assert time.monotonic() - began < 30
