"""`Role`: who answers posts; its contract, and what it is handed for one answer."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tw_autogen.conversation import Memory, Post, Round
from tw_autogen.events import Event, ModelCalled, ModelDelayed, PostGrew
from tw_autogen.model import (
    ChatModel,
    CodeStream,
    Completion,
    FieldStream,
    Message,
    ModelRequest,
    Reserve,
    call_model,
)


@dataclass(frozen=True)
class Turn:
    """What a role is handed for one answer, as the keyword `turn`; a role that ignores it works.

    Args:
        round: The current round, with its board: `turn.round.write_board(self.name, …)`.
        folder: The session's folder; files for the user belong here.
        post_id: Under which `PostGrew` events of this answer go.
        emit: Takes events; never raises.
        deadline: When the round must be over, on the clock of `time.monotonic`.
        cancelled: Set when the round is to stop at once.
        variables: The session's variables, by name: what requests brought beside words and files.
        reserve: Surrounds each call of a model and its `report_model_call`, from any thread:
            `with turn.reserve(messages) as answered:`; call `answered()` between the two, so that the report takes the
            place of what was reserved. Raises `RoundTooCostly` where the round has reached a limit of calls, tokens or
            money, what calls under way are expected to cost included.
        held_by: By name of a variable, the kernels that have it as it was given last; who puts it into one adds that.
    """

    round: Round
    folder: Path
    post_id: str = ""
    emit: Callable[[Event], None] = lambda event: None
    deadline: float = float("inf")
    cancelled: threading.Event = field(default_factory=threading.Event)
    variables: Mapping[str, Any] = field(default_factory=dict)
    reserve: Reserve = lambda messages: nullcontext(lambda: None)
    held_by: dict[str, list[object]] = field(default_factory=dict)

    def seconds_left(self, at_most: float) -> float:
        """Return how long one wait may last, in seconds: never longer than the round, never less than 0."""
        return max(0.0, min(at_most, self.deadline - time.monotonic()))

    def ask(self, model: ChatModel, messages: Sequence[Message], *, caller: str, seconds: float | None = None) -> str:
        """Ask a model within this round's limits, and count what it cost; for roles that ask one.

        Args:
            model: Whom to ask.
            messages: Oldest first; see `ChatModel.complete`.
            caller: The name of the role that asks.
            seconds: How long the call may take; None: the model's own limit. Never longer than the round.

        Returns:
            The model's words, without thoughts in the marks of a chat template.

        Raises:
            ModelError: no answer came.
            RoundTooCostly: the round has reached a limit.
        """
        return call_model(model, self.request(messages, caller=caller, seconds=seconds)).words

    def request(self, messages: Sequence[Message], *, caller: str, seconds: float | None = None) -> ModelRequest:
        """Return a request within this round's limits, the cost of which is reported.

        Args:
            messages: Oldest first; a list is taken as it is, so that `tw_autogen.model.ask` can append to it.
            caller: The name of the role that asks.
            seconds: How long the call may take; None: the model's own limit. Never longer than the round.
        """
        return ModelRequest(
            messages if isinstance(messages, list) else [dict(message) for message in messages],
            seconds=seconds,
            deadline=self.deadline,
            cancelled=self.cancelled,
            on_call=functools.partial(report_model_call, self, caller),
            reserve=self.reserve,
        )


class Worker(Protocol):
    """Whom a Planner may write to: a role of its session, or an agent of the host's."""

    @property
    def name(self) -> str:
        """How the Planner addresses it."""
        ...

    @property
    def intro(self) -> str:
        """What it can do and what it needs to be told."""
        ...


@runtime_checkable
class Role(Protocol):
    """Who answers posts: inherit from it, or just have these names; `close` may be left out.

    `name` is how others address it; `intro` tells the Planner what it can do and what it needs to be told, and is
    read when a session begins.
    """

    name: str
    intro: str

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Answer `memory.last_post`; called by the session, in the session's thread.

        Args:
            memory: What this role may see, newest post last.
            **kwargs: `turn`, a `Turn`.

        Returns:
            A post from this role. In a session with a Planner a worker writes to whoever wrote to it.
        """
        ...

    def close(self) -> None:
        """Release what it owns; called once, when the session ends."""


@runtime_checkable
class Offering(Protocol):
    """A role that can say what it has for one request, beyond its intro."""

    def offer(self, request: str) -> str:
        """Return what fits this request; empty if the intro says it all. The Planner reads it with each request."""
        ...


@runtime_checkable
class Killable(Protocol):
    """A role or a kernel whose running code can be ended without its consent."""

    def kill(self) -> None:
        """End the process in which code is running, with its variables; called from any thread."""
        ...


@runtime_checkable
class Placed(Protocol):
    """A role that runs code somewhere."""

    @property
    def folder(self) -> Path | None:
        """The folder it works in already; None if it will work in the session's."""
        ...

    @property
    def where(self) -> str:
        """Describe in one line where code runs."""
        ...

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """The functions that its code may call, beside Python's own."""
        ...


def report_model_call(turn: Turn, caller: str, completion: Completion, seconds: float) -> None:
    """Emit that a model answered, and what it cost.

    Args:
        turn: Takes the event.
        caller: The role (or plugin) that asked.
        completion: The answer.
        seconds: How long it took.
    """
    usage = completion.usage
    turn.emit(
        ModelCalled(
            caller,
            completion.model,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            completion.finish_reason,
            seconds,
            usage.dollars,
        )
    )


class PostStream:
    """Passes a model's reply on as it grows, and says what each call cost; one object for all tries at one reply.

    Args:
        turn: Takes the events.
        caller: The role that asks.
        stream: Makes what finds the fields in growing text: `FieldStream` or `CodeStream`.
    """

    def __init__(self, turn: Turn, caller: str, stream: Callable[[], FieldStream | CodeStream]) -> None:
        self._turn = turn
        self._caller = caller
        self._make = stream
        self._stream: FieldStream | CodeStream | None = None

    def take(self, text: str) -> None:
        """Take new text of the reply; called by the model."""
        self._stream = self._stream or self._make()
        for part, new in self._stream.feed(text):
            self._turn.emit(PostGrew(self._turn.post_id, part, new))

    def request(self, counted: ModelRequest, **wishes: Any) -> ModelRequest:
        """Return a request whose reply grows as this post.

        Args:
            counted: As `Turn.request` returned it.
            **wishes: More fields of a `ModelRequest`: `schema`, `tools`.
        """
        return replace(counted, on_text=self.take, on_call=self.called, on_delay=self.delayed, **wishes)

    def delayed(self, reason: str) -> None:
        """Emit why the model has to be asked again."""
        self._turn.emit(ModelDelayed(self._caller, reason))

    def called(self, completion: Completion, seconds: float) -> None:
        """Take the whole reply; called once for each try. A model that doesn't stream is passed on now.

        Args:
            completion: The reply with its usage.
            seconds: How long the call took.
        """
        if self._stream is None:
            self.take(completion.text)
        self._stream = None
        report_model_call(self._turn, self._caller, completion, seconds)
