"""How many calls code may make to the host in one round, and how long they may take together."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from tw_autogen.approval import PersonTime
from tw_autogen.errors import CallBudgetError


@dataclass
class Taken:
    """One call that was allowed.

    Args:
        most_seconds: After so long nobody waits for it any more.
        person: How long a person was waited for, which does not count.
        seconds: How long it took, once it has ended.
    """

    most_seconds: float
    person: PersonTime = field(default_factory=PersonTime)
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    def end(self) -> float:
        """Mark the call as ended, or abandoned; return how long it took, in seconds."""
        if self.seconds is None:
            self.seconds = self.spent()
        return self.seconds

    def spent(self) -> float:
        """Return how long it has taken until now."""
        if self.seconds is not None:
            return self.seconds
        return min(time.monotonic() - self.began - self.person.seconds, self.most_seconds)


class CallBudget:
    """Counts the host calls of one round; the next round begins at nothing. From any thread.

    Args:
        calls: How many, of all functions together.
        seconds: How long, of all together; looked at before each call, so that the last one may go beyond it.
    """

    def __init__(self, calls: int, seconds: float) -> None:
        self._most_calls = calls
        self._most_seconds = seconds
        self._round = ""
        self._calls: Counter[str] = Counter()
        self._taken: list[Taken] = []
        self._lock = threading.Lock()

    def take(self, round_id: str, name: str, *, most: int | None = None, seconds: float = float("inf")) -> Taken:
        """Count one call that is about to be made.

        Args:
            round_id: Of the current round.
            name: The function.
            most: How often it may be called in a round; None: as often as all together.
            seconds: How long it may take.

        Raises:
            CallBudgetError: it must not be made.
        """
        with self._lock:
            if round_id != self._round:
                self._round, self._taken = round_id, []
                self._calls.clear()
            if most is not None and self._calls[name] >= most:
                raise CallBudgetError(f"{name} may be called {most} times for one request, and was", name=name)
            if self._calls.total() >= self._most_calls:
                raise CallBudgetError(
                    f"{name}: the {self._most_calls} calls to the host for one request "
                    "(`code_interpreter.host_calls`) are used up",
                    name=name,
                )
            if sum(one.spent() for one in self._taken) >= self._most_seconds:
                raise CallBudgetError(
                    f"{name}: the {self._most_seconds:g} seconds of calls to the host for one request "
                    "(`code_interpreter.host_seconds`) are used up",
                    name=name,
                )
            self._calls[name] += 1
            taken = Taken(seconds)
            self._taken.append(taken)
            return taken
