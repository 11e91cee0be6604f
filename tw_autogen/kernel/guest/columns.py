"""Columns as arrays, each with a schema that tells how to read them."""

from __future__ import annotations

from json import dumps, loads  # held here: code may overwrite them in the module
from typing import TYPE_CHECKING, Any

from .arrays import Arrays, Deferred
from .json_memory import parsed_bytes
from .texts import pack_arrow, pack_text, unpack_arrow, unpack_text
from .zones import check_zone

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from .codec import Codec
else:
    np, pd = Deferred("numpy"), Deferred("pandas")

_UNITS = ("s", "ms", "us", "ns")


def pack_column(column: pd.Series[Any], codec: Codec) -> tuple[dict[str, Any], list[Any]]:
    """Return a column's schema, and arrays that hold its values.

    Raises:
        TypeError: the column is of a dtype, or holds a value, that doesn't cross.
    """
    dtype: Any = column.dtype
    array: Any = column.array
    if isinstance(dtype, pd.CategoricalDtype):
        of, arrays = pack_column(series(dtype.categories), codec)
        schema = {"kind": "category", "ordered": bool(dtype.ordered), **_like(array.codes), "of": of}
        return schema, [array.codes, *arrays]
    if isinstance(dtype, pd.StringDtype):
        target = {"dtype": "str" if str(dtype) == "str" else "string", "storage": dtype.storage}
        if codec.arrow and dtype.storage == "pyarrow":
            return pack_arrow(column, target)
        texts = pack_text(array.to_numpy(dtype=object), target)
        if texts is not None:
            return texts
    if str(dtype) == "object":
        return _pack_objects(column.to_numpy(), codec)
    if isinstance(dtype, (np.dtype, pd.DatetimeTZDtype)) and dtype.kind in "Mm":
        stamps = column.astype("int64").to_numpy()
        zone = str(dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None
        return {"kind": "time", "letter": dtype.kind, "unit": array.unit, "zone": zone, "count": len(stamps)}, [stamps]
    if isinstance(array, (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)):
        values = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
        return {"kind": "nullable", **_like(values)}, [values, array.isna()]
    if isinstance(dtype, (np.dtype, pd.SparseDtype)) and dtype.kind in "biuf" and np.dtype(dtype.type).itemsize <= 8:
        values = np.asarray(array)
        if isinstance(dtype, pd.SparseDtype):
            return {"kind": "sparse", "fill": codec.pack(dtype.fill_value), **_like(values)}, [values]
        return {"kind": "number", **_like(values)}, [values]
    if codec.arrow:
        return pack_arrow(column, {})
    hint = "convert it, e.g. with .astype(str)"
    raise TypeError(f"column {column.name!r} has dtype {dtype}, which doesn't cross; {hint}")


def unpack_column(schema: dict[str, Any], arrays: Arrays, codec: Codec) -> Any:
    """Return the values of a column that `pack_column` got.

    Raises:
        ValueError: it is nothing that `pack_column` makes.
    """
    kind = schema["kind"]
    if kind in ("text", "words"):
        return unpack_text(schema, arrays)
    if kind == "json":
        text = arrays.text(schema["bytes"])
        arrays.claim(parsed_bytes(text))
        values = loads(text)
        held = values if schema["plain"] else [codec.unpack(one) for one in values]
        return pd.Series(held, dtype="object").to_numpy()
    if kind == "arrow" and codec.arrow:
        return unpack_arrow(schema, arrays)
    values = arrays.take("<i8" if kind == "time" else schema["dtype"], schema["count"])
    if kind == "category":
        categories = unpack_column(schema["of"], arrays, codec)
        held = pd.Index(categories, dtype=categories.dtype, tupleize_cols=False)
        return pd.Categorical.from_codes(values, held, ordered=schema["ordered"])
    if kind == "time":
        return _unpack_time(schema, values)
    if kind == "nullable":
        types = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
        return types.get(values.dtype.kind, pd.arrays.IntegerArray)(values, arrays.take("|b1", schema["count"]))
    if kind == "number":
        return values
    if kind == "sparse":
        return pd.arrays.SparseArray(values, fill_value=codec.unpack(schema["fill"]))
    raise ValueError(f"no column that crosses is of kind {kind!r}")


def series(index: Any) -> pd.Series[Any]:
    """Return an index's values; told its dtype, pandas takes no object index of texts for a text column."""
    values: pd.Series[Any] = pd.Series(index, index=range(len(index)), dtype=index.dtype)
    return values


def _like(values: Any) -> dict[str, Any]:
    return {"dtype": values.dtype.str, "count": len(values)}


def _unpack_time(schema: dict[str, Any], values: Any) -> Any:
    if schema["unit"] not in _UNITS or schema["letter"] not in ("M", "m"):
        raise ValueError(f"no times that cross: {schema!r}")
    stamps = values.view(f"{schema['letter']}8[{schema['unit']}]")
    zone = schema["zone"]
    return stamps if zone is None else pd.DatetimeIndex(stamps).tz_localize("UTC").tz_convert(check_zone(zone)).array


def _pack_objects(values: Any, codec: Codec) -> tuple[dict[str, Any], list[Any]]:
    """Return texts where there is nothing but them and None, NaN and NA; else JSON."""
    if pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty"):
        texts = pack_text(values, {"dtype": "object"})
        if texts is not None:
            return texts
    held = values.tolist()
    plain = set(map(type, held)) <= {bool, int, float, str, type(None)}
    text = dumps(held if plain else [codec.pack(one) for one in held])
    blob = np.frombuffer(text.encode("ascii"), "u1")
    return {"kind": "json", "plain": plain, "bytes": len(blob)}, [blob]
