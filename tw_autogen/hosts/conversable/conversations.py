"""`Conversations`: which session belongs to which partner of an agent, and to which transcript."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from tw_autogen.hosts.conversable.messages import Message, is_by, past_rounds, text_of
from tw_autogen.session import Session, SessionPool


class Conversations:
    """An agent's sessions, one for each partner.

    Args:
        make: Opens a session for a partner.
        names: Under which names the agent itself speaks.
        most_open: See `SessionPool`.

    A service that has no partner object hands over the whole transcript each time: there a session is found by what
    was said until its last answer.
    """

    def __init__(self, make: Callable[[Any], Session], *, names: Collection[str], most_open: int = 16) -> None:
        self._make = make
        self._names = names
        self._pool = SessionPool(most_open)
        self._guard = threading.Lock()
        self._number = 0

    @contextmanager
    def use(self, partner: Any, past: Sequence[Message]) -> Iterator[tuple[Session, Hashable]]:
        """Give the session for what is to be answered now, and the key under which it is known.

        Args:
            partner: The agent that sent the message; None for a service.
            past: What was said until this agent spoke last.

        A session that has not lived through the past, because the chat is resumed or was pushed out by newer ones,
        is told of it.
        """
        key = self._key(partner, past)
        with self._pool.use(key, lambda: self._make(partner)) as session:
            if not session.rounds and past:
                for one in past_rounds(past, self._names, session.entry):
                    session.remember(one)
            yield session, key

    def answered(self, key: Hashable, transcript: Sequence[Message], answer: str) -> None:
        """Keep in mind how a service's transcript stands now: its next request brings all of it."""
        self._pool.rename(key, self._transcript([*transcript, {"role": "assistant", "content": answer}]))

    def find(self, partner: Any) -> Session | None:
        """Give the open session with a partner."""
        return self._pool.find(partner)

    def open(self, partner: Any) -> Session:
        """Give the session with a partner; opened if there is none."""
        with self._pool.use(partner, lambda: self._make(partner)) as session:
            return session

    def drop(self, partner: Any) -> None:
        """End the session with a partner."""
        self._pool.drop(partner)

    def close(self) -> None:
        """End all sessions."""
        self._pool.close()

    def __len__(self) -> int:
        return len(self._pool)

    def _key(self, partner: Any, past: Sequence[Message]) -> Hashable:
        if partner is not None:
            return cast(Hashable, partner)  # agents are told apart by identity
        if any(is_by(one, self._names) for one in past):
            return self._transcript(past)
        with self._guard:
            self._number += 1
            return f"new transcript {self._number}"

    def _transcript(self, messages: Sequence[Message]) -> str:
        said = [[is_by(one, self._names), text_of(one)] for one in messages if text_of(one).strip()]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()
