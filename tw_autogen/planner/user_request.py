"""One request of the user: its rounds of questions and answers, and what workers read of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tw_autogen.conversation import AttachmentType, Memory, Plan, Post, Round
from tw_autogen.planner.planner_reply import USER, Stop

_NUMBER = re.compile(r"(?<![\w.,])\d[\d.,]*(?!\w)")
_LIST_MARK = re.compile(r"^\s*\d{1,2}[.)]\s", re.M)
_MOST_NUMBERS = 5


def rounds_of_request(memory: Memory, name: str) -> list[Round]:
    """Return the current round, after those that ended with a question of this Planner, which it answers.

    Args:
        memory: What the Planner sees.
        name: The Planner's name.
    """
    rounds = list(memory.rounds)
    first = len(rounds) - 1
    while first and rounds[first - 1].posts and _is_question(rounds[first - 1].posts[-1], name):
        first -= 1
    return rounds[first:]


def _is_question(post: Post, name: str) -> bool:
    stop = post.content(AttachmentType.stop)
    return post.send_from == name and stop in (Stop.Clarification.value, Stop.AdditionalInformation.value)


def bulletin(asked: Sequence[Round], plan: Plan | None, date: str, definitions: str = "") -> str:
    """Return the Planner's text on the board: the user's request with what it brings, the plan, and the date.

    Args:
        asked: The rounds of the request, oldest first.
        plan: As it stands; None: there is none.
        date: Today, in ISO form; empty: left out.
        definitions: The list of those in force; empty: there are none.
    """
    lines = [f"The User's request:\n{_said(asked[0])}"]
    for before, after in zip(asked, asked[1:], strict=False):
        lines.append(f"The User was asked:\n{before.posts[-1].message}\nand answered:\n{_said(after)}")
    if plan is not None:
        lines.append(f"The plan:\n{plan}")
    if date:
        lines.append(f"Today is {date}.")
    if definitions:
        lines.append(definitions)
    return "\n\n".join(lines)


def _said(here: Round) -> str:
    return next((post.message for post in here.posts if post.send_from == USER), here.user_query)


def plan_so_far(asked: Sequence[Round], name: str) -> Plan | None:
    """Return the newest plan of a request, for a chat history that begins in the middle of it.

    Args:
        asked: The rounds of the request, oldest first.
        name: The Planner's name.
    """
    posts = [post for one in asked for post in one.posts if post.send_from == name]
    return next((post.plan for post in reversed(posts) if post.plan is not None), None)


def unfounded_numbers(answer: str, shown: str) -> list[str]:
    """Return the first few numbers of an answer that are in nothing that the model was shown.

    Args:
        answer: Numbers that are part of a word, or mark the items of a list, do not count.
        shown: All that the model was shown.

    Example:
        >>> unfounded_numbers("1. The mean is 4.27, of 1,200 rows in a2.csv", "1200 rows")
        ['4.27']
    """
    known = {_plain(found[0]) for found in re.finditer(r"\d[\d.,]*", shown)}
    found = (one[0].rstrip(".,") for one in _NUMBER.finditer(_LIST_MARK.sub("", answer)))
    return [one for one in dict.fromkeys(found) if _plain(one) not in known][:_MOST_NUMBERS]


def _plain(number: str) -> str:
    """Return a number without separators of thousands and zeros at the end of its decimals."""
    plain = number.rstrip(".,").replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
