"""Arguments that generated code passes to functions of this process: what their authors may rely on."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any

from tw_autogen.plugin.spec import Parameter

_TEXT = frozenset({"str", "string", "None", "Optional", "Union"})


def without_paths(
    parameters: Sequence[Parameter], args: Iterable[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return a call's arguments with texts for paths, also in lists and dictionaries: code chose where they lead.

    Args:
        parameters: What the function takes; one whose type names `Path` gets it as it is.
        args: Those by position.
        kwargs: Those by name.
    """
    by_name = {one.name: one for one in parameters}
    places = dict(enumerate(parameters))
    given = [value if _takes_path(places.get(at)) else _path_texts(value) for at, value in enumerate(args)]
    named = {name: one if _takes_path(by_name.get(name)) else _path_texts(one) for name, one in kwargs.items()}
    return given, named


def with_checked_texts(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """Return a function whose parameters of type `str` get no table and no array, whose text code would choose.

    Args:
        function: Raises a TypeError then, which names the parameter.
        parameters: What it takes.
    """
    texts = {one.name for one in parameters if _TEXT.issuperset(_names_in(one)) and "str" in one.type}
    if not texts:
        return function
    places = dict(enumerate(parameters))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in [*((places[at].name, one) for at, one in enumerate(args) if at in places), *kwargs.items()]:
            if name in texts and hasattr(value, "shape"):
                raise TypeError(f"{name}: expected str, got {type(value).__name__}")
        return function(*args, **kwargs)

    return call


def only_listed(function: Callable[..., Any], parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """Return a function that takes no more than some of its parameters.

    Args:
        function: Raises a TypeError for any other.
        parameters: Those that a call may give.
    """
    names = [one.name for one in parameters]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names) or not kwargs.keys() <= set(names):
            raise TypeError(f"it takes {', '.join(names) or 'nothing'}, and nothing else")
        return function(*args, **kwargs)

    return call


def _names_in(parameter: Parameter) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", parameter.type))


def _takes_path(parameter: Parameter | None) -> bool:
    return parameter is not None and any(name.endswith("Path") or name == "PathLike" for name in _names_in(parameter))


def _path_texts(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(_path_texts, value))
    if type(value) is dict:
        return {_path_texts(key): _path_texts(one) for key, one in value.items()}
    return value
