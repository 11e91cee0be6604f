"""Checks on what the user is told: numbers, words, JSON, the stop word, a question."""

from __future__ import annotations

import json as json_
import re
from collections.abc import Mapping
from typing import Annotated, Any

import jsonschema
from pydantic import AfterValidator, Field, NonNegativeFloat
from referencing import Registry
from referencing.exceptions import Unresolvable

from tw_autogen.scenario.check_parameters import Problems, Regex, Rounds, Words, near, short, span

_DATE_OR_TIME = re.compile(
    r"\b\d{4}-(0[1-9]|1[0-2])(-\d{2})?(?!\d)([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)?|\b\d{1,2}:\d{2}(:\d{2})?(?!\d)"
)
_SEPARATORS = ",_'\u2019\u00a0\u202f\u2009"
_MINUS = "\u2212"
_NUMBER = re.compile(
    r"(?<![\d.])(?<![^\W_\u2e80-\U0010ffff])(?<![^\W_]_)"  # scripts without blanks between words begin at U+2E80
    rf"([-{_MINUS}+]?)(\d{{1,3}}(?:[{_SEPARATORS}]\d{{3}})+(?!\d)|\d+|(?=\.\d))(\.\d+)?([eE][-+]?\d+)?(?!\.?\d)"
)


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text, in order; dates and times are none, nor are digits inside a word.

    Args:
        text: The decimal sign is the point. Thousands may be set apart by a comma, an apostrophe, an underscore, or a
            space that doesn't break; a plain space parts two numbers.

    Example:
        >>> numbers_in("On 2024-03-11 at 08:00: 1,234.5 kg in 3 runs of plot_7, -2.5 % less.")
        [1234.5, 3.0, -2.5]
    """
    bare = str.maketrans("", "", _SEPARATORS)
    return [
        float(f"{sign.replace(_MINUS, '-')}{whole.translate(bare)}{fraction}{exponent}")
        for sign, whole, fraction, exponent in _NUMBER.findall(_DATE_OR_TIME.sub(" ", text))
    ]


def number(rounds: Rounds, value: float, *, within: NonNegativeFloat = 0.0) -> Problems:
    """Expect this number in the last answer.

    Args:
        rounds: The rounds, at least one, oldest first.
        value: The number.
        within: How far from it a number may be, in its own unit.
    """
    found = numbers_in(rounds[-1].answer)
    if not any(near(one, value, within) for one in found):
        wanted = f"{value:.15g}" + (f" (within {within:g})" if within else "")
        named = f"the numbers {', '.join(f'{one:.15g}' for one in found)}" if found else "no number"
        yield f"{rounds[-1]}: expected {wanted} in the answer, found {named} in {short(rounds[-1].answer)}"


def numbers(
    rounds: Rounds, values: Annotated[tuple[float | None, ...], Field(min_length=1)], *, within: NonNegativeFloat = 0.0
) -> Problems:
    """Expect of each request, in order, this number in its last answer; null where it doesn't matter.

    Args:
        rounds: The rounds, at least one, oldest first.
        values: One number a request, or null.
        within: How far from it a number may be, in its own unit.
    """
    last = list({seen.number: seen for seen in rounds}.values())
    for index, value in enumerate(values):
        if index >= len(last):
            yield f"{span(rounds)}: expected {len(values)} requests to be answered, found {len(last)}"
            return
        if value is not None:
            yield from number([last[index]], value, within=within)


def answer(rounds: Rounds, matches: Regex) -> Problems:
    """Expect the last answer to have a place that the regular expression matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        matches: The regular expression.
    """
    if not matches.search(rounds[-1].answer):
        yield f"{rounds[-1]}: expected an answer that matches {matches.pattern!r}, found {short(rounds[-1].answer)}"


def answer_lacks(rounds: Rounds, matches: Regex) -> Problems:
    """Expect that no answer has a place that the regular expression matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        matches: The regular expression.
    """
    for seen in rounds:
        if match := matches.search(seen.answer):
            yield f"{seen}: expected no answer that matches {matches.pattern!r}, found {short(match[0])}"


def stop(rounds: Rounds, word: Words) -> Problems:
    """Expect that the Planner's word for the last answer is this one, or one of these.

    Args:
        rounds: The rounds, at least one, oldest first.
        word: Any of these is right.
    """
    if rounds[-1].stop not in word:
        yield f"{rounds[-1]}: expected the stop word {' or '.join(word)}, found {rounds[-1].stop or 'none'}"


def _is_schema(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        jsonschema.Draft202012Validator.check_schema(plain)
    except jsonschema.SchemaError as error:
        raise ValueError(f"no schema: {error.json_path}: {error.message}") from None
    return plain


def json(rounds: Rounds, schema: Annotated[Mapping[str, Any], AfterValidator(_is_schema)]) -> Problems:
    """Expect that the last answer is JSON and nothing else, and fits this JSON schema.

    Args:
        rounds: The rounds, at least one, oldest first.
        schema: JSON Schema, draft 2020-12; what it refers to is in it, and nothing is fetched.
    """
    try:
        plain = json_.loads(rounds[-1].answer)
        found = list(jsonschema.Draft202012Validator(dict(schema), registry=Registry()).iter_errors(plain))
    except (ValueError, RecursionError) as error:
        yield f"{rounds[-1]}: expected JSON alone in the answer, found {short(rounds[-1].answer)} ({error})"
    except Unresolvable as error:
        yield f"{rounds[-1]}: expected a schema that refers to its own parts, found {short(str(error))}"
    else:
        for problem in found:
            yield f"{rounds[-1]}: expected JSON of the schema, found at {problem.json_path}: {short(problem.message)}"


def asked_back(rounds: Rounds, matches: Regex = re.compile("")) -> Problems:
    """Expect that the user was asked something, in words that the regular expression matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        matches: The regular expression; empty: any question.
    """
    questions = [last.message for seen in rounds for last in seen.round.posts[-1:] if last.is_question]
    if not any(matches.search(question) for question in questions):
        wanted = f"a question that matches {matches.pattern!r}" if matches.pattern else "a question"
        yield f"{span(rounds)}: expected {wanted}, found {short('; '.join(questions)) if questions else 'none'}"
