"""Why a model is waited for, told while it is: whoever asks sets a listener, and the client of the server speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("model_delays", default=None)


@contextmanager
def listening(listener: Callable[[str], None] | None) -> Iterator[None]:
    """Report delays of calls made here, also on threads with a copy of this context, to a listener.

    Args:
        listener: Called with one line, from any thread; None: nobody listens.
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report_delay(reason: str) -> None:
    """Report in one line why an answer takes longer, such as `the server is too busy (429); try 2 of 4 in 8 s`."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(reason)
