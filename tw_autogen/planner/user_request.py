"""One request of the user: its rounds of questions and answers, and what workers read of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tw_autogen.conversation import Memory, Plan, Round, RoundState, file_names
from tw_autogen.errors import is_refused_prompt
from tw_autogen.planner.planner_reply import USER
from tw_autogen.text_truncation import without_known_paragraphs

_REMEDY = re.compile(r": (?=(?:put|send|find out|have a worker) )")
_WORD = re.compile(r"[^\W\d_]{5,}")
"""A word that says what a request is about; shorter ones stand anywhere."""
_USERS_WORDS = {
    "no worker has run code for this request": "no code ran for this request",
    "nothing that you were shown holds": "nothing that the model was shown holds",
    "your message": "the answer",
}


def rounds_of_request(memory: Memory, name: str) -> list[Round]:
    """Return the current round, after those that ended with a question of this Planner, which it answers.

    Rounds in between that failed belong to the request, too, as what the User answered stands there; but none in which
    a server has refused the prompt.

    Args:
        memory: What the Planner sees.
        name: The Planner's name.
    """
    *earlier, here = memory.rounds
    asked, failed = [here], list[Round]()
    for one in reversed([each for each in earlier if each.posts]):
        last = one.posts[-1]
        if last.send_from == name and last.is_question:
            asked, failed = [one, *failed, *asked], []
        elif one.state is RoundState.failed:
            failed = failed if is_refused_prompt(one.error) else [one, *failed]
        else:
            break
    return asked


def bulletin(asked: Sequence[Round], plan: Plan | None, date: str, definitions: str) -> str:
    """Return the Planner's text on the board: the user's request with what it brings, the plan, and the date.

    Args:
        asked: The rounds of the request, oldest first.
        plan: As it stands; None: there is none.
        date: Today, in ISO form; empty: left out.
        definitions: The list of those in force; empty: there are none.
    """
    lines = [f"The User's request:\n{message_of_user(asked[0])}"]
    for before, after in zip(asked, asked[1:], strict=False):
        message = without_known_paragraphs(message_of_user(after), "\n\n".join(lines))
        question = f"The User was asked:\n{before.posts[-1].message}\nand answered:"
        failed = before.state is RoundState.failed
        lines.append(f"{'The work on that failed. The User said:' if failed else question}\n{message}")
    if plan is not None:
        lines.append(f"The plan:\n{plan}")
    if date:
        lines.append(f"Today is {date}.")
    if definitions:
        lines.append(definitions)
    return "\n\n".join(lines)


def message_of_user(here: Round) -> str:
    """Return what the user's post of a round says: their words, and what the session has added to them."""
    return next((post.message for post in here.posts if post.send_from == USER), here.user_query)


def is_about_files(asked: Round) -> bool:
    """Return whether the user's words name files or what the files of the user's folder hold, or came with files.

    Args:
        asked: A round of a request.
    """
    query, message = asked.user_query, message_of_user(asked)
    notes = message[len(query) :].lstrip() if message.startswith(query) else message
    brought, _, folder = notes.partition("\n\n")  # what is said of the folder's files stands further down
    listed = "\n".join(line for line in folder.splitlines() if line.startswith(("'", "-", " ")))
    shared = set(_WORD.findall(query.casefold())).intersection(_WORD.findall(listed.casefold()))
    return bool(shared or file_names(query) or file_names(brought))


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
    text = _REMEDY.split(problem)[0]
    for of_model, of_user in _USERS_WORDS.items():
        text = text.replace(of_model, of_user)
    return text
