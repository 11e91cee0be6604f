"""`RunningReply`: an asynchronous reply of an agent that is being made, and how it is stopped."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tw_autogen.hosts.partner_conversation import Conversation


class RunningReply:
    """One asynchronous reply, and the conversations that work for it."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.conversations: list[Conversation] = []

    def stop(self) -> None:
        """Stop it, wherever it is; never blocks."""
        self.stopped.set()
        for one in list(self.conversations):
            one.stop(self.stopped)


RUNNING: ContextVar[RunningReply | None] = ContextVar("running", default=None)


def note_conversation(conversation: Conversation) -> threading.Event:
    """Note that the current reply waits for a conversation, and return what identifies the request for `stop`."""
    running = RUNNING.get() or RunningReply()
    running.conversations.append(conversation)
    return running.stopped
