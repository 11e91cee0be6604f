"""`column_lines`: what is said of columns, a line for each, and one for runs of alike ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .column_profile import Column, odd_words

_FOLDED = 5
"""So many columns in a row whose names differ in digits only, and whose values are alike, are described as one."""
_DIGITS = re.compile(r"\d+")


def column_lines(columns: Sequence[Column]) -> list[str]:
    """Return a line for each column; runs of alike ones whose names differ in digits only are one line."""
    lines, position = [], 0
    while position < len(columns):
        end = position + 1
        while end < len(columns) and _differs_only_in_digits(columns[position], columns[end]):
            end += 1
        if end - position < _FOLDED:
            lines += [column.line for column in columns[position:end]]
        else:
            lines.append(_folded_line(columns[position:end]))
        position = end
    return lines


def _differs_only_in_digits(column: Column, other: Column) -> bool:
    pattern = _DIGITS.sub("#", column.name)
    numbers = {"int", "float"}
    same = column.kind == other.kind or {column.kind, other.kind} <= numbers
    return "#" in pattern and pattern == _DIGITS.sub("#", other.name) and same


def _folded_line(columns: Sequence[Column]) -> str:
    kinds = "/".join(dict.fromkeys(column.kind for column in columns))
    lows, highs = (
        [column.low for column in columns if column.low is not None],
        [c.high for c in columns if c.high is not None],
    )
    words = [f"{columns[0].name!r} … {columns[-1].name!r}: {len(columns)} columns, {kinds}"]
    if lows and highs:
        words.append(f"{_format_number(min(lows))} … {_format_number(max(highs))}")
    words += [f"{count} {form}" for form, count in sum((column.forms for column in columns), Counter[str]()).items()]
    if odd := sum((column.odd for column in columns), Counter[str]()):
        words.append(odd_words(odd))
    missing = [sum(n for text, n in column.counts.items() if text in column.missing) for column in columns]
    if any(missing):
        words.append(f"{'–'.join(map(str, sorted({min(missing), max(missing)})))} missing each")
    return ", ".join(words)


def _format_number(value: float) -> str:
    return f"{int(value)}" if abs(value) < 1e15 and value == int(value) else f"{value:g}"
