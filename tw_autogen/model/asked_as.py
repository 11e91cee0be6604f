"""`asked_as`: a model as one role asks it, so that a recording knows whose prompt each of its replies has answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from tw_autogen.model.chat import ChatModel, Completion, Message


@runtime_checkable
class TellsRoles(Protocol):
    """A `ChatModel` that wants to know who asks."""

    def complete_as(self, role: str, messages: Sequence[Message], **options: Any) -> Completion:
        """Answer as `complete` does, with its options.

        Args:
            role: Who asks; empty if that isn't known.
            messages: As in `complete`.
            **options: As in `complete`.
        """
        ...


class AskedAs:
    """A model as one role asks it.

    Args:
        model: Who answers, and is told who asks.
        role: Who asks.
    """

    def __init__(self, model: TellsRoles, role: str) -> None:
        self._model = model
        self._role = role

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
        """Hand the call on with the role's name; see `ChatModel.complete`."""
        return self._model.complete_as(
            self._role, messages, schema=schema, tools=tools, on_text=on_text, seconds=seconds, cancelled=cancelled
        )


def asked_as(role: str, model: ChatModel) -> ChatModel:
    """Give the model as this role asks it; one that doesn't care is given as it is.

    Example:
        >>> from tw_autogen.model import Recording, ReplayModel
        >>> asked_as("Planner", ReplayModel(Recording.of(["It is 42."]))).complete([]).text
        'It is 42.'
    """
    return AskedAs(model, role) if isinstance(model, TellsRoles) else model
