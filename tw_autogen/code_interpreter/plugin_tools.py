"""Plugins as tools of the model: what it is offered, and its tool calls as the code that they stand for."""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Collection, Sequence
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.errors import Unreadable
from tw_autogen.model import Completion
from tw_autogen.plugin import PluginSpec, is_table, json_schema

_TABLE_NOTE = "the name of a variable that holds the table"


def tools_of(specs: Sequence[PluginSpec]) -> list[dict[str, Any]]:
    """Return plugins as tools in OpenAI's form; a table is given by the name of a variable.

    Example:
        >>> tools_of([PluginSpec("tell_joke", "Tell a joke.")])[0]["function"]["name"]
        'tell_joke'
    """
    return [{"type": "function", "function": _function_schema(spec)} for spec in specs]


def _function_schema(spec: PluginSpec) -> dict[str, Any]:
    schema = json_schema(spec)
    for one in filter(is_table, spec.parameters):
        note = f"{one.description}; {_TABLE_NOTE}" if one.description else _TABLE_NOTE
        schema["properties"][one.name] = {"type": "string", "description": note}
    return {"name": spec.name, "description": spec.description, "parameters": schema}


def calls_as_text(reply: Completion, specs: Sequence[PluginSpec], taken: Collection[str]) -> str:
    """Return a reply as text, its tool calls as a block of Python: one result a line, all shown by the last.

    Args:
        reply: As the model gave it; without tool calls it is its text.
        specs: The plugins that were offered.
        taken: Names of variables that exist already; results get others.

    Raises:
        Unreadable: a call of a tool that wasn't offered, or arguments that are no JSON object; for the model to read.
    """
    if not reply.tool_calls:
        return reply.text
    known = {spec.name: spec for spec in specs}
    lines: list[str] = []
    names: list[str] = []
    for call in reply.tool_calls:
        spec = known.get(call.name)
        if spec is None:
            raise Unreadable(f"there is no tool {call.name!r}; there are {', '.join(known) or 'none'}")
        name = _free_name(len(taken) + len(names), {*taken, *names})
        lines.append(f"{name} = {call.name}({_arguments_code(spec, call.arguments)})")
        names.append(name)
    code = "\n".join([*lines, ", ".join(names)])
    return f"{reply.text}\n```python\n{code}\n```".lstrip()


def _arguments_code(spec: PluginSpec, text: str) -> str:
    try:
        given = json.loads(text or "{}", parse_constant=_finite_float, parse_float=_finite_float)
        if bounded_json.too_deep(given):
            raise ValueError("it is nested too deep")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the arguments of {spec.name} are no JSON: {error}") from error
    if not isinstance(given, dict):
        raise Unreadable(f"the arguments of {spec.name} are no JSON object")
    tables = {parameter.name for parameter in spec.parameters if is_table(parameter)}
    written = []
    for key, value in given.items():
        if not key.isidentifier() or keyword.iskeyword(key):
            raise Unreadable(f"{spec.name} has no argument {key!r}")
        if key in tables and not (value is None or (isinstance(value, str) and value.isidentifier())):
            raise Unreadable(f"{spec.name}: {key} must be {_TABLE_NOTE}, not {value!r}")
        written.append(f"{key}={value if key in tables else repr(value)}")
    return ", ".join(written)


def _finite_float(number: str) -> float:
    if math.isfinite(value := float(number)):
        return value
    raise ValueError(f"a number must be finite, not {number}")


def _free_name(number: int, taken: Collection[str]) -> str:
    while f"r{number}" in taken:
        number += 1
    return f"r{number}"
