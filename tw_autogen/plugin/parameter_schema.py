"""A plugin's parameters as a JSON schema, and arguments checked against it: for callers that are no code."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Union

from tw_autogen.lazy_module import LazyModule
from tw_autogen.plugin.annotation import NO_EXPRESSION
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec
from tw_autogen.plugin.typed_values import problems_of
from tw_autogen.python_source import expression_of

if TYPE_CHECKING:
    import pydantic
else:
    pydantic = LazyModule("pydantic")

_TABLE = re.compile(r"\b(DataFrame|Series)\b")
_NONE = re.compile(r"^\s*(any\s*)?$|\b(None|Optional)\b", re.IGNORECASE)
"""Types of which None is a value."""
_TABLE_NOTE = "the name of a CSV, Parquet or JSON file in the working folder that holds the table"
_NAMES: Mapping[str, Any] = {
    "str": str, "string": str, "text": str, "int": int, "integer": int, "float": float, "number": float,
    "double": float, "bool": bool, "boolean": bool, "list": list, "List": list, "array": list, "Sequence": list,
    "dict": dict, "Dict": dict, "object": Any, "Mapping": dict, "tuple": list, "Tuple": list, "set": list,
    "None": None, "DataFrame": str, "Series": str, "date": str, "datetime": str, "Timestamp": str, "Path": str,
}  # fmt: skip


def is_table(parameter: Parameter) -> bool:
    """Return whether an argument is a table, which a caller that is no code can give by a file's name only."""
    return bool(_TABLE.search(parameter.type))


def json_schema(spec: PluginSpec) -> dict[str, Any]:
    """Return the JSON schema of an object that holds a plugin's arguments.

    Types are read as Python spells them, and TaskWeaver's words for them; where a type is not known, any value will
    do and its words stand in the description. A table is given by the name of a file in the working folder.

    Example:
        >>> spec = PluginSpec("f", "Do.", (Parameter("n", "int", required=True), Parameter("t", "str", default="x")))
        >>> json_schema(spec)["properties"]
        {'n': {'type': 'integer'}, 't': {'default': 'x', 'type': 'string'}}
    """
    schema = _arguments_model(spec).model_json_schema()
    plain: dict[str, Any] = {key: value for key, value in schema.items() if key != "title"}
    for one in plain.setdefault("properties", {}).values():
        one.pop("title", None)
    for parameter in spec.parameters:
        if not parameter.required and parameter.default is NO_DEFAULT:
            plain["properties"][parameter.name].pop("default", None)
    return plain


def check_arguments(spec: PluginSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, each of the type that the spec says; what was not given is left out.

    Args:
        spec: The plugin that is called.
        given: The arguments by name; JSON values. A null for an optional one that can't be None counts as not given.

    Raises:
        ValueError: one is missing, unknown or of a wrong type; in words for whoever called.
    """
    optional = [parameter for parameter in spec.parameters if not parameter.required and parameter.default is not None]
    never_null = {one.name for one in optional if not _NONE.search(one.type)}
    wanted = {name: value for name, value in given.items() if value is not None or name not in never_null}
    try:
        model = _arguments_model(spec).model_validate(wanted)
    except pydantic.ValidationError as error:
        wrong = problems_of(error, "arguments")
        names = ", ".join(parameter.name for parameter in spec.parameters) or "none"
        raise ValueError(f"{spec.name}: {wrong}. Its arguments: {names}") from error
    fields = ((f"f{index}", parameter.name) for index, parameter in enumerate(spec.parameters))
    return {name: getattr(model, field) for field, name in fields if field in model.model_fields_set}


def _arguments_model(spec: PluginSpec) -> type[pydantic.BaseModel]:
    fields: dict[str, Any] = {}
    for index, parameter in enumerate(
        spec.parameters
    ):  # pydantic has a use for some names, `_limit` and `model_config`
        kind, known = _parse_type(parameter.type)
        notes = [
            parameter.description,
            "" if known else f"type: {parameter.type}",
            _TABLE_NOTE if is_table(parameter) else "",
        ]
        about = "; ".join(note for note in notes if note) or None
        if parameter.required:
            fields[f"f{index}"] = (kind, pydantic.Field(alias=parameter.name, description=about))
        else:
            default = None if parameter.default is NO_DEFAULT else parameter.default
            maybe = kind if default is not None else Union[kind, None]  # noqa: UP007 - made from values
            fields[f"f{index}"] = (maybe, pydantic.Field(default, alias=parameter.name, description=about))
    return pydantic.create_model(f"{spec.name}_arguments", __config__=pydantic.ConfigDict(extra="forbid"), **fields)


def _parse_type(annotation: str) -> tuple[Any, bool]:
    """Return the type that words spell, and whether all of them were understood."""
    try:
        kind = _type_of_node(expression_of(" ".join(annotation.split())))
    except (*NO_EXPRESSION, LookupError, TypeError):
        return Any, annotation.strip().lower() in ("any", "")
    return kind, True


def _type_of_node(node: ast.expr) -> Any:
    """Return the type that an expression spells; only names that are known, nothing is evaluated.

    Raises:
        LookupError: a name or form is not known.
    """
    if isinstance(node, ast.Name):
        return _NAMES[node.id]
    if isinstance(node, ast.Attribute):
        return _NAMES[node.attr]
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return Union[_type_of_node(node.left), _type_of_node(node.right)]  # noqa: UP007 - made from values
    if isinstance(node, ast.Subscript):
        base = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if base == "Literal":
            return Literal[tuple(ast.literal_eval(one) for one in inner)]
        kinds = [_type_of_node(one) for one in inner if not (isinstance(one, ast.Constant) and one.value is ...)]
        if base == "Optional":
            return Union[kinds[0], None]  # noqa: UP007 - made from values
        if base == "Union":
            return Union[tuple(kinds)]  # noqa: UP007 - made from values
        container = _NAMES[base]
        if container is dict:
            return types.GenericAlias(dict, (str, kinds[-1]))
        return types.GenericAlias(list, (kinds[0],)) if len(set(kinds)) == 1 else list
    raise LookupError(ast.dump(node))
