"""`PlannerSettings`: how the Planner asks, checks and may be stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tw_autogen.planner.answer_checks import WhenChecked
from tw_autogen.settings_trust import LOWER, NAMED, PROMPT


@dataclass(frozen=True)
class PlannerSettings:
    """The Planner's settings.

    Args:
        model: Name of the model that plans, on the server of `model.base_url`; empty: the session's model.
        instructions: House rules for every request, such as `Answer in German`; they end the prompt's static part.
        tries: How often an unreadable reply is asked for again, counted from 0 for each reply.
        model_seconds: How long one reply of the model may take, its tries included; None: each try `model.seconds`.
        approval: Whether a person is asked about each plan, new or changed, before its next step: `always` or `never`.
        verify: Whether an answer that code has computed is checked before it goes out: one call proposes checks, which
            run in the kernel, and what fails goes back to the worker once. `auto`: where code has joined tables, fitted
            a model, or used several files or numbers copied from what was printed, or the request asks for it;
            `always`; `off`.
    """

    verify: WhenChecked = "off"
    approval: Literal["always", "never"] = "never"
    model: str = field(default="", metadata=NAMED)
    instructions: str = field(default="", metadata=PROMPT)
    tries: int = field(default=3, metadata=LOWER)
    model_seconds: float | None = field(default=None, metadata=LOWER)
