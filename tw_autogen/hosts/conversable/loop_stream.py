"""The host's output, from worker threads: events come out in the event loop's own thread, as they happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from tw_autogen.hosts.conversable.autogen_import import import_autogen

Given = TypeVar("Given")
IOStream: Any = import_autogen().io.IOStream


class LoopStream:
    """Passes output on to a stream that belongs to an event loop.

    Args:
        stream: The host's stream; in asynchronous runs its queue is not to be touched from other threads.
        loop: Whose thread may touch it.
    """

    def __init__(self, stream: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.stream = stream
        self._loop = loop

    def send(self, event: Any) -> None:
        """Hand an event over; one that comes after the loop's end is dropped."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.stream.send, event)

    def print(self, *objects: Any, **how: Any) -> None:
        """Hand a line over."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: self.stream.print(*objects, **how))

    def input(self, prompt: str = "", **how: Any) -> Any:
        """Ask the person at the stream, on the loop where the stream itself does."""
        asked = self.stream.input(prompt, **how)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result() if asyncio.iscoroutine(asked) else asked


def on_loop() -> bool:
    """Return whether an event loop runs in this thread, which is not to be blocked."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def streamed(call: Callable[[], Given]) -> Callable[[], Given]:
    """Return a call for another thread whose output goes to this task's stream; to be called on the loop."""
    stream = LoopStream(IOStream.get_default(), asyncio.get_running_loop())

    def run() -> Given:
        with IOStream.set_default(stream):
            return call()

    return run
