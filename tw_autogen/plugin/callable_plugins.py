"""Any Python function as a plugin that runs in this process."""

from __future__ import annotations

import ast
import functools
import inspect
import keyword
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

from tw_autogen.errors import ConfigError
from tw_autogen.kernel.guest import plugin_options
from tw_autogen.lazy_module import LazyModule
from tw_autogen.plugin.annotation import NO_EXPRESSION, spelled
from tw_autogen.plugin.docstring import read_doc
from tw_autogen.plugin.host_arguments import only_listed, with_checked_texts
from tw_autogen.plugin.signature import parameters_of, result_of
from tw_autogen.plugin.spec import Parameter, PluginSpec, limit_problem
from tw_autogen.plugin.typed_values import RESULT, in_json_form, problems_of, structured_types, with_json_values
from tw_autogen.python_source import expression_of
from tw_autogen.variable_names import name_problem

if TYPE_CHECKING:
    import asyncio

    import pydantic
else:
    asyncio = LazyModule("asyncio")
    pydantic = LazyModule("pydantic")

Parameters = Sequence[Parameter] | Mapping[str, Any]
"""Parameters; or, by name, a type (`int`, `"list[str]"`) or words that describe it (`"how many rows"`)."""

Returns: TypeAlias = "Parameters | type[pydantic.BaseModel] | None"


def callable_plugin(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Parameters | None = None,
    returns: Returns = None,
    calls: int | None = None,
    seconds: float | None = 120.0,
) -> PluginSpec:
    """Return a function as a plugin that generated code calls; it runs in this process, not in the kernel.

    Args:
        function: What is called, on a thread of this process; an `async` one is run to its end there. JSON values,
            DataFrames and Series cross; pydantic models, dataclasses and enums that its annotations name cross in
            their JSON form, as the model is told, and are checked. What it raises becomes an exception in the cell.
        name: What code calls it; None: the function's own name.
        description: For the model; None: the first paragraph of its docstring.
        parameters: What it takes; None: what its signature and docstring say.
        returns: What it gives; None: what its signature and docstring say. With a pydantic model the result (a
            dictionary, JSON text, or an instance) is checked against it, and code gets a dictionary of JSON values.
        calls: How often code may call it in one round; None: as often as all host calls together.
        seconds: How long one call may take; None: as long as the round's host calls together.

    Raises:
        ConfigError: there is no usable name, nothing to describe it with, a parameter that code can't pass or that the
            function doesn't have, or a limit that allows nothing.

    Example:
        >>> def price(product: str, year: int = 2026) -> float:
        ...     "Look up a list price, in euros."
        ...     return 9.5
        >>> print(callable_plugin(price).stub())
        def price(product: str, year: int = 2026) -> float:
            \"\"\"Look up a list price, in euros.\"\"\"
    """
    plain = _unwrap_partial(function)
    name = name or str(getattr(plain, "__name__", ""))
    if problem := name_problem(name):
        raise ConfigError(f"callable_plugin: {name!r} can't be a function's name: {problem}; give one with name=")
    doc = read_doc(inspect.getdoc(plain))
    description = description or doc.description
    if not description:
        raise ConfigError(f"callable_plugin {name!r}: say in a docstring, or with description=, what it does")
    if problem := limit_problem(calls, seconds):
        raise ConfigError(f"callable_plugin {name!r}: {problem}; None stands for no limit")
    types = structured_types(function)
    if parameters is None:
        try:
            taken = parameters_of(_signature(function, name), doc)
        except ValueError as error:
            raise ConfigError(f"callable_plugin {name!r}: {error}; give parameters=") from None
        taken = tuple(in_json_form(one, types[one.name]) if one.name in types else one for one in taken)
    else:
        taken = _as_parameters(parameters)
        _check_given(function, name, taken)
    plain_ones = [one for one in taken if one.name not in types]
    called = with_checked_texts(with_json_values(as_sync(function), types), plain_ones)
    if parameters is not None:
        called = only_listed(called, taken)
    if isinstance(returns, type) and issubclass(returns, pydantic.BaseModel):
        called = _with_checked_result(called, returns)
        given: tuple[Parameter, ...] = (Parameter("result", "dict", description=fields_of(returns)),)
    elif returns is not None:
        given = _as_parameters(returns)
    else:
        given = result_of(_signature(function, name), doc)
        given = tuple(in_json_form(one, types[RESULT], result=True) if RESULT in types else one for one in given)
    return PluginSpec(
        name,
        description,
        taken,
        given,
        examples=doc.examples if parameters is None else "",
        runs_in="host",
        connect=lambda context: called,
        calls=calls,
        seconds=seconds,
    )


def function_plugin(function: Callable[..., Any]) -> PluginSpec:
    """Return a function that was handed over as an object as a plugin, with the options of its `@plugin`, if any.

    It runs in this process, whatever `runs_in` says: an object can't be sent to a kernel.

    Raises:
        ConfigError: as `callable_plugin`.
    """
    options = dict(plugin_options(_unwrap_partial(function)) or {})
    seconds = options["seconds"] if options else 120.0
    spec = callable_plugin(function, calls=options.get("calls"), seconds=seconds)
    kept = {key: options[key] for key in ("examples", "required", "plugin_only") if options.get(key)}
    return replace(spec, **kept)


def as_model(value: Any, kind: type[pydantic.BaseModel]) -> pydantic.BaseModel:
    """Read a value as a pydantic model: a dictionary, JSON text, or an instance.

    Args:
        value: What a function returned.
        kind: The model.

    Raises:
        ValueError: it doesn't fit; says field by field what is wrong.
    """
    try:
        if isinstance(value, str | bytes):
            return kind.model_validate_json(value)
        return kind.model_validate(value)
    except pydantic.ValidationError as error:
        raise ValueError(f"the result is no {kind.__name__}: {problems_of(error, 'value')}") from error


def fields_of(kind: type[pydantic.BaseModel]) -> str:
    """Return a model's fields in words: `{'price': float, 'currency': str}`."""
    hints = get_type_hints(kind)
    return "{" + ", ".join(f"{name!r}: {spelled(hints[name])}" for name in kind.model_fields) + "}"


def _unwrap_partial(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what has name and docstring: not a `functools.partial`, whose own docstring tells of `partial`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _as_parameters(parameters: Any) -> tuple[Parameter, ...]:
    if isinstance(parameters, Mapping):
        return tuple(_parse_parameter(name, words) for name, words in parameters.items())
    return tuple(parameters)


def _parse_parameter(name: str, description: Any) -> Parameter:
    """Read what stands behind a parameter's name: a type, or a text that spells one, or else describes it."""
    if not isinstance(description, str):
        return Parameter(name, spelled(description), required=True)
    try:
        nodes = list(ast.walk(expression_of(description.strip())))
    except NO_EXPRESSION:
        return Parameter(name, required=True, description=description)
    forms = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.BitOr, ast.Tuple, ast.List, ast.Constant, ast.Load)
    if all(isinstance(node, forms) for node in nodes):
        return Parameter(name, description.strip(), required=True)
    return Parameter(name, required=True, description=description)


def _check_given(function: Callable[..., Any], name: str, parameters: tuple[Parameter, ...]) -> None:
    """Check that a call with these parameters by name would reach the function; one that can't be read is believed."""
    names = [parameter.name for parameter in parameters]
    for one in names:
        if not one.isidentifier() or keyword.iskeyword(one) or names.count(one) > 1:
            raise ConfigError(f"callable_plugin {name!r}: {one!r} can't be a parameter's name, or stands there twice")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        return
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        raise ConfigError(
            f"callable_plugin {name!r}: parameters= lists {', '.join(names) or 'none'}, but the function takes "
            f"{signature}: {error}"
        ) from None


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise ConfigError(
            f"callable_plugin {name!r}: its signature can't be read; give parameters= and returns="
        ) from None


def as_sync(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that also awaits what an `async` one, or what hides one, gives."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return asyncio.run(_await_result(result)) if inspect.isawaitable(result) else result

    return call


async def _await_result(result: Awaitable[Any]) -> Any:
    return await result


def _with_checked_result(function: Callable[..., Any], kind: type[pydantic.BaseModel]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return as_model(function(*args, **kwargs), kind).model_dump(mode="json")

    return call
