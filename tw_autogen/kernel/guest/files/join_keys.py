"""`join_lines`: the columns that are keys between tables, and whether their types differ."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .column_profile import Column

_MIN_VALUES, _MAX_VALUES = 3, 50_000
_MAX_KEYS = 60
"""Of a table: those of two tables are compared each with each."""
_KEY_SHARE = 0.9
"""So many of a key's values occur once at least."""
_CONTAINED, _CONTAINED_ALIKE = 0.9, 0.5
"""What part of the other column's values a key has; less is enough where the names are alike."""
_MIN_SHARED, _MIN_SHARED_NUMBERS, _MIN_DIGITS = 5, 10, 4
"""Where the names are not alike."""
_DENSE = 0.5
"""Integers that fill so much of their range, such as numbers of rows, hold any others of that range by chance."""
_LONGEST_MEAN = 60
_SAMPLE = 30
_WHOLE = re.compile(r"[+-]?\d{1,30}(?:\.0{1,6})?")
_YEAR = re.compile(r"(?:1[89]|20)\d\d(?:\.0)?")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[#%$€£]")
_SERIAL = re.compile(
    r"(unnamed: |rank|index|rows?[\W_]{0,3}(?:names?|ids?|num(?:ber)?s?|nr|no)?|no\.?|x|obs|#)\W*\d*$", re.IGNORECASE
)
"""Names of columns whose numbers only number the rows."""
_MEASURES = frozenset(
    ["#", "%", "$", "€", "£", "age", "amount", "average", "avg", "balance", "cost", "count", "counts", "day"]
    + ["days", "duration", "hour", "mean", "minute", "month", "percent", "percentage", "population", "price", "qty"]
    + ["quantity", "rank", "rate", "ratio", "revenue", "salary", "sales", "score", "second", "share", "size", "sum"]
    + ["time", "total", "units", "value", "volume", "weight", "year", "years"]
)
"""Words in the names of numbers that measure or count."""
_GENERIC = frozenset(["id", "ids", "key", "pk", "no", "nr", "num", "number", "code", "uid"])
"""Names of keys that say of nothing what they are the key of."""
_NUMBER_TYPES = ("int", "uint", "bigint", "smallint", "double", "float", "real", "numeric", "decimal")
_TEXT_TYPES = ("string", "large_string", "text", "varchar", "char", "nvarchar", "object")

_Place = tuple[str, str]
"""A table and a column's name."""


@dataclass(frozen=True)
class _Key:
    """A column that may be a key, or refer to one."""

    table: str
    column: Column
    raw: frozenset[str]
    numbers: bool
    unique: bool
    repeated: bool

    @cached_property
    def values(self) -> frozenset[str]:
        """Return the values in one form: without the zeros in front of codes, and `.0` behind numbers."""
        return frozenset(_same_form(value) for value in self.raw)

    @cached_property
    def folded(self) -> frozenset[str]:
        """Return the values without upper and lower case, where they are texts."""
        return frozenset() if self.numbers else frozenset(value.casefold() for value in self.values)

    @cached_property
    def padded(self) -> bool:
        """Return whether texts have blanks around them."""
        return not self.numbers and any(
            count != count.strip() for count in self.column.counts if count.strip() in self.raw
        )

    @cached_property
    def zeros(self) -> bool:
        """Return whether digits have zeros in front."""
        return any(map(_is_padded, self.raw))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words of its name; in front of a generic one that of its table."""
        words = tuple(match.lower() for match in _WORDS.findall(self.column.name))
        return (_singular(_stem(self.table)), *words) if self.generic else words

    @cached_property
    def dense(self) -> bool:
        """Return whether the values are integers that fill most of their range."""
        integers = {int(value) for value in self.values} if self.numbers else set[int]()
        return bool(integers) and len(integers) >= _DENSE * (max(integers) - min(integers) + 1)

    @property
    def named_key(self) -> bool:
        """Return whether its name says that it is a key."""
        return any(word.endswith(tuple(_GENERIC)) for word in self.words)

    @cached_property
    def generic(self) -> bool:
        """Return whether its name doesn't say of what it is the key."""
        return self.column.name.strip().lower() in _GENERIC


def join_lines(tables: Iterable[tuple[str, Sequence[Column]]]) -> list[str]:
    """Return the columns by which tables can be joined, one line for each pair of tables at most, best first.

    What follows from other lines is left out: with `a` and `b`, and `b` and `c`, that `a` and `c` can be joined.
    One of the two columns is a key: most values occur once. It holds the values of the other, or half of them where
    the names are alike. Floats, years, measures and columns of two values are no keys. Of dense integers, alike names
    have to say that they are keys, or the other column has to have most of them.

    Args:
        tables: Name and columns of each.
    """
    by_table: dict[str, list[_Key]] = {}
    parts: dict[str, tuple[str, ...]] = {}
    for name, columns in tables:
        parts[name] = (name.rpartition(": ")[0], *(column.name for column in columns))
        by_table.setdefault(name, []).extend(key for column in columns if (key := _possible_key(name, column)))
    for name, keys in by_table.items():
        by_table[name] = sorted(keys, key=lambda key: not key.unique)[:_MAX_KEYS]
    found = []
    for (first, some), (second, others) in itertools.combinations(by_table.items(), 2):
        if parts[first] == parts[second] and parts[first][0]:
            continue
        best = max(
            ((score, key, other) for key in some for other in others if (score := _join_score(key, other))),
            key=lambda pair: pair[0],
            default=None,
        )
        if best:
            found.append(best)
    found.sort(key=lambda pair: pair[0], reverse=True)
    joined: dict[_Place, _Place] = {}
    lines = []
    for _, one, other in found:
        root, of_other = (_representative(joined, (key.table, key.column.name)) for key in (one, other))
        if root != of_other:
            joined[root] = of_other
            lines.append(_join_line(one, other))
    return lines


def _representative(joined: dict[_Place, _Place], place: _Place) -> _Place:
    """Return the column that stands for all that are joined with one."""
    while place in joined:
        place = joined[place]
    return place


def _possible_key(table: str, column: Column) -> _Key | None:
    """Return a column as one that may be a key; None if its values or its name say that it is none."""
    raw = frozenset(column.values)
    if column.kind in ("bool", "empty"):
        return None
    if column.kind == "number-like text" and not any(map(_is_padded, raw)):
        return None
    if not _MIN_VALUES <= len(raw) <= _MAX_VALUES:
        return None
    kind = column.kind.lower()
    numbers = kind.startswith(_NUMBER_TYPES) or (column.plain and not kind.startswith(_TEXT_TYPES))
    if numbers and (not all(map(_WHOLE.fullmatch, raw)) or all(map(_YEAR.fullmatch, raw))):
        return None
    if numbers and (_SERIAL.match(column.name) or _MEASURES & {match.lower() for match in _WORDS.findall(column.name)}):
        return None
    if sum(map(len, raw)) > _LONGEST_MEAN * len(raw):
        return None
    count = sum(number for text, number in column.counts.items() if text.strip() in raw)
    return _Key(table, column, raw, numbers, len(raw) >= _KEY_SHARE * count, len(raw) < count)


def _join_score(one: _Key, other: _Key) -> tuple[int, int] | None:
    """Return how well two columns join their tables, by their names and by what they share; None: they don't."""
    alike = _name_similarity(one, other)
    if not (one.unique or other.unique) or (one.column.kind.startswith("date") and not alike):
        return None
    if one.numbers and other.numbers and one.generic and other.generic:
        return None  # each numbers rows of its own
    key, referring = (
        (one, other) if one.unique and (not other.unique or len(one.raw) >= len(other.raw)) else (other, one)
    )
    if not alike and sum(value in key.values for value in itertools.islice(referring.values, _SAMPLE)) < 2:
        return None
    shared = key.values & referring.values
    named = alike and (one.named_key or other.named_key)
    if not named and referring.numbers and key.dense and len(shared) < _DENSE * len(key.values):
        return None  # quantities lie there, too
    if alike:
        least = _CONTAINED if one.numbers and other.numbers else _CONTAINED_ALIKE
        count = max(len(shared), len(key.folded & referring.folded))
        enough = count >= max(_MIN_VALUES, least * min(len(key.values), len(referring.values)))
        return (alike, count) if enough else None
    if len(shared) < max(_MIN_SHARED, _CONTAINED * len(referring.values)) or min(map(len, shared)) < 2:
        return None
    if (one.numbers or other.numbers) and (len(shared) < _MIN_SHARED_NUMBERS or min(map(len, shared)) < _MIN_DIGITS):
        return None  # small numbers agree by chance
    return 0, len(shared)


def _name_similarity(key: _Key, other: _Key) -> int:
    """Return how much two names are alike: 3 the same, 2 one in the other, 1 one the initials of the other, 0 not."""
    first, second = "".join(key.words), "".join(other.words)
    if first == second:
        return 3
    if len(min(first, second, key=len)) > 3 and (first in second or second in first):
        return 2
    for short, words in ((first, other.words), (second, key.words)):
        if len(words) > 2 and short == "".join(word[0] for word in words):
            return 1
    return 0


def _join_line(one: _Key, other: _Key) -> str:
    exact = len(one.values & other.values)
    shared = max(exact, len(one.folded & other.folded)) if _name_similarity(one, other) else exact
    line = (
        f"{one.table!r}[{one.column.name!r}] and {other.table!r}[{other.column.name!r}] share {shared} values "
        f"(of {len(one.raw)} and {len(other.raw)})"
    )
    if one.column.sampled or other.column.sampled:
        line += " in the rows that were looked at"
    words, steps = [], list[str]()
    if one.numbers != other.numbers:
        text, numbers = (other, one) if one.numbers else (one, other)
        zeros = ", with leading zeros," if text.zeros else ""
        words.append(f"text{zeros} in {text.table!r}, numbers in {numbers.table!r}")
    elif one.zeros != other.zeros and len(one.raw & other.raw) < shared:
        words.append(f"only {(one if one.zeros else other).table!r} has leading zeros")
    if shared > exact:
        words.append("upper and lower case differ")
    steps += ["convert"] * bool(words)
    if padded := [repr(key.table) for key in (one, other) if key.padded]:
        words.append(f"blanks around them in {' and '.join(padded)}")
        steps.append("strip")
    if steps:
        words[-1] += f": {' and '.join(steps)} before joining"
    if one.repeated and other.repeated:
        words.append("some occur more than once in both")
    return "; ".join([line, *words])


def _is_padded(text: str) -> bool:
    return text[:1] == "0" and len(text) > 1 and text.isdigit()


def _same_form(text: str) -> str:
    if _WHOLE.fullmatch(text):
        return text.partition(".")[0].lstrip("+0") or "0"
    return text


def _stem(table: str) -> str:
    """Return the plain name of a file without its suffix, or of a table in it."""
    return table.rpartition(": ")[2].rpartition("/")[2].partition(".")[0].lower()


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
