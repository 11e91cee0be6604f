"""Messages of the host as lines of a conversation, and answers as messages of the host."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tw_autogen.lazy_module import LazyModule
from tw_autogen.text_truncation import ends_of

if TYPE_CHECKING:
    from tw_autogen.hosts import partner_conversation
    from tw_autogen.hosts.open_conversations import AnswerKey
    from tw_autogen.session import Answer
else:
    partner_conversation = LazyModule("tw_autogen.hosts.partner_conversation")

Message = Mapping[str, Any]

_TERMINATE = "TERMINATE"
_WORD = rf"(?-i:(?<![A-Za-z\d_]){_TERMINATE}(?![A-Za-z\d_]))"  # Chinese has no blanks beside it
_DEMAND = (
    r"\b(?:reply|replies|respond|answer|say|write|send|output|add|append|end|finish|conclude|return|antworte[nt]?|schreibe?"
    r"|sage?|beende|réponds|répondez|écris|écrivez|termine[sz]?|finis|ajoute[sz]?|responde|escribe|termina|rispondi|scrivi)\b"
)
_TIME = (
    r"(?:\b(?:when|once|if|after|as soon as|wenn|sobald|falls|nachdem|quand|lorsque|dès que|une fois|cuando|una vez"
    r"|quando|appena|когда|после)\b|完成|结束|之后|最后|終|完了|たら)"
)
_END = r"\b(?:at the end|in the end|done|finished|complete|am ende|zum schluss|à la fin|al final|alla fine)"
_WANTED = re.compile(rf"{_DEMAND}[^\n]{{0,60}}{_WORD}[^\n]{{0,40}}(?:{_TIME}|{_END})", re.IGNORECASE)
_WANTED_AT_THE_END = re.compile(rf"{_TIME}[^\n]{{0,80}}{_WORD}", re.IGNORECASE)


_UNSAID = ("system", "activity", "reasoning")
"""Roles of messages that nobody says to an agent; the last two are AG-UI's, for what other agents have shown."""


class ServiceAnswer(str):
    """The answer to a service without a partner, which continues the conversation by handing this very object back.

    Its words alone, such as those that come over a wire, continue nothing: two clients may have said the same.
    """

    key: AnswerKey | None = None


def key_of(messages: Sequence[Message]) -> AnswerKey | None:
    """Return the key of the last answer in a service's messages; None if it is not there as an object."""
    own = [message.get("content") for message in messages if message.get("role") == "assistant"]
    return own[-1].key if own and isinstance(own[-1], ServiceAnswer) else None


def calls_tool(message: Message) -> bool:
    """Return whether a message asks for a tool or a function to be run."""
    return bool(message.get("tool_calls") or message.get("function_call"))


def text_of(message: Message) -> str:
    """Return a message's words; of a list of parts, those that are text. A call of tools has none."""
    content = message.get("content")
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text")
        return "\n".join(str(text) for text in texts if text)
    if content == "None" and calls_tool(message):
        return ""  # a group makes a string of what is not there
    return str(content or "")


def images_of(message: Message) -> tuple[str, ...]:
    """Return the URLs of the images that a message brings as parts."""
    parts = message.get("content")
    listed = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    found = [one.get("image_url") for one in listed if one.get("type") == "image_url"]
    urls = (str(one.get("url", "") if isinstance(one, Mapping) else one) for one in found)
    return tuple(url for url in urls if url)


def lines_of(messages: Sequence[Message], sender: Any, names: Collection[str]) -> list[partner_conversation.Line]:
    """Return a chat as lines: what has words or images, and is said to somebody.

    Args:
        messages: The chat as the agent sees it. Hooks may have shortened it, and the oldest lineage resumes a group
            without telling an agent what it said itself: then the group's own messages are read.
        sender: The partner; a group's manager has the whole.
        names: Whose words are the agent's own in a group. Elsewhere the role `assistant` says it, since a partner may
            have the agent's name.
    """
    group = getattr(sender, "groupchat", None)
    found = _lines_of_messages(messages, names if group is not None else None)
    if group is not None and not any(one.own for one in found):
        whole = _lines_of_messages(group.messages, names)
        return whole if any(one.own for one in whole) else found
    return found


def _lines_of_messages(messages: Sequence[Message], names: Collection[str] | None) -> list[partner_conversation.Line]:
    lines = [
        partner_conversation.Line(
            text_of(message), _is_own(message, names), str(message.get("name") or ""), images_of(message)
        )
        for message in messages
        if message.get("role") not in _UNSAID
    ]
    return [line for line in lines if line.text.strip() or line.images]


def _is_own(message: Message, names: Collection[str] | None) -> bool:
    if calls_tool(message):
        return False  # calls of tools carry the role of an assistant, whoever made them
    if names is None or not message.get("name"):
        return message.get("role") == "assistant"
    return message["name"] in names


def render_reply(answer: Answer, request: str = "", system_message: str = "") -> str:
    """Return an answer as Markdown without control characters: the words, and a line for each file.

    Args:
        answer: The session's.
        request: What was asked; may say that the end is to be told by `TERMINATE`.
        system_message: May say so too.

    Returns:
        Beside words that stay alone (`Answer.is_alone`) no file is named. `TERMINATE` stands at the end only if that
        was asked for and the request was answered to its end; words that merely come from data or printed output end no
        chat.
    """
    text, lines = answer.round.last_words if answer.text else "", "" if answer.is_alone else answer.files_markdown()
    asked = [ends_of(one) for one in (request, system_message)]
    wanted = any(_WANTED.search(one) or _WANTED_AT_THE_END.search(one) for one in asked)
    if wanted and answer.stop == "Completed":
        return "\n\n".join(part for part in (text.removesuffix(_TERMINATE).rstrip(), lines, _TERMINATE) if part)
    return without_end("\n\n".join(part for part in (without_end(text), lines) if part))


def without_end(text: str) -> str:
    """Return words that end no chat: `TERMINATE` at their end, before blanks or not, is put into quotes of code."""
    bare = text.rstrip().removesuffix(_TERMINATE)
    return text if text.rstrip() == bare else f"{bare}`{_TERMINATE}`"
