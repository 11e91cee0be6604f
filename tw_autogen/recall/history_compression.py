"""`compress`: the older part of a history becomes a summary, once its prompt grows too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

from tw_autogen.errors import Unreadable
from tw_autogen.model import ChatModel, ModelRequest, ask
from tw_autogen.recall.chat_history import ChatHistory

_PROMPT = Template(Path(__file__).with_name("summary.md").read_text(encoding="utf-8").strip())
LEAST_SHARE = 0.2  # what would save less than this of the budget is not worth a call
_WORDS_SHARE = 8  # words of a summary: the budget in tokens through this
_HEAD = "# What was said before, in short\n"


def compress(
    history: ChatHistory,
    model: ChatModel,
    *,
    tokens: int,
    keep_rounds: int,
    request: ModelRequest | None = None,
) -> str:
    """Replace the older rounds of a history by a summary, if its next prompt would exceed a budget.

    Args:
        history: Changed in place; a cached prefix ends there.
        model: Who summarizes.
        tokens: The budget of a prompt; 0: no limit.
        keep_rounds: How many rounds before the current one stay word for word, so that what was asked last and is not
            answered yet is never summarized.
        request: Limits and reports of the call, as for `ask`; its messages and wishes do not matter. None: no limits.

    Returns:
        The summary; empty if none was made, because the prompt is short, or there is too little that is old.

    Raises:
        ModelError: the model could not be asked; the history is as it was.

    Source: TaskWeaver's round compressor. Differs: by tokens and not by rounds.
    """
    if not tokens or history.tokens <= tokens:
        return ""
    old = history.older_messages(keep_rounds)
    if history.estimate_tokens(old) < tokens * LEAST_SHARE:
        return ""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _PROMPT.substitute(words=max(60, tokens // _WORDS_SHARE))},
        {"role": "user", "content": _transcript(history.pruned(old))},
    ]
    summary, _ = ask(model, replace(request or ModelRequest(), messages=messages), _read)
    history.replace_oldest(len(old), f"{_HEAD}{summary}")
    return summary


def keep_newest(history: ChatHistory, old: Sequence[Mapping[str, Any]], limit_chars: int) -> str:
    """Replace the older part of a history by its end, if no summary can be made.

    Args:
        history: Changed in place.
        old: Its older part, as `ChatHistory.older_messages` gives it.
        limit_chars: How much of its text stays.

    Returns:
        The text that replaces it; empty if there is no older part.
    """
    if not old:
        return ""
    words = f"{_HEAD}(Most of it is lost. It ended with:)\n{_transcript(old)[-limit_chars:]}"
    history.replace_oldest(len(old), words)
    return words


def _transcript(messages: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for one in messages:
        content = one["content"]
        if not isinstance(content, str):
            content = "\n".join(str(part.get("text", "[image]")) for part in content)
        who = "Told" if one["role"] == "user" else "Answered"
        lines.append(f"## {who}\n{content}")
    return "\n\n".join(lines)


def _read(text: str) -> str:
    if not text.strip():
        raise Unreadable("it is empty")
    return text.strip()
