"""`CsvDialect`: how the text of separated values has to be read: encoding, separator, decimal comma, header, codes."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import itertools
import lzma
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from .text_encoding import find_encoding, late_encoding

SAMPLE_BYTES = 8_000_000
"""How much of a text is parsed."""
_PIECE = 1_000_000
_SAMPLE_LINES = 200
_DECODED_BYTES = 50_000_000
_SEPARATORS = (",", ";", "\t", "|")
COMPRESSED: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

_TITLE_LINES = 10
_LEAST_LINES, _NUMBER_SHARE = 3, 0.9
_LONGEST_UNIT = 25
_NUMBER = re.compile(r"[+-]?[$€£]? ?[.,]?\d[\d.,]* ?%?")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_CODE = re.compile(r"0\d+")
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3}){1,12}(,\d+)?")
_WHOLE_GROUPED = re.compile(r"[+-]?(\d{1,3}|[1-9]\d{0,2}(\.\d{3}){1,12})")
_COMMA_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3}){1,12}(,\d{3}|\.\d+)")
"""A number whose commas stand between thousands for certain."""
_POINTED = re.compile(r"[+-]?\d*\.[\d.]*(,\d+)?")
"""What pandas takes for a number once it has left out the points."""
_SWAPPED = str.maketrans(",.", ".,")


@dataclass(frozen=True)
class CsvDialect:
    """How a file of separated values has to be read, as arguments of `pandas.read_csv`.

    Args:
        separator: Between the values of a row; a blank stands for any run of blanks and tabs.
        encoding: Of the text.
        decimal: Sign in front of a number's decimals.
        thousands: Sign between groups of three digits; empty: none.
        lines_above: How many lines stand above the header: such as begin with `#`, and a title.
        codes: Columns that have to stay text: digits with leading zeros, such as postal codes, and where points group
            thousands, values with points that are no such numbers, such as dates.
        rows: How many rows pandas has to read, where other lines follow the table; 0: none follow.
        columns: Numbers of the table's first column and of the one after its last, where its lines have more.
        named: The first line holds names.
        units: The line below the names is no row.
        quoting: How quotes are read, as arguments of both `csv.reader` and `read_csv`; see `parse_table`.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    lines_above: int = 0
    codes: tuple[str, ...] = ()
    rows: int = 0
    columns: tuple[int, int] | None = None
    named: bool = True
    units: bool = False
    quoting: Mapping[str, Any] = field(default_factory=dict)

    def call(self, name: str) -> str:
        """Return the call that reads a file, for code; empty where `read_csv(name)` alone does.

        Example:
            >>> CsvDialect(separator=";", decimal=",", codes=("zip",)).call("a.csv")
            "pd.read_csv('a.csv', sep=';', decimal=',', dtype={'zip': str})"
        """
        source = {
            "sep": {",": "", " ": r"r'\s+'"}.get(self.separator, repr(self.separator)),
            "encoding": repr(self.encoding) if self.encoding != "utf-8" else "",
            **{key: repr(value) for key, value in self.quoting.items()},
        }
        said = "".join(f", {key}={value}" for key, value in source.items() if value) + self.options
        return f"pd.read_csv({name!r}{said})" if said else ""

    @property
    def options(self) -> str:
        """Return the arguments that `read_excel` takes as well, each behind a comma."""
        codes = ", ".join(f"{one!r}: str" if self.named else f"{one}: str" for one in self.codes)
        first, end = self.columns or (0, 0)
        words = {
            "decimal": repr(self.decimal) if self.decimal != "." else "",
            "thousands": repr(self.thousands) if self.thousands else "",
            "header": "" if self.named else "None",
            "skiprows": self._skipped,
            "nrows": str(self.rows or ""),
            "usecols": f"range({first}, {end})" if first else f"range({end})" if end else "",
            "dtype": f"{{{codes}}}" if codes else "",
        }
        return "".join(f", {key}={value}" for key, value in words.items() if value)

    @property
    def _skipped(self) -> str:
        if self.units:
            return str([*range(self.lines_above), self.lines_above + 1])
        return str(self.lines_above or "")


@dataclass
class TextStart:
    """The beginning of a text file.

    Args:
        lines: Its lines, line ends included; the last one is whole.
        encoding: As it was recognized.
        whole: The lines are all there are.
        more_lines: How many line ends follow, of a large file an estimate; None: they were not counted.
    """

    lines: list[str] = field(default_factory=list)
    encoding: str = "utf-8"
    whole: bool = True
    more_lines: int | None = 0


def read_start(path: str, *, most_bytes: int = SAMPLE_BYTES, counted_bytes: int = 60_000_000) -> TextStart:
    """Read the beginning of a text, and count the lines of the rest.

    Args:
        path: The file; one that ends in `.gz`, `.bz2` or `.xz` is decompressed.
        most_bytes: How much is read as text.
        counted_bytes: Up to here lines are counted; beyond, their number is estimated by the size, but for compressed
            files. 0: neither.

    Raises:
        ValueError: it is no text.
        OSError: it can't be read, or is not compressed as its name says.
    """
    with opened(path) as file:
        start = file.read(most_bytes)
        more = file.read(1)
        encoding = find_encoding(start[:_PIECE])
        if encoding == "utf-8":
            encoding = late_encoding(start)
        text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(start)
        if "\0" in text[:_PIECE]:
            raise ValueError("it is no text")
        end = b"\n" if "\n" in text else b"\r"
        if text.count("\r") > text.count("\r\n"):  # pandas ends lines there
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.splitlines(keepends=True) if "\n" not in text else text.split("\n")
        if "\n" in text:
            lines = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
        if not more:
            return TextStart(lines, encoding)
        if len(lines) > 1 and not lines[-1].endswith("\n"):
            lines.pop()  # it may be cut
        packed = path.lower().endswith(tuple(COMPRESSED))
        left = most_counted = counted_bytes - most_bytes
        count, last = more.count(end), more
        while left > 0 and (piece := file.read(_PIECE)):
            count, left, last = count + piece.count(end), left - len(piece), piece
            if encoding == "utf-8" and most_bytes <= _DECODED_BYTES and not piece.isascii():
                encoding = late_encoding(piece)
        if left > 0:
            open_line = not last.rstrip(b"\0").endswith(end)
            return TextStart(lines, encoding, whole=False, more_lines=count + open_line)
        estimated = None
        if most_counted > 0 and not packed:
            estimated = count * (os.path.getsize(path) - most_bytes) // (most_counted - left)
        return TextStart(lines, encoding, whole=False, more_lines=estimated)


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if its name ends in `.gz`, `.bz2` or `.xz`."""
    opener = COMPRESSED.get(f".{path.rpartition('.')[2].lower()}", open)
    with opener(path, "rb") as file:
        yield file


def parse_table(lines: Sequence[str], separator: str) -> tuple[list[list[str]], Mapping[str, Any]]:
    """Return the values of the lines of a table as `parse_rows` does, and how its quotes have to be read.

    Blanks in front of quotes, and backslashes in front of quotes and separators, are told by rows of a wrong length.

    Args:
        lines: With their line ends, the header first.
        separator: Between values.

    Raises:
        ValueError: a line can't be parsed.
    """
    best, how = parse_rows(lines, separator), dict[str, Any]()
    for text, options in ((f'{separator} "', {"skipinitialspace": True}), ("\\", {"escapechar": "\\"})):
        if (odd := _odd_rows(best)) and any(text in line for line in lines):
            try:
                other = parse_rows(lines, separator, **options)
            except ValueError:  # a value is too long, for a quote that is not closed
                continue
            if 2 * _odd_rows(other) <= odd and len(other[0]) == len(best[0]):
                best, how = other, options
    return best, how


def _odd_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows with several values have not as many as the first."""
    return sum(1 < len(row) != len(rows[0]) for row in rows)


def parse_rows(lines: Sequence[str], separator: str, **options: Any) -> list[list[str]]:
    """Return the values of lines, one row each; a quoted value may go over several lines.

    Args:
        lines: With their line ends.
        separator: Between values; a blank stands for any run of blanks and tabs.
        options: Of `csv.reader`.

    Raises:
        ValueError: a line can't be parsed.
    """
    if separator == " ":
        lines = [f"{' '.join(line.split())}\n" for line in lines]
    before = csv.field_size_limit(1_000_000)  # of the whole process, which may be the user's
    try:
        return list(csv.reader(lines, delimiter=separator, **options))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        csv.field_size_limit(before)


def find_separator(lines: Sequence[str], *, tabs: bool = False) -> str:
    """Return the separator by which most lines have as many values as the first one, and more than one.

    Args:
        lines: The first ones.
        tabs: The name of the file says that it is the tab.
    """
    likely = "\t" if tabs else ","
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


def table_separator(lines: Sequence[str]) -> str:
    """Return the separator of a text that is certainly a table of separated values; empty if it may be prose.

    All lines have as many values, with numbers in a column of nearly all of them; by blanks, most values are numbers.

    Args:
        lines: The first ones, without line ends; empty ones and comments (`#`) don't count.
    """
    some = [line for line in lines if line.strip() and not line.startswith("#")][:_SAMPLE_LINES]
    if len(some) < _LEAST_LINES:
        return ""
    for one in ("\t", ";", "|", ",", " "):
        try:
            rows = parse_rows(some, one)
        except ValueError:
            continue
        width = len(rows[0])
        if width < 2 or any(len(row) != width for row in rows):
            continue
        below = list(zip(*rows[1:], strict=True))
        shares = [sum(bool(_NUMBER.fullmatch(cell.strip())) for cell in one) / len(one) for one in below]
        if max(shares) > _NUMBER_SHARE and (one != " " or sum(shares) > width / 2):
            return one
    return ""


def has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row of a table holds names; True where that is not certain.

    It holds none if it has a number in each column of numbers, and these are no names such as years: one has decimals
    or stands there twice, or a text beside them occurs again in its column; but not if they only grow.

    Args:
        rows: All of the table, or the first ones.
    """
    first, rest = [cell.strip() for cell in rows[0]], rows[1 : _SAMPLE_LINES + 1]
    columns = [[row[at].strip() for row in rest if at < len(row) and row[at].strip()] for at in range(len(first))]
    numbers = [
        at
        for at, cells in enumerate(columns)
        if len(cells) >= _LEAST_LINES
        and sum(bool(_NUMBER.fullmatch(one)) for one in cells) > _NUMBER_SHARE * len(cells)
    ]
    found = [first[at] for at in numbers if first[at]]
    if not found or not all(map(_NUMBER.fullmatch, found)) or _ascending(found):
        return True
    again = any(first[at] in columns[at] for at in range(len(first)) if at not in numbers and first[at])
    return not (again or len(set(found)) < len(found) or any("." in one for one in found))


def is_units_row(rows: Sequence[Sequence[str]], *, missing: Collection[str] = ()) -> bool:
    """Return whether the first row below the names is certainly none, but units or a second line of names.

    It has a word, which does not come again, for most columns of numbers, two at least, and a number for none.

    Args:
        rows: Below the names.
        missing: What stands for a missing value.
    """
    first, rest = [cell.strip() for cell in rows[0]], rows[1 : _SAMPLE_LINES + 1]
    if len(rest) < _LEAST_LINES or any(len(row) != len(first) for row in rest) or any(map(_NUMBER.fullmatch, first)):
        return False
    numbers, words = 0, 0
    for at, cell in enumerate(first):
        below = [row[at].strip() for row in rest if row[at].strip() not in missing]
        if cell and (cell in below or len(cell) > _LONGEST_UNIT):
            return False
        if below and sum(bool(_NUMBER.fullmatch(one)) for one in below) > _NUMBER_SHARE * len(below):
            numbers += 1
            words += cell not in missing and any(one.isalpha() or one in "%°€$£" for one in cell)
    texts = sum(bool(cell) for cell in first)
    return numbers > 1 and words > 1 and 2 * words > numbers and 2 * words >= texts


def _ascending(numbers: Sequence[str]) -> bool:
    """Return whether four numbers or more grow from one to the next, as years or classes of size do."""
    return len(numbers) > 3 and all(
        len(one) <= len(other) and one < other for one, other in itertools.pairwise(numbers)
    )


def lines_above_header(lines: Sequence[str], *, tabs: bool = False) -> int:
    """Return how many of the first lines are comments (`#`) or a title; 0 where that is not certain.

    Args:
        lines: The file's first lines, without line ends.
        tabs: Whether a tab parts the columns.
    """
    comments = 0
    while comments < len(lines) and lines[comments].startswith("#"):
        comments += 1
    if comments == len(lines):  # there is nothing else: then it is data
        comments = 0
    return comments + _title_lines(lines[comments : comments + _SAMPLE_LINES], tabs)


def _title_lines(lines: Sequence[str], tabs: bool) -> int:
    """Return how many lines before the header are a title.

    The header below a title has words only, or years behind its first name, and stands above rows of its own length
    with numbers. Below lines with gaps it has no gap.
    """
    gaps = False
    for count in range(1, min(_TITLE_LINES + 1, len(lines))):
        rest = [line for line in lines[count:] if line.strip()]
        separator = find_separator(rest, tabs=tabs)
        try:
            header, *rows = csv.reader(rest or [""], delimiter=separator)
            above = [[cell.strip() for cell in row] or [""] for row in csv.reader(lines[:count], delimiter=separator)]
        except (csv.Error, ValueError):  # no row at all, or a value that is too long
            return 0
        if not above or not above[0][0]:
            return 0
        if len(header) < 2 or not lines[count].strip() or not any(cell.strip() for cell in header[1:]):
            continue  # one more line of the title
        split = max(sum(1 for cell in row if cell) for row in above) > 1
        alike = [row for row in rows if len(row) == len(header)]
        named = [cell.strip() for cell in header if cell.strip()]
        years = len(named) > 2 and all(map(_YEAR.fullmatch, named[1:]))
        words = len(named) > 0.7 * len(header) and not any(map(_NUMBER.fullmatch, named[:1] if years else named))
        numbers = any(_NUMBER.fullmatch(cell.strip()) for row in alike for cell in row)
        table = words and numbers and len(alike) > 0.5 * len(rows)
        table = table and not (split and len(alike) <= 0.9 * sum(len(row) > 1 for row in rows))
        if table and (_has_gaps(above, header, rows) if gaps else _is_title(lines[:count], above, len(header), split)):
            return count
        gaps = gaps or (not split and len(named) < len(header))
        if not split and not gaps:
            return 0
    return 0


def _has_gaps(above: Sequence[Sequence[str]], header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether lines that begin with a title have gaps, and the header and rows below them have none."""
    full = [header, *rows[:_LEAST_LINES]]
    one = sum(map(bool, above[0])) == 1
    return one and not any(map(all, above)) and all(cell.strip() for row in full for cell in row)


def _is_title(lines: Sequence[str], rows: Sequence[Sequence[str]], width: int, split: bool) -> bool:
    """Return whether lines can be a title, in which separators may stand for themselves.

    Args:
        lines: The lines.
        rows: Their values.
        width: How many values the header below them has.
        split: One of the lines has several values.
    """
    blank, words = any(not line.strip() for line in lines), " " in lines[0].strip()
    if not split:
        foreign = len(rows[0]) == 1 and '"' not in lines[0] and any(one in lines[0] for one in _SEPARATORS)
        return (words or blank or not all(row[0] for row in rows)) and not (foreign and not words)
    widest = max(map(len, rows))
    return words and (widest < width or (blank and widest <= width))


def rows_of_table(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows below the header belong to the table; notes, sources and other tables may follow them.

    Args:
        rows: The header first; empty ones included, which are counted up to the last row of the table.
    """
    filled = [at for at, row in enumerate(rows) if any(map(str.strip, row))]
    if not filled:
        return 0
    width = sum(1 for cell in rows[0] if cell.strip())
    end = filled[-1] + 1
    if width >= 2:
        number_columns = _number_columns(rows[1:21])
        for above, below in itertools.pairwise(filled):
            if below > above + 1 and _is_other(rows[below], width, number_columns):
                end = above + 1 if _ends_table(rows, above + 1) else end
                break
    while end > 2 and width >= 3 and not any(map(str.strip, rows[end - 1][1:])):
        end -= 1
    while end > 1 and not any(map(str.strip, rows[end - 1])):
        end -= 1
    return end - 1


def _ends_table(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether what follows a row may be notes; more rows of several values than the table has are none."""
    return sum(sum(map(bool, map(str.strip, row))) > 1 for row in rows[at:]) < at


def _is_other(row: Sequence[str], width: int, number_columns: set[int]) -> bool:
    """Return whether a row below an empty one is none of the table: a note, or the header of another table."""
    numbers = {at for at, cell in enumerate(row) if _NUMBER.fullmatch(cell.strip())}
    if sum(1 for cell in row if cell.strip()) * 2 <= width:
        return 0 not in numbers & number_columns
    return bool(number_columns) and not numbers & number_columns


def _number_columns(rows: Sequence[Sequence[str]]) -> set[int]:
    return {at for row in rows for at, cell in enumerate(row) if _NUMBER.fullmatch(cell.strip())}


def number_signs(rows: Sequence[Sequence[str]], separator: str) -> tuple[str, str]:
    """Return the signs of decimals and of thousands: `,` and `.` if numbers are written so.

    Args:
        rows: Without the header.
        separator: Between values.
    """
    values = [value.strip() for row in rows[:_SAMPLE_LINES] for value in row]
    if any(_POINT_NUMBER.fullmatch(value) and not _GROUPED.fullmatch(value) for value in values):
        return ".", ""  # with decimal commas beside them neither can be told: such columns stay text
    if any(_COMMA_GROUPS.fullmatch(value) for value in values):
        return ".", ""
    grouped = any(_GROUPED.fullmatch(value) for value in values)
    if separator != "," and any(_COMMA_NUMBER.fullmatch(value) for value in values):
        return ",", "." if grouped else ""
    return (",", ".") if grouped and _has_point_groups(rows[:_SAMPLE_LINES]) else (".", "")


def _has_point_groups(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a column is made of whole numbers with points between thousands, one of a million or more."""
    for at in range(max(map(len, rows), default=0)):
        values = [row[at].strip() for row in rows if at < len(row) and row[at].strip()]
        if any(value.count(".") > 1 for value in values) and all(map(_WHOLE_GROUPED.fullmatch, values)):
            return True
    return False


def pandas_names(header: Sequence[str]) -> list[str]:
    """Return the names of columns as pandas makes them of a header in which names may occur twice.

    Example:
        >>> pandas_names(["id", "n", "id", "", ""])
        ['id', 'n', 'id.1', '', '']
    """
    known, found = Counter[str](), []
    for one in header:
        found.append(f"{one}.{known[one]}" if one and known[one] else one)
        known[one] += 1
    return found


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
        return bool(thousands and _POINTED.fullmatch(value)) and not _GROUPED.fullmatch(value)

    found = []
    for number, name in enumerate(names):
        values = {row[number] for row in rows if number < len(row)}
        if any(
            is_code(value.strip()) for value in values if thousands in value and thousands or value[:1] in ("0", " ")
        ):
            found.append(name)
    return tuple(found)


def as_lines(rows: Sequence[Sequence[object]]) -> list[str]:
    """Return rows as lines of separated values, as they would stand in a text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows(rows)
    return out.getvalue().splitlines()
