"""An asynchronous reply of an agent that is being made: how it is stopped, and where its output goes.

Output of worker threads comes out in the event loop's own thread, as it happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from tw_autogen.hosts.conversable.autogen_import import import_autogen

if TYPE_CHECKING:
    from tw_autogen.hosts.partner_conversation import PartnerConversation

Result = TypeVar("Result")
IOStream: Any = import_autogen().io.IOStream


class RunningReply:
    """One asynchronous reply, and the conversations that work for it."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.conversations: list[PartnerConversation] = []

    def stop(self) -> None:
        """Stop it, wherever it is; never blocks."""
        self.stopped.set()
        for conversation in list(self.conversations):
            conversation.stop(self.stopped)


RUNNING: ContextVar[RunningReply | None] = ContextVar("running", default=None)
FAILURES: ContextVar[list[str] | None] = ContextVar("failures", default=None)
"""Takes the words of each request that failed, where a service's protocol has a word of its own for that."""


def failed_words(words: str) -> str:
    """Return the words in which a request has failed, and note that they are no answer."""
    if (failures := FAILURES.get()) is not None:
        failures.append(words)
    return words


QUESTIONS: ContextVar[list[str] | None] = ContextVar("questions", default=None)
"""Takes the words of each answer that asks the user back, where a service's protocol has a word of its own for that."""
_ASKING = ("Clarification", "AdditionalInformation")


def asking_words(words: str, stop: str) -> str:
    """Return the words of an answer, and note them if they ask the user back.

    Args:
        words: The answer's.
        stop: The Planner's word for its end, such as `Clarification`.
    """
    if stop in _ASKING and (questions := QUESTIONS.get()) is not None:
        questions.append(words)
    return words


def register_with_running_reply(conversation: PartnerConversation) -> threading.Event:
    """Note that the current reply waits for a conversation, and return what identifies the request for `stop`."""
    running = RUNNING.get() or RunningReply()
    running.conversations.append(conversation)
    return running.stopped


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


def with_io_stream(call: Callable[[], Result]) -> Callable[[], Result]:
    """Return a call for another thread whose output goes to this task's stream; to be called on the loop."""
    stream = LoopStream(IOStream.get_default(), asyncio.get_running_loop())

    def run() -> Result:
        with IOStream.set_default(stream):
            return call()

    return run
