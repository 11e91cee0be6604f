"""From OpenAI's wire to a `Completion`: a whole answer, or one that grows chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tw_autogen.model.chat_model import Completion, ToolCall, Usage


def read_usage(usage: Any) -> Usage:
    """Read what a server reported; tokens that it doesn't report are 0, the call counts all the same."""
    return Usage(
        _field(usage, "prompt_tokens") or 0,
        _field(_field(usage, "prompt_tokens_details"), "cached_tokens") or 0,
        _field(usage, "completion_tokens") or 0,
        calls=1,
    )


def read_answer(answer: Any) -> Completion | None:
    """Read a whole answer; None if it holds none, as an HTML page or an empty list of choices doesn't."""
    choice = _first(_field(answer, "choices"))
    message = _field(choice, "message")
    if not isinstance(message, dict):
        return None
    calls = [(call, _field(call, "function")) for call in message.get("tool_calls") or ()]
    return Completion(
        text=_text(message.get("content")) or message.get("refusal") or "",
        tool_calls=tuple(
            ToolCall(call.get("id") or "", function.get("name") or "", function.get("arguments") or "")
            for call, function in calls
            if isinstance(function, dict)
        ),
        usage=read_usage(_field(answer, "usage")),
        finish_reason=_field(choice, "finish_reason") or "stop",
        model=_field(answer, "model") or "",
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
        self._usage = _field(chunk, "usage") or self._usage  # a running total: the last one counts
        self._model = _field(chunk, "model") or self._model
        choice = _first(_field(chunk, "choices"))
        self._finish_reason = _field(choice, "finish_reason") or self._finish_reason
        delta = _field(choice, "delta")
        for part in _field(delta, "tool_calls") or ():
            self._add_call(part)
        text = _text(_field(delta, "content")) or _field(delta, "refusal") or ""
        self._pieces.append(text)
        return text

    def completion(self) -> Completion:
        """Return the whole answer."""
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in self._calls)
        return Completion("".join(self._pieces), calls, read_usage(self._usage), self._finish_reason, self._model)

    def _add_call(self, part: Any) -> None:
        index, id = _field(part, "index"), _field(part, "id") or ""
        call = self._at.get(index)
        if call is None or (id and id != call.id):  # some servers give every call the index 0, or none
            call = self._at[index] = _GrowingCall(id)
            self._calls.append(call)
        function = _field(part, "function")
        call.name += _field(function, "name") or ""
        call.arguments += _field(function, "arguments") or ""


def _field(data: Any, name: str) -> Any:
    """Return a field of an object; None if there is none, or it is no object."""
    return data.get(name) if isinstance(data, dict) else None


def _first(items: Any) -> Any:
    return items[0] if isinstance(items, list) and items else None


def _text(content: Any) -> str:
    """Return the text of a message's content, which some servers send as a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content or ""
