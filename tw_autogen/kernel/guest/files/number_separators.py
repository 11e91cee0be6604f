"""Which sign of a table's numbers stands in front of decimals, and which between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .column_profile import MISSING

_MAX_COLUMNS = 500
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d{1,60}|[1-9]\d{0,2}(?:,\d{3}){1,12}|[1-9]\d?(?:,\d\d){1,6},\d{3})(?:\.\d{0,60})?|\.\d{1,60})"
    r"(?:[eE][+-]?\d{1,5})?",
    re.ASCII,
)
"""With a decimal point, and commas between thousands, or lakhs as in `1,00,000`, if at all."""
_SWAPPED = str.maketrans(",.", ".,")
_BLANKED = re.compile(r"[+-]?[1-9]\d{0,2}([ '])\d{3}(?:[ ']\d{3}){0,12}(?:[.,]\d{0,30})?", re.ASCII)
_DIGIT = re.compile(r"[0-9]")
_MARKED = re.compile(r"(?:[€$£¥]|[A-Z]{3}\b)?\s?([+-]?\d[\d.,' ]{0,60}?)\s?(?:[%‰€$£¥]|[A-Za-zµ°][A-Za-z°/²³]{0,4})?")
"""A number with a currency, a percent sign or a unit, of which no parser makes a number."""
_CODE = re.compile(r"0\d+", re.ASCII)
_INTEGER, _FLOAT_DIGITS = re.compile(r"[+-]?\d{1,20}", re.ASCII), 15
"""Integers of so many digits are exact as floats."""
_POINTED = re.compile(r"[+-]?\d*\.[\d.]*(,\d+)?", re.ASCII)
"""What pandas takes for a number once it has left out the points."""
_LONGEST_GROUP, _MIN_GROUPED = 3, {",": 1, ".": 5}
"""Of fewer numbers with points all may have three decimals by chance."""
_SHARE = 0.9
"""So many of the values with digits of a column of numbers are numbers."""


@dataclass(frozen=True)
class NumberSeparators:
    """The signs in the numbers of a table.

    Args:
        decimal: In front of decimals.
        thousands: Between groups of three digits; empty: none. Blanks of other kinds than ` ` are none for pandas.
        doubtful: Numbers of the columns whose `thousands` may as well stand in front of decimals; without `thousands`,
            whose `decimal` may as well stand between these.
    """

    decimal: str = "."
    thousands: str = ""
    doubtful: tuple[int, ...] = ()


def find_number_separators(rows: Sequence[Sequence[str]], separator: str) -> NumberSeparators:
    """Return the signs of the numbers of most columns.

    Each column is judged by all its values: those of `1,5` and `12` can only be read with a decimal comma, those of
    `1.5` and `1,234,567` only with a decimal point. Columns of which both can be said, such as `1,234`, follow the
    others, or else those of numbers with units such as `1,5 %`; without any their commas are decimal ones, but for
    values that commas part, and beside plain numbers that are all below 1000, as in `1,234` and `949`; so are the
    points of several numbers there.

    Args:
        rows: Without the header.
        separator: Between values.
    """
    columns: dict[str, list[tuple[int, set[str]]]] = {"point": [], "comma": [], "either": []}
    blanked: list[tuple[str, set[str]]] = []
    marked = set[str]()
    for index in range(min(_MAX_COLUMNS, max(map(len, rows), default=0))):
        given = {row[index].strip() for row in rows if index < len(row)} - MISSING
        values, sign = _without_blanks(given)
        if sign:
            blanked.append((sign, values))
        if kind := _decimal_sign(values):
            columns[kind].append((index, values))
        else:
            marked.add(_decimal_sign(_without_blanks(set(map(_without_mark, given)))[0]))
    pointed, commas, either = columns.values()
    told = marked & {"point", "comma"} if not (pointed or commas) else set()
    if commas and (len(commas) > len(pointed) or separator != "," and len(commas) == len(pointed)):
        decimal = ","
    elif either and len(told) == 1:
        decimal = "," if "comma" in told else "."
    elif separator == "," or pointed or any(_are_thousands(values, ",") for _, values in either):
        decimal = "."
    else:
        maybe = (any("," in one for one in some) or _are_thousands(some, ".") for _, some in either)
        decimal = "," if any(maybe) else "."
    other = "." if decimal == "," else ","
    certain = commas if decimal == "," else pointed
    doubtful = _undecided_columns(either, other) if separator != "," else ()
    for index, values in certain + either:
        fits = [value for value in values if is_number(value, decimal=decimal)]
        if any(other in fit for fit in fits) and (decimal == "," or len(fits) == len(values)):
            return NumberSeparators(decimal, other, () if (index, values) in certain else doubtful)
    for sign, values in blanked:
        if all(is_number(value, decimal=decimal) for value in values):
            return NumberSeparators(decimal, sign)
    if separator == "," or (commas and decimal == ","):
        return NumberSeparators(decimal)
    return NumberSeparators(decimal, doubtful=tuple(column for column, values in either if all(map(is_number, values))))


def _decimal_sign(values: set[str]) -> str:
    """Return what stands in front of the decimals of a column: a `point`, a `comma`, `either`; empty: no numbers."""
    if not any("," in value or "." in value for value in values):
        return ""
    digits = [value for value in values if _DIGIT.search(value)]
    with_point = sum(map(is_number, digits))
    with_comma = sum(is_number(value, decimal=",") for value in digits)
    if not digits or max(with_point, with_comma) < _SHARE * len(digits):
        return ""
    return "either" if with_point == with_comma else "point" if with_point > with_comma else "comma"


def _without_mark(text: str) -> str:
    """Return a number without the percent sign, currency or unit beside it; another text as it is."""
    found = _MARKED.fullmatch(text)
    return found[1] if found else text


def _undecided_columns(columns: Sequence[tuple[int, set[str]]], thousands: str) -> tuple[int, ...]:
    """Return the numbers of the columns whose own values don't show that a sign parts thousands."""
    judged = [(index, any(thousands in value for value in values), values) for index, values in columns]
    return tuple(index for index, there, values in judged if there and not _are_thousands(values, thousands))


def _are_thousands(values: set[str], sign: str) -> bool:
    """Return whether enough numbers with a sign before three digits stand beside plain ones all below 1000."""
    plain = {value.lstrip("+-") for value in values if sign not in value and is_number(value)} - {"0"}
    grouped = sum(sign in value for value in values)
    return (
        grouped >= _MIN_GROUPED[sign]
        and bool(plain)
        and all(one.isdecimal() and len(one) <= _LONGEST_GROUP for one in plain)
    )


def _without_blanks(values: set[str]) -> tuple[set[str], str]:
    """Return values without the blanks, or `'`, between thousands, and the sign; empty: another may be meant."""
    signs = {match[1] for value in values if (match := _BLANKED.fullmatch(value))}
    if len(signs) != 1:
        return values, ""
    (sign,) = signs
    alike = len({value.find(sign) for value in values}) == 1  # as in parts of codes
    return {value.replace(sign, "") if _BLANKED.fullmatch(value) else value for value in values}, "" if alike else sign


def is_number(text: str, *, decimal: str = ".") -> bool:
    """Return whether a text is a number, which may have the other sign between thousands.

    Args:
        text: A cell's, without blanks around it.
        decimal: The sign in front of decimals: a point or a comma.
    """
    return bool(text and _NUMBER.fullmatch(text if decimal == "." else text.translate(_SWAPPED)))


def code_columns(names: Sequence[str], rows: Sequence[Sequence[str]], thousands: str) -> tuple[str, ...]:
    """Return the names of columns in which a value looks like a number and is none.

    Args:
        names: The header.
        rows: Below it.
        thousands: The sign between groups of digits.
    """

    def is_code(value: str) -> bool:
        if value[:1] == "0" and _CODE.fullmatch(value):
            return True
        if thousands == ",":  # of commas and points in each other's place
            value = value.translate(_SWAPPED)
        elif thousands in (" ", "'"):
            value = value.replace(".", ",").replace(thousands, ".")
        return bool(thousands and _POINTED.fullmatch(value)) and not is_number(value, decimal=",")

    codes = []
    for number, name in enumerate(names):
        values = {row[number] for row in rows if number < len(row)}
        if any(
            is_code(value.strip()) for value in values if thousands in value and thousands or value[:1] in ("0", " ")
        ):
            codes.append(name)
    return tuple(codes)


def long_integer_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the names of columns of 64-bit integers that pandas reads as floats, which can't hold them all.

    That is so where a value is missing.

    Args:
        names: The header.
        rows: Below it.
    """
    columns = []
    for number, name in enumerate(names):
        values = {row[number].strip() if number < len(row) else "" for row in rows}
        there = values - MISSING
        if len(there) == len(values) or max(map(len, there), default=0) <= _FLOAT_DIGITS:
            continue
        if all(map(_INTEGER.fullmatch, there)):
            integers = [int(one) for one in there]
            exact = all(int(float(integer)) == integer for integer in integers)
            columns += [name] if not exact and min(integers) >= -(2**63) and max(integers) < 2**63 else []
    return tuple(columns)
