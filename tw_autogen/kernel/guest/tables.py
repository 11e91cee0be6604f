"""DataFrames and Series as files: the bytes of their columns, and a schema that says how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arrays import Arrays, Deferred, write_arrays
from .columns import pack_column, series, unpack_column
from .zones import check_dtype

if TYPE_CHECKING:
    import pandas as pd

    from .codec import Codec
else:
    pd = Deferred("pandas")

_MOST_BLOCKS = 32
"""Of more columns pandas makes few pieces of memory at once; a frame in very many pieces is slow."""


def pack_table(table: pd.DataFrame | pd.Series[Any], codec: Codec) -> dict[str, Any]:
    """Write a DataFrame or Series into the exchange; give what the other side needs to read it.

    Raises:
        TypeError: a column is of a dtype, or holds a value, that doesn't cross.
    """
    frame = table.to_frame("0") if isinstance(table, pd.Series) else table
    index, levels = _pack_index(frame.index)
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    packed = [pack_column(one, codec) for one in (*columns, *levels)]
    plain = {
        "rows": len(frame),
        "labels": [codec.pack(label) for label in frame.columns],
        "label_range": _range(frame.columns),
        "label_names": [codec.pack(one) for one in frame.columns.names],
        "multi": isinstance(frame.columns, pd.MultiIndex),
        "label_dtypes": [str(frame.columns.get_level_values(place).dtype) for place in range(frame.columns.nlevels)],
        "columns": [schema for schema, _ in packed],
        "index": {**index, "names": [codec.pack(one) for one in frame.index.names]},
        "name": codec.pack(table.name) if isinstance(table, pd.Series) else None,
        "attrs": _pack_attrs(table, codec),
    }
    plain["file"], file = codec.exchange.create(".columns")
    with file:
        for _, arrays in packed:
            write_arrays(file, arrays)
    return plain


def unpack_table(plain: dict[str, Any], codec: Codec, *, single: bool) -> Any:
    """Read what `pack_table` wrote on the other side, and remove the file.

    Raises:
        OSError: the file is not there, or not a plain file in the exchange.
        ValueError: it is nothing that `pack_table` writes.
    """
    try:
        with codec.exchange.open(plain["file"]) as file:
            arrays = Arrays(file, codec.most_bytes)
            arrays.claim(8 * _count(plain["rows"]))
            read = [unpack_column(one, arrays, codec) for one in plain["columns"]]
    finally:
        codec.exchange.remove(plain["file"])
    count = len(plain["labels"])
    # Told its dtype, pandas takes no column of objects for one of text or times.
    columns = {place: pd.Series(one, dtype=one.dtype, copy=False) for place, one in enumerate(read[:count])}
    index = _unpack_index(plain["index"], read[count:], codec)
    if {len(index), *map(len, columns.values())} != {plain["rows"]}:
        raise ValueError(f"a table's columns are not of {plain['rows']!r} rows")
    table: Any = pd.DataFrame(columns, index=pd.RangeIndex(plain["rows"]), copy=count > _MOST_BLOCKS)
    table.index, table.columns = index, _unpack_labels(plain, codec)
    if single:
        table = table.iloc[:, 0]
        table.name = codec.unpack(plain["name"])
    table.attrs.update(codec.unpack(plain["attrs"]))
    return table


def _count(rows: Any) -> int:
    if type(rows) is not int or rows < 0:
        raise ValueError(f"a table has no {rows!r} rows")
    return rows


def _pack_attrs(table: Any, codec: Codec) -> Any:
    try:
        return codec.pack(dict(table.attrs))
    except TypeError:  # what somebody noted on the table must not keep the table
        return {}


def _unpack_labels(plain: dict[str, Any], codec: Codec) -> Any:
    labels = [codec.unpack(one) for one in plain["labels"]]
    names = [codec.unpack(one) for one in plain["label_names"]]
    dtypes = [check_dtype(one) for one in plain["label_dtypes"]]
    if plain["label_range"] is not None:
        start, stop, step = plain["label_range"]
        return pd.RangeIndex(start, stop, step, name=names[0])
    if not plain["multi"]:
        return pd.Index(labels, dtype=dtypes[0], name=names[0], tupleize_cols=False)
    levels = [pd.Index([label[place] for label in labels], dtype=one) for place, one in enumerate(dtypes)]
    return pd.MultiIndex.from_arrays(levels, names=names)


def _pack_index(index: Any) -> tuple[dict[str, Any], list[pd.Series[Any]]]:
    if isinstance(index, pd.RangeIndex):
        return {"kind": "range", "range": _range(index)}, []
    levels = [series(index.get_level_values(place)) for place in range(index.nlevels)]
    kind = "multi" if isinstance(index, pd.MultiIndex) else "flat"
    return {"kind": kind, "freq": getattr(index, "freqstr", None)}, levels


def _range(index: Any) -> list[int] | None:
    return [index.start, index.stop, index.step] if isinstance(index, pd.RangeIndex) else None


def _unpack_index(index: dict[str, Any], levels: list[Any], codec: Codec) -> Any:
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
