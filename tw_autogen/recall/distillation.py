"""`distill`: have a model write a short lesson about what happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.errors import Unreadable
from tw_autogen.model import ChatModel, ModelRequest, ask, read_object
from tw_autogen.recall.experience import Experience

_PROMPT = Path(__file__).with_name("lesson.md").read_text(encoding="utf-8").strip()
_SCHEMA = {
    "type": "object",
    "properties": {"lesson": {"type": "string"}},
    "required": ["lesson"],
    "additionalProperties": False,
}


def distill(lived: Experience, model: ChatModel, request: ModelRequest | None = None) -> Experience:
    """Return the same experience with a lesson.

    Args:
        lived: What happened.
        model: Who writes the lesson.
        request: Limits and reports of the call, as for `ask`. None: no limits.

    Raises:
        ModelError: the model could not be asked, or stayed unreadable.

    Source: the experiences of TaskWeaver, and those of Data Interpreter, which keeps failures beside successes.
    """
    wrong = "\n".join(f"- {one}" for one in lived.went_wrong)
    parts = {
        "The request": lived.request,
        "How it ended": lived.outcome,
        "The plan": lived.plan,
        "The code that ran in the end": lived.code,
        "What went wrong on the way": wrong or "nothing",
    }
    told = "\n\n".join(f"# {head}\n{text}" for head, text in parts.items() if text)
    messages: list[dict[str, Any]] = [{"role": "system", "content": _PROMPT}, {"role": "user", "content": told}]
    lesson, _ = ask(model, replace(request or ModelRequest(), messages=messages, schema=_SCHEMA), _read)
    return replace(lived, lesson=lesson)


def _read(text: str) -> str:
    lesson = read_object(text).get("lesson")
    if not isinstance(lesson, str) or not lesson.strip():
        raise Unreadable("`lesson` is missing or no text")
    return lesson.strip()
