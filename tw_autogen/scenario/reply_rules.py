"""`ReplyRule`: what the user of a scenario says when the agent asks back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tw_autogen.errors import unknown_key
from tw_autogen.scenario.expect import fit
from tw_autogen.session import Answer

_HINTS: Mapping[str, Any] = {"say": str, "matches": re.Pattern[str]}


@dataclass(frozen=True)
class ReplyRule:
    """One rule: where the question matches, the user says this.

    Args:
        say: The user's words.
        matches: The question must have a place that this matches; an empty one matches any.
    """

    say: str
    matches: re.Pattern[str] = re.compile("")


def read_rules(plain: Any) -> tuple[ReplyRule, ...]:
    """Read a scenario's `when_asked`: words for any question, or a list of words and of `{matches: …, say: …}`.

    Raises:
        ValueError: a rule is wrong; says where.
    """
    rules = []
    for index, item in enumerate(plain if isinstance(plain, list) else [plain]):
        where, given = f"when_asked.{index}", {"say": item} if isinstance(item, str) else item
        if not isinstance(given, Mapping):
            raise ValueError(f"{where}: expected `say`, and `matches` where it isn't for any question, found {item!r}")
        if problem := unknown_key(given, _HINTS):
            raise ValueError(f"{where}: {problem}")
        if not given.get("say"):
            raise ValueError(f"{where}: missing key 'say', or nothing in it")
        rules.append(ReplyRule(**{key: fit(f"{where}.{key}", value, _HINTS[key]) for key, value in given.items()}))
    return tuple(rules)


def take_rule(left: list[ReplyRule], answer: Answer) -> str:
    """Return what the user says to an answer that asks back, and take that rule out of those left.

    Args:
        left: The rules that were not used yet for this request; each is used once, so that a conversation ends.
        answer: What the agent has said.

    Returns:
        The user's words; empty if the agent doesn't ask, or no rule fits its question.
    """
    if not answer.round.posts[-1].is_question:
        return ""
    position = next((index for index, one in enumerate(left) if one.matches.search(answer.text)), None)
    return "" if position is None else left.pop(position).say
