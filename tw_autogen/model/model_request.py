"""`ModelRequest`: one call of a model as a value, and the ways to make it: `complete`, `call_model`, and `ask`."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tw_autogen.bounded_json import replace_half_pairs
from tw_autogen.closing import value_set
from tw_autogen.errors import ModelUnreadable, Unreadable
from tw_autogen.model.abandonable import run_abandonable
from tw_autogen.model.chat_model import BROKEN_OFF, ChatModel, Completion, Message
from tw_autogen.model.reply_parser import WANTED, breaks_off
from tw_autogen.model.thoughts import without_thoughts

_ON_DELAY: ContextVar[Callable[[str], None] | None] = ContextVar("on_delay", default=None)
Reserve = Callable[[Sequence[Message]], AbstractContextManager[Callable[[], None]]]
"""Called with what is to be asked; entered before the call, which it may refuse, and left once the call is paid for."""
T = TypeVar("T")
_FILTERED = "content_filter"
_STRONGER = "A stronger model may keep the format"
_LONGER = (
    "The server ends each reply at its limit; raise that, such as by `model.extra: {max_tokens: 4096}`, or its context"
)
_REWORD = "Ask in other words, or choose another model"


@dataclass(frozen=True)
class ModelRequest:
    """One call of a model.

    Args:
        messages: Oldest first. `ask` appends to this list; a model must not change it.
        schema: JSON schema of the object that is wanted as answer; None: none in particular.
        tools: What the model may call, in OpenAI's form.
        on_text: Called with each new piece of text as it arrives.
        seconds: Give up after so long; None: the model's own limit.
        cancelled: Once set, the call ends by `ModelError`.
        role: Name of the role that asks, for recordings; empty: not known.
        on_call: Called with each whole reply and the seconds that it took.
        on_delay: Called with one line, from any thread, when the server or the model has to be asked again.
        reserve: Surrounds the call and its `on_call`, and returns what is called between the two; what it raises
            prevents the call.
        deadline: Give up then in any case, on the clock of `time.monotonic`.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    schema: Mapping[str, Any] | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    on_text: Callable[[str], None] | None = None
    seconds: float | None = None
    cancelled: threading.Event | None = None
    role: str = ""
    on_call: Callable[[Completion, float], None] | None = None
    on_delay: Callable[[str], None] | None = None
    reserve: Reserve | None = None
    deadline: float = math.inf

    def limit(self, own: float) -> float:
        """Return after how many seconds from now to give up.

        Args:
            own: The model's own limit.
        """
        return max(0.0, min(own if self.seconds is None else self.seconds, self.deadline - time.monotonic()))


class BaseChatModel:
    """A `ChatModel` of this package: a subclass defines `answer`, which takes the whole request."""

    @property
    def objects_only(self) -> bool:
        """Whether the reply to a request with a schema can hold nothing beside the object, as far as is known."""
        return False

    def answer(self, request: ModelRequest) -> Completion:
        """Answer a request; errors as in `ChatModel.complete`.

        Args:
            request: What `complete` was called with; `on_call`, `on_delay` and `reserve` are the caller's concern.
        """
        raise NotImplementedError(f"{type(self).__name__}.answer")

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        on_text: Callable[[str], None] | None = None,
        seconds: float | None = None,
        cancelled: threading.Event | None = None,
    ) -> Completion:
        """Answer the messages, by the contract of `ChatModel.complete`.

        Args:
            messages: Oldest first; copied.
            schema: As in `ModelRequest`.
            tools: As in `ModelRequest`.
            on_text: As in `ModelRequest`.
            seconds: As in `ModelRequest`.
            cancelled: As in `ModelRequest`.

        Raises:
            ModelError: as `answer`.
        """
        asked = [dict(message) for message in messages]
        return self.answer(ModelRequest(asked, schema, tools, on_text, seconds, cancelled))


def complete(model: ChatModel, request: ModelRequest) -> Completion:
    """Complete a request by the contract of `ChatModel`; the only place where a request is taken apart.

    A model of somebody else's may not heed `cancelled`: its call is abandoned then, unless it is made on the main
    thread, where Ctrl-C interrupts it.

    Args:
        model: Any; a `BaseChatModel` whose `complete` is its own gets the request whole, and with it the role.
        request: Its messages, wishes and limits count; `on_call`, `on_delay` and `reserve` do not.

    Raises:
        ModelError: as `ChatModel.complete`.
    """
    messages = replace_half_pairs(request.messages)  # a file's name may hold one
    if messages is not request.messages:
        request = replace(request, messages=messages)
    if isinstance(model, BaseChatModel) and type(model).complete is BaseChatModel.complete:
        return model.answer(request)

    limit = request.limit(math.inf)

    def call(on_text: Callable[[str], None] | None) -> Completion:
        return model.complete(
            request.messages,
            schema=request.schema,
            tools=request.tools,
            on_text=on_text,
            seconds=None if math.isinf(limit) else limit,
            cancelled=request.cancelled,
        )

    if request.cancelled is None or threading.current_thread() is threading.main_thread():
        return call(request.on_text)
    return run_abandonable(
        lambda give, abandoned: call(give if request.on_text else None),
        where=type(model).__name__,
        seconds=math.inf,
        on_text=request.on_text,
        cancelled=request.cancelled,
    )


def objects_only(model: ChatModel) -> bool:
    """Return whether the reply to a request with a schema can hold nothing beside the object; see `BaseChatModel`."""
    return isinstance(model, BaseChatModel) and model.objects_only


def call_model(model: ChatModel, request: ModelRequest) -> Completion:
    """Complete a request within its reservation, and report what the call cost.

    Args:
        model: Who is asked.
        request: `reserve`, `on_delay` and `on_call` are called here.

    Raises:
        ModelError: as `ChatModel.complete`; and whatever `reserve` raises.
    """
    started = time.monotonic()
    reserved = request.reserve(request.messages) if request.reserve else nullcontext(lambda: None)
    with reserved as answered, reporting_delays(request.on_delay):
        completion = complete(model, request)
        answered()
        if request.on_call:
            request.on_call(completion, time.monotonic() - started)
    return completion


def asked_as(role: str, model: ChatModel) -> ChatModel:
    """Return a model whose requests carry a role's name, so that a recording knows who asked.

    Args:
        role: Who asks.
        model: Who answers.

    Example:
        >>> from tw_autogen.model import Recording, ReplayModel
        >>> asked_as("Planner", ReplayModel(Recording.of(["It is 42."]))).complete([]).text
        'It is 42.'
    """
    return _AskedAs(model, role)


class _AskedAs(BaseChatModel):
    def __init__(self, model: ChatModel, role: str) -> None:
        self._model = model
        self._role = role

    @property
    def objects_only(self) -> bool:
        return objects_only(self._model)

    def answer(self, request: ModelRequest) -> Completion:
        return complete(self._model, replace(request, role=self._role))


def reporting_delays(on_delay: Callable[[str], None] | None) -> AbstractContextManager[None]:
    """Report delays of calls made here, also on threads with a copy of this context.

    Args:
        on_delay: Called with one line, from any thread; None: delays are not reported.
    """
    return value_set(_ON_DELAY, on_delay)


def report_delay(reason: str) -> None:
    """Report in one line why an answer takes longer, such as `the server is too busy (429); try 2 of 4 in 8 s`."""
    on_delay = _ON_DELAY.get()
    if on_delay is not None:
        on_delay(reason)


def ask(
    model: ChatModel,
    request: ModelRequest,
    read: Callable[[str], T],
    *,
    tries: int = 3,
    as_text: Callable[[Completion], str] | None = None,
    whole: bool = False,
) -> tuple[T, Completion]:
    """Ask until the reply can be read, and keep what was said in the request's messages.

    Each reply is appended as it came, but for thoughts in the marks of a chat template, which no model wants to see
    again; an unreadable one is followed by a user message that says what was wrong. Nothing else is changed, so that
    the next prompt starts with this one.

    Args:
        model: Who is asked.
        request: Its `messages` grow by the reply, and by what it took to get it; `seconds` is for all calls together;
            `on_call` is called before each reply is read, and is also the moment to start a new `FieldStream`.
        read: Gives what the reply means, or raises `Unreadable`.
        tries: How often it is asked again at most; each call of `ask` counts from 0.
        as_text: Gives a reply as the text that is kept and read, its tool calls too; or raises `Unreadable`. None: its
            words alone.
        whole: A reply whose object, code or words were cut off, at the length limit, by the server's filter or by
            an error of it, is unreadable, whatever `read` says.

    Returns:
        What `read` gave, and the reply that it was read from.

    Raises:
        ModelUnreadable: the last try was unreadable as well; the messages keep all replies.
        ModelError: a call failed; the messages are as they were before.
    """
    messages = request.messages
    before, problems, cut = len(messages), list[str](), 0
    deadline = None if request.seconds is None else time.monotonic() + request.seconds
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            reply = call_model(model, replace(request, seconds=left))
        except BaseException:
            del messages[before:]
            raise
        empty = "(tool calls)" if reply.tool_calls else "(an empty reply)"  # servers refuse a message without content
        messages.append({"role": "assistant", "content": reply.words or empty})
        try:
            text = without_thoughts(as_text(reply) if as_text else reply.text)
            messages[-1]["content"] = text or empty
            meant = read(text)
            if whole and reply.finish_reason in ("length", _FILTERED, BROKEN_OFF) and breaks_off(text):
                raise Unreadable("its end is missing")
            return meant, reply
        except Unreadable as unreadable:
            problems.append(_problem(unreadable, reply))
            cut += reply.finish_reason == "length"
            if request.on_delay:
                found = problems[-1].partition(f"; {WANTED}")[0]  # what is wanted is for the model
                request.on_delay(f"reply {len(problems)} could not be read: {found}")
        if len(problems) > tries:
            raise ModelUnreadable(
                f"{reply.model or 'the model'}: {len(problems)} replies could not be read; the last: {problems[-1]}. "
                + (_REWORD if reply.finish_reason == _FILTERED else _LONGER if cut > tries else _STRONGER),
                reply=reply.words,
                problems=tuple(problems),
            )
        messages.append({"role": "user", "content": f"That reply can't be used: {problems[-1]}. Reply again."})


def _problem(unreadable: Unreadable, reply: Completion) -> str:
    problem = unreadable.problem.rstrip(". ")
    if reply.finish_reason == "length":
        return f"the reply was cut off at the length limit; answer shorter ({problem})"
    if reply.finish_reason == _FILTERED:
        return f"the server's content filter has stopped the reply ({problem})"
    if reply.finish_reason == BROKEN_OFF:
        return f"the server has ended the reply in the middle ({problem})"
    return problem
