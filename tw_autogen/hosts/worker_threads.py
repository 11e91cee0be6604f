"""Blocking work of an asynchronous host, on threads of its own."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

from tw_autogen.closing import value_set
from tw_autogen.deadline import awaited_thread

Result = TypeVar("Result")

LOOP: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar("loop", default=None)
"""The loop of the reply that is being made: clients, agents and people of the host are asked on it."""


def on_thread(work: Callable[[], Result], *, name: str) -> asyncio.Future[Result]:
    """Do blocking work on a daemon thread of its own, in a copy of this context; to be called on a loop.

    Args:
        work: What to do.
        name: The thread's.

    Returns:
        A future of this loop. Cancelling it ends the waiting; the work is to be stopped by other means.
    """
    with value_set(LOOP, asyncio.get_running_loop()):
        return awaited_thread(work, name=name)
