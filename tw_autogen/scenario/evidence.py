"""What a run leaves behind, as checks see it: its rounds with their events, and its folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.conversation import AttachmentType, Post, Round
from tw_autogen.events import CellStarted, Event, RoundClosed, RoundOpened

USER = "User"


@dataclass(frozen=True)
class RoundEvidence:
    """One round and the events in it.

    Args:
        number: Which of the scenario's requests it belongs to, from 1.
        round: What was said.
        events: What happened, in order.
        reply: 0: the request itself; else which of the user's replies to questions about it.
    """

    number: int
    round: Round
    events: tuple[Event, ...] = ()
    reply: int = 0

    @property
    def answer(self) -> str:
        """The words that reached the user; empty if none did."""
        return self._last_post_to_user.message if self._last_post_to_user else ""

    @property
    def stop(self) -> str:
        """Why the user was spoken to, in the Planner's word; empty if there is no answer, or no Planner."""
        return self._last_post_to_user.content(AttachmentType.stop) if self._last_post_to_user else ""

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
    def _last_post_to_user(self) -> Post | None:
        posts = self.round.posts
        return posts[-1] if posts and posts[-1].send_to == USER else None

    def __str__(self) -> str:
        return f"round {self.number}" + (f", reply {self.reply}" if self.reply else "")


@dataclass(frozen=True)
class Evidence:
    """All that a run left behind.

    Args:
        rounds: In order; fewer than were to be asked if one failed.
        folder: Where its files lie.
        lesson: What the session teaches, in a model's words; empty if nobody was asked.
    """

    rounds: tuple[RoundEvidence, ...]
    folder: Path
    lesson: str = ""

    @classmethod
    def of(
        cls, rounds: Sequence[Round], events: Iterable[Event], folder: Path, *, numbers: Sequence[int], lesson: str = ""
    ) -> Evidence:
        """Collect what a session's rounds hold and what its handler was told.

        Args:
            rounds: The session's.
            events: All that its handler was told.
            folder: Where its files lie.
            numbers: For each round, which request it belongs to.
            lesson: As of the class.
        """
        told: dict[str, list[Event]] = {one.id: [] for one in rounds}
        here = ""
        for event in events:
            if isinstance(event, RoundOpened):
                here = event.round_id
            if here in told:
                told[here].append(event)
            if isinstance(event, RoundClosed):
                here = ""
        seen = (
            RoundEvidence(number, one, tuple(told[one.id]), numbers[:index].count(number))
            for index, (number, one) in enumerate(zip(numbers, rounds, strict=True))
        )
        return cls(tuple(seen), folder, lesson)
