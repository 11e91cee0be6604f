"""Annotations as a model sees them: types without the modules' names, and the words that stand beside them."""

from __future__ import annotations

import ast
import inspect
import re
from functools import lru_cache
from typing import Annotated, Any, get_args, get_origin

from tw_autogen.python_source import expression_of

_MODULES = re.compile(r"(?P<text>'[^']*'|\"[^\"]*\")|(?<![\w>])(?:[A-Za-z_<][\w>]*\.)+(?=\w)")
NO_EXPRESSION = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python's parser raises for words that are no expression, among them half a surrogate pair and deep nesting."""


def short_type(annotation: str) -> str:
    """Return a type without the modules' names.

    Example:
        >>> short_type("dict[str, pd.DataFrame] | Literal['a.b']")
        "dict[str, DataFrame] | Literal['a.b']"
    """
    return _MODULES.sub(lambda match: match["text"] or "", annotation)


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
        return _read_text(annotation)
    if get_origin(annotation) is Annotated:
        kind, *more = get_args(annotation)
        return spelled(kind), "; ".join(one for one in more if isinstance(one, str))
    return spelled(annotation), ""


def unparsed(node: ast.expr) -> str:
    """Return what `ast.unparse` does; of a plain or dotted name in a tenth of the time."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ast.unparse(node)


@lru_cache(maxsize=1024)  # many functions have the same
def _read_text(annotation: str) -> tuple[str, str]:
    try:
        return _read_node(expression_of(annotation.strip()))
    except NO_EXPRESSION:
        return annotation, ""


def _read_node(node: ast.expr) -> tuple[str, str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return type_and_words(node.value)
    if isinstance(node, ast.Subscript) and unparsed(node.value).rpartition(".")[2] == "Annotated":
        kind, *more = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        texts = [one.value for one in more if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        return _read_node(kind)[0], "; ".join(texts)
    return short_type(unparsed(node)), ""
