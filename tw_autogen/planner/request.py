"""One request of the user's: its rounds, with questions and answers, and what workers read of it."""

from __future__ import annotations

from collections.abc import Sequence

from tw_autogen.conversation import AttachmentType, Memory, Post, Round
from tw_autogen.planner.fields import USER, Stop
from tw_autogen.planner.plan import Plan


def rounds_of_request(memory: Memory, name: str) -> list[Round]:
    """Give the current round, with those before it that ended with a question of this Planner's: it answers that."""
    rounds = list(memory.rounds)
    first = len(rounds) - 1
    while first and rounds[first - 1].posts and _is_question(rounds[first - 1].posts[-1], name):
        first -= 1
    return rounds[first:]


def _is_question(post: Post, name: str) -> bool:
    stop = post.content(AttachmentType.stop)
    return post.send_from == name and stop in (Stop.Clarification.value, Stop.AdditionalInformation.value)


def bulletin(asked: Sequence[Round], plan: Plan | None, date: str) -> str:
    """Give what is pinned up for the workers: the user's request with what it brings, the plan, and the date."""
    lines = [f"The User's request:\n{_said(asked[0])}"]
    for before, after in zip(asked, asked[1:], strict=False):
        lines.append(f"The User was asked:\n{before.posts[-1].message}\nand answered:\n{_said(after)}")
    if plan is not None:
        lines.append(f"The plan:\n{plan}")
    if date:
        lines.append(f"Today is {date}.")
    return "\n\n".join(lines)


def _said(here: Round) -> str:
    return next((post.message for post in here.posts if post.send_from == USER), here.user_query)


def plan_so_far(asked: Sequence[Round], name: str) -> Plan | None:
    """Give the plan that stands in a request whose talk begins in its middle."""
    said = [post.content(AttachmentType.plan) for one in asked for post in one.posts if post.send_from == name]
    plans = [text for text in said if text]
    return Plan.parse(plans[-1]) if plans else None
