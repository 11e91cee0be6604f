"""`Talk`: an agent's session, what was said before it began, and one request at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.conversation import Round, RoundState
from tw_autogen.errors import RoundError, SessionClosedError
from tw_autogen.events import Event, Handler, RoundOpened
from tw_autogen.model import Usage
from tw_autogen.session import FRESH_KERNEL, Session, answer_text, failure_text


@dataclass(frozen=True)
class Said:
    """What came of a request: the words, the round they were found in, the Planner's word for its end, the cost."""

    text: str
    round: Round
    stop: str
    usage: Usage


class Talk:
    """What one agent is asked, from any threads and loops: requests wait for each other.

    Args:
        make: Opens a session.
        files: Handed over with the first request of each session.

    A session that was closed, by `close` or after a long silence, is followed by another one that knows what was said.
    """

    def __init__(self, make: Callable[[], Session], files: Sequence[Path] = ()) -> None:
        self._make = make
        self._files = tuple(files)
        self._handed: list[Path] = []
        self._past: list[Round] = []
        self._session: Session | None = None
        self._begun = False
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._asked: threading.Event | None = None

    @property
    def session(self) -> Session | None:
        """The session that lives now."""
        session = self._session
        return None if session is None or session.closed else session

    @property
    def rounds(self) -> list[Round]:
        """What was said, in rounds that have ended."""
        rounds = self._past if self._session is None else self._session.rounds
        return [one for one in rounds if one.state is not RoundState.created]

    def hand_over(self, files: Sequence[Path]) -> None:
        """Give files to go along with the next request."""
        with self._guard:
            self._handed.extend(files)

    def ask(self, request: str, *, images: Sequence[str], show: Handler, stopped: threading.Event) -> Said:
        """Put a request to the session; a round that failed is told in words.

        Args:
            request: The words.
            images: URLs of images that go along.
            show: Called with each event of this request.
            stopped: Stands for this request, see `stop`.

        Raises:
            SessionClosedError: it was stopped before it had begun.
            Exception: whatever the model's client raised.
        """
        with self._turn:
            with self._guard:
                self._asked = stopped
            try:
                session = self._opened(stopped)

                def watch(event: Event) -> None:
                    if isinstance(event, RoundOpened):
                        self._begun = True
                        if stopped.is_set():  # the session forgets an interrupt that comes before its round
                            session.interrupt()
                    show(event)

                session.subscribe(watch)
                try:
                    return self._put(session, request, images)
                finally:
                    session.unsubscribe(watch)
            finally:
                with self._guard:
                    self._asked = None

    def stop(self, stopped: threading.Event) -> None:
        """Stop one request, whether it waits, begins or is at work; others and the session's variables stay."""
        with self._guard:
            stopped.set()
            if self._asked is stopped and self._session is not None:
                self._session.interrupt()

    def close(self) -> None:
        """End the session and the request that is at work; what was said is kept."""
        with self._guard:
            session = self._stopped()
        if session is not None:
            session.interrupt()
            session.close()
            with self._guard:
                if self._session is session:
                    self._past, self._session = self.rounds, None

    def load(self, rounds: Sequence[Round]) -> None:
        """End the session and the request that is at work, and know these rounds in place of what was said."""
        with self._guard:
            session = self._stopped()
            self._past, self._handed, self._session = list(rounds), [], None
        if session is not None:
            session.interrupt()
            session.close()

    def _stopped(self) -> Session | None:
        if self._asked is not None:
            self._asked.set()
        return self._session

    def _opened(self, stopped: threading.Event) -> Session:
        """Give the living session, or open one; not for a request that was stopped meanwhile."""
        session = self.session
        if session is None and not stopped.is_set():
            session = self._make()
            with self._guard:
                if not stopped.is_set():
                    for one in self.rounds:
                        session.remember(one)
                    self._past, self._session, self._begun = [], session, False
        if session is not None and not stopped.is_set():
            return session
        if session is not None and session is not self._session:
            session.close()
        raise SessionClosedError("the request was stopped before it had begun")

    def _put(self, session: Session, request: str, images: Sequence[str]) -> Said:
        with self._guard:
            files, self._handed = [*(() if self._begun else self._files), *self._handed], []
        notes = [FRESH_KERNEL] if session.rounds and not self._begun else []
        try:
            answer = session.ask("\n\n".join([request, *notes]), files, images=images)
            text, here, stop = answer_text(answer), answer.round, answer.stop
        except RoundError as error:
            text, here, stop = failure_text(error), error.round, "Failed"
        return Said(text, here, stop, session.round_usage)
