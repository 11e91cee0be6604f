"""Packs values as JSON and unpacks them, on both sides: what JSON has, tuples, sets, bytes, times, arrays, tables.

Never pickle: what a kernel sends is data to the host, and nothing in it can run there.
"""

from __future__ import annotations

import binascii
import contextlib
import datetime
import io
import math
import pathlib
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

from .bounds import UNBOUNDED, Bounds, check_fields, shown
from .table_codec import pack_table, take_table
from .time_zone_names import check_zone, parse_zone

TAG = "$"
_STAMP, _SPAN = re.compile(r"[-+.:T0-9]{4,40}"), re.compile(r"[-+.0-9DHMPST]{2,80}")
_DTYPE = re.compile(r"[<>|=]?(?:[biufcSU]\d+|[mM]8\[\w+\])")
"""Numbers, truth values, texts and times of a fixed width: never objects, which numpy would read as pointers."""

_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "dict": {"items": (list,)},
    "tuple": {"items": (list,)},
    "set": {"items": (list,)},
    "frozenset": {"items": (list,)},
    "date": {"iso": (str,)},
    "time": {"iso": (str,)},
    "datetime": {"iso": (str,)},
    "timedelta": {"days": (int,), "seconds": (int,), "microseconds": (int,)},
    "bytes": {"base64": (str,)},
    "bytearray": {"base64": (str,)},
    "Decimal": {"text": (str,)},
    "Path": {"text": (str,)},
    "ndarray": {"dtype": (str,), "shape": (list,), "base64": (str,)},
    "NA": {},
    "NaT": {},
    "Timestamp": {"iso": (str,)},
    "Timedelta": {"iso": (str,)},
    "DataFrame": {"file": (str,)},
    "Series": {"file": (str,)},
}
"""What crosses as an object with a mark: its fields and their types. A zone is checked by `check_zone`."""

_BYTES_PER_PAIR, _BYTES_PER_MEMBER = 192, 128
"""What a dict and a set take beyond the list of what is in them."""

_LONGEST_PATH = 32_767
_MAX_BITS, _MAX_DIGITS = 14_000, 4300
"""Of a number: Python writes and reads so many digits at most."""
_DEEPEST = 90
"""How deep the lists and objects of one value may be nested: each side reads no more than 100 in a message."""
_MAX_DIMENSIONS, _MAX_EMPTY = 64, 1_000_000


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

    def as_write_error(self, error: OSError) -> Exception:
        """Return what is raised where a file can't be written."""
        ...


class Codec:
    """Packs and unpacks values.

    Args:
        exchange: Where tables are written and read.
        arrow: Both sides have pyarrow: columns cross as Arrow; otherwise as JSON. See `table_codec`.
        max_bytes: How much memory the reading of one message may take, with all tables in it.
    """

    def __init__(self, exchange: Exchange, *, arrow: bool = False, max_bytes: int = UNBOUNDED) -> None:
        self.exchange = exchange
        self.arrow = arrow
        self.max_bytes = max_bytes

    def leave(self, text: str) -> str:
        """Write a text into the exchange, for the other side to fetch; return the file's name."""
        with self.new_file(".json") as (name, file):
            file.write(text.encode("utf-8"))
        return name

    @contextlib.contextmanager
    def new_file(self, suffix: str) -> Iterator[tuple[str, BinaryIO]]:
        """Write a new file of the exchange, which is removed again if that fails.

        Args:
            suffix: The last part of its name.

        Yields:
            Its name, and the file, open for writing.

        Raises:
            Exception: it can't be written, as on a full disk; see `Exchange.as_write_error`.
        """
        name = ""
        try:
            name, file = self.exchange.create(suffix)
            with file:
                yield name, file
        except OSError as error:
            if name:
                with contextlib.suppress(OSError):
                    self.exchange.remove(name)
            raise self.exchange.as_write_error(error) from error

    def find(self, name: str, *, limit_bytes: int = -1) -> str:
        """Read and remove a text that the other side left.

        Args:
            name: The file's name.
            limit_bytes: What is longer is cut there; -1: nothing is.
        """
        with self.exchange.open(name) as file:
            text = file.read(limit_bytes).decode("utf-8")
        self.exchange.remove(name)
        return text

    def pack(self, value: Any, *, depth: int = 0) -> Any:
        """Return plain JSON values.

        Args:
            value: Any.
            depth: How many lists and objects of JSON it lies in.

        Raises:
            TypeError: the value, or one in it, is of a type that doesn't cross, nested too deeply, or a very long int.
        """
        kind = type(value)
        if kind is int and value.bit_length() > _MAX_BITS:
            raise TypeError(
                f"an int of more than {_MAX_BITS} bits doesn't cross between kernel and host; pass its text"
            )
        if value is None or kind in (bool, int, float, str):
            return value
        if depth > _DEEPEST:
            raise TypeError("a value that contains itself, or is nested too deeply, doesn't cross")
        if kind is list:
            return [self.pack(item, depth=depth + 1) for item in value]
        if kind is dict:
            if all(type(key) is str for key in value) and TAG not in value:
                return {key: self.pack(item, depth=depth + 1) for key, item in value.items()}
            return {
                TAG: "dict",
                "items": [[self.pack(item, depth=depth + 3) for item in pair] for pair in value.items()],
            }
        for name, container in (("tuple", tuple), ("set", set), ("frozenset", frozenset)):
            if isinstance(value, container):
                return {TAG: name, "items": [self.pack(item, depth=depth + 2) for item in value]}
        plain: Any
        for plain in (bool, int, float, str, list, dict):  # their subclasses, such as numpy.float64 and OrderedDict
            if isinstance(value, plain):
                return self.pack(str.__str__(value) if plain is str else plain(value), depth=depth)
        return self._pack_known(value, _class_name(value))

    def unpack(self, plain: Any, bounds: Bounds | None = None) -> Any:
        """Return the value that `pack` got.

        Args:
            plain: As `pack` returns it; from the other side it may be anything.
            bounds: Of the message that this is a part of; None: it is all of one.

        Raises:
            ValueError: it is nothing that `pack` makes, or takes too much memory, or the hashes of keys in it are
                chosen to take long.
        """
        bounds = bounds or Bounds(self.max_bytes)
        if isinstance(plain, list):
            return [self.unpack(item, bounds) for item in plain]
        if not isinstance(plain, dict):
            return plain
        kind = plain.get(TAG)
        if kind is None:
            return {key: self.unpack(item, bounds) for key, item in plain.items()}
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise ValueError(f"nothing that crosses is marked {shown(kind)}")
        check_fields(plain, _FIELDS[kind], kind)
        if kind == "dict":
            bounds.memory.claim(_BYTES_PER_PAIR * len(plain["items"]))
            return bounds.time.build_dict([self._unpack_pair(item, bounds) for item in plain["items"]])
        if kind == "tuple":
            return tuple(self.unpack(item, bounds) for item in plain["items"])
        if kind in ("set", "frozenset"):
            bounds.memory.claim(_BYTES_PER_MEMBER * len(plain["items"]))
            items = bounds.time.build_set([self.unpack(item, bounds) for item in plain["items"]])
            return items if kind == "set" else frozenset(items)
        if kind in ("date", "time", "datetime"):
            when = getattr(datetime, kind).fromisoformat(_require_match(_STAMP, plain["iso"]))
            return _in_zone(when, plain["zone"]) if plain.get("zone") and kind != "date" else when
        if kind == "timedelta":
            return _timedelta(**{key: plain[key] for key in _FIELDS[kind]})
        return self._unpack_known(kind, plain, bounds)

    def _unpack_pair(self, plain: Any, bounds: Bounds) -> tuple[Any, Any]:
        if not isinstance(plain, list) or len(plain) != 2:
            raise ValueError("a dict that crosses has pairs of a key and a value")
        return self.unpack(plain[0], bounds), self.unpack(plain[1], bounds)

    def _pack_known(self, value: Any, name: str) -> Any:
        if name.startswith("numpy."):
            return self._pack_numpy(value, name)
        if name in ("pandas.NA", "pandas.NaT"):
            return {TAG: name[7:]}
        if name == "pandas.Timestamp":
            return {TAG: "Timestamp", "iso": value.isoformat(), "zone": str(value.tz) if value.tz else None}
        if name == "pandas.Timedelta":
            return {TAG: "Timedelta", "iso": value.isoformat()}
        if isinstance(value, (datetime.datetime, datetime.time)):
            zone = getattr(value.tzinfo, "key", None) or getattr(value.tzinfo, "zone", None)  # of zoneinfo, of pytz
            kind = "datetime" if isinstance(value, datetime.datetime) else "time"
            return {TAG: kind, "iso": value.isoformat(), "zone": zone if type(zone) is str else None}
        if isinstance(value, datetime.date):
            return {TAG: "date", "iso": value.isoformat()}
        if isinstance(value, datetime.timedelta):
            return {TAG: "timedelta", "days": value.days, "seconds": value.seconds, "microseconds": value.microseconds}
        if name in ("pandas.DataFrame", "pandas.Series"):
            return {TAG: name[7:], "file": pack_table(value, self)}
        if isinstance(value, (bytes, bytearray)):
            return {TAG: type(value).__name__, "base64": _base64(bytes(value))}
        if isinstance(value, pathlib.PurePath):
            return {TAG: "Path", "text": str(value)}
        if name == "decimal.Decimal":
            return {TAG: "Decimal", "text": _short_text(value)}
        raise TypeError(f"a value of type {type(value).__name__} doesn't cross between kernel and host")

    def _pack_numpy(self, value: Any, name: str) -> Any:
        if name == "numpy.MaskedArray" and value.mask.any():
            raise TypeError("an array with masked values doesn't cross between kernel and host; pass .filled(…)")
        if value.shape:
            return _packed_array(value)
        plain = value.item()
        if isinstance(plain, type(value)) or (value.dtype.kind in "mM" and not isinstance(plain, datetime.date)):
            return _packed_array(value)  # of nanoseconds it would be a number, and a longdouble is its own item
        return self.pack(plain)

    def _unpack_known(self, kind: str, plain: dict[str, Any], bounds: Bounds) -> Any:
        """Return a value whose fields were checked."""
        if kind in ("bytes", "bytearray"):
            bounds.memory.claim(len(plain["base64"]))
            content = binascii.a2b_base64(plain["base64"])
            return content if kind == "bytes" else bytearray(content)
        if kind == "Decimal":
            return _parse_decimal(plain["text"])
        if kind == "Path":
            if len(plain["text"]) > _LONGEST_PATH:  # each part of it would be an object
                raise ValueError(f"a path that crosses has at most {_LONGEST_PATH} characters")
            return pathlib.Path(plain["text"]) if bounds.paths else plain["text"]
        if kind == "ndarray":
            bounds.memory.claim(2 * len(plain["base64"]))
            return _unpack_array(plain)
        import pandas as pd  # deferred: the other side had it for a value like this, and it costs 0.2 s

        if kind in ("NA", "NaT"):
            return getattr(pd, kind)
        if kind == "Timestamp":
            stamp = pd.Timestamp(_require_match(_STAMP, plain["iso"]))
            return stamp.tz_convert(check_zone(plain["zone"])) if plain.get("zone") else stamp
        if kind == "Timedelta":
            return pd.Timedelta(_require_match(_SPAN, plain["iso"]))
        with bounds.without_paths():
            table = take_table(plain["file"], self, bounds)
        if kind == "Series" and table.shape[1] != 1:
            raise ValueError(f"a Series that crosses has {table.shape[1]} columns")
        return table.iloc[:, 0] if kind == "Series" else table


def _in_zone(when: Any, name: object) -> Any:
    """Return a datetime or time, which has an offset at most, in a zone of the IANA database.

    Raises:
        ValueError: there is no such zone here.
    """
    made = when.replace(tzinfo=parse_zone(name))
    return made if made.utcoffset() == when.utcoffset() else made.replace(fold=1)


def _require_match(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"no time that crosses: {shown(text)}")
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

    def as_write_error(self, error: OSError) -> Exception:
        """Return the error itself."""
        return error


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
    return ""


_KNOWN = {
    "pandas": ("DataFrame", "Series", "Timestamp", "Timedelta", "NA", "NaT"),
    "numpy": ("MaskedArray", "ndarray", "generic"),
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


def _timedelta(days: int, seconds: int, microseconds: int) -> datetime.timedelta:
    try:
        return datetime.timedelta(days, seconds, microseconds)
    except OverflowError as error:
        raise ValueError("a span of time that crosses is longer than Python's") from error


def _parse_decimal(text: str) -> Any:
    import decimal  # deferred: it would be a part of each kernel's start

    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation as error:
        raise ValueError(f"{shown(text)} is no decimal") from error
    if not _is_short(value):
        raise ValueError(f"{shown(text)} is no decimal that crosses: it has more than {_MAX_DIGITS} digits, or zeros")
    return value


def _short_text(value: Any) -> str:
    if not _is_short(value):
        raise TypeError(f"a Decimal beyond {_MAX_DIGITS} digits or 1e±{_MAX_DIGITS} doesn't cross; pass its text")
    return str(value)


def _is_short(value: Any) -> bool:
    """Return whether a Decimal is written out, as an int of it is, in an ordinary number of digits."""
    _, digits, exponent = value.as_tuple()
    return not isinstance(exponent, int) or max(len(digits), abs(exponent)) <= _MAX_DIGITS


def _packed_array(value: Any) -> dict[str, Any]:
    dtype = value.dtype.str
    if not _DTYPE.fullmatch(dtype):
        raise TypeError(f"an array of dtype {value.dtype} doesn't cross between kernel and host; pass .tolist()")
    return {TAG: "ndarray", "dtype": dtype, "shape": list(value.shape), "base64": _base64(value.tobytes())}


def _unpack_array(plain: dict[str, Any]) -> Any:
    import numpy as np  # deferred: the other side had it for a value like this

    dtype, shape = plain["dtype"], plain["shape"]
    if not _DTYPE.fullmatch(dtype):
        raise ValueError(f"no array that crosses has the dtype {shown(dtype)}")
    if len(shape) > _MAX_DIMENSIONS or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"no array that crosses has such a shape: it is at most {_MAX_DIMENSIONS} numbers from 0 on")
    if 0 in shape and math.prod(filter(None, shape)) > _MAX_EMPTY:  # each is a list as Python has them
        raise ValueError(f"no array that crosses has such a shape: one without values has {_MAX_EMPTY} rows at most")
    try:
        values = np.frombuffer(bytearray(binascii.a2b_base64(plain["base64"])), dtype=dtype).reshape(shape)
    except TypeError as error:
        raise ValueError(f"no array that crosses has the dtype {shown(dtype)}") from error
    values = values if shape else values[()]
    return values.view("u1") != 0 if values.dtype.kind == "b" else values  # a truth value of 2 would mislead numpy
