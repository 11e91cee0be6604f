"""Messages of the host, as words; and answers, as messages of the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tw_autogen.errors import RoundError
from tw_autogen.session import Answer

Message = Mapping[str, Any]


def text_of(message: Message) -> str:
    """Give a message's words; of a list of parts, those that are text."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return content or ""


def news(messages: Sequence[Message], name: str) -> str:
    """Give what was said since this agent spoke last.

    Args:
        messages: The chat as this agent sees it: its own messages have the role `assistant`.
        name: This agent's name.

    Returns:
        The words; with more than one speaker, each with the name in front.
    """
    fresh: list[Message] = []
    for message in reversed(messages):
        if message.get("role") == "assistant" and message.get("name") in (None, name) and not message.get("tool_calls"):
            break
        if text_of(message).strip() and message.get("role") != "system":
            fresh.insert(0, message)
    speakers = {message.get("name") for message in fresh}
    if len(speakers) < 2:
        return "\n\n".join(map(text_of, fresh))
    return "\n\n".join(f"{message.get('name') or message.get('role')}: {text_of(message)}" for message in fresh)


def reply_text(answer: Answer) -> str:
    """Give an answer as Markdown: the words, then a line for each file."""
    lines = [
        f"- [{one.path.name}]({one.path.as_uri()})"
        + (f": {one.preview.splitlines()[0]}" if one.preview.strip() else "")
        for one in answer.artifacts
    ]
    return "\n\n".join(part for part in (answer.text, "\n".join(lines)) if part)


def failure_text(error: RoundError) -> str:
    """Say that a request could not be answered, and why, with what was found out until then."""
    found = [post.message for post in error.round.posts if post.send_to != error.round.posts[0].send_from]
    last = f"\n\nThe last that was said: {found[-1][:1000]}" if len(found) > 1 else ""
    return f"I could not answer this request: {error}{last}"
