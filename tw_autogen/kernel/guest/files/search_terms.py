"""`read_search_terms`: what the beginning of a file says of its content: layout, names, short texts, days and years."""

from __future__ import annotations

import contextlib
import html
import itertools
import os
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .column_profile import profile_columns
from .csv_dialect import COMPRESSED, find_separator, opened, parse_rows
from .database_files import open_database
from .table_extent import lines_above_header
from .text_encoding import find_encoding

_START_BYTES, _PIECE_BYTES, _MAX_PIECES = 16_000, 4_000, 16
_HEADER_LINES, _MAX_ROWS = 80, 400
_HEAD_CHARS, _VALUE_CHARS = 800, 1600
_LONGEST_VALUE = 60
_MAX_COLUMNS = 60
_NAMES_OF_SHEETS = 40
"""So many of a workbook's texts may be names of columns: they stand in the order in which they were written first."""
_MIN_DATE_CHARS = 5
_KEY = re.compile(r'"([^"\\]{1,60})"\s{0,9}:')
_JSON_TEXT = re.compile(r'[:\[,]\s{0,9}"([^"\\]{1,60})"')
_SHEET = re.compile(r'<sheet [^<>]{0,200}?name="([^"<>]{1,200})"')
_SHARED_TEXT = re.compile(r"<t(?: [^<>]{0,60})?>([^<>]{1,60})<")
_TAG = re.compile(r"<[^<>]*>")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_ALONE_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_YEAR_WORD = re.compile(
    r"(?:^|[^a-z])(?:(?:fiscal|model|birth)?_?y(?:ea)?rs?|seasons?|jahre?|années?|anno|años?)(?:$|[^a-z])"
)
_TEXTS = (".txt", ".md", ".rst", ".html", ".htm", ".log")
_JSONS = (".json", ".jsonl", ".ndjson", ".geojson")
_WORKBOOKS = (".xlsx", ".xlsm")
_DATABASES = (".db", ".sqlite", ".sqlite3")


@dataclass(frozen=True)
class SearchTerms:
    """What a file is found by.

    Args:
        layout: The same for tables of one layout: separator and header; empty: not known.
        heads: Titles, and the names of columns, keys, sheets and tables.
        values: Short texts in it.
        dated: The column that says of which day or year a row is; empty: none does, or years stand in the header.
        first: The first day or year that its rows are of; empty: none is, or it is not certain.
        last: The last one, in the same form.
    """

    layout: str = ""
    heads: str = ""
    values: str = ""
    dated: str = ""
    first: str = ""
    last: str = ""


_NOTHING = SearchTerms()


def read_search_terms(path: str) -> SearchTerms:
    """Return what the beginning of a file says of its content; nothing for one that can't be read.

    Args:
        path: Its own.
    """
    low = path.lower()
    packed = low.endswith(tuple(COMPRESSED))
    suffix = os.path.splitext(low.rpartition(".")[0] if packed else low)[1]
    try:
        if suffix in _WORKBOOKS and not packed:
            return _of_workbook(path)
        if suffix in _DATABASES and not packed:
            return _of_database(path)
        if suffix not in (".csv", ".tsv", *_JSONS, *_TEXTS):
            return SearchTerms()
        with opened(path) as file:
            start = file.read(_START_BYTES)
        text = start.decode(find_encoding(start), "replace")
        if suffix in (".csv", ".tsv"):
            return _of_table(path, text, suffix == ".tsv", whole=len(start) < _START_BYTES, packed=packed)
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile, sqlite3.Error):
        return SearchTerms()
    if suffix in _JSONS:
        return SearchTerms(
            heads=_join_distinct(_KEY.findall(text), _HEAD_CHARS), values=_join_distinct(_JSON_TEXT.findall(text))
        )
    if suffix in (".html", ".htm"):
        text = html.unescape(_TAG.sub(" ", text))
    lines = [line for line in text.splitlines() if line.strip()]
    heads = [line.lstrip("# ") for index, line in enumerate(lines) if index == 0 or line.startswith("#")]
    return SearchTerms(heads=_join_distinct(heads, _HEAD_CHARS), values=_join_distinct(text.split()))


def years_in(name: str) -> list[int]:
    """Return the years that stand in a name.

    Example:
        >>> years_in("rain_1998-2003.csv"), years_in("id_20031.csv")
        ([1998, 2003], [])
    """
    return [int(match) for match in _ALONE_YEAR.findall(name)]


def _join_distinct(texts: Sequence[str], most: int = _VALUE_CHARS) -> str:
    """Return different texts, up to so many characters together."""
    found, left = [], most
    for fromkey in dict.fromkeys(texts):
        if left <= 0:
            break
        found.append(fromkey[:left])
        left -= len(fromkey) + 1
    return " ".join(found)


def _of_table(path: str, text: str, tabs: bool, *, whole: bool, packed: bool) -> SearchTerms:
    lines = text.splitlines()
    lines = lines if whole or len(lines) < 2 else lines[:-1]
    above = lines_above_header(lines[:_HEADER_LINES], tabs=tabs)
    separator = find_separator([line for line in lines[above:] if line.strip()][:50], tabs=tabs)
    header, *rows = parse_rows([f"{line}\n" for line in lines[above : above + _MAX_ROWS]], separator) or [[]]
    whole = whole and len(lines) <= above + _MAX_ROWS
    titles = [line.strip(f'{separator}" ') for line in lines[:above]]
    names = [one.strip().lstrip("\ufeff") for one in header]
    values = [cell.strip() for row in rows for cell in row if 1 < len(cell.strip()) <= _LONGEST_VALUE]
    covered = _covered_period(names, rows)
    if covered.first and not whole:
        covered = _NOTHING if packed else _covered_to_the_end(path, names, rows, separator)
    return replace(
        covered,
        layout=f"{separator}{'|'.join(header)}" if len(header) > 1 else "",
        heads=_join_distinct([*titles, *names], _HEAD_CHARS),
        values=_join_distinct([value for value in values if any(map(str.isalpha, value))]),
    )


def _covered_period(names: Sequence[str], rows: Sequence[Sequence[str]], only: str = "") -> SearchTerms:
    """Return the first and the last day or year of the first column that holds them, or of a header of years.

    Args:
        names: The header.
        rows: Below it.
        only: The one column to be looked at; empty: each.
    """
    years = [one for one in names if _YEAR.fullmatch(one)]
    if len(years) > 2 and 2 * len(years) >= len(names):
        return SearchTerms(first=min(years), last=max(years))
    for index, name in enumerate(names[:_MAX_COLUMNS]):
        texts = [row[index].strip() for row in rows if index < len(row) and row[index].strip()]
        if len(texts) < 2 or not any(map(str.isdigit, "".join(texts[:5]))) or only not in ("", name):
            continue
        if _YEAR_WORD.search(name.lower()):
            found = [text for text in texts if _YEAR.fullmatch(text)]
            if len(found) >= 0.9 * len(texts):
                return SearchTerms(dated=name, first=min(found), last=max(found))
        if any(len(text) > _MIN_DATE_CHARS for text in texts[:5]):
            dates = profile_columns([name], [[text] for text in texts])[0].dates
            if dates is not None:
                return SearchTerms(dated=name, first=dates[0], last=dates[1])
    return _NOTHING


def _covered_to_the_end(path: str, names: Sequence[str], rows: Sequence[Sequence[str]], separator: str) -> SearchTerms:
    """Return what `_covered_period` does for a table of which the beginning was read, if it is in the order of time.

    The order is looked at in pieces all over the file.
    """
    pieces = []
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        places = min(_MAX_PIECES, size // (2 * _PIECE_BYTES))
        inner = [offset for part in range(1, places) if (offset := size * part // places) >= _START_BYTES]
        for offset in (*inner, size - _PIECE_BYTES):
            file.seek(offset)
            pieces.append(file.read(_PIECE_BYTES))
    later = [_rows_of_piece(piece, len(names), separator) for piece in pieces]
    half, known = len(rows) // 2, _covered_period(names, rows)
    if not known.dated:
        return known
    parts = [_covered_period(names, some, known.dated) for some in (rows[:half], rows[half:], *later)]
    if len({len(date) for one in parts for date in (one.first, one.last)}) > 1:
        return _NOTHING
    for some in (parts, parts[::-1]):
        if all(one.last <= other.first for one, other in itertools.pairwise(some)):
            return replace(known, first=some[0].first, last=some[-1].last)
    return _NOTHING


def _rows_of_piece(piece: bytes, width: int, separator: str) -> list[list[str]]:
    """Return the rows of a piece of a table that are whole."""
    lines = piece.decode(find_encoding(piece), "replace").splitlines()[1:]
    return [row for row in parse_rows([f"{line}\n" for line in lines], separator) if len(row) == width]


def _of_workbook(path: str) -> SearchTerms:
    with zipfile.ZipFile(path) as archive:
        with archive.open("xl/workbook.xml") as file:
            sheets = _SHEET.findall(file.read(_START_BYTES).decode("utf-8", "replace"))
        texts: list[str] = []
        for part in ("xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"):  # some writers have one of them for texts
            with contextlib.suppress(KeyError), archive.open(part) as file:
                texts += _SHARED_TEXT.findall(file.read(_START_BYTES).decode("utf-8", "replace"))
    sheets, texts = (list(map(html.unescape, some)) for some in (sheets, texts))
    return SearchTerms(
        heads=_join_distinct([*sheets, *texts[:_NAMES_OF_SHEETS]], _HEAD_CHARS), values=_join_distinct(texts)
    )


def _of_database(path: str) -> SearchTerms:
    with contextlib.closing(open_database(path)) as database:
        made = database.execute("SELECT sql FROM sqlite_master WHERE type IN ('table', 'view') LIMIT 50").fetchall()
    return SearchTerms(heads=_join_distinct([str(sql)[:_HEAD_CHARS] for (sql,) in made], 2 * _HEAD_CHARS))
