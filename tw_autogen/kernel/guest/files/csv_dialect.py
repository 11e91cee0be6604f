"""`CsvDialect`: how the text of separated values has to be read: encoding, separator, decimal comma, header, codes."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from .text_encoding import UTF8, count_invalid_utf8, find_encoding, late_encoding

_LATER_BYTES, _LATER_PLACES = 8192, 64
"""How much is looked at of each piece of a large text's rest, and how many pieces of what is not counted."""
SAMPLE_BYTES = 8_000_000
"""How much of a text is parsed."""
_PIECE = 1_000_000
SAMPLE_LINES, _WHOLE_ROWS = 200, 50
_DECODED_BYTES = 50_000_000
SEPARATORS = (",", ";", "\t", "|")
_RARE_SEPARATORS, _RARE_SHARE = ("#", "^", "~", "\xa6", "\xa7"), 0.95
"""What parts values only if nearly all lines have three or more by it, and no common separator does as well."""
BLANKS = " ,;\t|\r\n"
"""What a line without values consists of."""
COMPRESSED: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_COMPRESSED_SIGNS = {b"\x1f\x8b": ".gz", b"BZh91AY&SY": ".bz2", b"\xfd7zXZ\0": ".xz", b"PK\3\4": ".zip"}
_NO_TEXT, _TEXT_CHARS = re.compile("[\\x00-\\x08\\x0e-\\x1a]"), 1000
"""A text with NULs may hold these signs beside them if all are no more than one in so many characters."""

MIN_LINES, NUMBER_SHARE = 3, 0.9
NUMBER = re.compile(r"[+-]?[$€£]? ?[.,]?\d[\d.,]* ?%?", re.ASCII)


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
        long_integers: Columns of integers that would be floats, and no longer exact, beside missing values.
        rows: How many rows pandas has to read, where other lines follow the table; 0: none follow.
        columns: Numbers of the table's first column and of the one after its last, where its lines have more.
        named: The first line holds names.
        units: The line below the names is no row.
        quoting: How quotes are read, as arguments of both `csv.reader` and `read_csv`; see `parse_table`.
        broken: Some bytes of the text mean nothing in its encoding.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    lines_above: int = 0
    codes: tuple[str, ...] = ()
    long_integers: tuple[str, ...] = ()
    rows: int = 0
    columns: tuple[int, int] | None = None
    named: bool = True
    units: bool = False
    quoting: Mapping[str, Any] = field(default_factory=dict)
    broken: bool = False

    def call(self, name: str) -> str:
        """Return the call that reads a file, for code; empty where `read_csv(name)` alone does.

        Example:
            >>> CsvDialect(separator=";", decimal=",", codes=("zip",)).call("a.csv")
            "pd.read_csv('a.csv', sep=';', decimal=',', dtype={'zip': str})"
        """
        source = {
            "sep": {",": "", " ": r"r'\s+'"}.get(self.separator, repr(self.separator)),
            "engine": "" if self.separator.isascii() else "'python'",  # the other one warns
            "encoding": repr(self.encoding) if self.encoding != "utf-8" else "",
            "encoding_errors": "'replace'" if self.broken else "",
            **{key: repr(value) for key, value in self.quoting.items()},
        }
        arguments = "".join(f", {key}={value}" for key, value in source.items() if value) + self.options
        return f"pd.read_csv({name!r}{arguments})" if arguments else ""

    @property
    def options(self) -> str:
        """Return the arguments that `read_excel` takes as well, each behind a comma."""
        types = {**dict.fromkeys(self.long_integers, "'Int64'"), **dict.fromkeys(self.codes, "str")}
        types_text = ", ".join(
            f"{name!r}: {type_}" if self.named else f"{name}: {type_}" for name, type_ in types.items()
        )
        first, end = self.columns or (0, 0)
        words = {
            "decimal": repr(self.decimal) if self.decimal != "." else "",
            "thousands": repr(self.thousands) if self.thousands else "",
            "header": "" if self.named else "None",
            "skiprows": self._skiprows,
            "nrows": str(self.rows or ""),
            "usecols": f"range({first}, {end})" if first else f"range({end})" if end else "",
            "dtype": f"{{{types_text}}}" if types_text else "",
        }
        return "".join(f", {key}={value}" for key, value in words.items() if value)

    @property
    def _skiprows(self) -> str:
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
        rows: The values of each line, of a table that is no text; None: the lines have to be parsed.
        broken: How many places of it are not UTF-8, where it is that but for them.
        later: Some of the lines that follow, from all over the rest, in order.
        last: The last lines, none of which are among these.
        nuls: How many NULs its beginning holds, each shown as `�`.
    """

    lines: list[str] = field(default_factory=list)
    encoding: str = "utf-8"
    whole: bool = True
    more_lines: int | None = 0
    rows: list[list[str]] | None = None
    broken: int = 0
    later: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    nuls: int = 0


def read_start(path: str, *, max_bytes: int = SAMPLE_BYTES, counted_bytes: int = 60_000_000) -> TextStart:
    """Read the beginning of a text, and count the lines of the rest.

    Args:
        path: The file; one that is compressed is decompressed, see `opened`.
        max_bytes: How much is read as text.
        counted_bytes: Up to here lines are counted; beyond, their number is estimated by the size, but for compressed
            files. 0: neither.

    Raises:
        ValueError: it is no text.
        OSError: it can't be read, or is not compressed as its name says.
    """
    with opened(path) as file:
        start = file.read(max_bytes)
        more = file.read(1)
        encoding = find_encoding(start[:_PIECE])
        if encoding == "utf-8" and start[:_PIECE].isascii():
            encoding = late_encoding(start)
        ascii_only = start.isascii()
        broken = count_invalid_utf8(start) if encoding in UTF8 else 0
        text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(start)
        nuls = text.count("\0")
        controls = len(_NO_TEXT.findall(text)) if nuls else 0
        if 2 * nuls > len(text) or (controls > nuls and controls * _TEXT_CHARS > len(text)):
            raise ValueError("it is no text")
        text = text.replace("\0", "\ufffd")  # the module `csv` of Python 3.10 takes none
        end = b"\n" if "\n" in text else b"\r"
        if text.count("\r") > text.count("\r\n"):  # pandas ends lines there
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.splitlines(keepends=True) if "\n" not in text else text.split("\n")
        if "\n" in text:
            lines = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
        if not more:
            return TextStart(lines, encoding, broken=broken, nuls=nuls)
        if len(lines) > 1 and not lines[-1].endswith("\n"):
            lines.pop()  # it may be cut
        packed = compression_of(path) != ""
        left = max_counted = counted_bytes - max_bytes
        count, before, last, later = more.count(end), b"", more, list[bytes]()
        while left > 0 and (piece := file.read(_PIECE)):
            later += _whole_lines(last[:_LATER_BYTES], end)
            count, left, before, last = count + piece.count(end), left - len(piece), last, piece
            if encoding in UTF8 and max_bytes <= _DECODED_BYTES and not piece.isascii():
                encoding, ascii_only = late_encoding(piece) if ascii_only else encoding, False
                broken += count_invalid_utf8(piece) if encoding in UTF8 else 0
        more_lines, size, tail = None, os.path.getsize(path), b""
        if left > 0:
            more_lines, tail = count + (not last.rstrip(b"\0").endswith(end)), (before + last)[-_LATER_BYTES:]
        elif max_counted > 0 and not packed:
            more_lines = count * (size - max_bytes) // (max_counted - left)
            step = max(_LATER_BYTES, (size - counted_bytes) // _LATER_PLACES)
            for index in (
                *range(counted_bytes, size - 2 * _LATER_BYTES, step),
                max(counted_bytes, size - _LATER_BYTES),
            ):
                file.seek(index)
                later += _whole_lines(tail, end)
                tail = file.read(_LATER_BYTES)
        found = (
            _decode_lines(later, encoding),
            _decode_lines(tail.rstrip(b"\0").removesuffix(end).split(end)[1:], encoding),
        )
        return TextStart(lines, encoding, False, more_lines, broken=broken, later=found[0], last=found[1], nuls=nuls)


def _whole_lines(piece: bytes, end: bytes) -> list[bytes]:
    """Return the lines of a piece of a text but for the first and the last one, which may be cut."""
    return piece.split(end)[1:-1]


def _decode_lines(lines: Sequence[bytes], encoding: str) -> list[str]:
    """Return lines as text; none of an encoding in which a line end is more than one byte."""
    if encoding.startswith(("utf-16", "utf-32")):
        return []
    return [f"{line.decode(encoding, 'replace').rstrip(chr(13))}\n" for line in lines]


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if it is compressed; see `compression_of`."""
    packed = compression_of(path)
    if packed == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(table_member(archive)) as member:
            yield member
        return
    with COMPRESSED.get(packed, open)(path, "rb") as file:
        yield file


def table_member(archive: zipfile.ZipFile) -> str:
    """Return the name of the only file in an archive, or else of its only one that is called a table.

    Files that macOS and Windows add don't count.

    Raises:
        ValueError: there is none, or more than one.
    """
    names = [entry.filename for entry in members_of(archive)]
    tables = tables_among(names) if len(names) > 1 else names
    if len(tables) != 1:
        raise ValueError(f"an archive of {len(tables)} tables")
    return tables[0]


def tables_among(names: Iterable[str]) -> list[str]:
    """Return the names of files that are called tables of text."""
    return [name for name in names if name.lower().endswith((".csv", ".tsv"))]


def members_of(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files in an archive, without folders and without what macOS and Windows add."""
    return [
        entry
        for entry in archive.infolist()
        if not entry.is_dir()
        and not entry.filename.startswith("__MACOSX/")
        and os.path.basename(entry.filename) not in (".DS_Store", "Thumbs.db", "desktop.ini")
    ]


def compression_of(path: str) -> str:
    """Return `.gz`, `.bz2`, `.xz` or `.zip`: how a file's name ends, or else what its content shows; or nothing."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in COMPRESSED or suffix == ".zip":
        return suffix
    with open(path, "rb") as file:
        start = file.read(10)
    return next((kind for sign, kind in _COMPRESSED_SIGNS.items() if start.startswith(sign)), "")


def parse_table(lines: Sequence[str], separator: str) -> tuple[list[list[str]], Mapping[str, Any]]:
    """Return the values of the lines of a table as `parse_rows` does, and how its quotes have to be read.

    Blanks in front of quotes, and backslashes in front of quotes and separators, are told by rows of a wrong length;
    quotes that are part of values between tabs, by values that hold tabs and line ends.

    Args:
        lines: With their line ends, the header first.
        separator: Between values.

    Raises:
        ValueError: a line can't be parsed.
    """
    try:
        best, how = parse_rows(lines, separator), dict[str, Any]()
    except ValueError:  # a value is too long, for a quote that is not closed
        if separator != "\t":
            raise
        return parse_rows(lines, separator, quoting=csv.QUOTE_NONE), {"quoting": csv.QUOTE_NONE}
    if separator == "\t" and any("\n" in cell and "\t" in cell for row in best for cell in row):
        other = parse_rows(lines, separator, quoting=csv.QUOTE_NONE)
        if all(len(row) in (0, len(other[0])) for row in other):
            return other, {"quoting": csv.QUOTE_NONE}
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


def find_separator(lines: Sequence[str], *, tabs: bool = False, titled: bool = False) -> str:
    """Return the separator by which most lines have as many values as the first one, and more than one.

    Where there is none, it is one by which the first line has several values and most lines have as many as one
    another; else the only one that the first line holds, more than once. Among equals it is one whose values hold no
    other separator, then a comma last: it is common in texts, other separators are not.

    Args:
        lines: The first ones.
        tabs: The name of the file says that it is the tab.
        titled: The first line may be that of a title: it counts as any other, and many commas are decimal ones.
    """
    likely = "\t" if tabs else ","
    best, best_score = likely, _NO_FIT
    for candidate in ("\t", ";", "|", ","):
        if (score := _separator_score(lines, candidate, titled)) > best_score:
            best, best_score = candidate, score
    for candidate in () if titled or best_score[2] > _RARE_SHARE else _RARE_SEPARATORS:
        score = _separator_score(lines, candidate, titled) if any(candidate in line for line in lines) else _NO_FIT
        fits, _, share, _, width = score
        if fits and width > 2 and share > _RARE_SHARE and score > best_score:
            best, best_score = candidate, score
    if titled or any(best_score):
        return best
    best = find_separator(lines, tabs=tabs, titled=True)
    first = (
        [(separator, lines[0].count(separator)) for separator in SEPARATORS if separator in lines[0]]
        if lines and best == likely
        else []
    )
    return first[0][0] if len(first) == 1 and first[0][1] > 1 else best


_NO_FIT = (False, False, 0.0, 0.0, 0)


def _separator_score(lines: Sequence[str], separator: str, titled: bool) -> tuple[bool, bool, float, float, int]:
    """Return how well a separator parts lines; the larger, the better.

    Returns:
        Most lines have as many values as the first one; no comma, where the first line may be a title; the share of
        lines that have as many as one another, more than half; the share of values that hold no separator, but for
        commas of numbers; and how many values a line has. One that is empty at the end of each line doesn't count.
    """
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:  # a whole line as one value is longer than a value may be
        return _NO_FIT
    if not rows or (len(rows[0]) < 2 and not titled):
        return _NO_FIT
    ended = all(not row[-1] for row in rows)
    widths = [len(row) - ended for row in rows]
    counts = Counter(width for width in widths if width > 1)
    fits = not titled and 2 * counts[widths[0]] > len(widths)
    width = widths[0] if fits else max(counts, key=counts.__getitem__, default=0)
    share = counts[width] / len(widths)
    if share <= 0.5:
        return _NO_FIT
    cells = [cell for row in rows[:_WHOLE_ROWS] for cell in row]
    split = sum(any(other in cell for other in SEPARATORS) and not NUMBER.fullmatch(cell.strip()) for cell in cells)
    return fits, titled and separator != ",", round(share, 2), round(1 - split / len(cells), 1), width


def table_separator(lines: Sequence[str]) -> str:
    """Return the separator of a text that is certainly a table of separated values; empty if it may be prose.

    All lines have as many values, with numbers in a column of nearly all of them; by blanks, most values are numbers.

    Args:
        lines: The first ones, without line ends; empty ones and comments (`#`) don't count.
    """
    some = [line for line in lines if line.strip() and not line.startswith("#")][:SAMPLE_LINES]
    if len(some) < MIN_LINES:
        return ""
    for candidate in ("\t", ";", "|", ",", " "):
        try:
            rows = parse_rows(some, candidate)
        except ValueError:
            continue
        width = len(rows[0])
        if width < 2 or any(len(row) != width for row in rows):
            continue
        below = list(zip(*rows[1:], strict=True))
        shares = [sum(bool(NUMBER.fullmatch(cell.strip())) for cell in row) / len(row) for row in below]
        if max(shares) > NUMBER_SHARE and (candidate != " " or sum(shares) > width / 2):
            return candidate
    return ""


def pandas_names(header: Sequence[str]) -> list[str]:
    """Return the names of columns as pandas makes them of a header in which names may occur twice.

    Example:
        >>> pandas_names(["id", "n", "id", "", ""])
        ['id', 'n', 'id.1', '', '']
        >>> pandas_names(["a", "a", "a.1"])
        ['a', 'a.2', 'a.1']
    """
    known, found, there = Counter[str](), list(header), set(header)
    for index, cell in enumerate(header):
        name, count = cell, known[cell]
        while cell and count > 0:
            known[cell] = count + 1
            name = f"{cell}.{count}"
            count = count + 1 if name in there else known[name]
        found[index] = name
        there.add(name)
        known[name] = count + 1
    return found


def as_lines(rows: Sequence[Sequence[object]]) -> list[str]:
    """Return rows as lines of separated values, as they would stand in a text, line ends in values as blanks.

    A NUL, which Python 3.10 can't write, is left out.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([" ".join(str(cell).splitlines()).replace("\0", "") for cell in row] for row in rows)
    return out.getvalue().splitlines()
