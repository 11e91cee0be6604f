"""`ChatModel`: the one thing that is asked of a language model, and what comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tw_autogen.model.thoughts import without_thoughts

Message = Mapping[str, Any]
"""`{"role": "system" | "user" | "assistant" | "tool", "content": text, or a list of text and image parts}`."""


BROKEN_OFF = "error"
"""The `finish_reason` of a reply that the server has ended in the middle, at no limit."""


@dataclass(frozen=True)
class Usage:
    """What calls cost, in tokens as the server reported them; `calls` counts answers.

    `dollars` is None where the price of any of these calls is not known: never a 0 that is wrong.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    dollars: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Sum field by field; one unknown price makes the sum's unknown."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
            _sum_of(self, other),
        )

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values under the names of the fields."""
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "dollars": self.dollars,
        }


def _sum_of(usage: Usage, other: Usage) -> float | None:
    """Add up what is known; where there were no calls there was nothing to pay."""
    if usage.dollars is None or other.dollars is None:
        return other.dollars if not usage.calls else usage.dollars if not other.calls else None
    return usage.dollars + other.dollars


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool that the model asks for; `arguments` is the JSON text as it came."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Completion:
    """A model's whole answer.

    Args:
        text: Its words; empty when it only calls tools.
        tool_calls: In the order in which the model asked for them.
        usage: Of this call (`calls` = 1).
        finish_reason: `stop`, `length`, `tool_calls`, … as the server said it.
        model: The name that the server gave.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=lambda: Usage(calls=1))
    finish_reason: str = "stop"
    model: str = ""

    @property
    def words(self) -> str:
        """Its text without the thoughts that a chat template has marked."""
        return without_thoughts(self.text)


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers a list of messages: a server, a host's client, a script, a recording."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        on_text: Callable[[str], None] | None = None,
        seconds: float | None = None,
        cancelled: threading.Event | None = None,
    ) -> Completion:
        """Answer the messages; called from one thread at a time, and blocks until the answer is whole.

        Args:
            messages: Oldest first; not changed and not kept.
            schema: JSON schema of the object that is wanted as answer. A wish: the caller reads tolerantly.
            tools: OpenAI's form, `{"type": "function", "function": {…}}`.
            on_text: Called with each new piece of text as it arrives, from any thread; may never be called.
            seconds: Give up after so long; None is the model's own limit.
            cancelled: Once set, the call returns as soon as it can by raising `ModelError`.

        Raises:
            ModelError: no answer came: refused, timed out, cancelled, or all tries used up.
        """
        ...
