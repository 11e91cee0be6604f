"""A plugin in words: as Python for the CodeInterpreter, as one line for the Planner."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from tw_autogen.plugin.annotation import NO_EXPRESSION
from tw_autogen.python_source import expression_of

if TYPE_CHECKING:
    from tw_autogen.plugin.spec import Parameter, PluginSpec

_SHORT = ("approx", "bzw", "ca", "cf", "Dr", "Fig", "incl", "inkl", "Mr", "Mrs", "No", "Nr", "Prof", "St", "vgl", "vs")
"""Words that a dot shortens; so it does a single letter (`e.g.`, `z. B.`)."""
_SHORTENED = "".join(rf"(?<!\b{one})" for one in (r"\w", *_SHORT))
_SENTENCE = re.compile(rf".*?(?:[!?]|{_SHORTENED}\.)(?=\s+[A-Z`\"]|$)")
_TYPES = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "double": "float",
    "boolean": "bool",
    "array": "list",
    "null": "None",
    "none": "None",
    "any": "Any",
}


def as_function(spec: PluginSpec) -> str:
    """Return a Python function, valid and short: signature, descriptions as its docstring, examples as a comment.

    Source: TaskWeaver's `PluginSpec.format_prompt`. Differs: required parameters keep their types, a single return
    value keeps its description, defaults are shown.
    """
    about = [
        f"{parameter.name}: {_on_one_line(parameter.description)}"
        for parameter in spec.parameters
        if parameter.description
    ]
    given = [f"returns {one.name}: {_on_one_line(one.description)}" for one in spec.returns if one.description]
    text = "\n    ".join([_on_one_line(spec.description), *about, *given]).replace("\\", "\\\\").replace('"""', "'''")
    closed = f"{text}\n    " if about or given or text.endswith('"') else text
    example = "".join(f"\n    # {line.rstrip()}" for line in spec.examples.strip().splitlines())
    head = f"def {spec.name}({_parameter_list(spec.parameters)}) -> {_result_type(spec.returns)}:"
    return f'{head}\n    """{closed}"""{example}'


def plugin_line(spec: PluginSpec, *, whole: bool) -> str:
    """Return `- name(required: T): first sentence of the description`, or `- name(a: T, b: T = 1) -> T: …`.

    Args:
        spec: The plugin.
        whole: Show optional parameters and the result too.
    """
    if whole:
        head = f"{_parameter_list(spec.parameters)}) -> {_result_type(spec.returns)}"
    else:
        head = (
            ", ".join(
                f"{parameter.name}: {_spell_type(parameter.type)}"
                for parameter in spec.parameters
                if parameter.required
            )
            + ")"
        )
    description = _on_one_line(spec.description)
    sentence = _SENTENCE.match(description)
    return f"- {spec.name}({head}: {sentence[0] if sentence else description}"


def _kinds(parameters: Sequence[Parameter]) -> tuple[inspect._ParameterKind, ...]:
    """Return how a call may give each parameter, as the stub shows it.

    Python has no required parameter behind an optional one, except by keyword, and none by position only behind others.
    """
    found: list[inspect._ParameterKind] = []
    optional_before = False
    for parameter in parameters:
        before = found[-1] if found else inspect.Parameter.POSITIONAL_ONLY
        if parameter.by == "keyword" or before is before.KEYWORD_ONLY or (parameter.required and optional_before):
            found.append(inspect.Parameter.KEYWORD_ONLY)
        elif parameter.by == "position" and before is before.POSITIONAL_ONLY:
            found.append(inspect.Parameter.POSITIONAL_ONLY)
        else:
            found.append(inspect.Parameter.POSITIONAL_OR_KEYWORD)
        optional_before = optional_before or not parameter.required
    return tuple(found)


def signature(parameters: Sequence[Parameter]) -> inspect.Signature:
    """Return the signature as the stub shows it; what stands for a default is None."""
    return inspect.Signature(
        [
            inspect.Parameter(parameter.name, kind, default=inspect.Parameter.empty if parameter.required else None)
            for parameter, kind in zip(parameters, _kinds(parameters), strict=True)
        ]
    )


def _parameter_list(parameters: tuple[Parameter, ...]) -> str:
    parts: list[str] = []
    before: inspect._ParameterKind | None = None
    for parameter, kind in zip(parameters, _kinds(parameters), strict=True):
        if before is kind.POSITIONAL_ONLY and kind is not before:
            parts.append("/")
        if kind is kind.KEYWORD_ONLY and kind is not before:
            parts.append("*")
        before = kind
        default = "" if parameter.required else f" = {_default(parameter)}"
        parts.append(f"{parameter.name}: {_spell_type(parameter.type)}{default}")
    return ", ".join([*parts, "/"] if before is inspect.Parameter.POSITIONAL_ONLY else parts)


def _default(parameter: Parameter) -> str:
    """Spell the default; an unknown one as `...`, which says in a stub that there is one."""
    return "..." if parameter.default is inspect.Parameter.empty else repr(parameter.default)


def _result_type(returns: tuple[Parameter, ...]) -> str:
    types = [_spell_type(one.type) for one in returns]
    return f"tuple[{', '.join(types)}]" if len(types) > 1 else "".join(types) or "None"


@lru_cache(maxsize=1024)
def _spell_type(annotation: str) -> str:
    """Spell a type as Python does; words that are no expression become text, which is a valid annotation too."""
    annotation = _on_one_line(annotation)
    known = _TYPES.get(annotation.lower(), annotation)
    try:
        is_list = isinstance(expression_of(known), ast.Tuple)  # whose commas would separate parameters
    except NO_EXPRESSION:
        return repr(annotation)
    return repr(annotation) if is_list else known


def _on_one_line(text: str) -> str:
    """Return a text on one line: a YAML's line breaks mean nothing to the model."""
    return " ".join(text.split())
