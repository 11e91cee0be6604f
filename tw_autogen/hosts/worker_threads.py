"""Blocking work of an asynchronous host, on threads of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

Given = TypeVar("Given")

LOOP: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar("loop", default=None)
"""The loop of the reply that is being made: clients, agents and people of the host are asked on it."""


def on_thread(work: Callable[[], Given], *, name: str) -> asyncio.Future[Given]:
    """Do blocking work on a daemon thread of its own, in a copy of this context; to be called on a loop.

    Args:
        work: What to do.
        name: The thread's.

    Returns:
        A future of this loop. Cancelling it ends the waiting; the work is to be stopped by other means.

    The loop's own pool is not used: rounds that take minutes would take all its threads, and agents that wait for
    agents would wait for ever.
    """
    context = contextvars.copy_context()
    context.run(LOOP.set, asyncio.get_running_loop())
    finished: concurrent.futures.Future[Given] = concurrent.futures.Future()
    finished.set_running_or_notify_cancel()  # from here on only the work settles it

    def run() -> None:
        try:
            finished.set_result(context.run(work))
        except StopIteration as error:  # a coroutine that awaits can't be given one, and would wait for ever
            finished.set_exception(RuntimeError(f"{name}: StopIteration was raised: {error}"))
        except BaseException as error:  # noqa: BLE001 - not swallowed: raised again where the future is awaited
            finished.set_exception(error)

    awaited = asyncio.wrap_future(finished)
    threading.Thread(target=run, name=name, daemon=True).start()
    return awaited
