"""Functions that take or return pydantic models, dataclasses and enums: code hands over, and gets, their JSON form."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from tw_autogen.lazy_module import LazyModule
from tw_autogen.plugin.schema_types import Schema
from tw_autogen.plugin.spec import Parameter

if TYPE_CHECKING:
    import pydantic
    import pydantic_core
else:
    pydantic = LazyModule("pydantic")
    pydantic_core = LazyModule("pydantic_core")

RESULT = "return"
"""The result's place among types by name."""


def structured_types(function: Callable[..., Any]) -> dict[str, pydantic.TypeAdapter[Any]]:
    """Return what reads and writes the values that have a class of their own, by parameter, and the result's.

    Args:
        function: Annotations that can't be resolved, and classes of which pydantic makes nothing, are passed over.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return {}
    hints = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
    hints[RESULT] = signature.return_annotation
    if any(isinstance(one, str) for one in hints.values()):
        resolved = _resolved_hints(function)
        hints = {name: resolved.get(name) if isinstance(one, str) else one for name, one in hints.items()}
    found = dict[str, pydantic.TypeAdapter[Any]]()
    for name, hint in hints.items():
        if _is_structured(hint):
            try:
                adapter = found[name] = pydantic.TypeAdapter(hint)
                _ = adapter.validator.title  # raises for a class that is not complete
            except (pydantic.PydanticSchemaGenerationError, pydantic.PydanticUserError):
                found.pop(name, None)
    return found


def in_json_form(parameter: Parameter, adapter: pydantic.TypeAdapter[Any], *, result: bool = False) -> Parameter:
    """Return a parameter, or a result, as it is written in JSON: with the keys of a model, the values of an enum.

    Args:
        parameter: As the signature has it.
        adapter: Of its type.
        result: It is returned, and not given.
    """
    try:
        plain = adapter.json_schema(mode="serialization" if result else "validation")
    except pydantic.errors.PydanticInvalidForJsonSchema:
        return parameter
    schema = Schema(plain)
    descriptions = (parameter.description, schema.shape() or schema.about())
    return replace(parameter, type=schema.type(), description=" ".join(filter(None, descriptions)))


def with_json_values(
    function: Callable[..., Any], adapters: Mapping[str, pydantic.TypeAdapter[Any]]
) -> Callable[..., Any]:
    """Return a function that takes the JSON form of structured values, and returns that of its result.

    Args:
        function: Raises a ValueError for an argument that does not fit its type, which says why field by field, and a
            TypeError for one that its signature does not have.
        adapters: As `structured_types` gives them.
    """
    signature = inspect.signature(function) if adapters.keys() - {RESULT} else None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if signature is not None:
            bound = signature.bind(*args, **kwargs)
            for name in bound.arguments.keys() & adapters.keys():
                bound.arguments[name] = _read(name, adapters[name], bound.arguments[name])
            args, kwargs = bound.args, bound.kwargs
        return json_form(function(*args, **kwargs))

    return call


def json_form(value: Any) -> Any:
    """Return a model, a dataclass or an enum's member as JSON has it, also in lists and dictionaries; others as is."""
    if type(value) in (list, tuple):
        return type(value)(map(json_form, value))
    if type(value) is dict:
        return {key: json_form(one) for key, one in value.items()}
    if isinstance(value, enum.Enum | pydantic.BaseModel) or dataclasses.is_dataclass(type(value)):
        try:
            return pydantic_core.to_jsonable_python(value)
        except pydantic_core.PydanticSerializationError:  # a table or a number of numpy in it, which cross as they are
            return (
                value.value
                if isinstance(value, enum.Enum)
                else {key: json_form(one) for key, one in _field_values(value)}
            )
    return value


def _field_values(value: Any) -> Iterable[tuple[str, Any]]:
    """Return names and values of a model's, or a dataclass's, fields."""
    if isinstance(value, pydantic.BaseModel):
        return value
    return ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))


def problems_of(error: pydantic.ValidationError, otherwise: str) -> str:
    """Return in words what does not fit, field by field.

    Args:
        error: What pydantic raised.
        otherwise: What stands for the value as a whole.
    """
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or otherwise}: {one['msg']}" for one in error.errors())


def _resolved_hints(function: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return get_type_hints(function if inspect.isroutine(function) else type(function).__call__, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}


def _read(name: str, adapter: pydantic.TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        raise ValueError(f"{name}: {problems_of(error, 'value')}") from error


def _is_structured(hint: Any) -> bool:
    """Return whether a model, a dataclass or an enum is part of a type."""
    if isinstance(hint, type) and not get_args(hint):
        plain = hint.__module__ in ("builtins", "typing")
        return not plain and (issubclass(hint, enum.Enum | pydantic.BaseModel) or dataclasses.is_dataclass(hint))
    return any(map(_is_structured, get_args(hint)))
