"""`Sheet`: what is said of a sheet of an Excel workbook, as `pandas.read_excel` reads it."""

from __future__ import annotations

import contextlib
import itertools
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache, partial
from typing import Any

from .column_profile import MISSING, Column
from .csv_dialect import CsvDialect, TextStart, as_lines
from .plural import pluralize
from .table_blocks import find_blocks, find_side_blocks
from .table_extent import lines_above_header
from .text_table import MAX_CELLS, TextTable, block_lines, csv_table

_FAILED_CELLS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A")
_MAX_NAMES = 5
_TITLE_ROWS = 300
_FIRST_ROWS = 100
_FORMULA = re.compile(rb"<(?:\w{1,20}:)?f[\s/>]")
_MERGED = re.compile(rb"<(?:\w{1,20}:)?mergeCell ref=\"([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})\"")
_MAX_MERGED = 10_000
_ROW = re.compile(rb"<(?:\w{1,20}:)?row\s[^<>]{0,500}>")
_COLUMN = re.compile(rb"<(?:\w{1,20}:)?col\s[^<>]{0,500}>")
_HIDDEN, _SPAN = re.compile(rb"\shidden=\"(?:1|true)\""), re.compile(rb"\s(min|max)=\"(\d{1,5})\"")
_LOCALE, _QUOTED = re.compile(r"\[\$-[^\]]{0,20}\]"), re.compile(r'"[^"]{0,40}"|\\.')
_CURRENCY = re.compile(r'\[\$([^\]-]{1,10})|([$€£¥₹₽])|"\s?([A-Z]{3})\s?"')
_UNIT_ROWS, _UNIT_COLUMNS, _MAX_UNITS = 200, 200, 8
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
        merged: Merged cells: the first row and column of each, and the last ones, from 0 on.
        units: What the formats of cells show beside a number: a currency, or `%`, by row and column.
        engine: What `read_excel` has to read it with; empty: it finds that itself.
    """

    title: str
    rows: list[list[Any]]
    more: bool = False
    hidden: bool = False
    notes: list[str] = field(default_factory=list)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    units: dict[tuple[int, int], str] = field(default_factory=dict)
    engine: str = ""

    def describe(self, name: str, *, several: bool) -> tuple[str, list[str], list[Column]]:
        """Return a headline, lines, and the columns; none of an empty sheet.

        Args:
            name: What code calls the file.
            several: The workbook has more sheets.
        """
        cells = [[_cell_text(value) for value in row] for row in self.rows]
        while cells and not any(cells[-1]):
            cells.pop()
        filled = {index for row in cells for index, cell in enumerate(row) if cell}
        if not filled:
            return "empty", self.notes, []
        left, end = min(filled), max(filled) + 1
        cells = [(row + [""] * end)[:end] for row in cells]
        start = f"{name!r}, sheet_name={self.title!r}" if several else repr(name)
        start += f", engine={self.engine!r}" if self.engine else ""
        if not self.more and (blocks := find_side_blocks(cells)):
            headline, lines, columns = block_lines(blocks, name, ",", partial(_read_excel_call, start, 0, end))
            return headline, lines + self.notes, columns
        cells = [row[left:] for row in cells]
        call = partial(_read_excel_call, start, left, end)
        if not self.more and (blocks := find_blocks(cells)):
            headline, lines, columns = block_lines(blocks, name, ",", call)
            return headline, lines + self.notes, columns
        above = next(index for index, row in enumerate(cells) if any(row))
        shown = as_lines(cells)
        above += lines_above_header(shown[above : above + _TITLE_ROWS])
        above = self._header_row(above)
        text = TextStart(
            [f"{line}\n" for line in shown], whole=not self.more, more_lines=None if self.more else 0, rows=cells
        )
        table = csv_table(text, name, above, ",", call=call, grouped=self._is_grouped(above))
        values = [row[left:] for row in self.rows]
        below = values[table.first_line :][: table.read or None]
        table.kinds = {
            index: kind for index in range(len(table.names)) if (kind := _column_kind(_column_values(index, below)))
        }
        table.notes += _names_no_text(values[table.first_line - 1]) if table.named else []
        table.notes += self._merged_notes(table, left) + self._unit_notes(table, left)
        table.notes += _error_cells(values) + self.notes
        return table.describe()

    def _header_row(self, first: int) -> int:
        """Return the row of a table's names, where several rows of merged names stand above: the one below these.

        Args:
            first: What the texts of the cells show as the row, from 0 on.
        """
        while self._is_merged_title(first):
            first = next(at for at in range(first + 1, len(self.rows)) if any(map(_cell_text, self.rows[at])))
        groups = next(count for count in itertools.count() if not self._is_grouped(first + count))
        if groups > 1:
            return first + groups
        names, above = ([*map(_cell_text, row)] for row in (self.rows[first], self.rows[first - 1]))
        lacks = any(name and not (names[at : at + 1] or [""])[0] for at, name in enumerate(above))
        return first - 1 if first and lacks and self._is_grouped(first - 1) else first

    def _is_merged_title(self, row: int) -> bool:
        """Return whether all that a row holds is one cell that is merged with others of it, and a wider one follows.

        Empty rows may stand between.
        """
        following = (cells for cells in self.rows[row + 1 :] if any(map(_cell_text, cells)))
        rows = [self.rows[row], *itertools.islice(following, 1)]
        filled = [[index for index, cell in enumerate(cells) if _cell_text(cell)] for cells in rows]
        titles = [first for top, first, _, last in self.merged if top == row and last > first]
        return len(filled) == 2 and len(filled[0]) == 1 < len(filled[1]) and filled[0][0] in titles

    def _is_grouped(self, header: int) -> bool:
        """Return whether merged cells of the header, a row that is counted from 0 on, have names below them."""
        if header + 1 >= len(self.rows):
            return False
        below = self.rows[header + 1]
        spread = list(below)
        for top, first, _, last in self.merged:
            if top == header + 1 and first < len(below):
                spread[first : last + 1] = [below[first]] * (last + 1 - first)
        groups = [spread[first : last + 1] for _, first, row, last in self.merged if row == header and last > first]
        filled = [value for value in below if _cell_text(value)]
        several = sum(map(bool, map(_cell_text, self.rows[header]))) > 1
        return several and bool(groups) and all(map(all, groups)) and all(isinstance(value, str) for value in filled)

    def _merged_notes(self, table: TextTable, left: int) -> list[str]:
        """Return a note on the merged cells that span rows of a table; some empty columns stand in front of it."""
        first, end = table.first_line, table.first_line + (table.read or len(self.rows))
        spans = (
            index - left for top, index, bottom, last in self.merged if index == last and first <= top < bottom < end
        )
        counts = Counter(index for index in spans if 0 <= index < len(table.names))
        counted = ", ".join(f"{table.names[index]!r} ({count})" for index, count in sorted(counts.items()))
        why = "pandas reads the value in the first row of each and nan below it; ffill() fills down"
        return [f"merged cells in {counted}: {why}"] if counted else []

    def _unit_notes(self, table: TextTable, left: int) -> list[str]:
        """Return a note on currencies and percent signs that the formats of a table's numbers show."""
        counts: dict[int, Counter[str]] = {}
        for (row, column), unit in self.units.items():
            if row >= table.first_line and 0 <= column - left < len(table.names):
                counts.setdefault(column - left, Counter())[unit] += 1
        columns: dict[str, list[str]] = {}
        for column, units in sorted(counts.items()):
            counted = ", ".join(f"{unit or 'none'} ({count})" for unit, count in units.most_common())
            if set(units) != {""}:
                columns.setdefault(counted if len(units) > 1 else next(iter(units)), []).append(
                    repr(table.names[column])
                )
        notes = []
        for counted, names in columns.items():
            more = ", …" if len(names) > _MAX_UNITS else ""
            notes.append(f"{counted} in {', '.join(names[:_MAX_UNITS])}{more}{', so 0.1 is 10 %' * ('%' in counted)}")
        part = f" of the first {_UNIT_ROWS} rows" if len(self.rows) > _UNIT_ROWS else ""
        return [f"cell formats{part} show what the values don't: {'; '.join(notes)}"] if notes else []


def read_sheets(path: str, kind: str, *, max_sheets: int, max_rows: int) -> tuple[list[str], list[Sheet]]:
    """Return the titles of the sheets of a workbook, and the first sheets.

    Args:
        path: Of the file.
        kind: As its content shows: calamine reads `xls`, `xlsb` and `ods`; with a mere `zip` pandas needs the engine.
        max_sheets: How many are read.
        max_rows: How many rows of each at most.

    Raises:
        ImportError: what reads it is not installed.
    """
    if kind in ("xls", "xlsb", "ods"):
        return _read_old_sheets(path, max_sheets, max_rows)
    import openpyxl  # type: ignore[import-untyped]  # optional: the extra `data` brings it

    with open(path, "rb") as file:  # by its name openpyxl refuses one that is called otherwise
        merged, hidden, has_formulas = _merged_hidden_and_formulas(path)
        sheets = []
        with contextlib.closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            titles = [str(worksheet.title) for worksheet in book.worksheets]
            for worksheet in book.worksheets[:max_sheets]:
                worksheet.reset_dimensions()  # programs write wrong ones; pandas doesn't look at them either
                given = map(_without_end, worksheet.iter_rows(values_only=True))
                rows = list(itertools.islice(given, _FIRST_ROWS))
                most = max(_FIRST_ROWS, min(max_rows, MAX_CELLS // (max(map(len, rows), default=0) or 1)))
                rows += itertools.islice(given, most + 1 - len(rows))
                sheets.append(Sheet(str(worksheet.title), rows, len(rows) > most, worksheet.sheet_state != "visible"))
                sheets[-1].engine = "openpyxl" * (kind == "zip")
                sheets[-1].units = _cell_units(worksheet.iter_rows(max_row=_UNIT_ROWS, max_col=_UNIT_COLUMNS))
                sheets[-1].merged = merged.get(str(worksheet._worksheet_path), [])
                sheets[-1].notes = hidden.get(str(worksheet._worksheet_path), [])
        if has_formulas:
            with contextlib.closing(openpyxl.load_workbook(file, read_only=True)) as written:
                for sheet in sheets:
                    written[sheet.title].reset_dimensions()
                    formulas = written[sheet.title].iter_rows(values_only=True, max_row=_FORMULA_ROWS)
                    sheet.notes += _formula_notes(sheet.rows, formulas)
    return titles, sheets


def _read_old_sheets(path: str, max_sheets: int, max_rows: int) -> tuple[list[str], list[Sheet]]:
    """Return the titles of the sheets of a workbook that is not of today's Excel, and the first sheets."""
    import python_calamine  # optional: the extra `data` brings it

    with open(path, "rb") as file, contextlib.ExitStack() as opened:
        try:
            book = opened.enter_context(python_calamine.CalamineWorkbook.from_filelike(file))
        except python_calamine.CalamineError:  # by its suffix it tells why, such as a password
            book = opened.enter_context(python_calamine.CalamineWorkbook.from_path(path))
        tables = [sheet for sheet in book.sheets_metadata if sheet.typ == python_calamine.SheetTypeEnum.WorkSheet]
        sheets = []
        for about in tables[:max_sheets]:
            old_sheet = book.get_sheet_by_name(about.name)
            most = max(_FIRST_ROWS, min(max_rows, MAX_CELLS // (old_sheet.width or 1)))
            read = old_sheet.to_python(skip_empty_area=False, nrows=most + 1)
            rows = [_without_end(list(map(_as_excel, row))) for row in read]
            hidden = about.visible != python_calamine.SheetVisibleEnum.Visible
            merged = [(*first, *last) for first, last in old_sheet.merged_cell_ranges or ()]
            sheets.append(Sheet(old_sheet.name, rows, len(rows) > most, hidden, merged=merged, engine="calamine"))
        return [table.name for table in tables], sheets


def _as_excel(value: Any) -> Any:
    """Return a value of calamine as openpyxl has it: nothing in the place of an empty text, dates with a time."""
    if type(value) is date:
        return datetime(value.year, value.month, value.day)
    return None if value == "" else value


def _cell_units(rows: Iterable[Sequence[Any]]) -> dict[tuple[int, int], str]:
    """Return what the formats of cells show beside their numbers, by row and column; empty: nothing."""
    found: dict[tuple[int, int], str] = {}
    for row, cells in enumerate(rows):
        for index, cell in enumerate(cells):
            if isinstance(cell.value, (int, float)) and not isinstance(cell.value, bool):
                with contextlib.suppress(IndexError):  # some programs write cells of styles that they don't write
                    found[row, index] = _unit_sign(str(cell.number_format))
    return found


@lru_cache(maxsize=1000)
def _unit_sign(number_format: str) -> str:
    """Return the currency or the percent sign of a format of numbers, as of positive ones; empty: it has none.

    Example:
        >>> _unit_sign('#,##0.00 [$CHF-807]'), _unit_sign('"$"#,##0'), _unit_sign("0.0%"), _unit_sign("[$-409]d/m/yy")
        ('CHF', '$', '%', '')
    """
    shown = _LOCALE.sub("", number_format.partition(";")[0])
    if match := _CURRENCY.search(shown):
        return str(match[match.lastindex or 0]).strip()
    return "%" if "%" in _QUOTED.sub("", shown) else ""


def _without_end(row: Sequence[Any]) -> list[Any]:
    """Return a row without the empty cells at its end, which may be there for their format only."""
    end = len(row)
    while end and row[end - 1] is None:
        end -= 1
    return list(row[:end])


def _merged_hidden_and_formulas(
    path: str,
) -> tuple[dict[str, list[tuple[int, int, int, int]]], dict[str, list[str]], bool]:
    """Return the merged cells and notes on what is hidden of each sheet, by its part, and whether there are formulas.

    They are looked for in its text, which takes less time than reading it again.
    """
    from openpyxl.utils import range_boundaries  # type: ignore[import-untyped]

    merged: dict[str, list[tuple[int, int, int, int]]] = {}
    hidden: dict[str, list[str]] = {}
    formulas = False
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not (name.startswith("xl/worksheets/") and name.endswith(".xml")):
                continue
            end, left, found = b"", _FORMULA_BYTES, dict[bytes, None]()
            rows, columns = 0, list[bytes]()
            with archive.open(name) as sheet:
                while left > 0 and (piece := sheet.read(_PIECE)):
                    text = end + piece
                    formulas = formulas or _FORMULA.search(text) is not None
                    found |= dict.fromkeys(_MERGED.findall(text) if len(found) < _MAX_MERGED else ())
                    whole = text[: text.rfind(b">") + 1]
                    rows += sum(bool(_HIDDEN.search(tag)) for tag in _ROW.findall(whole)) if b"hidden=" in whole else 0
                    columns += [tag for tag in _COLUMN.findall(whole) if _HIDDEN.search(tag)]
                    cut = max(len(whole), len(text) - 600)
                    end, left = text[cut:], left - len(piece)
            places = (range_boundaries(span.decode()) for span in found)
            hidden[name] = _hidden_notes(rows, columns)
            merged[name] = [(top - 1, first - 1, bottom - 1, last - 1) for first, top, last, bottom in places]
    return merged, hidden, formulas


def _hidden_notes(rows: int, columns: Sequence[bytes]) -> list[str]:
    """Return a note on the hidden rows and columns of a sheet.

    Args:
        rows: How many.
        columns: The elements of a sheet that hide columns, each one or several.
    """
    from openpyxl.utils import get_column_letter

    spans = [{key: int(number) for key, number in _SPAN.findall(tag)} for tag in columns[:_MAX_NAMES]]
    letters = [[get_column_letter(span[key]) for key in (b"min", b"max")] for span in spans if len(span) == 2]
    shown = ", ".join(first if first == last else f"{first}–{last}" for first, last in letters)
    words = [pluralize(rows, "hidden row")] * bool(rows) + [f"hidden columns: {shown}"] * bool(shown)
    return [f"{', '.join(words)}; pandas reads them all the same"] if words else []


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
    return [f"{pluralize(len(some), 'formula')}{part} {stored}, such as {some[0][0][:_FORMULA_CHARS]}, {why}"]


def _read_excel_call(start: str, left: int, end: int, dialect: CsvDialect) -> str:
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
    needed = dialect.options or ", engine=" in start
    return f"pd.read_excel({start}{dialect.options})" if needed else ""


def _column_values(index: int, rows: Sequence[Sequence[Any]]) -> list[Any]:
    return [row[index] for row in rows if index < len(row)]


def _column_kind(values: Sequence[Any]) -> str:
    """Return the kind of a column with dates, times or durations, or with booleans beside others; empty: of no such."""
    if not any(issubclass(type_, (bool, date, time, timedelta)) for type_ in set(map(type, values))):
        return ""
    there = (value for value in values if _cell_text(value) and not (isinstance(value, str) and value in MISSING))
    counts = Counter(next(word for kind, word in _KINDS if isinstance(value, kind)) for value in there)
    if len(counts) > 1:
        return " and ".join(pluralize(n, w) for w, n in counts.items())
    return "".join(f"{count}s, no text" for count in counts if count != "boolean")


def _names_no_text(header: Sequence[Any]) -> list[str]:
    """Return a note on the names of columns that are numbers or dates, as pandas keeps them."""
    names = [
        _cell_text(name) if isinstance(name, (int, float)) else repr(name) for name in header if not _is_text(name)
    ]
    shown = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    return [f"names that are no texts, but numbers or dates: {shown}"] if names else []


def _is_text(value: Any) -> bool:
    return value is None or value != value or isinstance(value, (str, bool))


def _error_cells(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a note on the cells whose formula has failed."""
    failed = Counter(value for row in rows for value in row if isinstance(value, str) and value in _FAILED_CELLS)
    counted = ", ".join(f"{error} {count}" for error, count in failed.items())
    return [f"cells with an error, which pandas reads as nan: {counted}"] if failed else []


def _cell_text(value: Any) -> str:
    if value is None or value != value or (isinstance(value, str) and value in _FAILED_CELLS):
        return ""
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        return str(int(value))
    return str(value)
