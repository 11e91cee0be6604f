"""Who may use a kernel now: one thread after the other, in the order in which they came."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Iterator


class LockTimeout(Exception):
    """It is not this caller's turn, and won't be in time."""


class FairLock:
    """A lock by which one caller at a time has the kernel.

    Args:
        seconds: How long a caller waits at most; so a helper thread that a host call waits for ends too.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._guard = threading.Lock()
        self._holder: object | None = None
        self._line: deque[tuple[object, threading.Event]] = deque()

    @contextlib.contextmanager
    def take(self, seconds: float | None = None) -> Iterator[None]:
        """Wait for a turn and keep it.

        Args:
            seconds: How long to wait at most; None: as for all callers.

        Raises:
            LockTimeout: the caller is inside the running turn, as a host call of its cell is; or it took too long.
        """
        turn, mine = object(), threading.Event()
        inside = _INSIDE.get()
        try:  # Ctrl-C may come from here on
            with self._guard:
                if self._holder is not None and self._holder in inside:
                    raise LockTimeout
                self._line.append((turn, mine))
                self._wake_next()
            if not mine.wait(self._seconds if seconds is None else seconds):
                raise LockTimeout
            before = _INSIDE.set((*inside, turn))
            try:
                yield
            finally:
                _INSIDE.reset(before)
        finally:
            self._leave(turn, mine)

    def _leave(self, turn: object, mine: threading.Event) -> None:
        with self._guard:
            if self._holder is turn:
                self._holder = None
            elif (turn, mine) in self._line:
                self._line.remove((turn, mine))
            self._wake_next()

    def _wake_next(self) -> None:
        if self._holder is None and self._line:
            self._holder, its = self._line.popleft()
            its.set()


_INSIDE: contextvars.ContextVar[tuple[object, ...]] = contextvars.ContextVar("tw_kernel_turns", default=())
"""The turns that this context is inside of; a host call's thread has a copy of its cell's context."""
