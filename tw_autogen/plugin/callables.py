"""Any Python function as a plugin that runs in this process."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import BaseModel, ValidationError

from tw_autogen.errors import ConfigError
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec

Parameters = Sequence[Parameter] | Mapping[str, str]
"""Parameters, or types by name, such as `{"table": "DataFrame", "rows": "int"}`."""

Returns = Parameters | type[BaseModel] | None


def callable_plugin(
    function: Callable[..., Any],
    *,
    name: str = "",
    description: str = "",
    parameters: Parameters | None = None,
    returns: Returns = None,
    calls: int | None = None,
    seconds: float | None = 120.0,
) -> PluginSpec:
    """Give a function as a plugin that generated code calls; it runs in this process, not in the kernel.

    Args:
        function: What is called, on a thread of this process; an `async` one is run to its end there. JSON values,
            DataFrames and Series cross; what it raises becomes an exception in the cell.
        name: What code calls it; empty: the function's own name.
        description: For the model; empty: the first paragraph of its docstring.
        parameters: What it takes; None: what its signature says.
        returns: What it gives; None: what its signature says. With a pydantic model the result (a dictionary, JSON
            text, or an instance) is checked against it, and code gets a dictionary of JSON values.
        calls: How often code may call it in one round.
        seconds: How long one call may take.

    Raises:
        ConfigError: there is no usable name, nothing to describe it with, or a parameter that code can't pass.

    Example:
        >>> def price(product: str, year: int = 2026) -> float:
        ...     "Look up a list price, in euros."
        ...     return 9.5
        >>> print(callable_plugin(price).stub())
        def price(product: str, year: int = 2026) -> float:
            \"\"\"Look up a list price, in euros.\"\"\"
    """
    name = name or getattr(function, "__name__", "")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ConfigError(f"callable_plugin: {name!r} can't be a function's name in Python; give one with name=")
    description = description or (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ").strip()
    if not description:
        raise ConfigError(f"callable_plugin {name!r}: say in a docstring, or with description=, what it does")
    taken = _given(parameters) if parameters is not None else _taken(function, name)
    called = _run_through(function) if inspect.iscoroutinefunction(function) else function
    if isinstance(returns, type) and issubclass(returns, BaseModel):
        called = _checked(called, name, returns)
        given: tuple[Parameter, ...] = (Parameter("result", "dict", description=fields_of(returns)),)
    else:
        given = _given(returns) if returns is not None else _result(function)
    return PluginSpec(
        name, description, taken, given, runs_in="host", connect=lambda context: called, calls=calls, seconds=seconds
    )


def as_model(value: Any, kind: type[BaseModel]) -> BaseModel:
    """Read a value as a pydantic model: a dictionary, JSON text, or an instance.

    Raises:
        ValueError: it doesn't fit; says field by field what is wrong.
    """
    try:
        if isinstance(value, str | bytes):
            return kind.model_validate_json(value)
        return kind.model_validate(value)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'value'}: {one['msg']}" for one in error.errors())
        raise ValueError(f"the result is no {kind.__name__}: {wrong}") from error


def fields_of(kind: type[BaseModel]) -> str:
    """Give a model's fields in words: `{'price': float, 'currency': str}`."""
    hints = get_type_hints(kind)
    return "{" + ", ".join(f"{name!r}: {_spelled(hints[name])}" for name in kind.model_fields) + "}"


def _given(parameters: Any) -> tuple[Parameter, ...]:
    if isinstance(parameters, Mapping):
        return tuple(Parameter(name, kind, required=True) for name, kind in parameters.items())
    return tuple(parameters)


def _taken(function: Callable[..., Any], name: str) -> tuple[Parameter, ...]:
    found = []
    for one in _signature(function, name).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise ConfigError(f"callable_plugin {name!r}: `*{one.name}` says nothing to a model; give parameters=")
        default = NO_DEFAULT if one.default is one.empty else one.default
        found.append(Parameter(one.name, _spelled(one.annotation), required=one.default is one.empty, default=default))
    return tuple(found)


def _result(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    kind = _signature(function, "").return_annotation
    if kind in (None, "None", type(None)):
        return ()
    return (Parameter("result", _spelled(kind)),)


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise ConfigError(
            f"callable_plugin {name!r}: its signature can't be read; give parameters= and returns="
        ) from None


def _spelled(annotation: Any) -> str:
    """Spell an annotation as Python does, without the modules' names."""
    if annotation is inspect.Signature.empty:
        return "Any"
    if isinstance(annotation, str):
        return annotation
    plain = inspect.formatannotation(annotation)
    return plain.rpartition(".")[2] if "[" not in plain else plain.replace("typing.", "")


def _run_through(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(function(*args, **kwargs))

    return call


def _checked(function: Callable[..., Any], name: str, kind: type[BaseModel]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return json.loads(as_model(function(*args, **kwargs), kind).model_dump_json())

    return call
