"""Whose turn it is with a kernel."""

import sys
from pathlib import Path

import pytest

from tw_autogen.kernel import fair_lock
from tw_autogen.kernel.fair_lock import FairLock, LockTimeout

LINES = Path(fair_lock.__file__).read_text(encoding="utf-8").splitlines()


def lines_until_the_turn(lock):
    """Return how many lines of the module run until a caller has its turn."""
    seen = []
    interrupted_at(lock, sys.maxsize, seen)
    return len(seen)


def interrupted_at(lock, number, seen):
    """Take a turn, with Ctrl-C before the line of that number of the module; Python has none at a `with` or `try`."""

    def trace(frame, event, _):
        if frame.f_code.co_filename != fair_lock.__file__:
            return None
        if event == "line" and not LINES[frame.f_lineno - 1].lstrip().startswith(("with ", "try:")):
            seen.append(frame.f_lineno)
            if len(seen) == number + 1:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with lock.take():
            sys.settrace(None)
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("number", range(lines_until_the_turn(FairLock(1.0))))
def test_ctrl_c_while_a_turn_is_taken_leaves_the_kernel_to_the_next(number):
    lock = FairLock(1.0)
    with pytest.raises(KeyboardInterrupt):
        interrupted_at(lock, number, [])

    with lock.take(0.1):
        pass


def test_the_running_turn_is_not_waited_for_from_inside():
    lock = FairLock(10.0)
    with lock.take(), pytest.raises(LockTimeout, match=r"^$"), lock.take():
        pass
    with lock.take(0.1):
        pass
