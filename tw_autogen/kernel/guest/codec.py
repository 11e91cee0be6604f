"""Turns values into JSON and back, on both sides: what JSON has, tuples, sets, times, tables, and `values`.

Never pickle: what a kernel sends is data to the host, and nothing that it sends can run there.
"""

from __future__ import annotations

import datetime
import re
from json import dumps, loads  # held here: code may overwrite them in the module
from typing import Any, BinaryIO, Protocol

from .tables import pack_table, unpack_table
from .values import VALUES, pack_value, unpack_value
from .zones import check_zone

TAG = "$"
_STAMP, _SPAN = re.compile(r"[-+.:T0-9]{4,40}"), re.compile(r"[-+.0-9DHMPST]{2,80}")


class Exchange(Protocol):
    """Where the tables that cross lie: a folder that both sides see."""

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a new file; give its name and the open file."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file of that name for reading."""
        ...

    def remove(self, name: str) -> None:
        """Forget a file that was read."""
        ...


class Codec:
    """Packs and unpacks values.

    Args:
        exchange: Where tables are written and read.
        arrow: Both sides have pyarrow.
        most_bytes: How much memory a table that comes may take, by what it says of itself.
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
        """Read what `dumps` gave on the other side."""
        return self.unpack(loads(text))

    def leave(self, text: str) -> str:
        """Write a text into the exchange, for the other side to fetch; give its name."""
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

    def unpack(self, plain: Any) -> Any:
        """Return the values that `pack` got.

        Raises:
            ValueError: it is nothing that `pack` makes.
        """
        if isinstance(plain, list):
            return [self.unpack(one) for one in plain]
        if not isinstance(plain, dict):
            return plain
        kind = plain.get(TAG)
        if kind is None:
            return {key: self.unpack(one) for key, one in plain.items()}
        if kind == "dict":
            return {self.unpack(key): self.unpack(one) for key, one in plain["items"]}
        if kind == "tuple":
            return tuple(self.unpack(one) for one in plain["items"])
        if kind in ("set", "frozenset"):
            items = (self.unpack(one) for one in plain["items"])
            return set(items) if kind == "set" else frozenset(items)
        if kind in VALUES:
            return unpack_value(kind, plain)
        if kind in ("date", "time", "datetime"):
            return getattr(datetime, kind).fromisoformat(plain["iso"])
        return self._unpack_known(str(kind), plain)

    def _pack_known(self, value: Any, name: str) -> Any:
        if name.startswith("numpy.") and callable(getattr(value, "item", None)) and getattr(value, "shape", None) == ():
            return self.pack(value.item())
        if name == "pandas.NA":
            return {TAG: "NA"}
        if name == "pandas.NaT":
            return {TAG: "NaT"}
        if name == "pandas.Timestamp":
            return {TAG: "Timestamp", "iso": value.isoformat(), "zone": str(value.tz) if value.tz else None}
        if name == "pandas.Timedelta":
            return {TAG: "Timedelta", "iso": value.isoformat()}
        if isinstance(value, datetime.datetime):
            return {TAG: "datetime", "iso": value.isoformat()}
        if isinstance(value, (datetime.date, datetime.time)):
            return {TAG: "date" if isinstance(value, datetime.date) else "time", "iso": value.isoformat()}
        if name in ("pandas.DataFrame", "pandas.Series"):
            return {TAG: name[7:], **pack_table(value, self)}
        packed = pack_value(value)
        if packed is not None:
            return {TAG: packed.pop("kind"), **packed}
        raise TypeError(f"a value of type {type(value).__name__} doesn't cross between kernel and host")

    def _unpack_known(self, kind: str, plain: dict[str, Any]) -> Any:
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
        return unpack_table(plain, self, single=kind == "Series")


def _matching(pattern: re.Pattern[str], text: Any) -> str:
    if not (isinstance(text, str) and pattern.fullmatch(text)):
        raise ValueError(f"no time that crosses: {text!r:.80}")
    return text


def _class_name(value: Any) -> str:
    """Return `pandas.DataFrame` for one and for its subclasses; the package and the class, nothing between."""
    for kind in type(value).__mro__:
        root = (kind.__module__ or "").partition(".")[0]
        if root in ("pandas", "numpy"):
            name = {"NAType": "NA", "NaTType": "NaT"}.get(kind.__name__, kind.__name__)
            if name in ("DataFrame", "Series", "Timestamp", "Timedelta", "NA", "NaT", "ndarray", "generic"):
                return f"{root}.{name}"
    return type(value).__name__
