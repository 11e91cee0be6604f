"""`CsvDialect`: how separated values have to be read: encoding, separator, decimal comma, lines above, codes."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd

_SAMPLE_BYTES = 1_000_000
_SAMPLE_LINES = 200
_DECODED_BYTES = 50_000_000
_SEPARATORS = (",", ";", "\t", "|")
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""In this order: the mark of UTF-32 begins with that of UTF-16."""
COMPRESSED: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

_TITLE_LINES = 10
_NUMBER = re.compile(r"[+-]?[.,]?\d[\d.,]*%?")
_CODE = re.compile(r"0\d+")
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")
_GROUPED = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")
_POINTED = re.compile(r"[+-]?\d*\.[\d.]*(,\d+)?")
"""What pandas takes for a number once it has left out the points."""


@dataclass(frozen=True)
class CsvDialect:
    """How a file of separated values has to be read, as arguments of `pandas.read_csv`.

    Args:
        separator: Between the values of a row.
        encoding: Of the text.
        decimal: Sign in front of a number's decimals.
        thousands: Sign between groups of three digits; empty: none.
        lines_above: How many lines stand above the header: such as begin with `#`, and a title.
        codes: Columns that have to stay text: digits with leading zeros, such as postal codes, and where points group
            thousands, values with points that are no such numbers, such as dates.
        wide_rows: Rows have more values than the header has names; pandas would take the first one for an index.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    lines_above: int = 0
    codes: tuple[str, ...] = ()
    wide_rows: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `pandas.read_csv` that differ from its own defaults."""
        found: dict[str, Any] = {}
        if self.separator != ",":
            found["sep"] = self.separator
        if self.encoding != "utf-8":
            found["encoding"] = self.encoding
        if self.decimal != ".":
            found["decimal"] = self.decimal
        if self.thousands:
            found["thousands"] = self.thousands
        if self.lines_above:
            found["skiprows"] = self.lines_above
        if self.codes:
            found["dtype"] = dict.fromkeys(self.codes, str)
        if self.wide_rows:
            found["index_col"] = False
        return found

    def call(self, name: str) -> str:
        """Return the call that reads a file, for code; empty where `read_csv(name)` alone does.

        Example:
            >>> CsvDialect(separator=";", decimal=",", codes=("zip",)).call("a.csv")
            "pd.read_csv('a.csv', sep=';', decimal=',', dtype={'zip': str})"
        """
        said = {key: repr(value) for key, value in self.arguments.items()}
        if self.codes:
            said["dtype"] = "{" + ", ".join(f"{name!r}: str" for name in self.codes) + "}"
        words = ", ".join(f"{key}={value}" for key, value in said.items())
        return f"pd.read_csv({name!r}, {words})" if words else ""


def find_dialect(path: Path) -> CsvDialect:
    """Find out how a file of separated values has to be read, from its first megabyte.

    Args:
        path: The file; one that ends in `.gz`, `.bz2` or `.xz` is decompressed.

    Raises:
        ValueError: it is no text.
        OSError: it can't be read, or is not compressed as its name says.
    """
    with opened(path) as file:
        start = file.read(_SAMPLE_BYTES)
        encoding = _encoding(start, file)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(start)
    if "\0" in text:
        raise ValueError("it is no text")
    lines = text.splitlines()
    if len(start) == _SAMPLE_BYTES:
        lines = lines[:-1] or lines  # the last one may be cut
    comments = 0
    while comments < len(lines) and lines[comments].startswith("#"):
        comments += 1
    if comments == len(lines):  # there is nothing else: then it is data
        comments = 0
    above = comments + _title_lines(lines[comments : comments + _SAMPLE_LINES], path)
    separator = _separator([line for line in lines[above:] if line.strip()][:_SAMPLE_LINES], path)
    rows = list(csv.reader(io.StringIO("\n".join(lines[above:])), delimiter=separator))
    decimal, thousands = _decimal(rows[1:], separator)
    wide = bool(rows) and any(len(row) > len(rows[0]) for row in rows)
    return CsvDialect(separator, encoding, decimal, thousands, above, _code_columns(rows, thousands), wide)


def read_table(path: Path, dialect: CsvDialect, *, rows: int | None = None) -> pd.DataFrame:
    """Read a file of separated values.

    Args:
        path: The file; decompressed as in `find_dialect`.
        dialect: How.
        rows: Only so many of the first ones; None: all.

    Raises:
        ValueError: it can't be parsed; `pandas.errors.ParserError` is one.
        OSError: it can't be read.
    """
    with opened(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # of rows that are wider than the header
        frame: pd.DataFrame = pd.read_csv(
            file, nrows=rows, low_memory=False, encoding_errors="replace", **dialect.arguments
        )
    return frame


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if its name ends in `.gz`, `.bz2` or `.xz`."""
    opener = COMPRESSED.get(path.suffix.lower(), open)
    with opener(path, "rb") as file:
        yield file


def _encoding(start: bytes, rest: IO[bytes]) -> str:
    """Return the encoding of a text by its byte order mark, else UTF-8 if it can be that, else that of Windows.

    Args:
        start: Of the text.
        rest: Where the text goes on; read to 50 MB, because one odd letter may come late.
    """
    for mark, name in _BOMS.items():
        if start.startswith(mark):
            return name
    if start[1:200:2].count(0) > len(start[1:200:2]) // 2:
        return "utf-16-le"
    decoder, seen, piece = codecs.getincrementaldecoder("utf-8")(), 0, start
    try:
        while piece and seen < _DECODED_BYTES:
            decoder.decode(piece)
            seen, piece = seen + len(piece), rest.read(_SAMPLE_BYTES)
    except UnicodeDecodeError:
        return "cp1252" if not set(piece) & _NOT_WINDOWS else "latin-1"
    return "utf-8"


_NOT_WINDOWS = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
"""Bytes that mean nothing in cp1252."""


def _separator(lines: Sequence[str], path: Path) -> str:
    """Return the separator by which most lines have as many values as the first one, and more than one."""
    likely = "\t" if path.name.lower().partition(".tsv")[1] else ","
    best, best_score = likely, (0.0, 0)
    for one in (likely, *(other for other in _SEPARATORS if other != likely)):
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=one) if row]
        except csv.Error:  # a whole line as one value is longer than a value may be
            continue
        if not widths or widths[0] < 2:
            continue
        alike = sum(width == widths[0] for width in widths) / len(widths)
        if (score := (round(alike, 2), widths[0])) > best_score and alike > 0.5:
            best, best_score = one, score
    return best


def _title_lines(lines: Sequence[str], path: Path) -> int:
    """Return how many lines before the header are a title; 0 where that is not certain.

    A title has one value, which may be followed by empty ones, and several words or an empty line below; the header
    below has words only, and stands above rows of its own length with numbers.
    """
    for count in range(1, min(_TITLE_LINES + 1, len(lines))):
        rest = [line for line in lines[count:] if line.strip()]
        separator = _separator(rest, path)
        header, *rows = csv.reader(rest or [""], delimiter=separator)
        above = [[cell.strip() for cell in row] or [""] for row in csv.reader(lines[:count], delimiter=separator)]
        if not above[0][0] or any(any(row[1:]) for row in above):
            return 0
        if len(header) < 2 or not lines[count].strip() or not any(cell.strip() for cell in header):
            continue
        if len(above[0]) == 1 and '"' not in lines[0] and any(one in lines[0] for one in _SEPARATORS):
            return 0
        alike = [row for row in rows if len(row) == len(header)]
        titled = " " in above[0][0] or not all(row[0] for row in above)
        words = all(cell.strip() and not _NUMBER.fullmatch(cell.strip()) for cell in header)
        numbers = any(_NUMBER.fullmatch(cell.strip()) for row in alike for cell in row)
        return count if titled and words and numbers and len(alike) > len(rows) / 2 else 0
    return 0


def _decimal(rows: Sequence[Sequence[str]], separator: str) -> tuple[str, str]:
    """Return the signs of decimals and of thousands: `,` and `.` if numbers are written so, and none otherwise."""
    if separator == ",":
        return ".", ""
    values = [value.strip() for row in rows for value in row]
    if not any(_COMMA_NUMBER.fullmatch(value) for value in values):
        return ".", ""
    if any(_POINT_NUMBER.fullmatch(value) and not _GROUPED.fullmatch(value) for value in values):
        return ".", ""  # both are there, so neither can be told: such columns stay text
    return ",", "." if any(_GROUPED.fullmatch(value) for value in values) else ""


def _code_columns(rows: Sequence[Sequence[str]], thousands: str) -> tuple[str, ...]:
    """Return the names of columns in which a value looks like a number and is none."""
    if not rows:
        return ()

    def is_code(value: str) -> bool:
        if value[:1] == "0" and _CODE.fullmatch(value):
            return True
        return bool(thousands) and bool(_POINTED.fullmatch(value)) and not _GROUPED.fullmatch(value)

    found = {number for row in rows[1:] for number, value in enumerate(row[: len(rows[0])]) if is_code(value.strip())}
    return tuple(name for number, name in enumerate(rows[0]) if number in found)
