"""`Sheet`: what is said of a sheet of an Excel workbook, as `pandas.read_excel` reads it."""

from __future__ import annotations

import contextlib
import itertools
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from functools import partial
from typing import Any

from .column_profile import MISSING, Column
from .csv_dialect import CsvDialect, TextStart, as_lines
from .table_blocks import find_blocks, find_side_blocks
from .table_extent import lines_above_header
from .text_table import MOST_CELLS, block_lines, csv_table

_FAILED_CELLS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A")
_MOST_NAMES = 5
_TITLE_ROWS = 300
_FIRST_ROWS = 100
_FORMULA = re.compile(rb"<(?:\w{1,20}:)?f[\s/>]")
_FORMULA_ROWS, _FORMULA_BYTES, _FORMULA_CHARS = 5000, 50_000_000, 60
_PIECE = 1_000_000
_KINDS = ((bool, "boolean"), (date, "date"), (time, "time"), (timedelta, "duration"), (str, "text"), (object, "number"))


@dataclass
class Sheet:
    """A sheet of a workbook.

    Args:
        title: Its name.
        rows: The values of its cells, empty ones at the end of a row left out.
        more: More rows follow.
        hidden: A spreadsheet program does not show it.
        notes: On its formulas.
    """

    title: str
    rows: list[list[Any]]
    more: bool = False
    hidden: bool = False
    notes: list[str] = field(default_factory=list)

    def describe(self, name: str, *, several: bool) -> tuple[str, list[str], list[Column]]:
        """Return a headline, lines, and the columns; none of an empty sheet.

        Args:
            name: What code calls the file.
            several: The workbook has more sheets.
        """
        cells = [[_cell(one) for one in row] for row in self.rows]
        while cells and not any(cells[-1]):
            cells.pop()
        filled = {at for row in cells for at, one in enumerate(row) if one}
        if not filled:
            return "empty", self.notes, []
        left, end = min(filled), max(filled) + 1
        cells = [(row + [""] * end)[:end] for row in cells]
        start = f"{name!r}, sheet_name={self.title!r}" if several else repr(name)
        if not self.more and (blocks := find_side_blocks(cells)):
            headline, lines, columns = block_lines(blocks, name, ",", partial(_call, start, 0, end))
            return headline, lines + self.notes, columns
        cells = [row[left:] for row in cells]
        call = partial(_call, start, left, end)
        if not self.more and (blocks := find_blocks(cells)):
            headline, lines, columns = block_lines(blocks, name, ",", call)
            return headline, lines + self.notes, columns
        above = next(at for at, row in enumerate(cells) if any(row))
        shown = as_lines(cells)
        above += lines_above_header(shown[above : above + _TITLE_ROWS])
        text = TextStart(
            [f"{line}\n" for line in shown], whole=not self.more, more_lines=None if self.more else 0, rows=cells
        )
        table = csv_table(text, name, above, ",", call=call)
        values = [row[left:] for row in self.rows]
        below = values[table.first_line :][: table.read or None]
        table.kinds = {at: kind for at in range(len(table.names)) if (kind := _kind(_column(at, below)))}
        table.notes += _names_no_text(values[table.first_line - 1]) if table.named else []
        table.notes += _error_cells(values) + self.notes
        return table.describe()


def read_sheets(path: str, *, most_sheets: int, most_rows: int) -> tuple[list[str], list[Sheet]]:
    """Return the titles of the sheets of a workbook, and the first sheets.

    Args:
        path: Of the file; the old form, `.xls`, is read by pandas.
        most_sheets: How many are read.
        most_rows: How many rows of each at most.

    Raises:
        ImportError: what reads it is not installed.
    """
    if path.lower().endswith(".xls"):
        import pandas  # optional; with xlrd it reads the old form

        with pandas.ExcelFile(path) as old:
            titles = [str(one) for one in old.sheet_names]
            frames = pandas.read_excel(old, sheet_name=titles[:most_sheets], header=None, nrows=most_rows)
        read = {str(title): frame.astype(object).values.tolist() for title, frame in frames.items()}
        return titles, [Sheet(title, rows, len(rows) >= most_rows) for title, rows in read.items()]
    import openpyxl  # type: ignore[import-untyped]  # optional: the extra `data` brings it

    sheets = []
    with contextlib.closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
        titles = [str(one.title) for one in book.worksheets]
        for one in book.worksheets[:most_sheets]:
            one.reset_dimensions()  # programs write wrong ones; pandas doesn't look at them either
            given = map(_without_end, one.iter_rows(values_only=True))
            rows = list(itertools.islice(given, _FIRST_ROWS))
            most = max(_FIRST_ROWS, min(most_rows, MOST_CELLS // (max(map(len, rows), default=0) or 1)))
            rows += itertools.islice(given, most + 1 - len(rows))
            sheets.append(Sheet(str(one.title), rows, len(rows) > most, one.sheet_state != "visible"))
    if _has_formulas(path):
        with contextlib.closing(openpyxl.load_workbook(path, read_only=True)) as written:
            for sheet in sheets:
                written[sheet.title].reset_dimensions()
                formulas = written[sheet.title].iter_rows(values_only=True, max_row=_FORMULA_ROWS)
                sheet.notes = _formula_notes(sheet.rows, formulas)
    return titles, sheets


def _without_end(row: Sequence[Any]) -> list[Any]:
    """Return a row without the empty cells at its end, which may be there for their format only."""
    end = len(row)
    while end and row[end - 1] is None:
        end -= 1
    return list(row[:end])


def _has_formulas(path: str) -> bool:
    """Return whether a workbook has formulas; looked for in its text, which takes less time than reading it again."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not (name.startswith("xl/worksheets/") and name.endswith(".xml")):
                continue
            end, left = b"", _FORMULA_BYTES
            with archive.open(name) as sheet:
                while left > 0 and (piece := sheet.read(_PIECE)):
                    if _FORMULA.search(end + piece):
                        return True
                    end, left = piece[-30:], left - len(piece)
    return False


def _formula_notes(rows: Sequence[Sequence[Any]], written: Iterator[Sequence[Any]]) -> list[str]:
    """Return notes on formulas whose values the file does not hold, or may not hold.

    Args:
        rows: The values of the sheet.
        written: Its cells, formulas in the place of their values.
    """
    found = [
        (getattr(text, "text", text), value)  # a formula of several cells has its text in an attribute
        for row, values in zip(written, rows, strict=False)
        for text, value in itertools.zip_longest(row, values[: len(row)])
        if text is not value
    ]
    formulas = [pair for pair in found if isinstance(pair[0], str) and pair[0][:1] == "=" and pair[0] != pair[1]]
    empty = [pair for pair in formulas if pair[1] is None]
    some = empty or (formulas if all(type(value) is not bool and value == 0 for _, value in formulas) else [])
    if not some:
        return []
    part = f" in its first {_FORMULA_ROWS} rows" if len(rows) > _FORMULA_ROWS else ""
    stored = "without a stored value" if empty else "with the stored value 0"
    why = (
        "which pandas reads as nan; a spreadsheet program that opens and saves the file computes them"
        if empty
        else "which may be no result: programs that compute nothing write it"
    )
    return [f"{_count(len(some), 'formula')}{part} {stored}, such as {some[0][0][:_FORMULA_CHARS]}, {why}"]


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _call(start: str, left: int, end: int, dialect: CsvDialect) -> str:
    """Return the call that reads a table of a sheet; empty where `read_excel` with the sheet's name alone does.

    Args:
        start: The first arguments.
        left: How many empty columns stand in front of those that the dialect counts.
        end: The number of the column after the last one.
        dialect: How the table has to be read.
    """
    if left:
        first, last = dialect.columns or (0, end - left)
        dialect = replace(dialect, columns=(first + left, last + left))
    return f"pd.read_excel({start}{dialect.options})" if dialect.options else ""


def _column(at: int, rows: Sequence[Sequence[Any]]) -> list[Any]:
    return [row[at] for row in rows if at < len(row)]


def _kind(values: Sequence[Any]) -> str:
    """Return the kind of a column with dates, times or durations, or with booleans beside others; empty: of no such."""
    if not any(issubclass(one, (bool, date, time, timedelta)) for one in set(map(type, values))):
        return ""
    there = (one for one in values if _cell(one) and not (isinstance(one, str) and one in MISSING))
    counts = Counter(next(word for kind, word in _KINDS if isinstance(one, kind)) for one in there)
    if len(counts) > 1:
        return " and ".join(_count(n, w) for w, n in counts.items())
    return "".join(f"{one}s, no text" for one in counts if one != "boolean")


def _names_no_text(header: Sequence[Any]) -> list[str]:
    """Return a note on the names of columns that are numbers or dates, as pandas keeps them."""
    names = [_cell(one) if isinstance(one, (int, float)) else repr(one) for one in header if not _is_text(one)]
    shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    return [f"names that are no texts, but numbers or dates: {shown}"] if names else []


def _is_text(value: Any) -> bool:
    return value is None or value != value or isinstance(value, (str, bool))


def _error_cells(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a note on the cells whose formula has failed."""
    failed = Counter(one for row in rows for one in row if isinstance(one, str) and one in _FAILED_CELLS)
    said = ", ".join(f"{one} {count}" for one, count in failed.items())
    return [f"cells with an error, which pandas reads as nan: {said}"] if failed else []


def _cell(value: Any) -> str:
    if value is None or value != value or (isinstance(value, str) and value in _FAILED_CELLS):
        return ""
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        return str(int(value))
    return str(value)
