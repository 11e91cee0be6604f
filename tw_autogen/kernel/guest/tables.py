"""DataFrames and Series as files: a JSON header that describes each column, numbers, and Arrow if both sides have it.

Kept, with and without pyarrow: numbers and truth values of numpy (of either byte order), nullable ones, times and time
spans with unit and zone, periods, intervals, categories, strings, sparse numbers, and objects whose values `Codec`
packs: texts, None, NaN, NA, numbers, times, lists, dicts, … Kept with pyarrow only: columns of a `pandas.ArrowDtype`.
Lost, which is a TypeError that names the column: complex numbers, floats of more than 8 bytes, records, other objects,
and dtypes of other packages. Labels and index are kept as columns are; `attrs` only if each value in them crosses.

Without pyarrow a column's values are a JSON list in the header, or bytes after it. What is read may come from a kernel,
so it may be anything: sizes are counted before memory is taken, and no name in it is looked up outside these tables.
"""

from __future__ import annotations

import importlib
import re
import struct
import zoneinfo
from json import dumps, loads  # held here: code may overwrite them in the module
from typing import TYPE_CHECKING, Any

from .arrow_columns import ArrowReader, ArrowWriter, Budget
from .hash_time import HashTime
from .json_size import estimate_parsed_bytes


class _Deferred:
    """A module that is imported when it is first used: a kernel need not have it, and pandas costs 0.2 s."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from .codec import Codec
else:
    np, pd = _Deferred("numpy"), _Deferred("pandas")

_MOST_BLOCKS = 32
"""Of more columns pandas makes few pieces of memory at once; a frame in very many pieces is slow."""

_MOST_HASHED = 10_000
"""How many categories of a column pandas may hash, unless their hashes can't be chosen."""

_LENGTHS = struct.Struct("<QQ")
_NUMBER = re.compile(r"[<>|](b1|[iu][1248]|f[248])")
_TIME = re.compile(r"[Mm]8\[(s|ms|us|ns)\]")
_FREQUENCY = re.compile(r"[0-9A-Za-z-]{1,20}")
_OFFSET = re.compile(r"UTC[+-]\d\d:\d\d(:\d\d)?")
_ZONE = re.compile(r"(?!dateutil)[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")


def pack_table(table: pd.DataFrame | pd.Series[Any], codec: Codec) -> str:
    """Write a DataFrame or Series into the exchange; return the file's name.

    Args:
        table: A DataFrame or Series.
        codec: Knows the exchange, and whether the other side has pyarrow.

    Raises:
        TypeError: a column is of a dtype, or holds a value, that doesn't cross.
    """
    frame = table.to_frame("0") if isinstance(table, pd.Series) else table
    arrow = ArrowWriter(len(frame)) if codec.arrow else None
    raw: list[Any] = []
    columns = _Packer(codec, raw, arrow)
    header = {
        "rows": len(frame),
        "columns": [columns.pack(frame.iloc[:, number]) for number in range(frame.shape[1])],
        "index": columns.pack_index(frame.index),
        "labels": _Packer(codec, raw).pack_index(frame.columns),
        "name": [codec.pack(table.name)] if isinstance(table, pd.Series) else None,
        "attrs": _packed_attrs(table, codec),
    }
    text = dumps(header).encode("ascii")
    name, file = codec.exchange.create(".table")
    with file:
        file.write(_LENGTHS.pack(len(text), sum(one.nbytes for one in raw)) + text)
        for one in raw:
            file.write(one.view("u1").data)
        if arrow is not None:
            arrow.write(file)
    return name


def unpack_table(name: Any, codec: Codec, time: HashTime) -> Any:
    """Read and remove a file that `pack_table` wrote on the other side; return a frame, of a Series its one column.

    Args:
        name: The file's name, as the other side says it.
        codec: Knows the exchange.
        time: Bounds the hashing of values.

    Raises:
        OSError: the file is not there, or not a plain file in the exchange.
        ValueError: it is nothing that `pack_table` writes, or would take too much memory or time.
    """
    budget = Budget(codec.most_bytes)
    try:
        with codec.exchange.open(str(name)) as file:
            size = file.seek(0, 2) - _LENGTHS.size
            budget.claim(size)  # a file may be sparse, and a few bytes on the disk stand for many
            file.seek(0)
            length, more = _LENGTHS.unpack(file.read(_LENGTHS.size))
            if length + more > size:
                raise ValueError(f"a table's header is not of {length} bytes, or its numbers not of {more}")
            text, raw = file.read(length).decode("ascii"), file.read(more)
            stream = file.read(size - length - more)
    finally:
        codec.exchange.remove(str(name))
    budget.claim(estimate_parsed_bytes(text))
    header = loads(text)
    rows = header["rows"]
    if type(rows) is not int or rows < 0:
        raise ValueError(f"a table has no {rows!r} rows")
    budget.claim(8 * rows)
    columns = _Unpacker(codec, raw, ArrowReader(stream, budget) if stream and codec.arrow else None, budget, time)
    read = {number: columns.unpack(one) for number, one in enumerate(header["columns"])}
    index, labels = columns.unpack_index(header["index"]), columns.unpack_index(header["labels"])
    if {len(index), *map(len, read.values())} != {rows} or len(labels) != len(read):
        raise ValueError(f"a table's columns are not of {rows} rows, or not as many as their labels")
    frame = pd.DataFrame(read, index=pd.RangeIndex(rows), copy=len(read) > _MOST_BLOCKS)
    frame.index, frame.columns = index, labels
    if header["name"] is not None:
        frame.columns = pd.Index([codec.unpack(header["name"][0], time)], dtype=object, tupleize_cols=False)
    frame.attrs.update(codec.unpack(header["attrs"], time))
    return frame


class _Packer:
    """Turns columns into JSON; what Arrow can hold goes there, and the JSON has its number."""

    def __init__(self, codec: Codec, raw: list[Any], arrow: ArrowWriter | None = None) -> None:
        self._codec = codec
        self._raw = raw
        self._arrow = arrow

    def pack(self, column: pd.Series[Any]) -> dict[str, Any]:
        dtype: Any = column.dtype
        array: Any = column.array
        if isinstance(dtype, pd.CategoricalDtype):
            of = self.pack(_as_series(dtype.categories, column.name))
            return {"kind": "category", "ordered": bool(dtype.ordered), "of": of, "values": self._put(array.codes)}
        if isinstance(dtype, pd.StringDtype):
            values = self._put_arrow(array) or array.to_numpy(dtype=object, na_value=None).tolist()
            name = "str" if str(dtype) == "str" else "string"
            return {"kind": "text", "dtype": name, "storage": dtype.storage, "values": values}
        if str(dtype) == "object":
            values = column.tolist()
            types = set(map(type, values))
            if str in types and types <= {str, type(None)} and (texts := self._put_arrow(column.to_numpy())):
                return {"kind": "texts", "values": texts}
            plain = types <= {bool, int, float, str, type(None)}
            return {"kind": "object", "values": values if plain else [self._codec.pack(one) for one in values]}
        if isinstance(dtype, (np.dtype, pd.DatetimeTZDtype)) and dtype.kind in "Mm":
            zone = str(dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None
            stamps = column.astype("int64").to_numpy()
            return {"kind": "time", "dtype": f"{dtype.kind}8[{array.unit}]", "zone": zone, "values": self._put(stamps)}
        if isinstance(dtype, pd.PeriodDtype):
            return {"kind": "period", "frequency": str(dtype)[len("period[") : -1], "values": self._put(array.asi8)}
        if isinstance(dtype, pd.IntervalDtype):
            left, right = (self.pack(_as_series(one, column.name)) for one in (array.left, array.right))
            return {"kind": "interval", "closed": dtype.closed, "left": left, "right": right}
        if isinstance(array, (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)):
            values = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
            return {"kind": "nullable", "values": self._put(values), "missing": self._put(array.isna())}
        if (
            isinstance(dtype, (np.dtype, pd.SparseDtype))
            and dtype.kind in "biuf"
            and np.dtype(dtype.type).itemsize <= 8
        ):
            values = self._put(np.asarray(array))
            if isinstance(dtype, pd.SparseDtype):
                return {"kind": "sparse", "fill": self._codec.pack(dtype.fill_value), "values": values}
            return {"kind": "number", "values": values}
        if isinstance(dtype, pd.ArrowDtype) and (values := self._put_arrow(array)):
            return {"kind": "arrow", "values": values}
        hint = "convert it, e.g. with .astype(str)"
        raise TypeError(f"column {column.name!r} has dtype {dtype}, which doesn't cross; {hint}")

    def pack_index(self, index: Any) -> dict[str, Any]:
        names = [self._codec.pack(one) for one in index.names]
        if isinstance(index, pd.RangeIndex):
            return {"kind": "range", "range": [index.start, index.stop, index.step], "names": names}
        levels = [index.get_level_values(number) for number in range(index.nlevels)]
        columns = [self.pack(_as_series(level, name)) for level, name in zip(levels, index.names, strict=True)]
        kind = "multi" if isinstance(index, pd.MultiIndex) else "flat"
        return {"kind": kind, "levels": columns, "names": names, "frequency": getattr(index, "freqstr", None)}

    def _put(self, values: Any) -> Any:
        if (packed := self._put_arrow(values)) is not None:
            return packed
        start = sum(one.nbytes for one in self._raw)
        self._raw.append(np.ascontiguousarray(values))
        return {"dtype": values.dtype.str, "start": start, "count": len(values)}

    def _put_arrow(self, values: Any) -> dict[str, int] | None:
        number = self._arrow.add(values) if self._arrow is not None else None
        return None if number is None else {"arrow": number}


class _Unpacker:
    """Makes columns of what `_Packer` made; anything else is an error."""

    def __init__(self, codec: Codec, raw: bytes, arrow: ArrowReader | None, budget: Budget, time: HashTime) -> None:
        self._codec = codec
        self._raw = raw
        self._arrow = arrow
        self._budget = budget
        self._time = time

    def unpack(self, packed: dict[str, Any]) -> Any:
        kind = packed["kind"]
        if kind == "text":
            return self._texts(packed)
        if kind == "texts" and self._arrow is not None:
            return pd.Series(self._arrow.objects(packed["values"]["arrow"]), dtype="object")
        if kind == "object":
            return pd.Series([self._codec.unpack(one, self._time) for one in _list(packed["values"])], dtype="object")
        if kind == "interval":
            left, right = self.unpack(packed["left"]), self.unpack(packed["right"])
            return pd.Series(pd.arrays.IntervalArray.from_arrays(left, right, closed=packed["closed"]))
        if kind == "arrow" and self._arrow is not None:
            return pd.Series(pd.arrays.ArrowExtensionArray(self._arrow.column(packed["values"]["arrow"])))
        values = self._numbers(packed["values"])
        if kind == "category":
            categories = self.unpack(packed["of"])
            held = pd.Index(categories, dtype=categories.dtype, tupleize_cols=False)
            _check_hashes(held)
            with self._time.counted(len(held)):
                return pd.Series(pd.Categorical.from_codes(values, held, ordered=bool(packed["ordered"])))
        if kind == "time":
            stamps = pd.Series(values.astype("i8", copy=False).view(_matching(_TIME, packed["dtype"])), copy=False)
            zone = packed["zone"]
            return stamps if zone is None else stamps.dt.tz_localize("UTC").dt.tz_convert(check_zone(zone))
        if kind == "period":
            dtype = pd.PeriodDtype(_matching(_FREQUENCY, packed["frequency"]))
            return pd.Series(pd.arrays.PeriodArray(values.astype("i8", copy=False), dtype=dtype))
        if kind == "nullable":
            types = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
            array = types.get(values.dtype.kind, pd.arrays.IntegerArray)
            return pd.Series(array(values, self._numbers(packed["missing"]).astype(bool)))
        if kind == "number":
            return pd.Series(values, copy=False)
        if kind == "sparse":
            return pd.Series(pd.arrays.SparseArray(values, fill_value=self._codec.unpack(packed["fill"], self._time)))
        raise ValueError(f"no column that crosses is of kind {kind!r:.80}")

    def unpack_index(self, packed: dict[str, Any]) -> Any:
        names = [self._codec.unpack(one, self._time) for one in packed["names"]]
        if packed["kind"] == "range":
            start, stop, step = packed["range"]
            return pd.RangeIndex(start, stop, step, name=names[0])
        levels = [self.unpack(one) for one in packed["levels"]]
        # Without its dtype, an object index of texts would be taken for a text index.
        flat: list[Any] = [pd.Index(one, name=None, dtype=one.dtype, tupleize_cols=False) for one in levels]
        if packed["kind"] == "multi":
            numbered = [self._level(one) for one in flat]
            levels, codes = [level for level, _ in numbered], [code for _, code in numbered]
            return pd.MultiIndex(levels, codes, names=names, verify_integrity=False)  # which would hash the levels
        flat[0].name = names[0]
        if packed["frequency"] is not None and hasattr(flat[0], "freq"):
            flat[0].freq = _matching(_FREQUENCY, packed["frequency"])
        return flat[0]

    def _level(self, values: Any) -> tuple[Any, Any]:
        """Return the different values, sorted if they can be, and each row's number among them; -1 for a missing one.

        As `MultiIndex.from_arrays` makes them; but sorted or numbered by Python, whose time is bounded.
        """
        if isinstance(values.dtype, pd.CategoricalDtype):
            every = pd.Categorical.from_codes(np.arange(len(values.categories)), dtype=values.dtype)
            return pd.CategoricalIndex(every), values.codes
        held = np.flatnonzero(~values.isna())
        present = values[held]
        codes = np.full(len(values), -1, dtype="i8")
        if _is_plain(values.dtype):
            keys = present.asi8 if hasattr(present, "asi8") else present.to_numpy()
            order = np.argsort(keys, kind="stable")
            begins = np.ones(len(keys), dtype=bool)
            begins[1:] = keys[order][1:] != keys[order][:-1]
            codes[held[order]] = np.cumsum(begins) - 1
            return present[order[begins]], codes
        numbers, firsts = self._time.number(present.tolist())
        level, ranks = present[np.array(firsts, dtype="i8")], np.arange(len(firsts))
        try:
            order = np.asarray(level.argsort())
        except TypeError:  # of kinds that can't be compared
            order = ranks
        places = np.empty_like(ranks)
        places[order] = ranks
        codes[held] = places[np.array(numbers, dtype="i8")]
        return level[order], codes

    def _numbers(self, packed: Any) -> Any:
        if "arrow" in packed and self._arrow is not None:
            return self._arrow.numbers(packed["arrow"])
        dtype, count = packed["dtype"], packed["count"]
        if not (isinstance(dtype, str) and _NUMBER.fullmatch(dtype)) or type(count) is not int or count < 0:
            raise ValueError(f"a column's numbers are not numbers: {packed!r:.80}")
        self._budget.claim(count * np.dtype(dtype).itemsize)
        if not count:
            return np.empty(0, dtype)
        values = np.frombuffer(self._raw, dtype.replace("b", "u"), count, packed["start"])
        return values != 0 if "b" in dtype else values.copy()  # a truth value of 2 would mislead numpy

    def _texts(self, packed: dict[str, Any]) -> Any:
        values = packed["values"]
        dtype = _text_dtype(packed)
        if isinstance(values, dict) and self._arrow is not None:
            texts = self._arrow.texts(values["arrow"])
            return pd.Series(texts.to_pylist() if dtype == "object" else dtype.__from_arrow__(texts), dtype=dtype)
        if not set(map(type, _list(values))) <= {str, type(None)}:
            raise ValueError("a column's texts are not texts")
        return pd.Series(values, dtype=dtype)


def _check_hashes(categories: Any) -> None:
    """Check that pandas can find out in about linear time whether categories differ.

    Sorted values are compared with their neighbours; the hash of a text can't be chosen.

    Raises:
        ValueError: they are many, and what is chosen so that their hashes are equal takes quadratic time.
    """
    dtype = categories.dtype
    if len(categories) <= _MOST_HASHED or isinstance(dtype, pd.StringDtype):
        return
    if _is_plain(dtype) and categories.is_monotonic_increasing:  # which pandas keeps, with what it says of neighbours
        return
    if not (str(dtype) == "object" and set(map(type, categories)) == {str}):
        raise ValueError(
            f"{len(categories)} categories of {dtype} don't cross: beyond {_MOST_HASHED} they are texts, or sorted "
            "numbers or times; convert the column, e.g. with .astype(str)"
        )


def _is_plain(dtype: Any) -> bool:
    """Return whether values of a dtype are numbers or times in an array of numpy."""
    return isinstance(dtype, (pd.DatetimeTZDtype, pd.PeriodDtype)) or (
        isinstance(dtype, np.dtype) and dtype.kind in "biufMm"
    )


def check_zone(name: object) -> str:
    """Return the name of a time zone that crosses: one of the IANA database, or an offset.

    Args:
        name: Sent by the other side, so it may be anything; pandas would open files by other names.

    Raises:
        ValueError: it is no name of the IANA database, and no offset.
    """
    if isinstance(name, str):
        if _OFFSET.fullmatch(name):
            return name
        if _ZONE.fullmatch(name):
            try:
                zoneinfo.ZoneInfo(name)
            except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
                pass
            else:
                return name
    raise ValueError(f"no time zone that crosses: {name!r:.80}; use an IANA name, or an offset such as UTC+02:00")


def _as_series(index: Any, name: Any) -> pd.Series[Any]:
    """Return an index's values; told its dtype, pandas takes no object index of texts for a text column."""
    values: pd.Series[Any] = pd.Series(index, index=range(len(index)), dtype=index.dtype, name=name)
    return values


def _packed_attrs(table: Any, codec: Codec) -> Any:
    try:
        return codec.pack(dict(table.attrs))
    except TypeError:  # a note on the table must not keep the table from crossing
        return {}


def _text_dtype(packed: dict[str, Any]) -> Any:
    """Return the dtype of texts nearest to the one on the other side, which may have pyarrow or another pandas."""
    arrow = packed["storage"] != "python" and importlib.util.find_spec("pyarrow") is not None
    storage = "pyarrow" if arrow else "python"
    if packed["dtype"] != "str":
        return pd.StringDtype(storage)
    try:
        return pd.StringDtype(storage, na_value=np.nan)
    except TypeError:  # pandas 2.2
        return "object"


def _matching(pattern: re.Pattern[str], text: Any) -> str:
    if not (isinstance(text, str) and pattern.fullmatch(text)):
        raise ValueError(f"no dtype of a column that crosses: {text!r:.80}")
    return text


def _list(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise ValueError(f"a column's values are not a list: {values!r:.80}")
    return values
