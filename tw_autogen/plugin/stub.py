"""A plugin in words: as Python for the CodeInterpreter, as one line for the Planner."""

from __future__ import annotations

import ast
import inspect
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tw_autogen.plugin.spec import Parameter, PluginSpec

_SENTENCE = re.compile(r".*?[.!?](?=\s+[A-Z`\"]|$)")
_TYPES = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "double": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
    "none": "None",
    "any": "Any",
}


def as_function(spec: PluginSpec) -> str:
    """Give a Python function, valid and short: signature, descriptions as its docstring, examples as a comment.

    Source: TaskWeaver's `PluginSpec.format_prompt`. Differs: required parameters keep their types, a single return
    value keeps its description, defaults are shown.
    """
    about = [f"{one.name}: {_flat(one.description)}" for one in spec.parameters if one.description]
    given = [f"returns {one.name}: {_flat(one.description)}" for one in spec.returns if one.description]
    text = "\n    ".join([_flat(spec.description), *about, *given]).replace("\\", "\\\\").replace('"""', "'''")
    closed = f"{text}\n    " if about or given or text.endswith('"') else text
    example = "".join(f"\n    # {line.rstrip()}" for line in spec.examples.strip().splitlines())
    return f'def {spec.name}({_arguments(spec.parameters)}) -> {_result(spec.returns)}:\n    """{closed}"""{example}'


def as_line(spec: PluginSpec, *, whole: bool = False) -> str:
    """Give `- name(required: T): first sentence of the description`, or `- name(a: T, b: T = 1) -> T: …`."""
    if whole:
        head = f"{_arguments(spec.parameters)}) -> {_result(spec.returns)}"
    else:
        head = ", ".join(f"{one.name}: {_type(one.type)}" for one in spec.parameters if one.required) + ")"
    description = _flat(spec.description)
    sentence = _SENTENCE.match(description)
    return f"- {spec.name}({head}: {sentence[0] if sentence else description}"


def _arguments(parameters: tuple[Parameter, ...]) -> str:
    parts: list[str] = []
    optional_seen = starred = False
    for one in parameters:
        if one.required and optional_seen and not starred:
            parts.append("*")  # Python has no required parameter behind an optional one, except by keyword
            starred = True
        optional_seen = optional_seen or not one.required
        parts.append(f"{one.name}: {_type(one.type)}{'' if one.required else f' = {_default(one)}'}")
    return ", ".join(parts)


def _default(parameter: Parameter) -> str:
    """Spell the default; an unknown one as `...`, which says in a stub that there is one."""
    return "..." if parameter.default is inspect.Parameter.empty else repr(parameter.default)


def _result(returns: tuple[Parameter, ...]) -> str:
    types = [_type(one.type) for one in returns]
    return f"tuple[{', '.join(types)}]" if len(types) > 1 else "".join(types) or "None"


@lru_cache(maxsize=1024)
def _type(words: str) -> str:
    """Spell a type as Python does; words that are no expression become text, which is a valid annotation too."""
    words = _flat(words)
    known = _TYPES.get(words.lower(), words)
    try:
        ast.parse(known, mode="eval")
    except SyntaxError:
        return repr(words)
    return known


def _flat(text: str) -> str:
    """Put a text on one line: a YAML's line breaks mean nothing to the model."""
    return " ".join(text.split())
