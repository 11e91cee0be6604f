"""Messages of the host, as words and rounds; and answers, as messages of the host."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tw_autogen.conversation import Post, Round, RoundState
from tw_autogen.session import USER, Answer, answer_text, files_of

Message = Mapping[str, Any]

_TERMINATE = "TERMINATE"
_WANTED = re.compile(
    r"\b(reply|replies|respond|answer|say|write|send|output|add|append|end|finish|conclude|return)\b[^\n]{0,60}"
    r"TERMINATE[^\n]{0,40}\b(when|once|if|after|as soon as|at the end|in the end|done|finished|complete)",
    re.IGNORECASE,
)
_WANTED_AT_THE_END = re.compile(r"\b(when|once|if|after|as soon as)\b[^\n]{0,80}TERMINATE", re.IGNORECASE)


def text_of(message: Message) -> str:
    """Give a message's words; of a list of parts, those that are text."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(
            str(part.get("text", "")) for part in content if isinstance(part, Mapping) and part.get("type") == "text"
        )
    return str(content or "")


def images_of(messages: Sequence[Message]) -> list[str]:
    """Give the URLs of the images that messages bring as parts."""
    found = []
    for message in messages:
        parts = message.get("content")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping) and part.get("type") == "image_url":
                where = part.get("image_url")
                found.append(str(where.get("url", "") if isinstance(where, Mapping) else where))
    return [url for url in found if url]


def is_by(message: Message, names: Collection[str]) -> bool:
    """Say whether one of these agents said it, in the eyes of an agent among them: its own role is `assistant`."""
    if message.get("tool_calls") or message.get("function_call"):
        return False  # calls of tools carry the role of an assistant, whoever made them
    if message.get("role") == "assistant":
        return message.get("name") in (None, "", *names)
    return message.get("name") in names


def transcript(messages: Sequence[Message], sender: Any, names: Collection[str]) -> Sequence[Message]:
    """Give the chat in which one of these agents has spoken last: the group's own, where theirs doesn't show it.

    Args:
        messages: The chat as the agent sees it. Hooks may have shortened it, and the oldest lineage resumes a group
            without telling an agent what it said itself.
        sender: The partner; a group's manager has the whole.
        names: Whose words are looked for.
    """
    group = getattr(sender, "groupchat", None)
    if group is None or any(is_by(one, names) for one in messages):
        return messages
    whole: Sequence[Message] = group.messages
    return whole if any(is_by(one, names) for one in whole) else messages


def split(messages: Sequence[Message], names: Collection[str]) -> tuple[list[Message], list[Message]]:
    """Part a chat into what was said until one of these agents spoke last, and what was said since.

    Messages are looked at from the end and not counted, because the host's hooks may have shortened the list.

    Returns:
        (past, news); of the news only what has words or images, and no system messages.
    """
    at = len(messages)
    while at and not is_by(messages[at - 1], names):
        at -= 1
    news = [one for one in messages[at:] if one.get("role") != "system" and (text_of(one).strip() or images_of([one]))]
    return list(messages[:at]), news


def request_of(messages: Sequence[Message]) -> str:
    """Give the words of messages; with more than one speaker, each with the name in front."""
    speakers = {message.get("name") for message in messages}
    if len(speakers) < 2:
        return "\n\n".join(map(text_of, messages))
    return "\n\n".join(f"{message.get('name') or message.get('role')}: {text_of(message)}" for message in messages)


def past_rounds(messages: Sequence[Message], names: Collection[str], entry: str) -> list[Round]:
    """Rebuild rounds from the words of a chat that these agents had before: each request with its answer.

    Args:
        messages: Up to and with an answer of theirs.
        names: Whose answers count.
        entry: The role that is to remember them as its own.
    """
    rounds, asked = [], list[Message]()
    answer = ""
    for message in messages:
        if is_by(message, names):
            answer = text_of(message) or answer
            continue
        if asked and answer:
            rounds.append(_past(request_of(asked), answer, entry))
            asked, answer = [], ""
        if message.get("role") != "system" and text_of(message).strip():
            asked.append(message)
    if asked and answer:
        rounds.append(_past(request_of(asked), answer, entry))
    return rounds


def _past(request: str, answer: str, entry: str) -> Round:
    posts = [Post(USER, entry, request), Post(entry, USER, answer)]
    return Round(request, posts=posts, state=RoundState.finished)


def reply_text(answer: Answer, request: str = "", system_message: str = "") -> str:
    """Give an answer as Markdown: the words, then a line for each file with a preview.

    Args:
        answer: The session's.
        request: What was asked; may say that the end is to be told by `TERMINATE`.
        system_message: May say so too.

    Returns:
        `TERMINATE` stands at the end only if that was asked for and the request was answered to its end; words that
        merely come from data or printed output don't end a chat.
    """
    text, lines = answer.text.rstrip(), files_of(answer)
    bare = text.removesuffix(_TERMINATE).rstrip() if text.endswith(_TERMINATE) else text
    ends = text != bare
    wanted = any(_WANTED.search(one) or _WANTED_AT_THE_END.search(one) for one in (request, system_message))
    if wanted and answer.stop == "Completed":
        return "\n\n".join(part for part in (bare, lines, _TERMINATE) if part)
    if not ends:
        return answer_text(answer)
    return "\n\n".join(part for part in (f"{bare} `{_TERMINATE}`".strip(), lines) if part)
