"""Arguments that generated code passes to functions of this process: what their authors may rely on."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import Any

from tw_autogen.plugin.spec import Parameter
from tw_autogen.text_truncation import shortened

_TEXT = frozenset({"str", "string", "None", "Optional", "Union"})
_NO_TEXT = re.compile(r"(?:int|float|complex|bool|list|tuple|set|frozenset|dict)(?:\[[^|]*\])?(?: ?\| ?None)?")
"""A type, as it is spelled, that no text fits."""
_SHOWN_CHARS = 40


def with_path_texts(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """Return a function that gets texts for paths, also in lists and dictionaries: code chose where they lead.

    Args:
        function: Any.
        parameters: What it takes; one whose type names `Path` gets it as it is.
    """
    names = [parameter.name for parameter in parameters]
    paths = {
        parameter.name
        for parameter in parameters
        if any(word.endswith(("Path", "PathLike")) for word in _words_in(parameter))
    }

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [one if name in paths else _path_texts(one) for name, one in zip_longest(names[: len(args)], args)]
        return function(*given, **{name: one if name in paths else _path_texts(one) for name, one in kwargs.items()})

    return call


def with_checked_texts(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """Return a function that gets no text for a number or a list, and no table or array for a text.

    A text that was read from a file would pass for a number: `2 * "12"` is "1212". Code would choose that of a table.

    Args:
        function: Raises a TypeError then, which names the parameter.
        parameters: What it takes.
    """
    names = [parameter.name for parameter in parameters]
    texts = {
        parameter.name for parameter in parameters if _TEXT.issuperset(_words_in(parameter)) and "str" in parameter.type
    }
    no_texts = {
        parameter.name: parameter.type for parameter in parameters if _NO_TEXT.fullmatch(parameter.type.strip())
    }
    if not texts and not no_texts:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            if name in texts and hasattr(value, "shape"):
                raise TypeError(f"{name}: expected str, got {type(value).__name__}")
            if name in no_texts and isinstance(value, str):
                raise TypeError(f"{name}: expected {no_texts[name]}, got str: {shortened(value, _SHOWN_CHARS)!r}")
        return function(*args, **kwargs)

    return call


def only_listed(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """Return a function that takes no more than some of its parameters.

    Args:
        function: Raises a TypeError for any other.
        parameters: Those that a call may give.
    """
    names = [parameter.name for parameter in parameters]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names) or not kwargs.keys() <= set(names):
            raise TypeError(f"it takes {', '.join(names) or 'nothing'}, and nothing else")
        return function(*args, **kwargs)

    return call


def _words_in(parameter: Parameter) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", parameter.type))


def _path_texts(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(_path_texts, value))
    if type(value) is dict:
        return {_path_texts(key): _path_texts(one) for key, one in value.items()}
    return value
