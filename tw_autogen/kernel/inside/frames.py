"""DataFrames and Series as files: Arrow where both sides have it and it keeps everything, else CSV and a schema."""

from __future__ import annotations

import importlib
import io
import json
from typing import TYPE_CHECKING, Any


class _Deferred:
    """The module pandas, imported when a table first crosses: a kernel need not have it, and it costs 0.2 s."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("pandas"), name)


if TYPE_CHECKING:
    import pandas as pd

    from .codec import Codec
else:
    pd = _Deferred()

_MISSING = r"\N"
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
_UNESCAPES = {written: plain for plain, written in _ESCAPES.items()}


def pack_table(table: pd.DataFrame | pd.Series[Any], codec: Codec) -> dict[str, Any]:
    """Write a DataFrame or Series into the exchange; give what the other side needs to read it.

    Raises:
        TypeError: a column is of a dtype, or holds a value, that doesn't cross.
    """
    frame = table.to_frame("0") if isinstance(table, pd.Series) else table
    name = codec.pack(table.name) if isinstance(table, pd.Series) else None
    if codec.arrow and _suits_arrow(frame):
        return {"form": "arrow", "file": _write_arrow(frame, codec), "name": name}
    columns = [_pack_column(frame.iloc[:, place], codec) for place in range(frame.shape[1])]
    index, levels = _pack_index(frame.index, codec)
    schema = [column[0] for column in (*columns, *levels)]
    body = pd.DataFrame(
        {f"c{place}": column[1] for place, column in enumerate((*columns, *levels))}, index=range(len(frame))
    )
    file_name, file = codec.exchange.create(".csv")
    with io.TextIOWrapper(file, "utf-8", newline="") as text:
        body.to_csv(text, index=False, lineterminator="\n")
    return {
        "form": "csv",
        "file": file_name,
        "rows": len(frame),
        "labels": [codec.pack(label) for label in frame.columns],
        "label_names": [codec.pack(one) for one in frame.columns.names],
        "multi": isinstance(frame.columns, pd.MultiIndex),
        "label_dtypes": [str(frame.columns.get_level_values(place).dtype) for place in range(frame.columns.nlevels)],
        "schema": schema,
        "index": index,
        "name": name,
    }


def unpack_table(plain: dict[str, Any], codec: Codec, *, series: bool) -> Any:
    """Read what `pack_table` wrote on the other side, and remove the file.

    Raises:
        OSError: the file is not there, or not a plain file in the exchange.
    """
    try:
        with codec.exchange.open(plain["file"]) as file:
            frame = _read_arrow(file) if plain["form"] == "arrow" else _read_csv(file, plain, codec)
    finally:
        codec.exchange.remove(plain["file"])
    if not series:
        return frame
    single = frame.iloc[:, 0]
    single.name = codec.unpack(plain["name"])
    return single


def _pack_column(column: pd.Series[Any], codec: Codec) -> tuple[dict[str, Any], Any]:
    """Give a column's schema, and its values as numbers or as text without line breaks."""
    dtype: Any = column.dtype
    name = str(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        categories, texts = _pack_column(_series(dtype.categories), codec)
        held = [None if pd.isna(one) else str(one) for one in texts]
        schema = {"kind": "category", "ordered": bool(dtype.ordered), "of": categories, "values": held}
        return schema, column.cat.codes.to_numpy()
    kind = getattr(dtype, "kind", "")
    if kind == "M" or kind == "m":
        return {"kind": "time", "dtype": name}, column.astype("int64").to_numpy()
    if name == "object":
        texts = [json.dumps(codec.pack(one)) for one in column.tolist()]
        return {"kind": "json", "dtype": name}, texts
    if isinstance(dtype, pd.StringDtype):
        texts = [_MISSING if pd.isna(one) else _escape(one) for one in column.tolist()]
        return {"kind": "text", "dtype": name}, texts
    if pd.api.types.is_extension_array_dtype(dtype) and kind in ("b", "i", "u", "f"):
        return {"kind": "nullable", "dtype": name}, [_MISSING if pd.isna(one) else repr(one) for one in column.tolist()]
    if kind in ("b", "i", "u", "f") and dtype.itemsize <= 8:
        values = column.to_numpy()
        # Floats cross as their bits: exact, with NaN and infinity, and quicker to read than decimals.
        return {"kind": kind, "dtype": name}, values.view(f"i{dtype.itemsize}") if kind == "f" else values
    raise TypeError(f"column {column.name!r} has dtype {name}, which doesn't cross; convert it, e.g. with .astype(str)")


def _read_csv(file: Any, plain: dict[str, Any], codec: Codec) -> pd.DataFrame:
    schema = plain["schema"]
    numbers = {"b": "bool", "i": "int64", "u": "uint64", "f": "int64", "time": "int64", "category": "int64"}
    types = {f"c{place}": numbers.get(one["kind"], "object") for place, one in enumerate(schema)}
    if schema:
        body = pd.read_csv(file, encoding="utf-8", dtype=types, keep_default_na=False, skip_blank_lines=False)
    else:
        body = pd.DataFrame(index=range(plain["rows"]))
    read = [_unpack_column(one, body[f"c{place}"], codec) for place, one in enumerate(schema)]
    count = len(plain["labels"])
    index = _unpack_index(plain, read[count:], codec)
    frame = pd.concat([pd.Series(one) for one in read[:count]], axis=1) if count else pd.DataFrame()
    labels = [codec.unpack(one) for one in plain["labels"]]
    names = [codec.unpack(one) for one in plain["label_names"]]
    if plain["multi"]:
        dtypes = plain["label_dtypes"]
        levels = [pd.Index([label[place] for label in labels], dtype=one) for place, one in enumerate(dtypes)]
        frame.columns = pd.MultiIndex.from_arrays(levels, names=names)
    else:
        frame.columns = pd.Index(labels, dtype=plain["label_dtypes"][0], name=names[0], tupleize_cols=False)
    whole: pd.DataFrame = frame.set_axis(index, axis=0) if count else pd.DataFrame(index=index, columns=frame.columns)
    return whole


def _unpack_column(schema: dict[str, Any], values: pd.Series[Any], codec: Codec) -> Any:
    kind = schema["kind"]
    if kind == "category":
        held = pd.Series([_MISSING if one is None else one for one in schema["values"]], dtype="object")
        number = {"i": int, "u": int, "time": int, "f": int, "b": lambda text: text == "True"}.get(schema["of"]["kind"])
        categories = _unpack_column(schema["of"], held.map(number) if number else held, codec)
        kinds = pd.Index(categories, dtype=categories.dtype)
        return pd.Categorical.from_codes(values.to_numpy(), kinds, ordered=schema["ordered"])
    if kind == "time":
        if "," in schema["dtype"]:
            return _zoned(values, schema)
        return values.astype("int64").array.view(_stamp(schema["dtype"]))
    if kind == "json":
        loaded = pd.Series([None] * len(values), dtype="object")
        loaded[:] = pd.Series([codec.unpack(json.loads(one)) for one in values], dtype="object")
        return loaded
    if kind == "text":
        return pd.array([None if one == _MISSING else _unescape(one) for one in values], dtype=schema["dtype"])
    if kind == "nullable":
        read: Any = {"B": lambda text: text == "True", "b": lambda text: text == "True", "F": float}
        number = read.get(schema["dtype"][0], int)
        return pd.array([None if one == _MISSING else number(one) for one in values], dtype=schema["dtype"])
    if kind == "f":
        return values.to_numpy().astype(f"i{int(schema['dtype'][5:]) // 8}").view(schema["dtype"])
    return values.astype(schema["dtype"])


def _stamp(dtype: str) -> str:
    return dtype.replace("datetime64", "M8").replace("timedelta64", "m8")


def _zoned(values: pd.Series[Any], schema: dict[str, Any]) -> Any:
    unit, _, zone = schema["dtype"][len("datetime64[") : -1].partition(", ")
    naive = pd.Series(values.to_numpy().astype("int64").view(f"M8[{unit}]"))
    return naive.dt.tz_localize("UTC").dt.tz_convert(zone)


def _pack_index(index: Any, codec: Codec) -> tuple[dict[str, Any], list[tuple[dict[str, Any], Any]]]:
    names = [codec.pack(one) for one in index.names]
    if isinstance(index, pd.RangeIndex):
        return {"kind": "range", "range": [index.start, index.stop, index.step], "names": names}, []
    values = [index.get_level_values(place) for place in range(index.nlevels)]
    levels = [_pack_column(_series(one), codec) for one in values]
    multi = isinstance(index, pd.MultiIndex)
    return {"kind": "multi" if multi else "flat", "freq": getattr(index, "freqstr", None), "names": names}, levels


def _unpack_index(plain: dict[str, Any], levels: list[Any], codec: Codec) -> Any:
    index = plain["index"]
    names = [codec.unpack(one) for one in index["names"]]
    if index["kind"] == "range":
        start, stop, step = index["range"]
        return pd.RangeIndex(start, stop, step, name=names[0])
    if index["kind"] == "multi":
        return pd.MultiIndex.from_arrays(levels, names=names)
    # Without its dtype, an object index of texts would be taken for a text index.
    flat: Any = pd.Index(levels[0], name=names[0], dtype=levels[0].dtype, tupleize_cols=False)
    if index["freq"] is not None and hasattr(flat, "freq"):
        flat.freq = index["freq"]
    return flat


def _series(index: Any) -> pd.Series[Any]:
    """Give an index's values; told its dtype, pandas takes no object index of texts for a text column."""
    values: pd.Series[Any] = pd.Series(index, index=range(len(index)), dtype=index.dtype)
    return values


def _escape(text: str) -> str:
    if not any(char in text for char in _ESCAPES):
        return text
    return "".join(_ESCAPES.get(char, char) for char in text)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    pieces, place = [], 0
    while place < len(text):
        width = 2 if text[place] == "\\" else 1
        pieces.append(_UNESCAPES.get(text[place : place + width], text[place : place + width]))
        place += width
    return "".join(pieces)


def _suits_arrow(frame: pd.DataFrame) -> bool:
    """Tell whether Arrow gives back the same: named by unique text, no Python objects in it, no frequency to lose."""
    labels = frame.columns
    if isinstance(labels, pd.MultiIndex) or not labels.is_unique or not all(type(one) is str for one in labels):
        return False
    if isinstance(frame.index, pd.MultiIndex) or getattr(frame.index, "freq", None) is not None:
        return False
    return "object" not in {str(one) for one in (*frame.dtypes, frame.index.dtype)}


def _write_arrow(frame: pd.DataFrame, codec: Codec) -> str:
    import pyarrow as pa  # deferred: an extra that both sides were found to have

    table = pa.Table.from_pandas(frame, preserve_index=None)
    name, file = codec.exchange.create(".arrow")
    with file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return name


def _read_arrow(file: Any) -> pd.DataFrame:
    import pyarrow as pa  # deferred: an extra that both sides were found to have

    with pa.ipc.open_file(file) as reader:
        frame: pd.DataFrame = reader.read_all().to_pandas()
    return frame
