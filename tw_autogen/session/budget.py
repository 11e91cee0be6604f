"""What a session may spend, and has spent: calls, tokens, dollars and time, of one round and of all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import asdict, dataclass

from tw_autogen.conversation import AttachmentType, Post, Round
from tw_autogen.errors import RoundInterrupted, RoundLooped, RoundTimedOut, RoundTooCostly, RoundTooLong
from tw_autogen.events import CellRan, Event, ModelCalled
from tw_autogen.model import Message, TokenEstimate, Usage
from tw_autogen.plural import pluralize
from tw_autogen.session.answer import USER, Seconds
from tw_autogen.session.answer_html import code_cells
from tw_autogen.session.settings import SessionSettings
from tw_autogen.text_truncation import shortened

_FOUND_CHARS = 1000
_REPEATED_CHARS = 200


@dataclass(eq=False)
class _Reservation:
    """A call that has been allowed and not been paid for: on which thread, and what it is expected to cost.

    What is reported on the thread before this call's own answer is there was somebody else's call.
    """

    thread: int
    chars: int
    tokens: float
    dollars: float
    answered: bool = False

    def answer(self) -> None:
        """Mark the call as answered: the next one that is reported on this thread is this one."""
        self.answered = True


@dataclass(frozen=True)
class Spent:
    """What counts towards limits: calls, tokens sent and written, and the dollars that are known."""

    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0

    @classmethod
    def of(cls, usage: Usage) -> Spent:
        """Return what a call, or several, have spent."""
        return cls(usage.calls, usage.prompt_tokens + usage.completion_tokens, usage.dollars or 0.0)

    @classmethod
    def of_call(cls, event: ModelCalled) -> Spent:
        """Return what a reported call has spent."""
        return cls(1, event.prompt_tokens + event.completion_tokens, event.dollars or 0.0)

    @classmethod
    def of_round(cls, past: Round) -> Spent:
        """Return what a round has spent, as far as it is known."""
        known = past.spent
        return cls(int(known.get("calls", 0)), int(known.get("tokens", 0)), known.get("dollars", 0.0))

    def to_dict(self) -> dict[str, float]:
        """Return the amounts by name, as `Round.spent` has them; empty if nothing was spent."""
        return asdict(self) if self != Spent() else {}

    def __add__(self, other: Spent) -> Spent:
        """Sum field by field."""
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.dollars + other.dollars)

    def __sub__(self, other: Spent) -> Spent:
        """Subtract field by field."""
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.dollars - other.dollars)


class RoundBudget:
    """What a round has spent, of tokens, money and time; a handler of events, from any thread.

    Args:
        settings: `max_calls`, `max_tokens`, `max_dollars` and their likes for the session limit it.
        before: What earlier rounds of the session have spent.
        outer: The round of another session from which this one was asked: its limits hold here too, and what is spent
            here counts there.
        here: The round.
    """

    def __init__(
        self,
        settings: SessionSettings,
        *,
        before: Spent | None = None,
        outer: RoundBudget | None = None,
        here: Round | None = None,
    ) -> None:
        self._settings = settings
        self._before = before or Spent()
        self._outer = outer
        self._here = here
        self._by_others = Spent()
        self._lock = threading.Lock()  # plugins and roles on threads of their own may ask the model too
        self.usage = Usage()
        self._dollars = 0.0  # what is known of them: one unknown price must not lift the limit
        self._reserved: list[_Reservation] = []
        self.unanswered = 0
        """Calls that have gone out, and failed or were stopped."""
        self._estimate = TokenEstimate()
        self._found = ""
        self.model_seconds = 0.0
        self.kernel_seconds = 0.0

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, ModelCalled):
            spent = Usage(event.prompt_tokens, event.cached_tokens, event.completion_tokens, 1, event.dollars)
            with self._lock:
                expected = self._settle(event.prompt_tokens)
                self.usage += spent
                self._dollars += event.dollars or 0.0
                self.model_seconds += event.seconds
            if self._outer:
                self._outer.count(Spent.of(spent))
            if not Spent.of(spent).tokens:  # the server reports none
                self.count(Spent(tokens=expected))
        elif isinstance(event, CellRan):
            with self._lock:
                self.kernel_seconds += event.seconds
                if event.ok:
                    self._found = f"{event.stdout.strip()}\n{event.result or ''}".strip() or self._found

    def count(self, spent: Spent) -> None:
        """Count what somebody has spent whom this round asked; it is no part of `usage`."""
        with self._lock:
            self._by_others += spent
        if self._outer:
            self._outer.count(spent)

    @property
    def spent(self) -> Spent:
        """What counts towards the limits of the round: its own calls, and those of agents that it asked.

        Of a call for which the server reports no tokens, the estimate of its prompt counts.
        """
        return Spent(self.usage.calls, self._tokens_spent, self._dollars) + self._by_others

    def seconds(self, total: float) -> Seconds:
        """Return where the time went, given how long the round has taken."""
        return Seconds(total, self.model_seconds, self.kernel_seconds)

    def partial_result_text(self, here: Round) -> str:
        """Return what the round's last cell gave that ran well and gave something; that there is nothing, if none did.

        Args:
            here: The round; of what ran in an earlier process its posts say it.
        """
        results = (cell.content(AttachmentType.execution_result) for cell in reversed(code_cells(here)))
        result = self._found or next(filter(str.strip, results), "").strip()
        return f"Found until then: {shortened(result, _FOUND_CHARS)}" if result else "Nothing was found until then."

    @contextmanager
    def reserve(self, here: Round, messages: Sequence[Message]) -> Iterator[Callable[[], None]]:
        """Allow one more call of a model, and count what it is expected to cost until it is paid for or has failed.

        A call alone goes as long as something is left. One beside others goes if all of them together are expected to
        fit: so many calls, and the tokens and money that requests of their length have cost in this round so far.

        Args:
            here: The round.
            messages: What is to be asked.

        Yields:
            To be called once the answer is there, and before it is reported: then the report alone counts, and not
            what was reserved. Reports of other calls, which are made meanwhile on the same thread, leave it alone.

        Raises:
            RoundTooCostly: names the limit, what was spent, and what was found until then.
        """
        with self._reserve_in_all(here, messages) as mine:
            try:
                yield mine.answer
            finally:
                with self._lock:
                    self.unanswered += not mine.answered

    @contextmanager
    def _reserve_in_all(self, here: Round, messages: Sequence[Message]) -> Iterator[_Reservation]:
        outer = self._outer
        with (
            outer._reserve_in_all(outer._here or here, messages) if outer else nullcontext(),
            self._reserve(here, messages) as mine,
        ):
            yield mine

    @contextmanager
    def _reserve(self, here: Round, messages: Sequence[Message]) -> Iterator[_Reservation]:
        with self._lock:
            mine = self._estimate_call(TokenEstimate.count_chars(messages))
            reached = self._reached_limit(mine)
            if not reached:
                self._reserved.append(mine)
        if reached:
            raise RoundTooCostly(
                f"{here.id}: {reached}. Raise it if the task needs more. {self.partial_result_text(here)}", round=here
            )
        try:
            yield mine
        finally:
            with self._lock:
                if mine in self._reserved:  # it has failed, or was not reported
                    self._reserved.remove(mine)

    def _settle(self, prompt_tokens: int) -> int:
        """Take away what was reserved for the call that is reported; return the tokens that its prompt may have."""
        here = threading.get_ident()
        mine = next((one for one in reversed(self._reserved) if one.thread == here and one.answered), None)
        if mine is None:
            return 0
        self._reserved.remove(mine)
        self._estimate.track_prompt_tokens(mine.chars, prompt_tokens)
        return round(self._estimate.tokens(mine.chars))

    def _estimate_call(self, chars: int) -> _Reservation:
        spent = self._tokens_spent
        tokens = self._estimate.tokens(chars) + self.usage.completion_tokens / max(1, self.usage.calls)
        return _Reservation(threading.get_ident(), chars, tokens, tokens * self._dollars / spent if spent else 0.0)

    @property
    def _tokens_spent(self) -> int:
        return self.usage.prompt_tokens + self.usage.completion_tokens

    def _reached_limit(self, mine: _Reservation) -> str:
        """Return which limit one more call would pass; empty if none."""
        settings, spent = self._settings, self.spent
        limits = Spent(settings.max_calls, settings.max_tokens, settings.max_dollars)
        session = Spent(settings.max_session_calls, settings.max_session_tokens, settings.max_session_dollars)
        return self._passed_limit(spent, limits, mine, "max_") or self._passed_limit(
            self._before + spent, session, mine, "max_session_", " in this session"
        )

    def _passed_limit(self, spent: Spent, most: Spent, mine: _Reservation, key: str, where: str = "") -> str:
        others = self._reserved
        none, beside = f"{where} and no answer for the user", f", {len(others)} more under way," * bool(others)
        if most.calls and spent.calls + len(others) >= most.calls:
            calls = pluralize(spent.calls, "model call")
            return f"{calls}{beside}{none}; `session.{key}calls` is {most.calls}"
        side = f" with {len(others) + 1} calls side by side,"
        tokens = sum(other.tokens for other in (*others, mine)) if others else 0.0
        if most.tokens and _passes_limit(spent.tokens, tokens, most.tokens):
            more = f", about {spent.tokens + tokens:.0f}{side}" * bool(others)
            return f"{spent.tokens} tokens{more}{none}; `session.{key}tokens` is {most.tokens}"
        dollars = sum(other.dollars for other in (*others, mine)) if others else 0.0
        if most.dollars and _passes_limit(spent.dollars, dollars, most.dollars):
            least = "at least " * (self.usage.dollars is None)
            more = f", about {spent.dollars + dollars:.4f}{side}" * bool(others)
            return f"{least}{spent.dollars:.4f} dollars{more}{none}; `session.{key}dollars` is {most.dollars:g}"
        return ""


class SessionBudget:
    """What the rounds of a session have cost; a handler of events, from any thread.

    Args:
        settings: The limits of each round, and of all of them together.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._before, self._opened_at = Usage(), time.monotonic()
        self._spent = Spent()
        self.round = RoundBudget(settings)
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
    def round_elapsed_seconds(self) -> float:
        """How long the newest round has taken."""
        return time.monotonic() - self._opened_at

    def open_round(self, here: Round, *, goes_on: bool = False) -> None:
        """Begin a round; where another session's round asks for it, that one's limits hold too.

        Args:
            here: The round.
            goes_on: What it has spent in an earlier process counts towards its own limits, too.
        """
        self._before += self.round.usage
        self._spent += self.round.spent
        if goes_on:
            self._spent -= Spent.of_round(here)
        self.round = RoundBudget(self._settings, before=self._spent, outer=CURRENT_BUDGET.get(), here=here)
        if goes_on:
            self.round.count(Spent.of_round(here))
        self._opened_at = time.monotonic()

    def count_earlier(self, past: Iterable[Round]) -> None:
        """Count what rounds of an earlier session have spent towards the limits of this one, but not in `usage`."""
        for one in past:
            self._spent += Spent.of_round(one)

    def close_round(self) -> Seconds:
        """End the newest round; give where its time went."""
        took = self.round.seconds(self.round_elapsed_seconds)
        self.seconds += took
        return took

    def check_limits(self, here: Round, *, stopped: str, because: BaseException | None = None) -> None:
        """Refuse one more step of a round that has reached a limit.

        Args:
            here: The round.
            stopped: Why it was interrupted; empty: it was not.
            because: What a role has raised; where a limit was reached, that is the reason, and this its consequence.

        Raises:
            RoundInterrupted, RoundTimedOut, RoundTooLong: names the setting and what was found until then.
        """
        settings = self._settings
        if stopped:
            raise RoundInterrupted(f"{here.id}: {stopped}", round=here) from because
        if self.round_elapsed_seconds >= settings.round_seconds:
            raise RoundTimedOut(
                f"{here.id}: no answer for the user in {settings.round_seconds:g} seconds. "
                "Raise `session.round_seconds` (on the command line --timeout) if the task needs more. "
                f"{self.round.partial_result_text(here)}",
                round=here,
            ) from because
        if because is None and len(here.posts) >= settings.max_posts:
            raise RoundTooLong(
                f"{here.id}: {len(here.posts)} posts and no answer for the user; the last came from "
                f"{here.posts[-1].send_from}. Raise `session.max_posts` (on the command line --max-posts) if the task "
                f"needs more. {self.round.partial_result_text(here)}",
                round=here,
            )

    def check_loop(self, here: Round, post: Post) -> None:
        """Refuse a task that was given twice in the same words, and answered twice in the same words.

        A task that is given once more may be right: something is looked at again, or tried again, and has changed.

        Args:
            here: The round.
            post: The newest post, not in the round yet.

        Raises:
            RoundLooped: with what was found until then.
        """
        given = [one for one in here.posts if one.send_from == post.send_from][-2:]
        answers = [one.message for one in here.posts if one.send_to == post.send_from and one.send_from == post.send_to]
        same = [(one.send_to, one.message) for one in given] == [(post.send_to, post.message)] * 2
        if same and post.send_to != USER and len(set(answers[-2:])) == 1:
            raise RoundLooped(
                f"{here.id}: {post.send_from} wrote the same to {post.send_to} three times, and the answer had been "
                f"the same twice: {post.message[:_REPEATED_CHARS]!r}. {self.round.partial_result_text(here)}",
                round=here,
            )


CURRENT_BUDGET: ContextVar[RoundBudget | None] = ContextVar("asking", default=None)
"""The round in which a step is being taken; also in threads that work for it."""


def count_asked(usage: Usage) -> None:
    """Count what an agent of a host has spent that this context's round asked, towards the limits of that round.

    Args:
        usage: Of its calls; sessions that are asked are counted already. Outside of any round nothing is counted.
    """
    asking = CURRENT_BUDGET.get()
    if asking is not None:
        asking.count(Spent.of(usage))


def _passes_limit(spent: float, expected: float, limit: float) -> bool:
    return spent >= limit or spent + expected > limit
