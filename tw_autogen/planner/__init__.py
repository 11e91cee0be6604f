"""The Planner: splits a request into steps, hands them to workers, and answers the user."""

from tw_autogen.conversation import Depends, Plan, Status, Step
from tw_autogen.planner.planner import Planner, PlannerSettings
from tw_autogen.planner.reply import PlannerReply, Stop, read_reply, reply_schema

__all__ = [
    "Depends",
    "Plan",
    "Planner",
    "PlannerReply",
    "PlannerSettings",
    "Status",
    "Step",
    "Stop",
    "read_reply",
    "reply_schema",
]
