"""Packs values as JSON and unpacks them, on both sides: what JSON has, tuples, sets, bytes, times, arrays, tables.

Never pickle: what a kernel sends is data to the host, and nothing in it can run there.
"""

from __future__ import annotations

import binascii
import datetime
import io
import pathlib
import re
from json import dumps, loads  # held here: code may overwrite them in the module
from typing import Any, BinaryIO, Protocol

from .hash_time import HashTime
from .tables import check_zone, pack_table, unpack_table

TAG = "$"
_STAMP, _SPAN = re.compile(r"[-+.:T0-9]{4,40}"), re.compile(r"[-+.0-9DHMPST]{2,80}")
_DTYPE = re.compile(r"[<>|=]?(?:[biufcSU]\d+|[mM]8\[\w+\])")
"""Numbers, truth values, texts and times of a fixed width: never objects, which numpy would read as pointers."""


class Exchange(Protocol):
    """The folder with the files of tables that cross; both sides see it."""

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Create a file; return its name and the open file."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file of that name for reading."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file that was read."""
        ...


class Codec:
    """Packs and unpacks values.

    Args:
        exchange: Where tables are written and read.
        arrow: Both sides have pyarrow: columns cross as Arrow; otherwise as JSON. See `tables`.
        most_bytes: How much memory the reading of one table may take, by what the table's file says of itself.
    """

    def __init__(self, exchange: Exchange, *, arrow: bool = False, most_bytes: int = 1 << 62) -> None:
        self.exchange = exchange
        self.arrow = arrow
        self.most_bytes = most_bytes

    def dumps(self, value: Any) -> str:
        """Return JSON text.

        Raises:
            TypeError: the value, or one in it, is of a type that doesn't cross.
        """
        try:
            return dumps(self.pack(value))
        except RecursionError as error:
            raise TypeError("a value that contains itself, or is nested too deeply, doesn't cross") from error

    def loads(self, text: str) -> Any:
        """Return the value of which `dumps` made this text."""
        return self.unpack(loads(text))

    def leave(self, text: str) -> str:
        """Write a text into the exchange, for the other side to fetch; return the file's name."""
        name, file = self.exchange.create(".json")
        with file:
            file.write(text.encode("utf-8"))
        return name

    def find(self, name: str) -> str:
        """Read and remove a text that the other side left."""
        with self.exchange.open(name) as file:
            text = file.read().decode("utf-8")
        self.exchange.remove(name)
        return text

    def pack(self, value: Any) -> Any:
        """Return plain JSON values.

        Raises:
            TypeError: the value, or one in it, is of a type that doesn't cross.
        """
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is list:
            return [self.pack(one) for one in value]
        if kind is dict:
            if all(type(key) is str for key in value) and TAG not in value:
                return {key: self.pack(one) for key, one in value.items()}
            return {TAG: "dict", "items": [[self.pack(key), self.pack(one)] for key, one in value.items()]}
        if isinstance(value, tuple):
            return {TAG: "tuple", "items": [self.pack(one) for one in value]}
        if isinstance(value, (set, frozenset)):
            name = "set" if isinstance(value, set) else "frozenset"
            return {TAG: name, "items": [self.pack(one) for one in value]}
        plain: Any
        for plain in (bool, int, float, str, list, dict):  # their subclasses, such as numpy.float64 and OrderedDict
            if isinstance(value, plain):
                return self.pack(plain(value))
        return self._pack_known(value, _class_name(value))

    def unpack(self, plain: Any, time: HashTime | None = None) -> Any:
        """Return the value that `pack` got.

        Args:
            plain: As `pack` returns it; from the other side it may be anything.
            time: Bounds the building of sets and dicts in the message that this is a part of; None: it is all of one.

        Raises:
            ValueError: it is nothing that `pack` makes, or the hashes of keys in it are chosen to take long.
        """
        time = time or HashTime()
        if isinstance(plain, list):
            return [self.unpack(one, time) for one in plain]
        if not isinstance(plain, dict):
            return plain
        kind = plain.get(TAG)
        if kind is None:
            return {key: self.unpack(one, time) for key, one in plain.items()}
        if kind == "dict":
            return time.build_dict([(self.unpack(key, time), self.unpack(one, time)) for key, one in plain["items"]])
        if kind == "tuple":
            return tuple(self.unpack(one, time) for one in plain["items"])
        if kind in ("set", "frozenset"):
            items = time.build_set([self.unpack(one, time) for one in plain["items"]])
            return items if kind == "set" else frozenset(items)
        if kind in ("date", "time", "datetime"):
            return getattr(datetime, kind).fromisoformat(plain["iso"])
        return self._unpack_known(str(kind), plain, time)

    def _pack_known(self, value: Any, name: str) -> Any:
        if name.startswith("numpy.") and callable(getattr(value, "item", None)) and getattr(value, "shape", None) == ():
            return self.pack(value.item())
        if name in ("pandas.NA", "pandas.NaT"):
            return {TAG: name[7:]}
        if name == "pandas.Timestamp":
            return {TAG: "Timestamp", "iso": value.isoformat(), "zone": str(value.tz) if value.tz else None}
        if name == "pandas.Timedelta":
            return {TAG: "Timedelta", "iso": value.isoformat()}
        if isinstance(value, datetime.datetime):
            return {TAG: "datetime", "iso": value.isoformat()}
        if isinstance(value, (datetime.date, datetime.time)):
            return {TAG: "date" if isinstance(value, datetime.date) else "time", "iso": value.isoformat()}
        if name in ("pandas.DataFrame", "pandas.Series"):
            return {TAG: name[7:], "file": pack_table(value, self)}
        if isinstance(value, (bytes, bytearray)):
            return {TAG: type(value).__name__, "base64": _base64(bytes(value))}
        if isinstance(value, pathlib.PurePath):
            return {TAG: "Path", "text": str(value)}
        if name == "decimal.Decimal":
            return {TAG: "Decimal", "text": str(value)}
        if name == "numpy.ndarray":
            return _packed_array(value)
        raise TypeError(f"a value of type {type(value).__name__} doesn't cross between kernel and host")

    def _unpack_known(self, kind: str, plain: dict[str, Any], time: HashTime) -> Any:
        if kind in ("bytes", "bytearray"):
            content = _bytes(plain)
            return content if kind == "bytes" else bytearray(content)
        if kind == "Decimal":
            return _decimal(plain.get("text"))
        if kind == "Path":
            return pathlib.Path(str(plain.get("text", "")))
        if kind == "ndarray":
            return _array(plain)
        if kind not in ("NA", "NaT", "Timestamp", "Timedelta", "DataFrame", "Series"):
            raise ValueError(f"nothing that crosses is marked {kind!r}")
        import pandas as pd  # deferred: the other side had it for a value like this, and it costs 0.2 s

        if kind in ("NA", "NaT"):
            return getattr(pd, kind)
        if kind == "Timestamp":
            stamp = pd.Timestamp(_matching(_STAMP, plain["iso"]))
            return stamp.tz_convert(check_zone(plain["zone"])) if plain["zone"] else stamp
        if kind == "Timedelta":
            return pd.Timedelta(_matching(_SPAN, plain["iso"]))
        table = unpack_table(plain.get("file"), self, time)
        return table.iloc[:, 0] if kind == "Series" else table


def _matching(pattern: re.Pattern[str], text: Any) -> str:
    if not (isinstance(text, str) and pattern.fullmatch(text)):
        raise ValueError(f"no time that crosses: {text!r:.80}")
    return text


_SAMPLE_ROWS = 1000


class _Nowhere:
    """An exchange that keeps nothing; to find out whether a value crosses."""

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a file in memory."""
        return "nowhere", io.BytesIO()

    def open(self, name: str) -> BinaryIO:
        """Raise: what was written is not kept."""
        raise FileNotFoundError(name)

    def remove(self, name: str) -> None:
        """Remove nothing."""


def untransferable_reason(value: Any) -> str:
    """Return in words why a value doesn't cross; empty if it does. Of a table the first 1000 rows are looked at.

    Example:
        >>> untransferable_reason({"a": [1, 2]}), untransferable_reason({"f": len})
        ('', "a value of type builtin_function_or_method doesn't cross between kernel and host")
    """
    try:
        Codec(_Nowhere()).pack(value.iloc[:_SAMPLE_ROWS] if hasattr(value, "iloc") else value)
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)
    except RecursionError:
        return "a value that contains itself, or is nested too deeply, doesn't cross"
    return ""


_KNOWN = {
    "pandas": ("DataFrame", "Series", "Timestamp", "Timedelta", "NA", "NaT"),
    "numpy": ("ndarray", "generic"),
    "decimal": ("Decimal",),
}


def _class_name(value: Any) -> str:
    """Return `pandas.DataFrame` for one and for its subclasses; asked by name, so that nothing is imported."""
    for kind in type(value).__mro__:
        root = (kind.__module__ or "").partition(".")[0]
        name = {"NAType": "NA", "NaTType": "NaT"}.get(kind.__name__, kind.__name__)
        if name in _KNOWN.get(root, ()):
            return f"{root}.{name}"
    return type(value).__name__


def _base64(content: bytes) -> str:
    return binascii.b2a_base64(content, newline=False).decode("ascii")


def _bytes(plain: dict[str, Any]) -> bytes:
    text = plain.get("base64")
    if not isinstance(text, str):
        raise ValueError("bytes that cross are base64")
    return binascii.a2b_base64(text)


def _decimal(text: Any) -> Any:
    import decimal  # deferred: it would be a part of each kernel's start

    try:
        return decimal.Decimal(str(text))
    except decimal.InvalidOperation as error:
        raise ValueError(f"{text!r} is no decimal") from error


def _packed_array(value: Any) -> dict[str, Any]:
    dtype = value.dtype.str
    if not _DTYPE.fullmatch(dtype):
        raise TypeError(f"an array of dtype {value.dtype} doesn't cross between kernel and host; pass .tolist()")
    return {TAG: "ndarray", "dtype": dtype, "shape": list(value.shape), "base64": _base64(value.tobytes())}


def _array(plain: dict[str, Any]) -> Any:
    import numpy as np  # deferred: the other side had it for a value like this

    dtype, shape = plain.get("dtype"), plain.get("shape")
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise ValueError(f"no array that crosses has the dtype {dtype!r}")
    if not isinstance(shape, list) or not all(type(one) is int and one >= 0 for one in shape):
        raise ValueError(f"no array has the shape {shape!r}")
    try:
        values = np.frombuffer(bytearray(_bytes(plain)), dtype=dtype).reshape(shape)
    except TypeError as error:
        raise ValueError(f"no array that crosses has the dtype {dtype!r}") from error
    return values.view("u1") != 0 if values.dtype.kind == "b" else values  # a truth value of 2 would mislead numpy
