"""Annotations as a model sees them: types without the modules' names, and the words that stand beside them."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Annotated, Any, get_args, get_origin

_MODULES = re.compile(r"(?P<text>'[^']*'|\"[^\"]*\")|(?<![\w>])(?:[A-Za-z_<][\w>]*\.)+(?=\w)")
NO_EXPRESSION = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python's parser raises for words that are no expression, among them half a surrogate pair and deep nesting."""


def short_type(words: str) -> str:
    """Return a type without the modules' names.

    Example:
        >>> short_type("dict[str, pd.DataFrame] | Literal['a.b']")
        "dict[str, DataFrame] | Literal['a.b']"
    """
    return _MODULES.sub(lambda found: found["text"] or "", words)


def spelled(annotation: Any) -> str:
    """Spell an annotation as Python does, without the modules' names; `Any` for none."""
    if annotation is inspect.Signature.empty:
        return "Any"
    if isinstance(annotation, str):
        return annotation
    return short_type(inspect.formatannotation(annotation))


def type_and_words(annotation: Any) -> tuple[str, str]:
    """Return a type as Python spells it, and the words of `Annotated[type, "words"]`.

    Args:
        annotation: As `inspect.signature` gives it: a type, or the text of one.

    Example:
        >>> type_and_words(Annotated[list[int], "whole numbers"])
        ('list[int]', 'whole numbers')
    """
    if isinstance(annotation, str):
        try:
            return read_annotation(ast.parse(annotation.strip(), mode="eval").body)
        except NO_EXPRESSION:
            return annotation, ""
    if get_origin(annotation) is Annotated:
        kind, *more = get_args(annotation)
        return spelled(kind), "; ".join(one for one in more if isinstance(one, str))
    return spelled(annotation), ""


def read_annotation(node: ast.expr | None) -> tuple[str, str]:
    """Return the same of an annotation that was parsed; None is none."""
    if node is None:
        return "Any", ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return type_and_words(node.value)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] == "Annotated":
        kind, *more = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        words = [one.value for one in more if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        return read_annotation(kind)[0], "; ".join(words)
    return short_type(ast.unparse(node)), ""
