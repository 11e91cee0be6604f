"""One request of the user: its rounds of questions and answers, and what workers read of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice

from tw_autogen.conversation import AttachmentType, Memory, Plan, Post, Round
from tw_autogen.planner.planner_reply import USER, Stop

_NUMBER = re.compile(r"(?<![\w.,])\d[\d.,]*(?!\w)")
_LIST_MARK = re.compile(r"^\s*\d{1,2}[.)]\s", re.M)
_WORD = re.compile(r"[a-zäöüß]+")
_NUMBER_WORDS = {
    word: str(number)
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split(), 1)
}
_REMEDY = re.compile(r": (?=(?:put|send|find out|have a worker) )")
_USERS_WORDS = {
    "no worker has run code for this request": "no code ran for this request",
    "nothing that you were shown holds": "neither the request nor a file's description holds",
    "your message": "the answer",
}
_ROWS = re.compile(r"\b(\d{1,12}) rows\b")
_MISSING = re.compile(r"\b(\d{1,12}) missing\b")
_MOST_NUMBERS, _MOST_STATED, _MOST_COUNTS = 5, 200, 8
_STATED = re.compile(r"(\d[\d.,]{0,30}) ?%? {0,3}([-+*/×÷−–]|of|from) {0,3}(?=(\d[\d.,]{0,30}))")
"""Arithmetic that an answer states; the second number may be the first one of the next."""


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


def problem_for_user(problem: str) -> str:
    """Return a problem of an answer as its reader needs it: without what the model is to do about it.

    Args:
        problem: In words for the model.

    Example:
        >>> problem_for_user("@r[nan] is no value: find out why it is not a number, and put the value there")
        '@r[nan] is no value'
    """
    words = _REMEDY.split(problem)[0]
    for of_model, of_user in _USERS_WORDS.items():
        words = words.replace(of_model, of_user)
    return words


def unfounded_numbers(answer: str, shown: str) -> list[str]:
    """Return the first few numbers of an answer that are in nothing that the model was shown.

    Args:
        answer: Numbers that are part of a word, or mark the items of a list, do not count; nor does the result of an
            arithmetic of shown numbers that it states.
        shown: All that the model was shown: numbers, rows of a table (`1,412` may be one number or two), and words.

    Example:
        >>> unfounded_numbers("1. The mean is 4.27, of 1,200 rows in a2.csv", "1200 rows")
        ['4.27']
        >>> unfounded_numbers("39 of 312, so 12.5 %", "312 rows, 39 missing")
        []
    """
    whole = {found[0] for found in re.finditer(r"\d[\d.,]*", shown)}
    known = {_plain(part) for one in whole for part in (one, *one.split(","))}
    known |= {_NUMBER_WORDS[word] for word in _WORD.findall(shown.lower()) if word in _NUMBER_WORDS}
    shares = _shares(shown)
    results = _stated_results(answer, known)
    unfounded = []
    for found in _NUMBER.finditer(_LIST_MARK.sub("", answer)):
        number = found[0].rstrip(".,")
        if _plain(number) in known:
            continue
        places = len(_plain(number).partition(".")[2])
        if any(_plain(f"{one:.{places}f}") == _plain(number) for one in (results + shares if places else results)):
            known.add(_plain(number))
            results = _stated_results(answer, known)
        else:
            unfounded.append(number)
    return list(dict.fromkeys(unfounded))[:_MOST_NUMBERS]


def _shares(shown: str) -> list[float]:
    """Return the shares of rows that are missing, that are not, and differences of the first; in per cent, too.

    Args:
        shown: Descriptions of files: `856 rows`, `312 missing`.
    """
    rows, missing = (
        list(dict.fromkeys(int(_plain(one[1])) for one in islice(found.finditer(shown), _MOST_COUNTS)))
        for found in (_ROWS, _MISSING)
    )
    gone = [part / whole for whole in rows for part in missing if part <= whole]
    shares = [*gone, *(1 - one for one in gone), *(one - other for one in gone for other in gone if one > other)]
    return [*shares, *(100 * one for one in shares)]


def _stated_results(answer: str, known: Collection[str]) -> list[float]:
    """Return the results of the arithmetic of known numbers that an answer states; of quotients the percentage, too."""
    results: list[float] = []
    sum_so_far, sum_at = None, -1
    for one in islice(_STATED.finditer(answer), _MOST_STATED):
        second = _value(one[3]) if _plain(one[3]) in known else None
        first = sum_so_far if one.start() == sum_at else _value(one[1]) if _plain(one[1]) in known else None
        sum_so_far = None
        if first is None or second is None:
            continue
        if one[2] in "/÷of" and second:
            results += [first / second, 100 * first / second]
        elif one[2] in "*×":
            results.append(first * second)
        elif one[2] != "of":
            sum_so_far, sum_at = first + second if one[2] == "+" else first - second, one.start(3)
            results += [sum_so_far, abs(sum_so_far)]
    return results


def _value(number: str) -> float | None:
    try:
        return float(_plain(number))
    except ValueError:
        return None


def _plain(number: str) -> str:
    """Return a number without separators of thousands and zeros at the end of its decimals."""
    plain = number.rstrip(".,").replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
