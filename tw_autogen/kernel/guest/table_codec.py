"""DataFrames and Series as files: a JSON header that describes each column, numbers, and Arrow if both sides have it.

Kept, with and without pyarrow: numbers and truth values of numpy (of either byte order), nullable ones, times and time
spans with unit and zone, periods, intervals, categories, strings, sparse numbers, and objects whose values `Codec`
packs: texts, None, NaN, NA, numbers, times, lists, dicts, … Kept with pyarrow only: columns of a `pandas.ArrowDtype`.
Lost, which is a TypeError that names the column: complex numbers, floats of more than 8 bytes, records, other objects,
and dtypes of other packages. Labels and index are kept as columns are, without a frequency that no name says; `attrs`
only if each value in them crosses.

Without pyarrow a column's values are a JSON list in the header, or bytes after it. What is read may come from a kernel,
so it may be anything: sizes are counted before memory is taken, and no name in it is looked up outside these tables.
"""

from __future__ import annotations

import importlib
import re
import struct
from json import dumps, loads  # held here: code may overwrite them in the module
from typing import TYPE_CHECKING, Any

from .arrow_columns import ArrowReader, ArrowWriter
from .bounds import Bounds, check_fields, shown
from .json_size import estimate_parsed_bytes
from .time_zone_names import check_zone


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

_MAX_BLOCKS = 32
"""Of more columns pandas makes few pieces of memory at once; a frame in very many pieces is slow."""

_MAX_HASHED = 10_000
"""How many categories of a column pandas may hash, unless their hashes can't be chosen."""

_BYTES_PER_COLUMN = 2048
"""What pandas takes for a column without values."""

_BYTES_PER_CATEGORY = 128
_SORTED_BYTES, _NUMBERED_BYTES = 64, 256
"""What making a level of a MultiIndex takes for a row, where numpy sorts its values and where Python numbers them."""

_SPARSE_BYTES = 24
"""What making a sparse column takes for a value."""

_HEADER = {
    "rows": (int,), "columns": (list,), "index": (dict,), "labels": (dict,), "attrs": (dict,),
    "name": (list, type(None)),
}  # fmt: skip
_COLUMNS: dict[str, dict[str, tuple[type, ...]]] = {
    "text": {"dtype": (str,), "storage": (str,), "values": (list, dict)},
    "texts": {"values": (dict,)},
    "object": {"values": (list,)},
    "interval": {"left": (dict,), "right": (dict,), "closed": (str,)},
    "arrow": {"values": (dict,)},
    "category": {"values": (dict,), "of": (dict,), "ordered": (bool,)},
    "time": {"values": (dict,), "dtype": (str,)},
    "period": {"values": (dict,), "frequency": (str,)},
    "nullable": {"values": (dict,), "missing": (dict,)},
    "number": {"values": (dict,)},
    "sparse": {"values": (dict,)},
}
_INDEXES: dict[str, dict[str, tuple[type, ...]]] = {
    "range": {"range": (list,), "names": (list,)},
    "flat": {"levels": (list,), "names": (list,), "frequency": (str, type(None))},
    "multi": {"levels": (list,), "codes": (list,), "names": (list,)},
}
_NUMBERS = {"dtype": (str,), "start": (int,), "count": (int,)}
"""Fields of a table's header and their types. A zone is checked by `check_zone`, other values by `Codec`."""

_LENGTHS = struct.Struct("<QQ")
_NUMBER = re.compile(r"[<>|](b1|[iu][1248]|f[248])")
_TIME = re.compile(r"[Mm]8\[(s|ms|us|ns)\]")
_FREQUENCY = re.compile(r"[0-9A-Za-z-]{1,20}")
_MAX_STEPS = 50_000
"""Rows of an index that keeps a frequency such as business days: pandas checks each of them, in 35 µs."""


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
    with codec.new_file(".table") as (name, file):
        file.write(_LENGTHS.pack(len(text), sum(piece.nbytes for piece in raw)) + text)
        for part in raw:
            file.write(part.view("u1").data)
        if arrow is not None:
            arrow.write(file)
    return name


def take_table(name: str, codec: Codec, bounds: Bounds) -> Any:
    """Read and remove a file that `pack_table` wrote on the other side; return a frame, of a Series its one column.

    Args:
        name: The file's name, as the other side says it.
        codec: Knows the exchange.
        bounds: Of the message that this is a part of.

    Raises:
        OSError: the file is not there, or not a plain file in the exchange.
        ValueError: it is nothing that `pack_table` writes, or would take too much memory or time.
    """
    memory = bounds.memory
    try:
        with codec.exchange.open(name) as file:
            size = file.seek(0, 2) - _LENGTHS.size
            if size < 0:
                raise ValueError(f"a table's file has no {_LENGTHS.size} bytes")
            memory.claim(size)  # a file may be sparse, and a few bytes on the disk stand for many
            file.seek(0)
            length, more = _LENGTHS.unpack(file.read(_LENGTHS.size))
            if length + more > size:
                raise ValueError(f"a table's header is not of {length} bytes, or its numbers not of {more}")
            text, raw = file.read(length).decode("ascii"), file.read(more)
            stream = file.read(size - length - more)
    finally:
        codec.exchange.remove(name)
    memory.claim(estimate_parsed_bytes(text))
    header = loads(text)
    del text
    if not isinstance(header, dict):
        raise ValueError("a table's header is not a dict")
    check_fields(header, _HEADER, "a table's header")
    rows = header["rows"]
    if rows < 0:
        raise ValueError(f"a table has no {rows!r} rows")
    memory.claim(8 * rows)
    columns = _Unpacker(codec, raw, ArrowReader(stream, memory) if stream and codec.arrow else None, bounds)
    del raw, stream
    read = {number: columns.unpack(column) for number, column in enumerate(header["columns"])}
    index, labels = columns.unpack_index(header["index"]), columns.unpack_index(header["labels"])
    if {len(index), *map(len, read.values())} != {rows} or len(labels) != len(read):
        raise ValueError(f"a table's columns are not of {rows} rows, or not as many as their labels")
    del columns
    memory.free(more)  # the numbers were copied
    many = len(read) > _MAX_BLOCKS
    with memory.held(sum(array.nbytes for array in read.values()) if many else 0):
        frame = pd.DataFrame(read, index=pd.RangeIndex(rows), copy=many)
    frame.index, frame.columns = index, labels
    if header["name"]:
        frame.columns = pd.Index([codec.unpack(header["name"][0], bounds)], dtype=object, tupleize_cols=False)
    attrs = codec.unpack(header["attrs"], bounds)
    if not isinstance(attrs, dict):
        raise ValueError("a table's attrs are not a dict")
    frame.attrs.update(attrs)
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
            return {
                "kind": "category",
                "ordered": bool(dtype.ordered),
                "of": of,
                "values": self._pack_numbers(array.codes),
            }
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
            return {"kind": "object", "values": values if plain else [self._codec.pack(value) for value in values]}
        if isinstance(dtype, (np.dtype, pd.DatetimeTZDtype)) and dtype.kind in "Mm":
            zone = str(dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None
            stamps = column.astype("int64").to_numpy()
            return {
                "kind": "time",
                "dtype": f"{dtype.kind}8[{array.unit}]",
                "zone": zone,
                "values": self._pack_numbers(stamps),
            }
        if isinstance(dtype, pd.PeriodDtype):
            return {
                "kind": "period",
                "frequency": str(dtype)[len("period[") : -1],
                "values": self._pack_numbers(array.asi8),
            }
        if isinstance(dtype, pd.IntervalDtype):
            left, right = (self.pack(_as_series(side, column.name)) for side in (array.left, array.right))
            return {"kind": "interval", "closed": dtype.closed, "left": left, "right": right}
        if isinstance(array, (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)):
            values = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
            return {
                "kind": "nullable",
                "values": self._pack_numbers(values),
                "missing": self._pack_numbers(array.isna()),
            }
        if (
            isinstance(dtype, (np.dtype, pd.SparseDtype))
            and dtype.kind in "biuf"
            and np.dtype(dtype.type).itemsize <= 8
        ):
            values = self._pack_numbers(np.asarray(array))
            if isinstance(dtype, pd.SparseDtype):
                return {"kind": "sparse", "fill": self._codec.pack(dtype.fill_value), "values": values}
            return {"kind": "number", "values": values}
        if isinstance(dtype, pd.ArrowDtype) and (values := self._put_arrow(array)):
            return {"kind": "arrow", "values": values}
        hint = "convert it, e.g. with .astype(str)"
        raise TypeError(f"column {column.name!r} has dtype {dtype}, which doesn't cross; {hint}")

    def pack_index(self, index: Any) -> dict[str, Any]:
        names = [self._codec.pack(name) for name in index.names]
        if isinstance(index, pd.RangeIndex):
            return {"kind": "range", "range": [index.start, index.stop, index.step], "names": names}
        if isinstance(index, pd.MultiIndex):  # by level and code: a missing label would make floats of whole numbers
            used = index.remove_unused_levels()
            levels = [self.pack(_as_series(level, level.name)) for level in used.levels]
            return {
                "kind": "multi",
                "levels": levels,
                "codes": [self._pack_numbers(code) for code in used.codes],
                "names": names,
            }
        level = self.pack(_as_series(index, index.name))
        return {"kind": "flat", "levels": [level], "names": names, "frequency": _frequency(index)}

    def _pack_numbers(self, values: Any) -> Any:
        if (packed := self._put_arrow(values)) is not None:
            return packed
        start = sum(piece.nbytes for piece in self._raw)
        self._raw.append(np.ascontiguousarray(values))
        return {"dtype": values.dtype.str, "start": start, "count": len(values)}

    def _put_arrow(self, values: Any) -> dict[str, int] | None:
        number = self._arrow.add(values) if self._arrow is not None else None
        return None if number is None else {"arrow": number}


class _Unpacker:
    """Makes columns of what `_Packer` made; anything else is an error."""

    def __init__(self, codec: Codec, raw: bytes, arrow: ArrowReader | None, bounds: Bounds) -> None:
        self._codec = codec
        self._raw = raw
        self._arrow = arrow
        self._bounds = bounds
        self._memory = bounds.memory

    def unpack(self, packed: Any) -> Any:
        kind = _checked_kind(packed, _COLUMNS, "column")
        self._memory.claim(_BYTES_PER_COLUMN)
        if kind == "text":
            return self._unpack_texts(packed)
        if kind == "object":
            return pd.Series([self._codec.unpack(value, self._bounds) for value in packed["values"]], dtype="object")
        if kind == "interval":
            left, right = self.unpack(packed["left"]), self.unpack(packed["right"])
            self._memory.claim(4 * len(left))
            return pd.Series(pd.arrays.IntervalArray.from_arrays(left, right, closed=packed["closed"]))
        if kind in ("texts", "arrow"):
            if self._arrow is None:
                raise ValueError(f"no column that crosses is of kind {kind!r}")
            number = packed["values"].get("arrow")
            if kind == "texts":
                return pd.Series(self._arrow.objects(number), dtype="object")
            return pd.Series(pd.arrays.ArrowExtensionArray(self._arrow.column(number)))
        return self._unpack_numbers(kind, self._read_numbers(packed["values"]), packed)

    def _unpack_numbers(self, kind: str, values: Any, packed: dict[str, Any]) -> Any:
        if kind == "category":
            return self._unpack_category(values, packed)
        if kind == "time":
            stamps = pd.Series(_require_int64(values).view(_require_match(_TIME, packed["dtype"])), copy=False)
            if packed.get("zone") is None:
                return stamps
            zone = check_zone(packed["zone"])
            self._memory.claim(values.nbytes)
            return stamps.dt.tz_localize("UTC").dt.tz_convert(zone)
        if kind == "period":
            dtype = pd.PeriodDtype(_require_match(_FREQUENCY, packed["frequency"]))
            return pd.Series(pd.arrays.PeriodArray(_require_int64(values), dtype=dtype))
        if kind == "nullable":
            types = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
            array = types.get(values.dtype.kind, pd.arrays.IntegerArray)
            missing = self._read_numbers(packed["missing"])
            if missing.dtype != "b1":
                raise ValueError(f"which values are missing is not said by {missing.dtype}")
            return pd.Series(array(values, missing))
        if kind == "sparse":
            fill = self._codec.unpack(packed.get("fill"), self._bounds)
            if type(fill) not in (bool, int, float):
                raise ValueError(f"no sparse column that crosses is filled with {shown(fill)}")
            self._memory.claim(_SPARSE_BYTES * len(values))
            return pd.Series(pd.arrays.SparseArray(values, fill_value=fill))
        return pd.Series(values, copy=False)

    def _unpack_category(self, values: Any, packed: dict[str, Any]) -> Any:
        categories = self.unpack(packed["of"])
        held = pd.Index(categories, dtype=categories.dtype, tupleize_cols=False)
        _check_hashes(held)
        least = np.min_scalar_type(-1 - len(held)).itemsize  # what pandas makes of the codes
        self._memory.claim(_BYTES_PER_CATEGORY * len(held) + (0 if values.itemsize == least else least * len(values)))
        with self._bounds.time.counted(len(held)):
            return pd.Series(pd.Categorical.from_codes(values, held, ordered=packed["ordered"]))

    def unpack_index(self, packed: dict[str, Any]) -> Any:
        kind = _checked_kind(packed, _INDEXES, "index")
        names = [self._codec.unpack(name, self._bounds) for name in packed["names"]]
        if kind == "range":
            if len(packed["range"]) != 3 or not all(
                type(number) is int and abs(number) < 1 << 62 for number in packed["range"]
            ):
                raise ValueError("an index that counts has no start, stop and step")
            start, stop, step = packed["range"]
            return pd.RangeIndex(start, stop, step, name=names[0] if names else None)
        if not packed["levels"]:
            raise ValueError("an index has no levels")
        levels = [self.unpack(level) for level in packed["levels"]]
        # Without its dtype, an object index of texts would be taken for a text index.
        flat: list[Any] = [pd.Index(level, name=None, dtype=level.dtype, tupleize_cols=False) for level in levels]
        if kind == "multi":
            numbered = [self._factorize_level(level) for level in flat]
            codes = self._unpack_codes(packed["codes"], [places for _, places in numbered])
            levels = [level for level, _ in numbered]
            return pd.MultiIndex(levels, codes, names=names, verify_integrity=False)  # which would hash the levels
        flat[0].name = names[0] if names else None
        if packed.get("frequency") is not None and type(flat[0]) in (pd.DatetimeIndex, pd.TimedeltaIndex):
            frequency = pd.tseries.frequencies.to_offset(_require_match(_FREQUENCY, packed["frequency"]))
            if isinstance(frequency, pd.offsets.Tick) or len(flat[0]) <= _MAX_STEPS:
                flat[0].freq = frequency
        return flat[0]

    def _unpack_codes(self, packed: list[Any], places: list[Any]) -> list[Any]:
        """Return each row's number in each level, -1 where the label is missing.

        Args:
            packed: The rows' numbers in the levels as they came.
            places: Where the values of these levels are in those that were made of them.
        """
        if len(packed) != len(places) or {dict} != set(map(type, packed)):
            raise ValueError(f"an index of {len(places)} levels has no column of codes for each")
        found = []
        for part, level in zip(packed, places):  # noqa: B905 - strict: Python 3.10
            codes = self._read_numbers(part)
            if codes.dtype.kind != "i" or (len(codes) and not -1 <= codes.min() <= codes.max() < len(level)):
                raise ValueError(f"an index is not coded by places in a level of {len(level)}")
            self._memory.claim(16 * len(codes))
            found.append(np.append(level, -1)[codes])
        if len(set(map(len, found))) > 1:
            raise ValueError("the codes of an index are not of as many rows")
        return found

    def _factorize_level(self, values: Any) -> tuple[Any, Any]:
        """Return the different values, sorted if they can be, and each value's place among them; -1 for a missing one.

        As `MultiIndex.from_arrays` makes them; but sorted or numbered by Python, whose time is bounded.
        """
        if isinstance(values.dtype, pd.CategoricalDtype):
            every = pd.Categorical.from_codes(np.arange(len(values.categories)), dtype=values.dtype)
            return pd.CategoricalIndex(every), values.codes
        each = _SORTED_BYTES if _is_plain(values.dtype) else _NUMBERED_BYTES
        self._memory.claim(16 * len(values))
        with self._memory.held(each * len(values) + 4 * values.nbytes):
            return self._factorize_values(values)

    def _factorize_values(self, values: Any) -> tuple[Any, Any]:
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
        numbers, firsts = self._bounds.time.number(present.tolist())
        level, ranks = present[np.array(firsts, dtype="i8")], np.arange(len(firsts))
        try:
            order = np.asarray(level.argsort())
        except TypeError:  # of kinds that can't be compared
            order = ranks
        places = np.empty_like(ranks)
        places[order] = ranks
        codes[held] = places[np.array(numbers, dtype="i8")]
        return level[order], codes

    def _read_numbers(self, packed: dict[str, Any]) -> Any:
        if "arrow" in packed and self._arrow is not None:
            return self._arrow.numbers(packed["arrow"])
        check_fields(packed, _NUMBERS, "a column's numbers")
        dtype, count = packed["dtype"], packed["count"]
        if not _NUMBER.fullmatch(dtype) or count < 0:
            raise ValueError(f"a column's numbers are not numbers: {count} of {shown(dtype)}")
        self._memory.claim(count * np.dtype(dtype).itemsize)
        if not count:
            return np.empty(0, dtype)
        values = np.frombuffer(self._raw, dtype.replace("b", "u"), count, packed["start"])
        return values != 0 if "b" in dtype else values.copy()  # a truth value of 2 would mislead numpy

    def _unpack_texts(self, packed: dict[str, Any]) -> Any:
        values = packed["values"]
        dtype = _text_dtype(packed)
        if isinstance(values, dict) and self._arrow is not None:
            if dtype == "object" or dtype.storage == "python":
                return pd.Series(self._arrow.objects(values.get("arrow")), dtype=dtype)
            return pd.Series(dtype.__from_arrow__(self._arrow.texts(values.get("arrow"))), dtype=dtype)
        if not isinstance(values, list) or not set(map(type, values)) <= {str, type(None)}:
            raise ValueError("a column's texts are not texts")
        return pd.Series(values, dtype=dtype)


def _checked_kind(packed: Any, kinds: dict[str, dict[str, tuple[type, ...]]], what: str) -> str:
    """Return the kind of a column or index whose fields have the types of that kind."""
    kind = packed.get("kind") if isinstance(packed, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"no {what} that crosses is of kind {shown(kind)}")
    check_fields(
        packed, kinds[kind], f"a column of kind {kind!r}" if what == "column" else f"an index of kind {kind!r}"
    )
    return kind


def _require_int64(values: Any) -> Any:
    """Return numbers of 8 bytes as they are; times are such."""
    if values.dtype != "i8":
        raise ValueError(f"times that cross are whole numbers of 8 bytes, not {values.dtype}")
    return values


def _check_hashes(categories: Any) -> None:
    """Check that pandas can find out in about linear time whether categories differ.

    Sorted values are compared with their neighbours; the hash of a text can't be chosen.

    Raises:
        ValueError: they are many, and what is chosen so that their hashes are equal takes quadratic time.
    """
    dtype = categories.dtype
    if len(categories) <= _MAX_HASHED or isinstance(dtype, pd.StringDtype):
        return
    if _is_plain(dtype) and categories.is_monotonic_increasing:  # which pandas keeps, with what it says of neighbours
        return
    if not (str(dtype) == "object" and set(map(type, categories)) == {str}):
        raise ValueError(
            f"{len(categories)} categories of {dtype} don't cross: beyond {_MAX_HASHED} they are texts, or sorted "
            "numbers or times; convert the column, e.g. with .astype(str)"
        )


def _is_plain(dtype: Any) -> bool:
    """Return whether values of a dtype are numbers or times in an array of numpy."""
    return isinstance(dtype, (pd.DatetimeTZDtype, pd.PeriodDtype)) or (
        isinstance(dtype, np.dtype) and dtype.kind in "biufMm"
    )


def _as_series(index: Any, name: Any) -> pd.Series[Any]:
    """Return an index's values; told its dtype, pandas takes no object index of texts for a text column."""
    values: pd.Series[Any] = pd.Series(index, index=range(len(index)), dtype=index.dtype, name=name)
    return values


def _frequency(index: Any) -> str | None:
    """Return the name of an index's frequency; None if there is none, or if a name doesn't say all of it."""
    if not isinstance(index, (pd.DatetimeIndex, pd.TimedeltaIndex)) or not _FREQUENCY.fullmatch(index.freqstr or ""):
        return None  # a period's is a part of its dtype
    try:
        return index.freqstr if pd.tseries.frequencies.to_offset(index.freqstr) == index.freq else None
    except ValueError:  # an offset of another package
        return None


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


def _require_match(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"no dtype of a column that crosses: {shown(text)}")
    return text
