"""The host's output, from worker threads: events come out in the event loop's own thread, as they happen."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from typing import Any, TypeVar

from tw_autogen.hosts.conversable.install import import_autogen

Given = TypeVar("Given")
IOStream: Any = import_autogen().io.IOStream


class LoopStream:
    """Passes output on to a stream that belongs to an event loop.

    Args:
        stream: The host's stream; in asynchronous runs its queue is not to be touched from other threads.
        loop: Whose thread may touch it.
    """

    def __init__(self, stream: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._loop = loop

    def send(self, event: Any) -> None:
        """Hand an event over; one that comes after the loop's end is nobody's any more."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stream.send, event)

    def print(self, *objects: Any, **how: Any) -> None:
        """Hand a line over."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: self._stream.print(*objects, **how))

    def input(self, prompt: str = "", **how: Any) -> Any:
        """Ask the person at the stream, who is asked by the stream itself."""
        return self._stream.input(prompt, **how)


async def on_thread(call: Callable[[], Given], stop: Callable[[], object]) -> Given:
    """Give what a blocking call gives; it runs on a thread, with this task's context, and the loop stays free.

    Args:
        call: Runs on a thread of the loop's executor.
        stop: Called when the task is cancelled; it must bring the call to its end, from this thread.
    """
    loop = asyncio.get_running_loop()
    stream = LoopStream(IOStream.get_default(), loop)
    context = contextvars.copy_context()

    def run() -> Given:
        with IOStream.set_default(stream):
            return call()

    task = loop.run_in_executor(None, context.run, run)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop()
        raise
