"""Between the host's loop and our threads: a thread waits for coroutines."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from autogen_core import CancellationToken

from tw_autogen.hosts.worker_threads import LOOP

Result = TypeVar("Result")
_POLL_SECONDS = 0.05  # a future can't be waited for together with an event, so the event is looked at this often
_JOIN_SECONDS = 2.0


class _OwnLoop:
    """A loop on a daemon thread, made when it is first needed, for coroutines that belong to no host's loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_until_stopped, args=(self._loop,), name="agentchat loop", daemon=True
                )
                self._thread.start()
                atexit.register(self.close)
            return self._loop

    def close(self) -> None:
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_JOIN_SECONDS)


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and close it when what it had begun has ended."""
    try:
        loop.run_forever()
        loop.run_until_complete(_end_all())
    finally:
        loop.close()


async def _end_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


_OWN = _OwnLoop()


def run_on_loop(
    work: Coroutine[Any, Any, Result],
    *,
    cancelled: threading.Event,
    token: CancellationToken | None = None,
) -> Result:
    """Run a coroutine on the host's loop and wait for it in this thread, which is not the loop's.

    Args:
        work: What to run.
        cancelled: Cancel it once this is set.
        token: Was given to the work; cancelled with it, on the loop, because it isn't made for threads.

    Raises:
        asyncio.CancelledError: it was cancelled.
    """
    loop = LOOP.get()
    if loop is None or not loop.is_running():
        loop = _OWN.get()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    while True:
        concurrent.futures.wait([future], timeout=_POLL_SECONDS)
        if future.done():
            try:
                return future.result()
            except concurrent.futures.CancelledError:
                raise asyncio.CancelledError from None
        if loop.is_closed():
            raise asyncio.CancelledError
        if cancelled.is_set():
            if token is not None:
                loop.call_soon_threadsafe(token.cancel)
            future.cancel()
            raise asyncio.CancelledError
