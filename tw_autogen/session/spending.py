"""`Spending`: what a round costs while it runs, and whether it may cost more."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from tw_autogen.conversation import AttachmentType, Round
from tw_autogen.errors import RoundTooCostly
from tw_autogen.events import CellRan, Event, ModelCalled
from tw_autogen.model import Usage
from tw_autogen.session.settings import SessionSettings

_FOUND_CHARS = 1000


@dataclass(frozen=True)
class Seconds:
    """Where the time of a round went, wall clock.

    Args:
        total: From request to answer.
        model: In calls of models, added up; calls side by side count each.
        kernel: In cells, added up.
    """

    total: float = 0.0
    model: float = 0.0
    kernel: float = 0.0

    @property
    def own(self) -> float:
        """What is left: checking, routing, copying, starting kernels, waiting for people."""
        return max(0.0, self.total - self.model - self.kernel)

    def __add__(self, other: Seconds) -> Seconds:
        """Sum field by field."""
        return Seconds(self.total + other.total, self.model + other.model, self.kernel + other.kernel)


class Spending:
    """What has been spent, of tokens, money and time; a handler of events, from any thread.

    Args:
        settings: `max_calls`, `max_tokens` and `max_dollars` limit it.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()  # plugins on threads of their own may ask the model too
        self.usage = Usage()
        self._dollars = 0.0  # what is known of them: one unknown price must not lift the limit
        self.model_seconds = 0.0
        self.kernel_seconds = 0.0

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, ModelCalled):
            spent = Usage(event.prompt_tokens, event.cached_tokens, event.completion_tokens, 1, event.dollars)
            with self._lock:
                self.usage += spent
                self._dollars += event.dollars or 0.0
                self.model_seconds += event.seconds
        elif isinstance(event, CellRan):
            with self._lock:
                self.kernel_seconds += event.seconds

    def seconds(self, total: float) -> Seconds:
        """Give where the time went, given how long the round has taken."""
        return Seconds(total, self.model_seconds, self.kernel_seconds)

    def refuse_more(self, here: Round) -> None:
        """Refuse one more call of a model once a limit is reached.

        Raises:
            RoundTooCostly: names the limit, what was spent, and what was found until then.
        """
        settings, usage = self._settings, self.usage
        tokens = usage.prompt_tokens + usage.completion_tokens
        reached = ""
        if settings.max_calls and usage.calls >= settings.max_calls:
            reached = (
                f"{usage.calls} model call{'s' * (usage.calls != 1)}, and `session.max_calls` is {settings.max_calls}"
            )
        elif settings.max_tokens and tokens >= settings.max_tokens:
            reached = f"{tokens} tokens, and `session.max_tokens` is {settings.max_tokens}"
        elif settings.max_dollars and self._dollars >= settings.max_dollars:
            least = "at least " * (usage.dollars is None)
            reached = f"{least}{self._dollars:.4f} dollars, and `session.max_dollars` is {settings.max_dollars:g}"
        if reached:
            raise RoundTooCostly(f"{here.id}: it has cost {reached}. {found_so_far(here)}", round=here)


def found_so_far(here: Round) -> str:
    """Say what the round's last cell that ran well gave; that there is nothing, if there is none."""
    kind = AttachmentType
    for post in reversed(here.posts):
        result = post.content(kind.execution_result).strip()
        if result and post.content(kind.execution_status) == "SUCCESS":
            more = "…" if len(result) > _FOUND_CHARS else ""
            return f"Found until then: {result[:_FOUND_CHARS]}{more}"
    return "Nothing was found until then."
