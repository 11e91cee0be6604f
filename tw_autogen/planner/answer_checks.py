"""Executable checks of an answer before it goes to the User: proposed by a model in one call, run in the kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import indent
from typing import Literal, Protocol, runtime_checkable

from tw_autogen.conversation import Attachment, AttachmentType, Post, Round
from tw_autogen.errors import ModelError, RoundTooCostly, Unreadable
from tw_autogen.events import AnswerChecked, AnswerCheckSkipped
from tw_autogen.model import ChatModel, ask, split_blocks
from tw_autogen.planner.hard_requests import hard_because
from tw_autogen.planner.user_request import message_of_user
from tw_autogen.role import Turn
from tw_autogen.text_escaping import inert_output
from tw_autogen.text_truncation import ends_of, without_middle

WhenChecked = Literal["off", "auto", "always"]
_PROMPT = Path(__file__).with_name("answer_checks.md").read_text(encoding="utf-8").strip()
_CALLER = "Checks"
_MAX_CHECKS = 3
_CODE_CHARS, _PRINTED_CHARS = 8000, 4000
_ASKED = re.compile(
    r"\b(?:verif\w+|double[- ]check|cross[- ]check|überprüf\w*|nachrechne\w*|vérifi\w+|verific\w+)", re.I
)
_INDENT = " " * 4
"""Of code that a worker is told: in a fence, another agent of a host could run it where no sandbox is."""
_OUTCOMES = {True: "passed", False: "failed", None: "not carried out"}


@runtime_checkable
class CheckRunner(Protocol):
    """A role that can run code which checks a result, and leaves the variables as they are."""

    name: str

    def run_check(self, code: str, *, turn: Turn) -> tuple[bool | None, str]:
        """Run a check within the limits of any cell.

        Args:
            code: Python that raises an AssertionError where the result is wrong.
            turn: As for `Role.reply`.

        Returns:
            Whether it has passed (None: it could not be carried out, or was refused), and why, or what it printed.
        """
        ...


@dataclass(frozen=True)
class AnswerCheck:
    """A check of an answer, and what came of it.

    Args:
        code: Python.
        passed: None: it could not be carried out, or was refused.
        why: The words of the assertion or error; else what it printed.
    """

    code: str
    passed: bool | None = None
    why: str = ""


@dataclass
class AnswerChecks:
    """The checks of one round's answer.

    Args:
        checks: As proposed, with their outcome; None: none were asked for yet.
        sent_back: The worker was asked again.
        calls: Of the model, for proposing.
        tokens: Of these calls, sent and written ones together.
    """

    checks: list[AnswerCheck] | None = None
    sent_back: bool = False
    calls: int = 0
    tokens: int = 0
    _answer: str = ""

    def run(
        self, runner: CheckRunner, answer: str, model: ChatModel, turn: Turn, *, seconds: float | None
    ) -> list[AnswerCheck]:
        """Ask for checks, run them, and return those that failed.

        After the worker was asked again nothing runs: an answer that has changed is not the one that was checked, and
        what has failed still speaks against one that is the same.

        Args:
            runner: Runs them.
            answer: The answer, whole.
            model: Proposes them.
            turn: Takes the events, and holds the round's limits.
            seconds: How long the call may take; None: the model's own limit.
        """
        if self.checks is None:
            self._answer = answer
            codes = self._propose_checks(answer, model, turn, seconds=seconds)
            self.checks = [AnswerCheck(code, *runner.run_check(code, turn=turn)) for code in codes]
            self.sent_back = any(check.passed is False for check in self.checks)
            if self.checks:
                plain = [asdict(check) for check in self.checks]
                turn.emit(AnswerChecked(turn.round.id, plain, self.sent_back, self.calls, self.tokens))
        return [check for check in self.checks if check.passed is False] if answer == self._answer else []

    def attachment(self) -> Attachment:
        """Return the outcome and its cost, for the answer's post."""
        checks = self.checks or []
        words = [
            f"{_OUTCOMES[check.passed]}: {_title_of_check(check)}" + (f" ({check.why})" if check.why else "")
            for check in checks
        ]
        extra = {"checks": [asdict(check) for check in checks], "sent_back": self.sent_back}
        extra |= {"calls": self.calls, "tokens": self.tokens}
        return Attachment(AttachmentType.checks, "\n".join(words), extra)

    def _propose_checks(self, answer: str, model: ChatModel, turn: Turn, *, seconds: float | None) -> list[str]:
        messages = [
            {"role": "system", "content": _PROMPT},
            {"role": "user", "content": _review_material(turn.round, answer)},
        ]
        try:
            codes, completion = ask(model, turn.request(messages, caller=_CALLER, seconds=seconds), _read, tries=1)
        except (ModelError, RoundTooCostly) as error:
            if turn.cancelled.is_set():
                raise
            turn.emit(AnswerCheckSkipped(_CALLER, f"the answer goes out unchecked: {error}"))
            return []
        self.calls, self.tokens = 1, completion.usage.prompt_tokens + completion.usage.completion_tokens
        return codes


def wants_checks(when: WhenChecked, here: Round, earlier: Sequence[Round]) -> bool:
    """Return whether an answer is checked: code has run for it, and `auto` finds it hard.

    Args:
        when: The setting `planner.verify`. `auto`: code has joined tables, fitted a model, or used several files or
            numbers copied from what was printed, or the User asked for checks.
        here: The round.
        earlier: Those before it, whose tables may be used again.
    """
    codes = _codes_that_ran(here)
    if when == "off" or not codes:
        return False
    if when == "always" or _ASKED.search(ends_of(here.user_query)):
        return True
    before = [code for one in earlier for code in _codes_that_ran(one)]
    return bool(hard_because(codes, before, request=here.user_query))


def failed_checks_report(failed: Sequence[AnswerCheck]) -> str:
    """Return what a worker is told of checks that failed."""
    told = "\n\n".join(inert_output(f"{one.why}\n\n{indent(one.code.strip(), _INDENT)}") for one in failed)
    return (
        "Checks of this result have failed. They may be wrong themselves: compare both with the request. Mend what is "
        "wrong in the result and print the whole answer again, in the same form; if the result is right as it was, "
        f"print it again unchanged.\n\n{told}"
    )


def failed_check_messages(failed: Sequence[AnswerCheck]) -> list[str]:
    """Return what the User is told of checks that still fail."""
    return [f"a check of the answer failed: {inert_output(f'{_title_of_check(one)}: {one.why}')}" for one in failed]


def _title_of_check(check: AnswerCheck) -> str:
    """Return the comment that begins a check, or its last line."""
    lines = [line.strip() for line in check.code.splitlines() if line.strip()]
    return next((line.lstrip("# ") for line in lines if line.startswith("#")), lines[-1] if lines else "")[:120]


def _review_material(here: Round, answer: str) -> str:
    printed = [post.message for post in here.posts if post.content(AttachmentType.reply_content)]
    code = without_middle("\n".join(_codes_that_ran(here)), _CODE_CHARS, tail_percent=100)
    parts = {
        "The request": message_of_user(here),
        "The code that ran": f"```python\n{code}\n```",
        "What came of it": without_middle("\n\n".join(printed), _PRINTED_CHARS, tail_percent=100),
        "The answer": answer,
    }
    return "\n\n".join(f"# {head}\n{text}" for head, text in parts.items())


def _codes_that_ran(here: Round) -> list[str]:
    """Return the code that ran in a round to its end, oldest first."""
    ran = [post for post in here.posts if post.content(AttachmentType.execution_status) == "SUCCESS"]
    return [code for post in ran if (code := post.content(AttachmentType.reply_content))]


def _read(text: str) -> list[str]:
    found = [
        block.inner for block in split_blocks(text) if block.kind in ("python", "untagged") and block.inner.strip()
    ]
    if not found and not re.search(r"\bNONE\b", text):
        raise Unreadable("there is no ```python block: write one to three checks, each in a block of its own, or NONE")
    if missing := [code for code in found if "assert" not in code]:
        raise Unreadable(f"{len(missing)} of the blocks have no `assert`: each check ends with one")
    return found[:_MAX_CHECKS]


def check_runner(workers: Sequence[object], here: Round) -> tuple[CheckRunner, Post] | None:
    """Return the worker that has run code last in a round, with its post; None if none here can run checks.

    Args:
        workers: The Planner's workers; only a `CheckRunner` counts.
        here: The round that is going on; its newest post with a successful execution decides.
    """
    for post in reversed(here.posts):
        if post.content(AttachmentType.execution_status) == "SUCCESS":
            found = [worker for worker in workers if isinstance(worker, CheckRunner) and worker.name == post.send_from]
            return (found[0], post) if found else None
    return None
