"""`Plan`: steps as data, read from and written as TaskWeaver's text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import Any

_NUMBERED = re.compile(
    r"^\s*\*{0,2}(?:(?P<number>\d{1,9})\s*[.):]|(?:step|schritt|étape|paso|步骤)\s*(?P<step>\d{1,9})\s*[.):：–—-])"
    r"\*{0,2}\s+(?P<text>\S.*)$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*[-*•]\s+(\S.*)$")
_MARK = re.compile(r"<\s*(sequential|interactive)(?:ly)?\s+depends?\s+on\s([^<>]*)>", re.IGNORECASE)


class Depends(str, Enum):
    """How a step depends on another.

    `sequential`: it runs after it, and nobody needs to look in between, so both may become one step.
    `interactive`: the Planner or the user must read the other's result before this step can be worded.
    """

    sequential = "sequential"
    interactive = "interactive"


class Status(str, Enum):
    """How far a step is."""

    pending = "pending"
    current = "current"
    done = "done"


@dataclass(frozen=True)
class Step:
    """One step of a plan.

    Args:
        id: Its number; counts from 1 in the order of the plan.
        text: What is to be done, without number and marks.
        depends: The steps that it needs: (id, how).
        status: How far it is.
    """

    id: int
    text: str
    depends: tuple[tuple[int, Depends], ...] = ()
    status: Status = Status.pending

    def __str__(self) -> str:
        """Give `2. report <interactively depends on 1>`."""
        marks = [
            f"<{how.value}ly depends on {', '.join(str(other) for other, kind in self.depends if kind == how)}>"
            for how in Depends
            if any(kind == how for _, kind in self.depends)
        ]
        return " ".join([f"{self.id}. {self.text}", *marks])


@dataclass(frozen=True)
class Plan:
    r"""Steps in their order.

    Example:
        >>> plan = Plan.parse("1. load a.csv\n2. report <interactively depends on 1>")
        >>> plan.steps[1].depends[0][1].value
        'interactive'
        >>> print(plan.at("2. report"))
        1. load a.csv
        2. report <interactively depends on 1>
        >>> [step.status.value for step in plan.at("2. report").steps]
        ['done', 'current']
    """

    steps: tuple[Step, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read a plan: a numbered line (or a bullet) begins a step, any other line continues the last one.

        Raises:
            ValueError: there is no step, or a step depends on one that isn't there or, in a circle, on itself.
        """
        found: list[tuple[int, list[str]]] = []
        for line in filter(str.strip, text.splitlines()):
            numbered, bullet = _NUMBERED.match(line), _BULLET.match(line)
            if numbered:
                found.append((int(numbered["number"] or numbered["step"]), [numbered["text"]]))
            elif bullet or not found:
                found.append((len(found) + 1, [bullet[1] if bullet else line.strip()]))
            else:
                found[-1][1].append(line.strip())
        if not found:
            raise ValueError("the plan has no steps")
        plan = cls(tuple(_step(number, " ".join(words)) for number, words in found))
        plan._refuse_knots()
        return plan

    def at(self, current: str) -> Plan:
        """Give the same plan with every step's status, from the words of the current step.

        Args:
            current: Such as `2. report`; by its number, else by its words. Unknown words leave the plan as it is.
        """
        here = self._index(current)
        if here is None:
            return self
        before = [replace(step, status=Status.done) for step in self.steps[:here]]
        after = [replace(step, status=Status.pending) for step in self.steps[here + 1 :]]
        return Plan((*before, replace(self.steps[here], status=Status.current), *after))

    def __str__(self) -> str:
        """Give TaskWeaver's text, a step a line."""
        return "\n".join(map(str, self.steps))

    def _index(self, current: str) -> int | None:
        match = re.match(r"\s*(\d{1,9})(?!\d)", current)
        words = _MARK.sub("", re.sub(r"^\s*\d+\s*[.):]?\s*", "", current)).strip().casefold()
        for index, step in enumerate(self.steps):
            if (match and step.id == int(match[1])) or (words and step.text.casefold() == words):
                return index
        return None

    def _refuse_knots(self) -> None:
        ids = {step.id for step in self.steps}
        if len(ids) < len(self.steps):
            listed = ", ".join(str(step.id) for step in self.steps)
            raise ValueError(f"the steps {listed} do not have a number each of their own")
        for step in self.steps:
            for other, _ in step.depends:
                if other not in ids:
                    raise ValueError(f"step {step.id} depends on step {other}, which is not in the plan")
        try:
            TopologicalSorter({step.id: [other for other, _ in step.depends] for step in self.steps}).prepare()
        except CycleError as error:
            circle = ", ".join(map(str, sorted(set(error.args[1]))))
            raise ValueError(f"steps {circle} depend on one another in a circle") from None


_TEXTS = ("text", "description", "task", "action", "instruction", "content", "title", "name", "step", "plan")
"""The fields of a step that was sent as an object in which its words may stand; the first that is text counts."""


def plan_text(said: Any) -> str:
    r"""Return a plan as text, a step a line, whatever it was sent as: text, a list, or an object of steps.

    Args:
        said: A JSON value.

    Example:
        >>> plan_text({"1": "load", "2": {"description": "report"}})
        '1. load\n2. report'
    """
    if isinstance(said, dict) and isinstance(said.get("steps"), list | dict):
        said = said["steps"]
    if isinstance(said, dict) and any(isinstance(said.get(name), str) for name in _TEXTS):
        said = [said]
    if isinstance(said, list | dict):
        steps = [_step_text(one) for one in (said.values() if isinstance(said, dict) else said)]
        lines = [" ".join(one.split()) for one in steps if one.strip()]
        if any(map(_NUMBERED.match, lines)):
            return "\n".join(lines)
        return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
    return "" if said is None else str(said)


def _step_text(step: Any) -> str:
    if not isinstance(step, dict):
        return "" if step is None else str(step)
    texts = [step[name] for name in _TEXTS if isinstance(step.get(name), str)]
    words = [one for one in texts if not re.fullmatch(r"\s*(?:step\s*)?\d+\s*", one, re.IGNORECASE)]
    return words[0] if words else ", ".join(str(value) for value in step.values() if isinstance(value, str))


def _step(number: int, words: str) -> Step:
    depends = tuple(
        (int(other[:9]), Depends(mark[1].lower()))
        for mark in _MARK.finditer(words)
        for other in re.findall(r"\d+", mark[2])
    )
    return Step(number, " ".join(_MARK.sub("", words).split()), depends)
