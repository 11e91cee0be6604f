"""Arrays of numbers as plain bytes in a file, one behind the other; never pickle.

What is read may come from a kernel, so it may be anything: sizes are checked before they are used.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, BinaryIO


class Deferred:
    """A module that is imported when it is first used: a kernel need not have it, and pandas costs 0.2 s."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

_NUMBER = re.compile(r"[<>|](b1|[iu][1248]|f[248])")


class Arrays:
    """Reads the arrays of a file, one behind the other; the file need not hold what a schema claims.

    Args:
        file: Open for reading.
        most_bytes: How much memory all that is made of them may take.
    """

    def __init__(self, file: BinaryIO, most_bytes: int = 1 << 62) -> None:
        self._file: Any = file
        self._most = self._room = most_bytes
        self._left = file.seek(0, 2)
        file.seek(0)

    def claim(self, count: int) -> None:
        """Count memory that is about to be taken; a file may be sparse, and a few bytes in it may stand for many.

        Raises:
            ValueError: together it is too much.
        """
        self._room -= count
        if self._room < 0:
            raise ValueError(f"a table that would take more than {self._most >> 20} MB of memory doesn't cross")

    def take(self, dtype: Any, count: Any) -> Any:
        """Return the next array.

        Raises:
            ValueError: the dtype is none of plain numbers, or the file is shorter.
        """
        if type(dtype) is not str or not _NUMBER.fullmatch(dtype):
            raise ValueError(f"not a dtype of numbers: {dtype!r}")
        kind = np.dtype(dtype)
        if type(count) is not int or not 0 <= count * kind.itemsize <= self._left:
            raise ValueError(f"the table's file holds no {count!r} values of {dtype}")
        self.claim(count * kind.itemsize)
        self._left -= count * kind.itemsize
        values = np.empty(count, "u1" if kind.kind == "b" else kind)
        room = values.view("u1").data
        while room.nbytes:
            read = self._file.readinto(room)
            if not read:
                raise ValueError("the table's file became shorter while it was read")
            room = room[read:]
        return values != 0 if kind.kind == "b" else values  # a truth value of 2 would mislead numpy

    def text(self, count: Any) -> str:
        """Return the next bytes as text."""
        return str(self.take("|u1", count), "utf-8", "surrogatepass")


def write_arrays(file: BinaryIO, arrays: list[Any]) -> None:
    """Write arrays for `Arrays` to read."""
    for one in arrays:
        file.write(np.ascontiguousarray(one).view("u1").data)
