"""`Role`: who answers posts; its contract, and what it is handed for one answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tw_autogen.conversation import Memory, Post, Round
from tw_autogen.events import Event


def _ignore(event: Event) -> None:
    """Let an event go by."""


@dataclass(frozen=True)
class Turn:
    """What a role is handed for one answer, as the keyword `turn`; a role that ignores it works.

    Args:
        round: The current round, with its board: `turn.round.write_board(self.name, …)`.
        folder: The session's folder; files for the user belong here.
        post_id: Under which `PostGrew` events of this answer go.
        emit: Takes events; never raises.
        deadline: When the round must be over, on the clock of `time.monotonic`.
        cancelled: Set when the round is to stop at once.
    """

    round: Round
    folder: Path
    post_id: str = ""
    emit: Callable[[Event], None] = _ignore
    deadline: float = float("inf")
    cancelled: threading.Event = field(default_factory=threading.Event)

    def seconds_left(self, at_most: float) -> float:
        """Give how long one wait may last, in seconds: never longer than the round, never less than 0."""
        return max(0.0, min(at_most, self.deadline - time.monotonic()))


@runtime_checkable
class Role(Protocol):
    """Who answers posts: inherit from it, or just have these four names.

    `name` is how others address it; `intro` tells the Planner what it can do and what it needs to be told, and is
    read when a session begins.
    """

    name: str
    intro: str

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Answer `memory.last_post`; called by the session, in the session's thread.

        Args:
            memory: What this role may see, newest post last.
            **kwargs: `turn`, a `Turn`.

        Returns:
            A post from this role. In a session with a Planner a worker writes to whoever wrote to it.
        """
        ...

    def close(self) -> None:
        """Give back what it owns; called once, when the session ends."""
