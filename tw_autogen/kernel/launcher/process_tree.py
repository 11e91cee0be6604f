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

    Args:
        pid: This process, which then buries them; or another one, which does so itself.
    """
    for _ in range(_ROUNDS):
        left = list(below(pid))
        if not left:
            return
        for one in left:
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
        if pid == os.getpid():
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)
