"""The processes that a process has started, and those that these have."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

_ROUNDS = 100


def below(pid: int) -> Iterator[int]:
    """Yield a process's children, their children, and so on."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                for child in map(int, file.read().split()):
                    yield child
                    yield from below(child)


def kill_below(pid: int) -> None:
    """Kill all that a process started and adopted, until nothing is left, or a hundred times over.

    Nothing else is killed that has got the number of one that ended meanwhile.

    Args:
        pid: This process, which then buries them; or another one, which does so itself.
    """
    for _ in range(_ROUNDS):
        left = list(below(pid))
        if not left:
            return
        for one in left:
            with contextlib.suppress(OSError):
                _kill_if_below(one, pid)
        if pid == os.getpid():
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)


def _kill_if_below(one: int, pid: int) -> None:
    """Kill a process if it is, now that it is held, still below another one."""
    with contextlib.ExitStack() as undo:
        try:
            held = os.pidfd_open(one)
            undo.callback(os.close, held)
        except ProcessLookupError:
            return
        except OSError:  # no descriptor is left
            held = -1
        if not _is_below(one, pid):
            return
        if held >= 0:
            signal.pidfd_send_signal(held, signal.SIGKILL)
        else:
            os.kill(one, signal.SIGKILL)


def _is_below(one: int, pid: int) -> bool:
    while one > 1:
        try:
            with open(f"/proc/{one}/stat", "rb") as file:
                one = int(file.read().rpartition(b")")[2].split()[1])  # the parent; a name may hold anything
        except (OSError, ValueError, IndexError):
            return False
        if one == pid:
            return True
    return False
