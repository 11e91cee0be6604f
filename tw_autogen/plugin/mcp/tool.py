"""One tool of an MCP server as a plugin: its stub from the JSON schema, its call with the server's own names."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tw_autogen.bounded_json import DEEPEST, ValueBudget, too_deep
from tw_autogen.kernel.guest import PluginContext
from tw_autogen.lazy_module import LazyModule
from tw_autogen.plugin.mcp.call_gate import Gate, SentCalls
from tw_autogen.plugin.mcp.python_names import Names, identifier
from tw_autogen.plugin.mcp.tool_results import read_result
from tw_autogen.plugin.schema_types import Schema
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec
from tw_autogen.text_truncation import shortened

if TYPE_CHECKING:
    import pydantic_core
else:
    pydantic_core = LazyModule("pydantic_core")  # only few values need it

Tell = Callable[[str], None]
Call = Callable[[Mapping[str, Any], Tell], Mapping[str, Any]]
"""Called with a tool's arguments, and with whom to tell what happened on the way; gives `CallToolResult` as JSON."""

_ABOUT_CHARS = 300
_DESCRIPTION_CHARS = 1200
_MAX_PARTS = 40


def tool_spec(tool: Mapping[str, Any], *, server: str, name: str, call: Call, seconds: float, gate: Gate) -> PluginSpec:
    """Return a tool as a plugin that runs in the host.

    Args:
        tool: As `tools/list` gives it: `name`, `description`, `inputSchema`, `outputSchema`.
        server: The server's name.
        name: What code calls it.
        call: Calls it.
        seconds: How long one call may take, with a restart of its server.
        gate: Decides whether a call is made.
    """
    takes = Schema(tool.get("inputSchema") or {})
    names = _parameter_names(takes)
    needed = takes.required()
    parameters = tuple(
        _parameter_of_schema(each, own, names[own], own in needed)
        for own, each in takes.properties_of_any_variant().items()
    )
    gives = Schema(tool.get("outputSchema") or {})
    wrapped = set(gives.fields()) == {"result"}
    if wrapped:
        gives = gives.fields()["result"]
    typed = bool(tool.get("outputSchema"))
    about = str(tool.get("description") or tool.get("title") or "").strip()
    parts = [shortened(about or f"The tool {tool['name']}.", _DESCRIPTION_CHARS)]
    if name != tool["name"]:
        parts[0] += "" if parts[0].endswith((".", "!", "?", "…")) else "."
        parts.append(f"The MCP server {server} calls it {shortened(repr(tool['name']), _ABOUT_CHARS)}.")
    if takes.takes_more:
        parts.append("It takes other keyword arguments, too.")
    result = Parameter("result", gives.type(), description=shortened(gives.about(), _ABOUT_CHARS))
    text = Parameter("text", "str", description="the tool's words; pictures and files are saved, and named in it")
    spec = PluginSpec(
        name,
        " ".join(parts),
        tuple(sorted(parameters, key=lambda parameter: not parameter.required)),
        (result if typed else text,),
        plugin_only=True,
        seconds=seconds,
    )
    own = {ours: theirs for theirs, ours in names.items()}
    return replace(spec, connect=lambda context: _Tool(spec, own, takes.takes_more, call, context, wrapped, gate))


def jsonable(value: Any, budget: ValueBudget | None = None) -> Any:
    """Return a value that JSON has: a table as a list of rows, a time as ISO text, what is missing as None.

    A Series is a list of its values, or of rows if its index has labels.

    Args:
        value: Any.
        budget: What this value and others may hold together; None: this one alone.

    Raises:
        TypeError: there is no such form of it, or it is too large.
    """
    budget = budget or ValueBudget()
    if isinstance(value, str):
        return budget.take_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {budget.take_text(str(key)): jsonable(one, budget) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(one, budget) for one in value]
    kind = type(value).__name__
    if kind in ("DataFrame", "Series", "ndarray"):
        budget.take_table(value)
        return jsonable(_as_lists(value, kind), budget)
    if kind in ("NAType", "NaTType") or str(value) == "NaT":
        return None
    if isinstance(value, decimal.Decimal):
        return jsonable(float(value))
    if kind in ("Period", "Interval", "UUID", "datetime64", "timedelta64"):
        return str(value)
    if isinstance(value, datetime.timedelta):
        return pydantic_core.to_jsonable_python(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    raise TypeError(f"a value of type {kind} has no form in JSON; pass text, numbers, lists, dictionaries or tables")


def _as_lists(value: Any, kind: str) -> list[Any]:
    """Return a table as a list of rows, an array as lists."""
    if kind == "DataFrame" or (kind == "Series" and not _has_numbers_only(value.index)):
        return _as_rows(value)
    found: list[Any] = value.tolist()
    return found


def _as_rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame, with its index where that has a name, or holds more than numbers of rows.

    The values of a Series are called as it is, or `value`.
    """
    if hasattr(table, "to_frame"):
        named = table.name is not None and table.name not in table.index.names
        table = table.to_frame(table.name if named else "value")
    if not table.columns.is_unique:
        raise TypeError("columns of a table that have the same name have no form in JSON")
    if not _has_numbers_only(table.index) and not {*table.index.names} & {*table.columns}:
        table = table.reset_index()
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows


def _has_numbers_only(index: Any) -> bool:
    """Return whether an index has no name, and holds numbers of rows."""
    return list(index.names) == [None] and index.dtype.kind in "iu"


class _Tool:
    """What code calls, in one session."""

    def __init__(
        self,
        spec: PluginSpec,
        own: Mapping[str, str],
        more: bool,
        call: Call,
        context: PluginContext,
        wrapped: bool,
        gate: Gate,
    ) -> None:
        self.__name__, self.__doc__ = spec.name, spec.description
        self._name = spec.name
        self._own = own
        self._more = more
        self._call = call
        self._context = context
        self._wrapped = wrapped
        self._gate = gate
        self._sent = None if gate.repeatable else SentCalls()
        self._needed = [parameter.name for parameter in spec.parameters if parameter.required]
        self._signature = spec.signature()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        others = {name: kwargs.pop(name) for name in [*kwargs] if self._more and name not in self._own}
        try:
            given = self._signature.bind_partial(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self._name}: {error}. Its arguments: {', '.join(self._own) or 'none'}") from None
        missing = [one for one in self._needed if one not in given]
        if missing:
            raise TypeError(f"{self._name}: missing {', '.join(missing)}")
        budget = ValueBudget()
        arguments = {self._own.get(name, name): jsonable(value, budget) for name, value in {**given, **others}.items()}
        if too_deep(arguments):
            raise TypeError(f"{self._name}: its arguments are nested more than {DEEPEST} deep")
        answer = self._answer(arguments)
        return read_result(answer, name=self._name, context=self._context, wrapped=self._wrapped)

    def begin_cell(self, *, second_try: bool) -> None:
        """Note that a cell begins; a second try is one after a cell of the same request that failed."""
        if self._sent is not None:
            self._sent.begin_cell(second_try=second_try)

    def _answer(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a call: of the server, or, for one that an earlier try has made already, that one's."""
        earlier = self._sent.take_earlier(arguments) if self._sent is not None else None
        if earlier is not None and earlier.answer is not None:
            self._warn(
                "the cell that failed has made this very call; it was not sent a second time, and gives what it gave "
                "then"
            )
            return earlier.answer
        self._gate.allow(self._name, arguments, lost=earlier is not None)
        if self._sent is None:
            return self._call(arguments, self._warn)
        if earlier is not None:
            self._sent.forget(earlier)
        with self._sent.sending(arguments) as sent:
            sent.answer = self._call(arguments, self._warn)
            return sent.answer

    def _warn(self, message: str) -> None:
        self._context.log("warning", self._name, message)


def _parameter_names(takes: Schema) -> dict[str, str]:
    names = Names()
    return {own: names.give(identifier(own, "argument")) for own in takes.properties_of_any_variant()}


def _parameter_of_schema(schema: Schema, own: str, name: str, required: bool) -> Parameter:
    description = shortened(schema.about(), _ABOUT_CHARS)
    mapped = "" if own == name else f"(the server calls it {shortened(repr(own), _ABOUT_CHARS)})"
    default = NO_DEFAULT if required else schema.plain.get("default", NO_DEFAULT)
    about = " ".join(part for part in (description, mapped) if part)
    return Parameter(name, schema.type(), required, about, default if _is_short(default) else NO_DEFAULT)


def _is_short(value: Any) -> bool:
    """Return whether a value can stand in a stub: a short text, or a few such in a list or dictionary."""
    if isinstance(value, list | dict):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return len(parts) <= _MAX_PARTS and all(not isinstance(part, list | dict) and _is_short(part) for part in parts)
    return not isinstance(value, str) or len(value) <= _ABOUT_CHARS
