"""What the results of a benchmark come to: in all, and by level, concept or subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.answers.results import Result
from tests.benchmarks.answers.task import Task


@dataclass(frozen=True)
class Score:
    """How a group of questions went; one without an answer counts as wrong.

    Args:
        questions: How many were asked.
        answered: How many of them got an answer in words.
        solved: How many have every sub-answer right.
        part: The sum over questions of the share of sub-answers that are right.
        sub_answers: How many sub-answers were wanted.
        sub_right: How many of them are right.
    """

    questions: int = 0
    answered: int = 0
    solved: int = 0
    part: float = 0.0
    sub_answers: int = 0
    sub_right: int = 0

    @property
    def accuracy(self) -> float:
        """Share of questions with every sub-answer right; published as ABQ, accuracy by question."""
        return self.solved / self.questions if self.questions else 0.0

    @property
    def accuracy_proportional(self) -> float:
        """Mean share of right sub-answers of a question; published as PASQ."""
        return self.part / self.questions if self.questions else 0.0

    @property
    def accuracy_by_sub_answer(self) -> float:
        """Share of right sub-answers of all; published as UASQ."""
        return self.sub_right / self.sub_answers if self.sub_answers else 0.0

    @property
    def accuracy_of_answered(self) -> float:
        """As `accuracy`, of the questions that got an answer: DABench's own script leaves the others out."""
        return self.solved / self.answered if self.answered else 0.0

    @classmethod
    def of(cls, results: Iterable[Result]) -> Score:
        """Count."""
        here = list(results)
        right = [(sum(one.right.values()), len(one.right)) for one in here]
        return cls(
            questions=len(here),
            answered=sum(bool(one.response) for one in here),
            solved=sum(one.solved for one in here),
            part=sum(good / count for good, count in right if count),
            sub_answers=sum(count for _, count in right),
            sub_right=sum(good for good, _ in right),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give counts and shares as plain values."""
        return {
            "questions": self.questions,
            "answered": self.answered,
            "solved": self.solved,
            "accuracy": round(self.accuracy, 4),
            "accuracy_of_answered": round(self.accuracy_of_answered, 4),
            "accuracy_proportional": round(self.accuracy_proportional, 4),
            "accuracy_by_sub_answer": round(self.accuracy_by_sub_answer, 4),
        }


@dataclass(frozen=True)
class Summary:
    """What the results come to.

    Args:
        total: Of all questions.
        groups: By kind of group and its name: `{"level": {"easy": …}}`; a question with several concepts counts in
            each of them.
        left: How many questions have no result yet.
        usage: Means of a question: calls, tokens, seconds, and dollars where all prices are known.
    """

    total: Score
    groups: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    left: int = 0
    usage: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "total": self.total.to_dict(),
            "left": self.left,
            "mean": dict(self.usage),
            "by": {kind: {name: score.to_dict() for name, score in here.items()} for kind, here in self.groups.items()},
        }


def summarize(tasks: Sequence[Task], results: Iterable[Result]) -> Summary:
    """Count results by group; those of other questions, and those that could not be asked, don't count."""
    known = {one.id: one for one in results if one.asked}
    here = [(task, known[task.id]) for task in tasks if task.id in known]
    groups: dict[str, dict[str, list[Result]]] = {}
    for task, result in here:
        for kind, names in task.groups.items():
            for name in names:
                groups.setdefault(kind, {}).setdefault(name, []).append(result)
    return Summary(
        Score.of(result for _, result in here),
        {kind: {name: Score.of(found) for name, found in sorted(named.items())} for kind, named in groups.items()},
        len(tasks) - len(here),
        _means([result for _, result in here]),
    )


def _means(results: Sequence[Result]) -> dict[str, float]:
    if not results:
        return {}
    count = len(results)
    names = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")
    means = {name: round(sum(result.usage.get(name) or 0 for result in results) / count, 1) for name in names}
    paid = [dollars for result in results if (dollars := result.usage.get("dollars")) is not None]
    if len(paid) == count:
        means["dollars"] = round(sum(paid) / count, 5)
    return {**means, "seconds": round(sum(result.seconds for result in results) / count, 1)}
