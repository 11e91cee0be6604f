"""`SpyModel`: a model of which one knows afterwards what it was asked and what it said."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass

from tw_autogen.errors import ModelError
from tw_autogen.model import BaseChatModel, ChatModel, Completion, Message, ModelRequest, complete


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


class SpyModel(BaseChatModel):
    """Passes everything on, and keeps it.

    Args:
        model: Who really answers; None: nobody, so that the first call fails and only its prompt is known.
    """

    def __init__(self, model: ChatModel | None) -> None:
        self.calls: list[Call] = []
        """In the order in which they were asked."""
        self._model = model
        self._lock = threading.Lock()

    @property
    def objects_only(self) -> bool:
        """As of the model that answers."""
        return isinstance(self._model, BaseChatModel) and self._model.objects_only

    def answer(self, request: ModelRequest) -> Completion:
        """Complete the request with the model, and keep what was asked, by whom, and what was said."""
        asked, role = tuple(copy.deepcopy(request.messages)), request.role
        with self._lock:
            index = len(self.calls)
            self.calls.append(Call(asked, role=role))
        if self._model is None:
            raise ModelError("there is no model: only the first prompt was wanted")
        completion = complete(self._model, request)
        with self._lock:
            self.calls[index] = Call(asked, completion, role)
        return completion
