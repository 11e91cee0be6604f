"""`ask`: ask a model, read its reply, and ask again with what was wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from tw_autogen.errors import ModelUnreadable, Unreadable
from tw_autogen.model.chat import ChatModel, Completion, Message
from tw_autogen.model.delays import listening

T = TypeVar("T")
Reserve = Callable[[Sequence[Message]], AbstractContextManager[Callable[[], None]]]
"""Called with what is to be asked; entered before the call, which it may refuse, and left once the call is paid for."""


def ask(
    model: ChatModel,
    messages: list[dict[str, Any]],
    read: Callable[[str], T],
    *,
    tries: int = 3,
    schema: Mapping[str, Any] | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    as_text: Callable[[Completion], str] | None = None,
    on_text: Callable[[str], None] | None = None,
    on_call: Callable[[Completion, float], None] | None = None,
    on_delay: Callable[[str], None] | None = None,
    reserve: Reserve | None = None,
    seconds: float | None = None,
    cancelled: threading.Event | None = None,
) -> tuple[T, Completion]:
    """Ask until the reply can be read, and keep what was said in `messages`.

    Each reply is appended as it came; an unreadable one is followed by a user message that says what was wrong. Nothing
    else is changed, so that the next prompt starts with this one.

    Args:
        model: Who is asked.
        messages: Oldest first; grows by the reply, and by what it took to get it.
        read: Gives what the reply means, or raises `Unreadable`.
        tries: How often it is asked again at most; each call of `ask` counts afresh.
        schema: What the answer is wished to look like.
        tools: What the model may call, in OpenAI's form.
        as_text: Gives a reply as the text that is kept and read, its tool calls too; or raises `Unreadable`. None: its
            words alone.
        on_text: Called with new text as it arrives, of every reply in turn.
        on_call: Called with each whole reply and how many seconds it took, before it is read; also the moment to
            start a new `FieldStream`.
        on_delay: Called with one line when the server has to be asked again, or a reply could not be read; from any
            thread.
        reserve: Surrounds each call and its `on_call`, and gives what is called between them; what it raises ends this.
        seconds: For all calls together; None is the model's own limit for each.
        cancelled: Once set, ends this by `ModelError`.

    Returns:
        What `read` gave, and the reply that it was read from.

    Raises:
        ModelUnreadable: the last try was unreadable as well; `messages` keeps all replies.
        ModelError: a call failed; `messages` is as it was before.
    """
    before, problems = len(messages), list[str]()
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        started = time.monotonic()
        left = None if deadline is None else max(0.0, deadline - started)
        try:
            with reserve(messages) if reserve else nullcontext(_nothing) as answered, listening(on_delay):
                reply = model.complete(
                    messages, schema=schema, tools=tools, on_text=on_text, seconds=left, cancelled=cancelled
                )
                answered()
                if on_call:
                    on_call(reply, time.monotonic() - started)
        except BaseException:
            del messages[before:]
            raise
        empty = "(tool calls)" if reply.tool_calls else "(an empty reply)"  # servers refuse a message without content
        messages.append({"role": "assistant", "content": reply.text or empty})
        try:
            text = as_text(reply) if as_text else reply.text
            messages[-1]["content"] = text or empty
            return read(text), reply
        except Unreadable as unreadable:
            problems.append(_problem(unreadable, reply))
            if on_delay:
                on_delay(f"reply {len(problems)} could not be read: {problems[-1]}")
        if len(problems) > tries:
            raise ModelUnreadable(
                f"{reply.model or 'the model'}: {len(problems)} replies could not be read; the last: {problems[-1]}. "
                "A stronger model may keep the format",
                reply=reply.text,
                problems=tuple(problems),
            )
        messages.append({"role": "user", "content": f"Your reply could not be read: {problems[-1]}. Reply again."})


def _nothing() -> None:
    """Nobody wants to know."""


def _problem(unreadable: Unreadable, reply: Completion) -> str:
    problem = unreadable.problem.rstrip(". ")
    if reply.finish_reason == "length":
        return f"the reply was cut off at the length limit; answer shorter ({problem})"
    return problem
