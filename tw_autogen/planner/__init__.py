"""The Planner: splits a request into steps, hands them to workers, and answers the user."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.planner.format_probe import probe_format
from tw_autogen.planner.planner import Planner
from tw_autogen.planner.settings import PlannerSettings

__all__ = [
    "Planner",
    "PlannerSettings",
    "probe_format",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "tw_autogen.conversation": ("Plan", "Status", "Step"),
            "tw_autogen.conversation.plan": ("Depends",),
            "tw_autogen.planner.planner_reply": ("PlannerReply", "read_reply", "reply_schema", "Stop"),
        },
    )
