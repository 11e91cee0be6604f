"""Whether a person lets something happen: packages, a cell, a plan, a command; one way of asking for all of them."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tw_autogen.errors import ConfigError, TwAutogenError
from tw_autogen.events import ApprovalAsked, ApprovalGiven, Event

When = Literal["always", "never", "findings"]
"""When a cell waits for a person: each one, none, or those that break the policy."""

_YES = ("y", "yes")
_NO = ("", "n", "no")
_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(?P<text>.*?)\n?```", re.DOTALL)
_STEP = re.compile(r"\s*\d+\s*[.):]\s+\S")
_QUESTIONS = {
    "packages": "Code wants to install {} for this session. Allow it?",
    "cell": "Let this code run?",
    "plan": "Go on with this plan?",
    "command": "A role wants to run this command. Allow it?",
}


@dataclass(frozen=True)
class Proposal:
    """What a person is asked to approve.

    Args:
        kind: `packages` (with versions), `cell` (Python), `plan` (its steps, a line each) or `command` (for a shell).
        text: The thing itself; packages stand on a line each.
        findings: How a cell breaks the policy, a line each; empty if it doesn't.
    """

    kind: Literal["packages", "cell", "plan", "command"]
    text: str
    findings: tuple[str, ...] = ()

    @property
    def question(self) -> str:
        """Give the question in one line."""
        return _QUESTIONS[self.kind].format(", ".join(self.text.split("\n")))


@dataclass(frozen=True)
class Decision:
    """What the person decided.

    Args:
        approved: It may happen.
        text: What is to happen instead, where it was changed; empty: what was proposed.
        reason: Why not; the model reads it.
    """

    approved: bool
    text: str = ""
    reason: str = ""


Approve = Callable[[Proposal], Decision | bool]
"""Asked by whoever is about to do something; blocks until somebody has decided."""


def checked_approve(approve: Approve | None) -> Approve | None:
    """Give what was passed as `approve=`, if it can be asked.

    Raises:
        ConfigError: it is no function.

    Example:
        >>> checked_approve(print) is print
        True
    """
    if approve is None or callable(approve):
        return approve
    raise ConfigError(f"approve: expected a function that takes a proposal, found {type(approve).__name__}")


def decide(approve: Approve, proposal: Proposal, emit: Callable[[Event], None] | None = None) -> Decision:
    """Ask, and make the question and its answer events.

    Raises:
        ConfigError: `approve` raised something, which is the `__cause__`, or returned neither a bool nor a `Decision`;
            that is no yes, and nothing may run.

    Example:
        >>> decide(lambda proposal: proposal.kind == "plan", Proposal("cell", "1 + 1"))
        Decision(approved=False, text='', reason='')
    """
    started = time.monotonic()
    if emit:
        emit(ApprovalAsked(proposal.kind, proposal.text, list(proposal.findings)))

    def answered(decision: Decision) -> None:
        if emit:
            seconds = time.monotonic() - started
            emit(ApprovalGiven(proposal.kind, decision.approved, decision.text, decision.reason, seconds))

    try:
        said: object = approve(proposal)
    except TwAutogenError:
        raise
    except Exception as error:  # it is the user's own
        problem = _failure(error)
        answered(Decision(False, reason=problem))
        raise ConfigError(problem) from error
    problem = _unreadable(said)
    decision = said if isinstance(said, Decision) and not problem else Decision(said is True, reason=problem)
    if decision.text.strip() == proposal.text.strip():
        decision = Decision(decision.approved, reason=decision.reason)
    answered(decision)
    if problem:
        raise ConfigError(problem)
    return decision


def _failure(error: Exception) -> str:
    """Say what `approve` raised, and at which of its lines."""
    inner = traceback.extract_tb(error.__traceback__)[1:2]
    where = "".join(f" ({frame.filename}:{frame.lineno})" for frame in inner)
    return f"approve failed: {type(error).__name__}: {error}{where}"


def _unreadable(said: object) -> str:
    """Say what is wrong with what `approve` returned; empty if nothing is."""
    if isinstance(said, bool):
        return ""
    if not isinstance(said, Decision):
        known = "return True, False, or tw_autogen.approval.Decision(False, reason=…)"
        return f"approve returned {said!r} ({type(said).__name__}), which decides nothing; {known}"
    if not isinstance(said.approved, bool):
        return f"approve returned a Decision whose `approved` is {said.approved!r}, no bool"
    return ""


def read_decision(said: str, proposal: Proposal) -> Decision:
    r"""Read what a person typed: `y`, `n`, the changed thing itself, or in other words why not.

    A changed cell stands between ``` lines; a changed plan does too, or begins with the number of a step.

    Example:
        >>> read_decision("use the median instead", Proposal("cell", "df.mean()"))
        Decision(approved=False, text='', reason='use the median instead')
        >>> read_decision("1. load\n2. report", Proposal("plan", "1. load")).text
        '1. load\n2. report'
    """
    words = said.strip()
    if words.lower() in _YES:
        return Decision(True)
    if words.lower() in _NO or proposal.kind == "packages":
        return Decision(False)
    if block := _BLOCK.search(words):
        return Decision(True, block["text"])
    if proposal.kind == "plan" and _STEP.match(words):
        return Decision(True, words)
    return Decision(False, reason=words)
