"""Says in one short line what a variable holds, without running code of classes that cells define.

Output of such code would appear in the next cell, and its time would count there. What a library of tables calls
itself, such as a column type that a cell defines, does run.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from .files.plural import pluralize
from .object_snapshot import is_a, is_users

_MAX_CHARS, _MAX_DATA_CHARS = 200, 1200
"""Of a value, and of what libraries of data have made: columns are worth more room than a value."""
_MAX_COLUMNS = 30
_MAX_CELLS = 2_000_000
_MAX_SUMMARIES = 200
_MAX_VARIABLES = 5000
_MAX_NAME = 1000
_SCALARS = (bool, int, float, complex, type(None))
_Told = TypeVar("_Told")
_CONTAINERS = (list, tuple, dict, set, frozenset)
_MAX_ITEMS, _MAX_TEXT = 20, 60
"""Containers that are longer, or hold longer texts, are told by their number of items alone."""
_TABLES = ("polars", "pyarrow", "xarray")
_SIZED = (*_CONTAINERS, bytes, bytearray)


def summary(value: Any) -> str:
    """Return shape, columns with dtypes, length or value; empty for what only its own code could tell about.

    Example:
        >>> summary([1, 2, 3]), summary("abc"), summary(4.5), summary(object())
        ('3 items: [1, 2, 3]', "'abc'", '4.5', '')
    """
    if type(value) in _SCALARS or any(is_a(value, kind) for kind in (*_SIZED, str, type, types.FunctionType)):
        return _shorten(_of_value(value), _MAX_CHARS)
    return "" if _is_of_cell(value) else _shorten(_of_data(value), _MAX_DATA_CHARS)


def _of_value(value: Any) -> str:
    if type(value) in _SCALARS:
        return type(value).__name__ if _is_long(value) else str(value)
    if is_a(value, str):
        text = str.__repr__(str.__getitem__(value, slice(60)))
        return text if str.__len__(value) <= 60 else f"{str.__len__(value)} characters, {text[:-1]}…{text[-1]}"
    kind: Any
    for kind in _SIZED:
        if is_a(value, kind):
            count = kind.__len__(value)
            word = {"dict": "key", "bytes": "byte", "bytearray": "byte"}.get(kind.__name__, "item")
            told = pluralize(count, word)
            if plain := _plain_text(value, 2):
                return f"{told}: {plain}" if count else told
            return told + (_keys_summary(value) if is_a(value, dict) else "")
    return _definition_summary(value)


def describe(namespace: Mapping[str, Any], *, hidden: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return name, type and summary of the user's own variables, in the order in which they were made.

    Args:
        namespace: The kernel's user namespace.
        hidden: By mapping, names that are not the user's while they still hold the same object: plugins, IPython's own.

    Returns:
        At most 5000 of them, the newest, of which the newest 200 have a summary; what was only imported and names that
        begin with `_` are left out.
    """
    kept = []
    for name, value in list(namespace.items()):
        if not is_users(name) or any(name in names and names[name] is value for names in hidden):
            continue
        if not _unless_raised(_is_imported, value, False):
            kept.append((name, value))
    kept = kept[-_MAX_VARIABLES:]
    count = len(kept) - _MAX_SUMMARIES
    return [
        (
            name[:_MAX_NAME],
            _unless_raised(_type_name, value, "object"),
            _unless_raised(summary, value, "") if place >= count else "",
        )
        for place, (name, value) in enumerate(kept)
    ]


def _unless_raised(tell: Callable[[Any], _Told], value: Any, otherwise: _Told) -> _Told:
    """Return what a function says of a value, or `otherwise` where the value's own code raises anything.

    A half-made frame, or a class that raises SystemExit, must not end the report of all the others, or the kernel.
    """
    try:
        return tell(value)
    except BaseException:  # noqa: BLE001 - see above; an interrupt too comes from code, or would lose the report
        return otherwise


def _is_imported(value: Any) -> bool:
    """Return whether it is a module, or a class or function that some module defines, not a cell."""
    if is_a(value, types.ModuleType):
        return True
    if not any(is_a(value, kind) for kind in (type, types.FunctionType, types.BuiltinFunctionType)):
        return False
    getter = type.__getattribute__ if is_a(value, type) else object.__getattribute__
    return bool(getter(value, "__module__") not in ("__main__", None))


def _is_long(value: Any) -> bool:
    """Return whether it is an integer of hundreds of digits or more: the text of thousands is slow, or refused."""
    return type(value) is int and value.bit_length() > 900


def _type_name(value: Any) -> str:
    name = str(type.__getattribute__(type(value), "__name__"))
    root = str(type.__getattribute__(type(value), "__module__")).partition(".")[0]
    if root in _TABLES:  # `DataFrame` alone would be that of pandas
        name = f"{root}.{name}"
    return "function" if type(value) is types.FunctionType else name[:_MAX_NAME]


def _definition_summary(value: Any) -> str:
    # A class's `__doc__` may be an object whose `__get__` runs.
    words = type.__getattribute__(value, "__dict__").get("__doc__") if is_a(value, type) else value.__doc__
    first = next(iter(words.strip().splitlines()), "") if type(words) is str else ""
    if is_a(value, type):
        return first
    code = value.__code__
    names = ", ".join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return f"({names})" + (f": {first}" if first else "")


def _plain_text(value: Any, depth: int) -> str:
    """Return a small container of plain values as text; empty for others: no code of the values' own is run.

    Args:
        value: Any.
        depth: How many containers may be in one another.
    """
    if is_a(value, str):
        return str.__repr__(value) if str.__len__(value) <= _MAX_TEXT else ""
    if type(value) in _SCALARS:
        return "" if _is_long(value) else str(value)
    if any(names == ("numpy", "generic") for names in _class_names(value)):
        return "" if _is_of_cell(value) else str(value)
    kind: Any = next((container for container in _CONTAINERS if is_a(value, container)), None)
    if kind is None or not depth or kind.__len__(value) > _MAX_ITEMS:
        return ""
    if kind is dict:
        pairs = [(_plain_text(key, depth - 1), _plain_text(one, depth - 1)) for key, one in dict.items(value)]
        return f"{{{', '.join(f'{key}: {one}' for key, one in pairs)}}}" if all(map(all, pairs)) else ""
    texts = [_plain_text(one, depth - 1) for one in kind.__iter__(value)]
    form = {
        list: "[{}]",
        tuple: "({},)" if len(texts) == 1 else "({})",
        set: "{{{}}}" if texts else "set()",
        frozenset: "frozenset({{{}}})" if texts else "frozenset()",
    }[kind]
    return form.format(", ".join(texts)) if all(texts) else ""


def _keys_summary(value: dict[Any, Any]) -> str:
    names = [key for key in list(dict.keys(value))[:8] if type(key) is str]
    more = ", …" if dict.__len__(value) > len(names) else ""
    return f": {', '.join(names)}{more}" if names else ""


def _of_data(value: Any) -> str:
    """Describe what numpy, pandas and others made; classes are told by their module, so that none is imported."""
    for module, name in _class_names(value):
        root = module.partition(".")[0]
        if root == "pandas":
            if name == "DataFrame":
                return _frame_summary(value)
            if name == "Series":
                named = f", name {_label(value.name)}" if _is_of_cell(value.name) or value.name else ""
                return f"{len(value)} values, {value.dtype}{_missing_note(value)}{named}"
            if name.endswith("Index"):
                return f"{len(value)} values, {value.dtype}"
            if name in ("Timestamp", "Timedelta", "Period"):
                return str(value)
        if root == "numpy":
            if name == "ndarray":
                return f"shape {tuple(value.shape)}, {value.dtype}{_not_a_number(value)}"
            if name == "generic":
                return str(value)
        if root == "datetime":
            return str(value)
        if root in _TABLES or root == "scipy":
            return _of_table(value, root, name)
    return ""


def _class_names(value: Any) -> list[tuple[str, str]]:
    """Return module and name of a value's class and its bases, without asking a metaclass."""
    kinds = type.__getattribute__(type(value), "__mro__")
    return [
        (str(type.__getattribute__(kind, "__module__")), str(type.__getattribute__(kind, "__name__"))) for kind in kinds
    ]


def _is_of_cell(value: Any) -> bool:
    """Return whether a cell has defined its class or a base of it, or, of a tuple, that of an item."""
    if type(value) is tuple:
        return any(map(_is_of_cell, value))
    return any(module == "__main__" for module, _ in _class_names(value))


def _label(name: Any) -> str:
    """Return a column's name; of an object of a class that a cell defines, only its type."""
    return _type_name(name) if _is_of_cell(name) else str(name)


def _of_table(value: Any, root: str, name: str) -> str:
    if root == "scipy":
        return f"shape {value.shape}, {value.dtype}, {value.nnz} stored values" if hasattr(value, "nnz") else ""
    if root == "xarray":
        sizes = ", ".join(f"{_label(dimension)}: {size}" for dimension, size in value.sizes.items())
        if name == "Dataset":
            return f"sizes {sizes}, variables {', '.join(map(_label, value.data_vars))}"
        return f"sizes {sizes}, {value.dtype}" if name == "DataArray" else ""
    if (root, name) == ("polars", "DataFrame"):
        return _table_summary(value.shape, list(map(str, value.columns[:_MAX_COLUMNS])), value.dtypes)
    if (root, name) == ("pyarrow", "Table"):
        return _table_summary(value.shape, value.column_names[:_MAX_COLUMNS], value.schema.types)
    return f"{len(value)} values, {value.dtype}" if (root, name) == ("polars", "Series") else ""


def _table_summary(shape: Sequence[int], names: Sequence[str], kinds: Sequence[Any]) -> str:
    """Return a table's shape and its columns with their types, the first ones of many."""
    columns = [f"{_label(name)}: {kind}" for name, kind in zip(names, kinds, strict=False)]
    more = f", … {shape[1] - len(names)} more" if shape[1] > len(names) else ""
    return f"{shape[0]} x {shape[1]}" + (f", columns {', '.join(columns)}{more}" if columns else "")


def _frame_summary(frame: Any) -> str:
    names = list(frame.columns[:_MAX_COLUMNS])
    counted = frame.shape[0] * max(frame.shape[1], 1) <= _MAX_CELLS  # counting what is missing takes time
    kinds = [
        f"{frame.dtypes.iloc[place]}" + (_missing_note(frame.iloc[:, place]) if counted else "")
        for place in range(len(names))
    ]
    return _table_summary(frame.shape, names, kinds)


def _missing_note(series: Any) -> str:
    count = int(series.isna().sum()) if len(series) <= _MAX_CELLS else 0
    return f" ({'all' if count == len(series) else count} missing)" if count else ""


def _not_a_number(array: Any) -> str:
    counted = array.dtype.kind == "f" and array.size <= _MAX_CELLS
    count = int(sys.modules["numpy"].isnan(array).sum()) if counted else 0
    return f" ({'all' if count == array.size else count} nan)" if count else ""


def _shorten(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
