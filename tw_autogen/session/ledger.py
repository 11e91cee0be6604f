"""`Ledger`: what the rounds of a session have cost, the open one apart from those before it."""

from __future__ import annotations

import time

from tw_autogen.conversation import Round
from tw_autogen.events import Event
from tw_autogen.model import Usage
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.spending import ASKING, Seconds, Spending, Spent


class Ledger:
    """What the rounds of a session have cost; a handler of events, from any thread.

    Args:
        settings: The limits of each round, and of all of them together.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._before, self._opened_at = Usage(), time.monotonic()
        self._spent = Spent()
        self.round = Spending(settings)
        """What the newest round has spent."""
        self.seconds = Seconds()
        """Where the time of all rounds went that are closed."""

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self.round(event)

    @property
    def usage(self) -> Usage:
        """What all rounds have cost, the newest one included."""
        return self._before + self.round.usage

    @property
    def deadline(self) -> float:
        """When the newest round must be over, on the clock of `time.monotonic`."""
        return self._opened_at + self._settings.round_seconds

    @property
    def round_seconds(self) -> float:
        """How long the newest round has taken."""
        return time.monotonic() - self._opened_at

    def open_round(self, here: Round) -> None:
        """Begin a round; where another session's round asks for it, that one's limits hold too."""
        self._before += self.round.usage
        self._spent += self.round.spent
        self.round = Spending(self._settings, before=self._spent, outer=ASKING.get(), here=here)
        self._opened_at = time.monotonic()

    def count_earlier(self, past: Round) -> None:
        """Count what a round of an earlier session has spent towards the limits of this one, but not in `usage`."""
        self._spent += Spent.of_round(past)

    def close_round(self) -> Seconds:
        """End the newest round; give where its time went."""
        took = self.round.seconds(self.round_seconds)
        self.seconds += took
        return took
