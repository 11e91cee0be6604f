"""JSON from whoever is not trusted: nested no deeper than its readers can follow, with values of bounded memory."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, Union, get_args, get_origin

DEEPEST = 100
MAX_BYTES = 256 << 20
"""What the values of one text may take in memory, by estimate; `[[],[],…]` takes 20 times its length."""

_PER_CONTAINER, _PER_VALUE = 64, 32
_PLAIN: dict[Any, type] = {bool: bool, str: str, type(None): type(None)}
_NUMBERS: dict[Any, set[type]] = {int: {int}, float: {int, float}}
_MAX = 1 << 64
_TEXT = re.compile(rb'"[^"]*"?')
"""A text of JSON in which no sign is escaped; one that doesn't end goes on to the end."""


def loads(text: str | bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """Parse JSON of which whoever sent it is not trusted; half a surrogate pair in it becomes a `?`.

    Args:
        text: JSON; bytes are UTF-8. Whoever gives it bounds its length.
        max_bytes: What its lists, objects and values may take in memory, by estimate, beside its texts.

    Raises:
        ValueError: it is no JSON, holds a number of thousands of digits, is nested more than 100 deep, or would take
            too much memory.

    Example:
        >>> loads('{"a": [1]}')
        {'a': [1]}
    """
    if (needed := estimate_bytes(text)) > max_bytes:
        raise ValueError(f"its values would take about {needed >> 20} MB of memory, of {max_bytes >> 20}")
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    lists, objects = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    # Counting is what small messages can afford; only many brackets make it worth a look.
    if text.count(lists) + text.count(objects) > DEEPEST and too_deep(value):  # type: ignore[arg-type] # of the text's own type
        raise ValueError(f"nested more than {DEEPEST} deep")
    halves = (r"\ud", r"\uD") if isinstance(text, str) else (rb"\ud", rb"\uD")
    if any(halve in text for halve in halves):  # type: ignore[operator] # as above
        value = replace_half_pairs(value)
    return value


class ValueBudget:
    """Counts values that are to become JSON: a few bytes of a table or an array can stand for very many of them.

    Args:
        values: How many single values tables and arrays may hold together.
        chars: How many characters texts may have together.
    """

    def __init__(self, *, values: int = 1_000_000, chars: int = 64_000_000) -> None:
        self._max_values = self._values = values
        self._max_chars = self._chars = chars

    def take_table(self, table: Any) -> None:
        """Count how many values an array, a Series or a DataFrame holds, and look how long its texts are together.

        They are not counted: to make them is to copy each, and whoever does so counts.

        Raises:
            TypeError: it is too much.
        """
        self._values -= max(table.size, *table.shape, 0)
        if self._values < 0:
            kind = type(table).__name__
            raise TypeError(f"a {kind} of more than {self._max_values:,} values is too large for a tool; pass fewer")
        left = self._chars
        for chars in _text_chars(table):
            left -= chars
            if left < 0:
                raise self._too_long()

    def take_text(self, text: str) -> str:
        """Count a text, and return it.

        Raises:
            TypeError: it is too much.
        """
        self._chars -= len(text)
        if self._chars < 0:
            raise self._too_long()
        return text

    def _too_long(self) -> TypeError:
        return TypeError(f"texts of more than {self._max_chars:,} characters are too long for a tool; pass fewer")


def _text_chars(table: Any) -> Iterator[int]:
    """Yield how long the texts of an array, a Series or a DataFrame are, one by one; no category is copied."""
    kind = type(table).__name__
    if kind == "DataFrame":
        for index in range(table.shape[1]):
            yield from _text_chars(table.iloc[:, index].array)
        yield from _text_chars(table.index)
    elif kind == "Series":
        yield from _text_chars(table.array)
        yield from _text_chars(table.index)
    elif kind == "MultiIndex":
        for level, codes in zip(table.levels, table.codes, strict=True):
            yield from _coded_chars(level, codes)
    elif hasattr(table, "categories"):
        yield from _coded_chars(table.categories, table.codes)
    elif getattr(table.dtype, "kind", "") in "OU":
        values = table.flat if kind == "ndarray" else table
        yield from (len(value) for value in values if isinstance(value, str | bytes))


def _coded_chars(categories: Any, codes: Any) -> Iterator[int]:
    lengths: dict[int, int] = {}
    for code in codes.tolist():
        if code not in lengths:
            lengths[code] = len(one) if code >= 0 and isinstance(one := categories[code], str | bytes) else 0
        yield lengths[code]


def load_object(text: str | bytes) -> dict[str, Any] | None:
    """Parse a JSON object as `loads` does; return None for anything else, and for what `loads` refuses."""
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def estimate_bytes(text: str | bytes) -> int:
    """Return about how many bytes the lists, objects and values of a JSON text take in memory, beside its texts.

    Args:
        text: JSON, or a part of it: the numbers of parts add up.

    Example:
        >>> estimate_bytes("[1, 2, 3]")
        128
    """
    if isinstance(text, str):
        return _PER_CONTAINER * (text.count("{") + text.count("[")) + _PER_VALUE * text.count(",")
    return _PER_CONTAINER * (text.count(b"{") + text.count(b"[")) + _PER_VALUE * text.count(b",")


def estimate_line_bytes(line: bytes) -> int:
    """Return what `estimate_bytes` does for a whole text, in which brackets and commas within texts don't count.

    Example:
        >>> estimate_line_bytes(b'["[1, 2]", 3]'), estimate_bytes(b'["[1, 2]", 3]')
        (96, 192)
    """
    needed = estimate_bytes(line)
    if needed <= len(line):
        return needed
    return estimate_bytes(_TEXT.sub(b"", line.replace(rb"\\", b"").replace(rb"\"", b"")))


def replace_half_pairs(value: Any) -> Any:
    """Return values of JSON with a `?` for half a surrogate pair, which can be sent nowhere and written to no file.

    Args:
        value: Returned itself if there is none in it.
    """
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace"))
    return value


def too_deep(value: Any) -> bool:
    """Return whether lists and dictionaries lie in one another more than 100 deep; linear work, no recursion."""
    level = [value]
    for _ in range(DEEPEST + 1):
        holders = [one for one in level if isinstance(one, dict | list)]
        if not holders:
            return False
        level = [inner for holder in holders for inner in (holder.values() if isinstance(holder, dict) else holder)]
    return True


def check_of(annotation: Any) -> Callable[[Any], bool]:
    """Return a function that says whether a value of JSON is what an annotation says.

    Args:
        annotation: Of `bool`, `int`, `float`, `str`, `None`, `Any`, lists and dictionaries of these, and unions.
            Numbers have 64 bits at most, and are finite.

    Raises:
        KeyError: it is another one.

    Example:
        >>> fits = check_of(list[float] | None)
        >>> fits([1, 2.5]), fits(None), fits([True]), fits("12")
        (True, True, False, False)
    """
    kind, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return lambda value: True
    if kind in (Union, types.UnionType):
        any_of = [check_of(part) for part in parts]
        return lambda value: any(fits(value) for fits in any_of)
    if kind is list:
        each = check_of(parts[0])
        return lambda value: isinstance(value, list) and all(map(each, value))
    if kind is dict:
        key, each_value = map(check_of, parts)
        return lambda value: isinstance(value, dict) and all(map(key, value)) and all(map(each_value, value.values()))
    if annotation in _NUMBERS:
        numbers = _NUMBERS[annotation]
        return lambda value: type(value) in numbers and -_MAX < value < _MAX
    known = _PLAIN[annotation]
    return lambda value: type(value) is known
