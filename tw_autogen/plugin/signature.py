"""Signatures as a model sees them: parameters with their types, without the modules' names, and their descriptions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from tw_autogen.plugin.annotation import type_and_words, unparsed
from tw_autogen.plugin.docstring import Doc
from tw_autogen.plugin.source import Function
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter
from tw_autogen.python_source import expression_of

_BY: Mapping[Any, Any] = {inspect.Parameter.POSITIONAL_ONLY: "position", inspect.Parameter.KEYWORD_ONLY: "keyword"}
_SHORT_NUMBER = 1 << 63  # a number of thousands of digits can't be written down


def signature_in(function: Function, *, bound: bool = False) -> inspect.Signature:
    """Return the signature of a function that was parsed, not run.

    Args:
        function: Its syntax tree.
        bound: It is a method, and its first parameter is left out.

    Returns:
        Annotations are texts; a default that is no literal is a node of the syntax tree.
    """
    given, kinds = function.args, inspect.Parameter
    positional = [*given.posonlyargs, *given.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults))
    parameters = [
        _parameter(one, kinds.POSITIONAL_ONLY if one in given.posonlyargs else kinds.POSITIONAL_OR_KEYWORD, default)
        for one, default in zip(positional, [*missing, *given.defaults], strict=True)
    ][int(bound) :]
    if given.vararg:
        parameters.append(_parameter(given.vararg, kinds.VAR_POSITIONAL, None))
    for kwonlyarg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        parameters.append(_parameter(kwonlyarg, kinds.KEYWORD_ONLY, default))
    if given.kwarg:
        parameters.append(_parameter(given.kwarg, kinds.VAR_KEYWORD, None))
    return inspect.Signature(parameters, return_annotation=_annotation_text(function.returns))


def parameters_of(signature: inspect.Signature, doc: Doc) -> tuple[Parameter, ...]:
    """Return a signature's parameters, in order.

    Args:
        signature: Of an object, or as `signature_in` reads it.
        doc: The function's docstring; describes them.

    Raises:
        ValueError: it has `*args` or `**kwargs`.
    """
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(
                f"`{'**' if parameter.kind is parameter.VAR_KEYWORD else '*'}{parameter.name}` says nothing to a model"
            )
        kind, description = type_and_words(parameter.annotation)
        description = doc.parameters.get(parameter.name) or description
        by = _BY.get(parameter.kind, "")
        found.append(
            Parameter(
                parameter.name,
                kind,
                parameter.default is parameter.empty,
                description,
                shown_default(parameter.default),
                by,
            )
        )
    return tuple(found)


def result_of(signature: inspect.Signature, doc: Doc) -> tuple[Parameter, ...]:
    """Return what a function returns as one value `result`; nothing if it is annotated with None.

    Args:
        signature: Of an object, or as `signature_in` reads it.
        doc: The function's docstring; describes it.
    """
    kind, description = type_and_words(signature.return_annotation)
    return () if kind == "None" else (Parameter("result", kind, description=doc.returns or description),)


def shown_default(default: Any) -> Any:
    """Return a default that can be written down; of others, such as objects, a model sees only that there is one."""
    if type(default) in (str, bool, type(None)) or (type(default) is int and abs(default) < _SHORT_NUMBER):
        return default
    try:
        ast.literal_eval(expression_of(repr(default)))
    except Exception:  # noqa: BLE001 - a `repr` of anybody's, which need be no Python either
        return NO_DEFAULT
    return default


def _parameter(one: ast.arg, kind: Any, default: ast.expr | None) -> inspect.Parameter:
    return inspect.Parameter(
        one.arg, kind, default=_default_value(default), annotation=_annotation_text(one.annotation)
    )


def _default_value(default: ast.expr | None) -> Any:
    if default is None:
        return inspect.Parameter.empty
    try:
        return default.value if isinstance(default, ast.Constant) else ast.literal_eval(default)
    except (TypeError, ValueError):
        return default


def _annotation_text(annotation: ast.expr | None) -> Any:
    return inspect.Parameter.empty if annotation is None else unparsed(annotation)
