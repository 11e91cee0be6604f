"""How many calls code may make to the host in one round, and how long they may take together."""

from __future__ import annotations

import threading
from collections import Counter

from tw_autogen.errors import CallBudgetError


class CallBudget:
    """Counts the host calls of one round; the next round begins at nothing. From any thread.

    Args:
        calls: How many, of all functions together.
        seconds: How long, of all together.
    """

    def __init__(self, calls: int, seconds: float) -> None:
        self._most_calls = calls
        self._most_seconds = seconds
        self._round = ""
        self._calls: Counter[str] = Counter()
        self._seconds = 0.0
        self._lock = threading.Lock()

    def take(self, round_id: str, name: str, most: int | None) -> None:
        """Count one call that is about to be made.

        Args:
            round_id: Of the current round.
            name: The function.
            most: How often it may be called in a round; None: as often as all together.

        Raises:
            CallBudgetError: it must not be made.
        """
        with self._lock:
            if round_id != self._round:
                self._round, self._seconds = round_id, 0.0
                self._calls.clear()
            if most is not None and self._calls[name] >= most:
                raise CallBudgetError(f"{name} may be called {most} times for one request, and was", name=name)
            if self._calls.total() >= self._most_calls:
                raise CallBudgetError(
                    f"the {self._most_calls} calls to the host for one request (`code_interpreter.host_calls`) "
                    "are used up",
                    name=name,
                )
            if self._seconds >= self._most_seconds:
                raise CallBudgetError(
                    f"the {self._most_seconds:g} seconds of calls to the host for one request "
                    "(`code_interpreter.host_seconds`) are used up",
                    name=name,
                )
            self._calls[name] += 1

    def spend(self, seconds: float) -> None:
        """Count how long a call took."""
        with self._lock:
            self._seconds += seconds
