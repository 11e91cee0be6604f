"""`SpyModel`: a model of which one knows afterwards what it was asked and what it said."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tw_autogen.errors import ModelError
from tw_autogen.model import ChatModel, Completion, Message, asked_as


@dataclass(frozen=True)
class Call:
    """One call of a model.

    Args:
        messages: What it was asked, as it was then.
        completion: What it said; None if it failed.
        role: Who asked; empty if that isn't known.
    """

    messages: tuple[Message, ...]
    completion: Completion | None = None
    role: str = ""


class SpyModel:
    """Passes everything on, and keeps it.

    Args:
        model: Who really answers; None: nobody, so that the first call fails and only its prompt is known.
    """

    def __init__(self, model: ChatModel | None) -> None:
        self.calls: list[Call] = []
        """In the order in which they were asked."""
        self._model = model
        self._lock = threading.Lock()

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
        """Complete with the model, and keep what was asked and said; see `ChatModel.complete`.

        Args:
            messages: With `role` and `content` each.
            schema: As `ChatModel.complete`.
            tools: As `ChatModel.complete`.
            on_text: Called with the text, piece by piece.
            seconds: How long the call may take; None: as long as the model's own limit.
            cancelled: Ends the call once it is set.
        """
        return self.complete_as(
            "", messages, schema=schema, tools=tools, on_text=on_text, seconds=seconds, cancelled=cancelled
        )

    def complete_as(self, role: str, messages: Sequence[Message], **options: Any) -> Completion:
        """Complete with the model, and keep who has asked as well; see `TellsRoles`.

        Args:
            role: Name of the role that asks.
            messages: With `role` and `content` each.
            options: As `complete`.
        """
        asked = tuple(copy.deepcopy(dict(one)) for one in messages)
        with self._lock:
            at = len(self.calls)
            self.calls.append(Call(asked, role=role))
        if self._model is None:
            raise ModelError("there is no model: only the first prompt was wanted")
        completion = asked_as(role, self._model).complete(messages, **options)
        with self._lock:
            self.calls[at] = Call(asked, completion, role)
        return completion
