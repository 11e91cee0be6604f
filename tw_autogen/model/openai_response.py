"""From OpenAI's wire to a `Completion`: a whole answer, or one that grows chunk by chunk."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from tw_autogen.model.chat_model import BROKEN_OFF, Completion, ToolCall, Usage
from tw_autogen.model.http_client import is_out_of_quota, may_pass

_MAX_STREAMED_CHARS = 16_000_000
_ENDS = {
    **dict.fromkeys(("model_length", "max_tokens", "max_length", "max_output_tokens", "token_limit"), "length"),
    **dict.fromkeys(("safety", "recitation", "prohibited_content", "blocklist", "content_filtered"), "content_filter"),
    **dict.fromkeys(("abort", "aborted", "cancelled", "error"), BROKEN_OFF),
}
"""Why a reply has ended before its end, in the words of Mistral, Anthropic, Google, vLLM and SGLang; in lower case."""
_LAST_MARKS = ("}", "```")
_CHARS_OF_CALL = 200
"""What a call of a tool counts for besides its text."""


class AnswerError(Exception):
    """The server reported an error in the place of its answer, or in the middle of it.

    Args:
        body: What it said.
    """

    def __init__(self, body: object) -> None:
        super().__init__("an error in the place of an answer")
        self.body = body

    @property
    def passes(self) -> bool:
        """Whether the same request may be answered later, by the status that stands in place of a real one."""
        status, body = _field(self.body, "code") or _field(self.body, "status"), json.dumps(self.body)
        return not is_out_of_quota(body) and (may_pass(_as_count(status)) or "overloaded" in body.lower())


def raise_reported(answer: Any) -> None:
    """Raise what a whole answer, or a chunk of one, reports as its error.

    Args:
        answer: Its JSON.

    Raises:
        AnswerError: it holds an error, itself or in its choice.
    """
    if error := _field(answer, "error") or _field(_first(_field(answer, "choices")), "error"):
        raise AnswerError(error)


def read_usage(usage: Any) -> Usage:
    """Read what a server reported; tokens that it doesn't report are 0, the call counts all the same.

    Tokens of thoughts are paid for as others are; xAI and Google count them in `total_tokens` alone.
    """
    prompt = _as_count(_field(usage, "prompt_tokens"))
    cached = (
        _as_count(_field(_field(usage, "prompt_tokens_details"), "cached_tokens"))
        or _as_count(_field(usage, "prompt_cache_hit_tokens"))  # DeepSeek
        or _as_count(_field(usage, "cached_tokens"))  # Moonshot
    )
    completion = max(_as_count(_field(usage, "completion_tokens")), _as_count(_field(usage, "total_tokens")) - prompt)
    return Usage(prompt, cached, completion, calls=1)


def read_answer(answer: Any) -> Completion | None:
    """Read a whole answer; None if it holds none, as an HTML page or an empty list of choices doesn't."""
    choice = _first(_field(answer, "choices"))
    message = _field(choice, "message")
    if not isinstance(message, dict):
        return None
    calls = [(call, _field(call, "function")) for call in _as_list(message.get("tool_calls"))]
    text = _text(message.get("content")) or _text(message.get("refusal"))
    return Completion(
        text=text or ("" if calls else _reply_in(_thought(message))),
        tool_calls=tuple(
            ToolCall(_text(call.get("id")), _text(function.get("name")), _arguments_json(function))
            for call, function in calls
            if isinstance(function, dict)
        ),
        usage=read_usage(_field(answer, "usage")),
        finish_reason=_normalize_finish_reason(_field(choice, "finish_reason")) or "stop",
        model=_text(_field(answer, "model")),
    )


@dataclass
class _GrowingCall:
    id: str
    name: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def is_over(self, name: str, arguments: str) -> bool:
        """Return True if a piece is one of another call.

        Args:
            name: The name in it.
            arguments: Its arguments.
        """
        begun = bool(self.arguments)
        return begun and ([name] != self.name or (self.arguments[-1].endswith("}") and arguments.startswith("{")))


class StreamAccumulator:
    """A streamed answer: `add` chunks, `end` it; once `finished`, `completion` gives the whole."""

    def __init__(self) -> None:
        self._text = StringIO()
        self._thought = StringIO()
        self._chars_left = _MAX_STREAMED_CHARS
        self._calls: list[_GrowingCall] = []
        self._at: dict[int | None, _GrowingCall] = {}
        self._usage: Any = None
        self._finish_reason = ""
        self._model = ""

    @property
    def finished(self) -> bool:
        """The server said why it stopped, or that it has: else the connection broke off."""
        return bool(self._finish_reason)

    def add(self, chunk: Any) -> str:
        """Add a chunk, and return its text.

        Raises:
            ValueError: the answer is longer than 16 000 000 characters.
        """
        self._usage = _field(chunk, "usage") or self._usage  # a running total: the last one counts
        self._model = _text(_field(chunk, "model")) or self._model
        choice = _first(_field(chunk, "choices"))
        self._finish_reason = _normalize_finish_reason(_field(choice, "finish_reason")) or self._finish_reason
        delta = _field(choice, "delta")
        for part in _as_list(_field(delta, "tool_calls")):
            self._add_call(part)
        text = _text(_field(delta, "content")) or _text(_field(delta, "refusal"))
        thought = _thought(delta)
        self._spend_chars(len(text) + len(thought))
        self._text.write(text)
        self._thought.write(thought)
        return text

    def end(self) -> None:
        """Take what came as whole, although it has no finish_reason; nothing is no answer."""
        if self._text.tell() or self._calls:
            self._finish_reason = self._finish_reason or "stop"

    def completion(self) -> Completion:
        """Return the whole answer."""
        calls = tuple(ToolCall(call.id, "".join(call.name), "".join(call.arguments)) for call in self._calls)
        text = self._text.getvalue() or ("" if calls else _reply_in(self._thought.getvalue()))
        return Completion(text, calls, read_usage(self._usage), self._finish_reason, self._model)

    def _add_call(self, part: Any) -> None:
        index, id = _field(part, "index"), _text(_field(part, "id"))
        index = index if isinstance(index, int) else None
        function = _field(part, "function")
        name, arguments = _text(_field(function, "name")), _arguments_json(function)
        call = self._at.get(index)
        # some servers give every call the index 0, or none; some every piece another id
        if call is None or (name and ((id and id != call.id) or call.is_over(name, arguments))):
            call = self._at[index] = _GrowingCall(id)
            self._calls.append(call)
        self._spend_chars(_CHARS_OF_CALL + len(name) + len(arguments))
        if name and [name] != call.name:  # some repeat it with each piece
            call.name.append(name)
        if arguments:
            call.arguments.append(arguments)

    def _spend_chars(self, chars: int) -> None:
        self._chars_left -= chars
        if self._chars_left < 0:
            raise ValueError(f"an answer of more than {_MAX_STREAMED_CHARS:,} characters".replace(",", " "))


def _field(data: Any, name: str) -> Any:
    """Return a field of an object; None if there is none, or it is no object."""
    return data.get(name) if isinstance(data, dict) else None


def _first(items: Any) -> Any:
    return next(iter(_as_list(items)), None)


def _as_list(items: Any) -> list[Any]:
    return items if isinstance(items, list) else []


def _as_count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) and value > 0 else 0


def _text(content: Any) -> str:
    """Return text, of a message also as a list of parts; empty for what is neither."""
    if isinstance(content, list):
        return "".join(_text(_field(part, "text")) for part in content)
    return content if isinstance(content, str) else ""


def _normalize_finish_reason(reason: Any) -> str:
    """Return why a reply ended, in OpenAI's words where it was cut off."""
    said = _text(reason)
    return _ENDS.get(said.lower(), said)


def _thought(message: Any) -> str:
    return _text(_field(message, "reasoning_content")) or _text(_field(message, "reasoning"))


def _reply_in(thought: str) -> str:
    """Return a thought that ends as a reply does; else empty.

    vLLM takes all for a thought where its reasoning parser is on and the model doesn't think.
    """
    return thought if thought.rstrip().endswith(_LAST_MARKS) else ""


def _arguments_json(function: Any) -> str:
    """Return a call's arguments as JSON; some servers send them as an object."""
    arguments = _field(function, "arguments")
    return json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments)
