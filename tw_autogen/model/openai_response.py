"""From OpenAI's wire to a `Completion`: a whole answer, or one that grows chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tw_autogen.model.chat_model import Completion, ToolCall, Usage


def read_usage(usage: Any) -> Usage:
    """Read what a server reported; tokens that it doesn't report are 0, the call counts all the same."""
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        getattr(usage, "prompt_tokens", None) or 0,
        getattr(details, "cached_tokens", None) or 0,
        getattr(usage, "completion_tokens", None) or 0,
        calls=1,
    )


def read_answer(answer: Any) -> Completion | None:
    """Read a whole answer; None if it holds none, as an HTML page or an empty list of choices doesn't."""
    choices: Any = getattr(answer, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    if message is None:
        return None
    calls = [call for call in message.tool_calls or () if getattr(call, "function", None)]
    return Completion(
        text=_text(message.content) or getattr(message, "refusal", None) or "",
        tool_calls=tuple(ToolCall(call.id or "", call.function.name, call.function.arguments or "") for call in calls),
        usage=read_usage(answer.usage),
        finish_reason=choices[0].finish_reason or "stop",
        model=answer.model or "",
    )


@dataclass
class _GrowingCall:
    id: str
    name: str = ""
    arguments: str = ""


class StreamAccumulator:
    """A streamed answer: `add` chunks; once `finished`, `completion` gives the whole."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._calls: list[_GrowingCall] = []
        self._at: dict[int | None, _GrowingCall] = {}
        self._usage: Any = None
        self._finish_reason = ""
        self._model = ""

    @property
    def finished(self) -> bool:
        """The server said why it stopped: without that, the connection broke off."""
        return bool(self._finish_reason)

    def add(self, chunk: Any) -> str:
        """Add a chunk, and return its text."""
        self._usage = getattr(chunk, "usage", None) or self._usage  # a running total: the last one counts
        self._model = getattr(chunk, "model", None) or self._model
        if not getattr(chunk, "choices", None):
            return ""
        choice = chunk.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        if choice.delta is None:
            return ""
        for part in choice.delta.tool_calls or ():
            self._add_call(part)
        text = _text(choice.delta.content) or getattr(choice.delta, "refusal", None) or ""
        self._pieces.append(text)
        return text

    def completion(self) -> Completion:
        """Return the whole answer."""
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in self._calls)
        return Completion("".join(self._pieces), calls, read_usage(self._usage), self._finish_reason, self._model)

    def _add_call(self, part: Any) -> None:
        call = self._at.get(part.index)
        if call is None or (part.id and part.id != call.id):  # some servers give every call the index 0, or none
            call = self._at[part.index] = _GrowingCall(part.id or "")
            self._calls.append(call)
        if part.function:
            call.name += part.function.name or ""
            call.arguments += part.function.arguments or ""


def _text(content: Any) -> str:
    """Return the text of a message's content, which some servers send as a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content or ""
