"""`Closing`, `value_set`: what a `with` block closes or resets at its end; `IdleTimer`: what is closed when idle."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

Value = TypeVar("Value")


class Closing:
    """Base of classes whose `with` block ends with `close`."""

    def close(self) -> None:
        """Release what the object holds."""
        raise NotImplementedError(f"{type(self).__name__}.close")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextlib.contextmanager
def value_set(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Set a context variable in this block.

    Args:
        variable: Reset to its earlier value when the block ends.
        value: What code in the block sees, and threads and tasks that copy its context.
    """
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class IdleTimer:
    """Calls a function after so many seconds, unless it is stopped or started again before.

    Args:
        fire: Called on a thread of its own; it asks `is_mine` before it does anything, because it may have been stopped
            between firing and running.
    """

    def __init__(self, fire: Callable[[], None]) -> None:
        self._fire = fire
        self._timer: threading.Timer | None = None

    def start(self, seconds: float) -> None:
        """Begin to wait, from now; 0, or infinitely many, wait for ever."""
        self.stop()
        if seconds > 0:
            self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._fire)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def is_mine(self, thread: threading.Thread) -> bool:
        """Return whether this thread is that of the firing that counts."""
        return thread is self._timer
