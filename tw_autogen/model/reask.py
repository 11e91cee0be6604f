"""`ask`: ask a model, read its reply, and ask again with what was wrong until it can be read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from tw_autogen.errors import ModelUnreadable, Unreadable
from tw_autogen.model.chat_model import ChatModel, Completion
from tw_autogen.model.model_request import ModelRequest, call_model
from tw_autogen.model.reply_parser import WANTED

T = TypeVar("T")


def ask(
    model: ChatModel,
    request: ModelRequest,
    read: Callable[[str], T],
    *,
    tries: int = 3,
    as_text: Callable[[Completion], str] | None = None,
) -> tuple[T, Completion]:
    """Ask until the reply can be read, and keep what was said in the request's messages.

    Each reply is appended as it came; an unreadable one is followed by a user message that says what was wrong. Nothing
    else is changed, so that the next prompt starts with this one.

    Args:
        model: Who is asked.
        request: Its `messages` grow by the reply, and by what it took to get it; `seconds` is for all calls together;
            `on_call` is called before each reply is read, and is also the moment to start a new `FieldStream`.
        read: Gives what the reply means, or raises `Unreadable`.
        tries: How often it is asked again at most; each call of `ask` counts from 0.
        as_text: Gives a reply as the text that is kept and read, its tool calls too; or raises `Unreadable`. None: its
            words alone.

    Returns:
        What `read` gave, and the reply that it was read from.

    Raises:
        ModelUnreadable: the last try was unreadable as well; the messages keep all replies.
        ModelError: a call failed; the messages are as they were before.
    """
    messages = request.messages
    before, problems = len(messages), list[str]()
    deadline = None if request.seconds is None else time.monotonic() + request.seconds
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            reply = call_model(model, replace(request, seconds=left))
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
            if request.on_delay:
                found = problems[-1].partition(f"; {WANTED}")[0]  # what is wanted is for the model
                request.on_delay(f"reply {len(problems)} could not be read: {found}")
        if len(problems) > tries:
            raise ModelUnreadable(
                f"{reply.model or 'the model'}: {len(problems)} replies could not be read; the last: {problems[-1]}. "
                "A stronger model may keep the format",
                reply=reply.text,
                problems=tuple(problems),
            )
        messages.append({"role": "user", "content": f"That reply can't be used: {problems[-1]}. Reply again."})


def _problem(unreadable: Unreadable, reply: Completion) -> str:
    problem = unreadable.problem.rstrip(". ")
    if reply.finish_reason == "length":
        return f"the reply was cut off at the length limit; answer shorter ({problem})"
    return problem
