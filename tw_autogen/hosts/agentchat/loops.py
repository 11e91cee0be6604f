"""Runs the host's coroutines from our threads: on the loop that the host runs in, else on one of our own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

Given = TypeVar("Given")
_GLANCE_SECONDS = 0.05  # a future can't be waited for together with an event, so the event is looked at this often

LOOP: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar("loop", default=None)
"""The loop of the reply that is being made: clients and agents of the host are bound to it."""


class _OwnLoop:
    """A loop on a daemon thread, made when it is first needed, for coroutines that belong to no host's loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="agentchat loop", daemon=True).start()
            return self._loop


_OWN = _OwnLoop()


def wait_for(
    work: Coroutine[Any, Any, Given], *, seconds: float = float("inf"), cancelled: threading.Event | None = None
) -> Given:
    """Run a coroutine on the host's loop and wait for it in this thread, which is not the loop's.

    Args:
        work: What to run.
        seconds: Cancel it after so long.
        cancelled: Cancel it once this is set.

    Raises:
        TimeoutError: it took too long.
        asyncio.CancelledError: it was cancelled.
    """
    loop = LOOP.get()
    future = asyncio.run_coroutine_threadsafe(work, loop if loop is not None and loop.is_running() else _OWN.get())
    deadline = time.monotonic() + seconds
    while True:
        try:
            return future.result(timeout=max(0.0, min(_GLANCE_SECONDS, deadline - time.monotonic())))
        except concurrent.futures.TimeoutError:
            if future.done():
                raise  # the work's own
            if cancelled is not None and cancelled.is_set():
                future.cancel()
                raise asyncio.CancelledError from None
            if time.monotonic() >= deadline:
                future.cancel()
                raise TimeoutError(f"no answer within {seconds:.3g} s") from None
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError from None
