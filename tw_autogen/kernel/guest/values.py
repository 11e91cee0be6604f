"""Values beyond JSON as JSON, and back: bytes, sets, decimals, paths, numpy arrays. Nothing that is read can run."""

from __future__ import annotations

import binascii
import pathlib
import re
from typing import Any

_DTYPE = re.compile(r"[<>|=]?(?:[biufcSU]\d+|[mM]8\[\w+\])")
"""Numbers, truth values, texts and times of a fixed width: never objects, which numpy would read as pointers."""


def pack_value(value: Any) -> dict[str, Any] | None:
    """Return a value as keys and plain values, `kind` among them; None if it is none of these.

    Args:
        value: bytes, bytearray, Decimal, a path, or a numpy array of any shape.

    Raises:
        TypeError: an array holds objects, or records.
    """
    if isinstance(value, (bytes, bytearray)):
        return {"kind": type(value).__name__, "base64": _text(bytes(value))}
    if isinstance(value, pathlib.PurePath):
        return {"kind": "Path", "text": str(value)}
    kinds = {(kind.__module__, kind.__name__) for kind in type(value).__mro__}  # asked by name: nothing is imported
    if ("decimal", "Decimal") in kinds:
        return {"kind": "Decimal", "text": str(value)}
    if ("numpy", "ndarray") in kinds:
        dtype = value.dtype.str
        if not _DTYPE.fullmatch(dtype):
            raise TypeError(f"an array of dtype {value.dtype} doesn't cross between kernel and host; pass .tolist()")
        return {"kind": "ndarray", "dtype": dtype, "shape": list(value.shape), "base64": _text(value.tobytes())}
    return None


def unpack_value(kind: str, plain: dict[str, Any]) -> Any:
    """Return the value that `pack_value` got.

    Raises:
        ValueError: it is nothing that `pack_value` makes.
    """
    if kind in ("bytes", "bytearray"):
        content = _bytes(plain)
        return content if kind == "bytes" else bytearray(content)
    if kind == "Decimal":
        return _decimal(plain.get("text"))
    if kind == "Path":
        return pathlib.Path(str(plain.get("text", "")))
    if kind == "ndarray":
        return _array(plain)
    raise ValueError(f"nothing that crosses is marked {kind!r}")


VALUES = frozenset({"bytes", "bytearray", "Decimal", "Path", "ndarray"})
"""The kinds that `unpack_value` knows."""


def _text(content: bytes) -> str:
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


def _array(plain: dict[str, Any]) -> Any:
    import numpy as np  # deferred: the other side had it for a value like this

    dtype, shape = plain.get("dtype"), plain.get("shape")
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise ValueError(f"no array that crosses has the dtype {dtype!r}")
    if not isinstance(shape, list) or not all(type(one) is int and one >= 0 for one in shape):
        raise ValueError(f"no array has the shape {shape!r}")
    try:
        return np.frombuffer(bytearray(_bytes(plain)), dtype=dtype).reshape(shape)
    except TypeError as error:
        raise ValueError(f"no array that crosses has the dtype {dtype!r}") from error
