"""What the Planner's model is to reply, field by field: the schema it is given, and the reading of what it sends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tw_autogen.model import Unreadable, read_object
from tw_autogen.planner.plan import Plan

USER = "User"


class Stop(str, Enum):
    """Why the Planner speaks to the user; `InProcess` while it speaks to a worker."""

    InProcess = "InProcess"
    Completed = "Completed"
    Clarification = "Clarification"
    AdditionalInformation = "AdditionalInformation"
    SecurityRisks = "SecurityRisks"
    TaskFailure = "TaskFailure"


@dataclass(frozen=True)
class PlannerReply:
    """A reply that was understood.

    Args:
        send_to: A worker's name, or `User`.
        message: What to tell them.
        stop: Why the user is spoken to.
        reasoning: Why this step.
        init_plan: The plan with dependencies, or None where unchanged.
        plan: The merged plan, or None where unchanged.
        current_plan_step: Which step this is; empty where unchanged.
        then: `User` if a worker's answer may go straight on to the user; else empty.
    """

    send_to: str
    message: str
    stop: Stop
    reasoning: str = ""
    init_plan: Plan | None = None
    plan: Plan | None = None
    current_plan_step: str = ""
    then: str = ""


def reply_schema(workers: Sequence[str]) -> Mapping[str, Any]:
    """Give the JSON schema of a reply.

    Args:
        workers: The names that may be written to, beside the user's.

    Returns:
        A strict schema in OpenAI's sense: every field is required, and what may be absent may be null.
    """
    text, maybe = {"type": "string"}, {"type": ["string", "null"]}
    fields: dict[str, Any] = {
        "reasoning": text,
        "init_plan": maybe,
        "plan": maybe,
        "current_plan_step": maybe,
        "send_to": {"type": "string", "enum": [*workers, USER]},
        "message": text,
        "then": {"type": ["string", "null"], "enum": [USER, None]},
        "stop": {"type": "string", "enum": [stop.value for stop in Stop]},
    }
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def read_reply(text: str, workers: Sequence[str], *, has_plan: bool) -> PlannerReply:
    """Understand what the model sent.

    Args:
        text: The whole reply.
        workers: The names that may be written to, beside the user's.
        has_plan: This round has a plan already, so plan fields may be absent.

    Raises:
        Unreadable: with everything that is wrong, in words for the model.
    """
    fields = {key: _text(value) for key, value in read_object(text).items()}
    problems: list[str] = []
    send_to = _receiver(fields, workers, problems)
    if not fields.get("message", "").strip():
        problems.append("`message` is missing or empty: write what you want to tell the receiver")
    stop = _stop(fields, send_to, problems)
    init_plan, plan = _plan(fields, "init_plan", problems), _plan(fields, "plan", problems)
    if not has_plan and plan is None and send_to in workers:
        if init_plan is None:
            problems.append("`init_plan` and `plan` are missing: this request has no plan yet")
        plan = init_plan
    then = fields.get("then", "").strip()
    if problems:
        raise Unreadable("; ".join(problems))
    return PlannerReply(
        send_to,
        fields["message"].strip(),
        stop,
        (fields.get("reasoning") or fields.get("plan_reasoning", "")).strip(),
        init_plan,
        plan,
        fields.get("current_plan_step", "").strip(),
        USER if then.casefold() == USER.casefold() and send_to in workers else "",
    )


def _text(value: Any) -> str:
    """Bring a field to text: models send lists of steps, numbers and null where text was asked for."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _receiver(fields: Mapping[str, str], workers: Sequence[str], problems: list[str]) -> str:
    known = [*workers, USER]
    said = fields.get("send_to", "").strip()
    for name in known:
        if said.casefold() == name.casefold():
            return name
    wanted = f"write one of {', '.join(known)}"
    problems.append(
        f"`send_to` is {said!r}, and nobody here is called that: {wanted}"
        if said
        else f"`send_to` is missing: {wanted}"
    )
    return ""


def _stop(fields: Mapping[str, str], send_to: str, problems: list[str]) -> Stop:
    """Read `stop`; a missing one follows from the receiver."""
    said = fields.get("stop", "").strip()
    if send_to != USER:
        return Stop.InProcess
    if not said:
        return Stop.Completed
    for stop in Stop:
        if stop.value.casefold() == said.casefold() and stop is not Stop.InProcess:
            return stop
    known = ", ".join(stop.value for stop in Stop if stop is not Stop.InProcess)
    problems.append(f"`stop` is {said!r} in a message to the User: write one of {known}")
    return Stop.Completed


def _plan(fields: Mapping[str, str], name: str, problems: list[str]) -> Plan | None:
    text = fields.get(name, "")
    if not text.strip():
        return None
    try:
        return Plan.parse(text)
    except ValueError as error:
        problems.append(f"`{name}`: {error}")
        return None
