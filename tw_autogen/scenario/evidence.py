"""What a run leaves behind, as checks see it: its rounds with their events, and its folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.conversation import AttachmentType, Post, Round
from tw_autogen.events import CellStarted, Event, RoundClosed, RoundOpened

USER = "User"


@dataclass(frozen=True)
class Seen:
    """One round and the events in it.

    Args:
        number: Which one, from 1.
        round: What was said.
        events: What happened, in order.
    """

    number: int
    round: Round
    events: tuple[Event, ...] = ()

    @property
    def answer(self) -> str:
        """The words that reached the user; empty if none did."""
        last = self._last
        return last.message if last else ""

    @property
    def stop(self) -> str:
        """Why the user was spoken to, in the Planner's word; empty if there is no answer, or no Planner."""
        last = self._last
        return last.content(AttachmentType.stop) if last else ""

    @property
    def path(self) -> tuple[str, ...]:
        """Who spoke, in order, and at the end who listened."""
        posts = self.round.posts
        return (*(post.send_from for post in posts), posts[-1].send_to) if posts else ()

    @property
    def cells(self) -> tuple[CellStarted, ...]:
        """The code that was run, whether it succeeded or not."""
        return tuple(event for event in self.events if isinstance(event, CellStarted))

    @property
    def _last(self) -> Post | None:
        posts = self.round.posts
        return posts[-1] if posts and posts[-1].send_to == USER else None

    def __str__(self) -> str:
        return f"round {self.number}"


@dataclass(frozen=True)
class Evidence:
    """All that a run left behind.

    Args:
        rounds: In order; fewer than were to be asked if one failed.
        folder: Where its files lie.
    """

    rounds: tuple[Seen, ...]
    folder: Path

    @classmethod
    def of(cls, rounds: Sequence[Round], events: Iterable[Event], folder: Path) -> Evidence:
        """Put together what a session's rounds hold and what its handler was told."""
        told: dict[str, list[Event]] = {one.id: [] for one in rounds}
        here = ""
        for event in events:
            if isinstance(event, RoundOpened):
                here = event.round_id
            if here in told:
                told[here].append(event)
            if isinstance(event, RoundClosed):
                here = ""
        return cls(tuple(Seen(at, one, tuple(told[one.id])) for at, one in enumerate(rounds, start=1)), folder)
