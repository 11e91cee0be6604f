"""`Expectation`: one item of a scenario's `expect`, read and checked before anything runs; `CHECKS`: what it may name.

A check is a function; its name and its parameters are those of the YAML. A check about rounds takes `rounds` (those of
one request, if the YAML names a `round`; else all of them), one about files the `folder`, one about what the session
teaches the `lesson`. Each yields a line for every problem: what was expected, what was found, where. The parameter that
comes second may be given without its name: `number: 11` is `number: {value: 11}`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import PositiveInt, TypeAdapter, ValidationError

from tw_autogen.errors import nearest, unknown_key
from tw_autogen.scenario.check_answer import answer, answer_lacks, asked_back, json, number, numbers, stop
from tw_autogen.scenario.check_code import cells, executed, failed_cells, never_executed, plugins, refused, selected
from tw_autogen.scenario.check_conversation import (
    calls,
    lesson,
    nowhere,
    path,
    plan,
    plan_grew,
    posts,
    recalled,
    said,
    summaries,
)
from tw_autogen.scenario.check_files import file, same_content, table
from tw_autogen.scenario.check_parameters import Problems
from tw_autogen.scenario.evidence import Evidence

_ROUNDS = "rounds"
CHECKS: Mapping[str, Callable[..., Problems]] = {
    one.__name__: one
    for one in (
        number,
        numbers,
        answer,
        answer_lacks,
        json,
        asked_back,
        stop,
        file,
        same_content,
        table,
        path,
        posts,
        calls,
        summaries,
        lesson,
        recalled,
        plan,
        plan_grew,
        said,
        nowhere,
        plugins,
        selected,
        refused,
        executed,
        never_executed,
        cells,
        failed_cells,
    )
}
"""Every check by the name that it has in a scenario."""


@dataclass(frozen=True)
class Expectation:
    """One check with its arguments.

    Args:
        check: The name of a function in `CHECKS`.
        arguments: By parameter, with the types that the function asks for.
        round: Which round it is about, from 1; None: all of them, or the last one where the check is about an answer.
    """

    check: str
    arguments: Mapping[str, Any]
    round: int | None = None

    def problems(self, evidence: Evidence) -> list[str]:
        """Return what is not as expected, a line each; empty if all is well."""
        function = CHECKS[self.check]
        if (about := _first_parameter(self.check)) != _ROUNDS:
            return [f"{self.check}: {one}" for one in function(getattr(evidence, about), **self.arguments)]
        rounds = [seen for seen in evidence.rounds if self.round in (None, seen.number)]
        if not rounds:
            return [f"{self.check}: round {self.round or 1}: expected it to be asked, found that the run ended before"]
        return [f"{self.check}: {one}" for one in function(rounds, **self.arguments)]


def read_expectation(plain: Any, *, rounds: int) -> Expectation:
    """Read one item of `expect`.

    Args:
        plain: `{"number": 11}`, `{"number": {"value": 11, "within": 0.5, "round": 2}}`, or `"refused"` alone.
        rounds: How many the scenario has.

    Raises:
        ValueError: there is no such check, or its arguments are not what it takes.
    """
    plain = {plain: None} if isinstance(plain, str) else plain
    if not isinstance(plain, Mapping) or len(plain) != 1:
        raise ValueError(f"expected one check with its arguments, such as `number: 11`, found {plain!r}")
    ((name, value),) = plain.items()
    if name not in CHECKS:
        raise ValueError(f"unknown check {name!r}{nearest(str(name), CHECKS)}")
    parameters = list(inspect.signature(CHECKS[name]).parameters.values())[1:]
    given = _named_arguments(value, parameters[0].name)
    taken = [parameter.name for parameter in parameters] + (["round"] if _first_parameter(name) == _ROUNDS else [])
    if problem := unknown_key(given, taken):
        raise ValueError(f"{name}: {problem}")
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty and parameter.name not in given:
            raise ValueError(f"{name}: missing key {parameter.name!r}")
    if all(parameter.default is None for parameter in parameters) and not given.keys() - {"round"}:
        raise ValueError(
            f"{name}: it can't fail; give it {' or '.join(repr(parameter.name) for parameter in parameters)}"
        )
    which = fit(f"{name}.round", given.pop("round", None), PositiveInt | None)
    if which and which > rounds:
        raise ValueError(f"{name}.round: there are {rounds} rounds, found {which}")
    hints = get_type_hints(CHECKS[name], include_extras=True)
    return Expectation(name, {key: fit(f"{name}.{key}", one, hints[key]) for key, one in given.items()}, which)


def fit(where: str, value: Any, hint: Any) -> Any:
    """Bring a value of a YAML file to a type.

    Args:
        where: Keys that lead to the value, for the message.
        value: As the YAML has it.
        hint: The type.

    Raises:
        ValueError: it doesn't fit; the message says where, why, and what was found.
    """
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        inside = "".join(f".{part}" for part in first["loc"] if isinstance(part, int))
        problem = first["msg"].replace("valid tuple", "list")
        raise ValueError(f"{where}{inside}: {problem[0].lower()}{problem[1:]}, found {first['input']!r}") from None


def _named_arguments(value: Any, first: str) -> dict[str, Any]:
    """Return the arguments by name: a value alone is the first parameter's, nothing is none."""
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {first: value}


def _first_parameter(check: str) -> str:
    """Name the part of the evidence that a check takes: its first parameter."""
    return next(iter(inspect.signature(CHECKS[check]).parameters))
