"""Whether a person allows packages, a cell, a plan, a command or a tool call; one way of asking for all of them."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from tw_autogen.closing import value_set
from tw_autogen.deadline import unless_given_up
from tw_autogen.errors import ConfigError, TwAutogenError
from tw_autogen.events import ApprovalAsked, ApprovalDecided, Event
from tw_autogen.text_escaping import visible

CellApproval = Literal["always", "never", "findings"]
"""When a cell waits for a person: each one, none, or those that break the policy."""

_YES = ("y", "yes")
_NO = ("", "n", "no")
_ALWAYS = ("a", "always")
_BLOCK = re.compile(r"(?P<fence>`{3,9})[\w+-]*[ \t]*\n(?P<text>.*?)\n?(?P=fence)", re.DOTALL)
_STEP = re.compile(r"\s*\d+\s*[.):]\s+\S")
_QUESTIONS = {
    "packages": "Code wants to install {} for this session. Allow it?",
    "cell": "Let this code run?",
    "plan": "Go on with this plan?",
    "command": "A role wants to run this command. Allow it?",
    "tool": "Code wants to call this tool of an MCP server. Allow it?",
    "rerun": "The variables of these cells were not saved. Run the cells again, with all that they do?",
    "write": "Code wants to write in {}, which it can only read. Save there what it makes for this request?",
}
_HINTS = {
    "packages": "[y/N]",
    "rerun": "[y/N]",
    "tool": "[y/N/a for all calls of this tool in this session, or say why not]",
    "write": "[y/N/always, or say why not]",
}
_HINT = "[y/N, or say why not]"


@dataclass(frozen=True)
class Proposal:
    """What a person is asked to approve.

    Args:
        kind: `packages` (with versions), `cell` (Python), `plan` (its steps, a line each), `command` (for a shell),
            `tool` (of an MCP server: the server, the tool, and its arguments as JSON), `write` (the user's folder, to
            which the host then copies files) or `rerun` (cells of a resumed session).
        text: The thing itself, exactly as it would happen; packages stand on a line each. It may hold characters that
            can't be seen or that move others: show a person `shown` and `question`.
        findings: How a cell breaks the policy, or what else speaks against it, a line each; empty if nothing does.
    """

    kind: Literal["packages", "cell", "plan", "command", "tool", "write", "rerun"]
    text: str
    findings: tuple[str, ...] = ()

    @property
    def question(self) -> str:
        """Return the question in one line, hidden characters as escapes."""
        return _QUESTIONS[self.kind].format(", ".join(self.shown.split("\n")))

    @property
    def hint(self) -> str:
        """Return in brackets what a person may answer, as `read_decision` reads it; to change the text is not in it."""
        return _HINTS.get(self.kind, _HINT)

    @property
    def shown(self) -> str:
        """Return the text for a person to read, hidden characters as escapes (see `tw_autogen.text_escaping`)."""
        return visible(self.text)

    @property
    def editable(self) -> bool:
        """Return whether the person may change the text; the others are allowed or refused as they are."""
        return self.kind in ("cell", "plan", "command")


@dataclass(frozen=True)
class Decision:
    """What the person decided.

    Args:
        approved: It may happen.
        text: What is to happen instead, where it was changed; empty: what was proposed.
        reason: Why not; the model reads it.
        always: Of a tool call: later calls of that tool in this session are approved too; of `write`: later requests.
    """

    approved: bool
    text: str = ""
    reason: str = ""
    always: bool = False


Approve = Callable[[Proposal], Decision | bool]
"""Asked by whoever is about to do something; blocks until the decision is there.

Where the round is not worked on in the main thread, it is called on a thread of its own. If that round is interrupted,
as by cancelling what awaits it, the decision is no longer waited for, and the call gets a KeyboardInterrupt as soon as
it runs Python code: wait with a timeout, in a loop.
"""

_GIVEN_UP: Decision | bool = Decision(False, reason="the question was given up")


class PersonTime:
    """How long a person was waited for during one call; from any thread."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._began: float | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds until now."""
        began = self._began
        return self._seconds + (time.monotonic() - began if began is not None else 0.0)

    def begin(self) -> None:
        """Note that a person is waited for."""
        self._began = time.monotonic()

    def end(self) -> None:
        """Note that the person has answered."""
        self._seconds, self._began = self.seconds, None


_PERSON_TIME: ContextVar[PersonTime | None] = ContextVar("person_time", default=None)


def noting_person_time(noted: PersonTime) -> AbstractContextManager[None]:
    """Note in `noted` how long a person is waited for in this block."""
    return value_set(_PERSON_TIME, noted)


@contextmanager
def waiting_for_person() -> Iterator[None]:
    """Count the time of this block as that of a person, and not of the call that asks."""
    noted = _PERSON_TIME.get()
    if noted is None:
        yield
        return
    noted.begin()
    try:
        yield
    finally:
        noted.end()


def checked_approve(approve: Approve | None) -> Approve | None:
    """Return what was passed as `approve=`, if it can be called.

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

    Args:
        approve: Called once, with the proposal.
        proposal: What is to be decided.
        emit: Called with both events; None: none are emitted.

    Raises:
        ConfigError: `approve` raised something, which is the `__cause__`, or returned neither a bool nor a `Decision`;
            that is no yes, and nothing may run.

    Example:
        >>> decide(lambda proposal: proposal.kind == "plan", Proposal("cell", "1 + 1"))
        Decision(approved=False, text='', reason='', always=False)
    """
    started = time.monotonic()
    if emit:
        emit(ApprovalAsked(proposal.kind, proposal.text, list(proposal.findings)))

    def answered(decision: Decision) -> None:
        if emit:
            seconds = time.monotonic() - started
            emit(ApprovalDecided(proposal.kind, decision.approved, decision.text, decision.reason, seconds))

    try:
        answer: object = unless_given_up(lambda: approve(proposal), otherwise=_GIVEN_UP, name="approval")
    except TwAutogenError:
        raise
    except Exception as error:  # it is the user's own
        problem = _failure_message(error)
        answered(Decision(False, reason=problem))
        raise ConfigError(problem) from error
    problem = _answer_problem(answer)
    decision = answer if isinstance(answer, Decision) and not problem else Decision(answer is True, reason=problem)
    if decision.text.strip() == proposal.text.strip():
        decision = replace(decision, text="")
    answered(decision)
    if problem:
        raise ConfigError(problem)
    return decision


def _failure_message(error: Exception) -> str:
    """Return a message about what `approve` raised, with its line."""
    frames = traceback.extract_tb(error.__traceback__)
    called = max(number for number, frame in enumerate(frames) if frame.filename == __file__) + 1
    where = "".join(f" ({frame.filename}:{frame.lineno})" for frame in frames[called : called + 1])
    return f"approve failed: {type(error).__name__}: {error}{where}"


def _answer_problem(answer: object) -> str:
    """Return what is wrong with the result of `approve`; empty if nothing is."""
    if isinstance(answer, bool):
        return ""
    if not isinstance(answer, Decision):
        known = "return True, False, or tw_autogen.approval.Decision(False, reason=…)"
        return f"approve returned {answer!r} ({type(answer).__name__}), which decides nothing; {known}"
    if not isinstance(answer.approved, bool):
        return f"approve returned a Decision whose `approved` is {answer.approved!r}, no bool"
    return ""


def read_decision(answer: str, proposal: Proposal) -> Decision:
    r"""Read what a person typed: `y`, `n`, the changed thing itself, or in other words why not.

    A changed cell is all between lines of ``` (or of as many more as were shown), without words around them; a changed
    plan is too, or begins with the number of a step. One of which nothing is left is refused. For a tool call `a`
    approves it and all later calls of that tool; for `write`, all later requests of the session.

    Args:
        answer: The text.
        proposal: What was asked about.

    Example:
        >>> read_decision("use the median instead", Proposal("cell", "df.mean()"))
        Decision(approved=False, text='', reason='use the median instead', always=False)
        >>> read_decision("1. load\n2. report", Proposal("plan", "1. load")).text
        '1. load\n2. report'
    """
    text = answer.strip().replace("\r\n", "\n")
    if text.lower() in _YES:
        return Decision(True)
    if text.lower() in _NO or proposal.kind in ("packages", "rerun"):
        return Decision(False)
    if proposal.kind in ("tool", "write"):
        always = text.lower() in _ALWAYS
        return Decision(always, reason="" if always else text, always=always)
    if block := _BLOCK.fullmatch(text):
        return Decision(True, block["text"]) if block["text"].strip() else Decision(False)
    if proposal.kind == "plan" and _STEP.match(text):
        return Decision(True, text)
    return Decision(False, reason=text)
