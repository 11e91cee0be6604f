"""Blocking work of an asynchronous host, on threads of its own."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

from tw_autogen.deadline import threaded

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

    The loop's own pool is not used: rounds that take minutes would take all its threads, and agents that wait for
    agents would wait for ever.
    """

    def run() -> Result:
        try:
            return work()
        except StopIteration as error:  # a coroutine that awaits can't be given one, and would wait for ever
            raise RuntimeError(f"{name}: StopIteration was raised: {error}") from error

    context = contextvars.copy_context()
    context.run(LOOP.set, asyncio.get_running_loop())
    return asyncio.wrap_future(context.run(lambda: threaded(run, name=name)))
