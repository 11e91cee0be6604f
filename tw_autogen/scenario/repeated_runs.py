"""`Runs`: what came of several runs of one scenario: k of n, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from tw_autogen.model import Usage
from tw_autogen.scenario.model_judge import Judgement
from tw_autogen.scenario.scenario import Scenario
from tw_autogen.scenario.scenario_run import Outcome


@dataclass(frozen=True)
class Runs:
    """Several runs of one scenario.

    Args:
        scenario: What was run.
        outcomes: What came of each run; none if it was skipped.
        judged: What a judge said of each run, where one was asked.
        skipped: Why it was not run; empty if it was.
    """

    scenario: Scenario
    outcomes: tuple[Outcome, ...] = ()
    judged: tuple[Judgement, ...] = ()
    skipped: str = ""

    def plus(self, outcome: Outcome, judgement: Judgement | None = None) -> Runs:
        """Return these runs and one more, with what a judge said of it.

        Args:
            outcome: What came of the run.
            judgement: A judge's word on it; None: no judge was asked.
        """
        return replace(
            self, outcomes=(*self.outcomes, outcome), judged=(*self.judged, *([judgement] if judgement else []))
        )

    @property
    def passed(self) -> int:
        """How many runs were as expected."""
        return sum(outcome.ok for outcome in self.outcomes)

    @property
    def ok(self) -> bool:
        """All runs were as expected; a scenario that was skipped is no failure."""
        return self.passed == len(self.outcomes)

    @property
    def stale(self) -> int:
        """How many replies were recorded for other prompts than those that were asked."""
        return sum(len(outcome.stale) for outcome in self.outcomes)

    def mean(self, of: Callable[[Usage], int]) -> float:
        """Return the mean of one count over the runs; 0 if there was none."""
        return mean(of(outcome.usage) for outcome in self.outcomes) if self.outcomes else 0.0

    @property
    def seconds(self) -> float:
        """Mean wall clock of a run."""
        return mean(outcome.seconds for outcome in self.outcomes) if self.outcomes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; `judge` stands apart from `passed`, which depends on checks alone."""
        return {
            "name": self.scenario.name,
            "passed": self.passed,
            "runs": [
                {
                    "ok": outcome.ok,
                    "problems": list(outcome.problems),
                    "stale": list(outcome.stale),
                    "moved": list(outcome.moved),
                    "answers": list(outcome.answers),
                    "usage": outcome.usage.to_dict(),
                    "seconds": round(outcome.seconds, 3),
                }
                for outcome in self.outcomes
            ],
            "judge": [{"holds": one.holds, "reason": one.reason, "usage": one.usage.to_dict()} for one in self.judged],
            "skipped": self.skipped or None,
        }
