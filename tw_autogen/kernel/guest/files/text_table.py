"""`TextTable`: what is said of rows of text; and of files in which several tables stand below one another."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .column_groups import column_lines
from .column_profile import MISSING, Column, profile_columns, say_whole_range, show
from .csv_dialect import (
    BLANKS,
    NUMBER,
    SEPARATORS,
    CsvDialect,
    TextStart,
    as_lines,
    pandas_names,
    parse_rows,
    parse_table,
)
from .number_separators import NumberSeparators, code_columns, find_number_separators, is_number, long_integer_columns
from .plural import pluralize
from .table_blocks import TableBlock, find_blocks, find_side_blocks
from .table_extent import (
    has_names,
    heads_above,
    is_note,
    is_units_row,
    lines_about_table,
    may_be_sentence,
    may_lack_names,
    rows_of_table,
)
from .total_rows import total_notes

MAX_CELLS = 250_000
MAX_COLUMNS = 500
_SHOWN_COLUMNS = 60
RAW_CHARS = 300
_RAW_LINES = 4
_BELOW_LINES = 6
_MAX_BLOCKS = 15
_BLOCK_CHARS = 160
_BLOCK_LINES = 20_000
"""A longer text is not searched for several tables."""
_SIDE_LINES = 20
_LAST_LINES = 100
_MIN_GAPS = 2
"""A header with so many empty names may hold heads of groups, each above the first of its columns."""
_SECOND_LINE = {
    "units": "its second line is no row, but units or more names",
    "grouped": "its second line is no row, but names below merged ones, {pairs}",
    "more names": "its second line holds more names, {pairs}",
}
_MIN_ROWS = 5
"""Rows from which on one that is narrower than all others is no header."""
_TELLING = ("odd: ", "missing", "leading zeros", "case only")
"""Words of a column's line that its first values don't show."""


@dataclass
class TextTable:
    """Rows of text with all that is to be said of them."""

    names: list[str]
    rows: list[list[str]]
    name: str
    raw: list[str] = field(default_factory=list)
    first_line: int = 1
    read: int = 0
    count: str = ""
    sampled: bool = False
    later: int = 0
    notes: list[str] = field(default_factory=list)
    kinds: Mapping[int, str] = field(default_factory=dict)
    ranges: Mapping[int, tuple[Any, Any]] = field(default_factory=dict)
    missing: frozenset[str] = MISSING
    decimal: str = "."
    thousands: str = ""
    call: str = ""
    named: bool = True
    quoted: bool = True

    def describe(self) -> tuple[str, list[str], list[Column]]:
        """Return a headline, lines, and the columns."""
        columns = profile_columns(
            self.names[:MAX_COLUMNS],
            self.rows,
            decimal=self.decimal,
            thousands=self.thousands,
            kinds=self.kinds,
            missing=self.missing,
        )
        for column in columns:
            column.sampled = self.sampled
            column.words += ["as far as looked at"] * (self.sampled and column.kind == "empty")
        for at, (low, high) in self.ranges.items():
            say_whole_range(columns[at], low, high)
        count = self.count or str(len(self.rows))
        where = f", {'header' if self.named else 'first row'} in line {self.first_line}" if self.first_line > 1 else ""
        later = f" and {self.later} of the others" if self.later else ""
        sample = f", judged by its first {len(self.rows) - self.later} rows{later}" if self.sampled else ""
        headline = f"{count} rows x {len(self.names)} columns{where}{sample}"
        lines = [f"| {line}" for line in self.raw]
        said = column_lines(columns)
        if not (self.named and self.quoted):  # the names are numbers or tuples
            said = [f"column {column.line.replace(repr(column.name), column.name, 1)}" for column in columns]
        lines += said[:_SHOWN_COLUMNS]
        if len(self.names) > len(columns) or len(said) > _SHOWN_COLUMNS:
            lines.append(f"… and more columns, up to {self.names[-1]!r}")
        if twice := [name for name, count in Counter(self.names).items() if count > 1][:5]:
            names = pandas_names(self.names)
            second = names[self.names.index(twice[0], self.names.index(twice[0]) + 1)]
            called = f"; pandas calls the second {second!r}" if self.missing is MISSING else ""
            lines.append(f"names that occur twice: {', '.join(map(repr, twice))}{called}")
        lines += self.notes
        return headline, lines + self._reading_note, columns

    @property
    def remarks(self) -> list[str]:
        """Return what has to be said where all of its text is shown."""
        return [note.rstrip(":") for note in self.notes if not note.startswith("| ")] + self._reading_note

    @property
    def _reading_note(self) -> list[str]:
        return [f"to be read with {self.call}"] if self.call else []


def csv_table(
    start: TextStart,
    name: str,
    above: int,
    separator: str,
    *,
    call: Callable[[CsvDialect], str] | None = None,
    doubtful: bool = False,
    grouped: bool = False,
) -> TextTable:
    """Return the table of a text of separated values.

    Args:
        start: The text, or its beginning.
        name: What code calls the file.
        above: How many lines stand above the header.
        separator: Between the values of a row.
        call: Returns the call that reads it; None: that of `read_csv`.
        doubtful: There may be no header: a row that has a number is none.
        grouped: The line below the header holds names, too, under merged ones.

    Raises:
        ValueError: it has no rows.
    """
    lines = start.lines[above:]
    first = lines[0].count(separator) + 1
    cells = MAX_CELLS if start.whole else MAX_CELLS // 4
    most = max(100, cells // min(max(1, first), MAX_COLUMNS))
    sampled = not start.whole or len(lines) > most + 1
    values = start.rows and start.rows[above : above + most + 1]
    rows, quoting, share = _parsed_rows(lines[: most + 1], separator, sampled=sampled, values=values)
    about = 0 if doubtful else int(_is_narrow(rows)) or lines_about_table(rows, separator, whole=not sampled)
    if about:
        return csv_table(start, name, above + about, separator, call=call, doubtful=True)
    named, notes = has_names(rows) and not (doubtful and any(map(is_number, rows[0]))), []
    rows = rows if named else [[str(index) for index in range(len(rows[0]))], *rows]
    header, data = [name or f"Unnamed: {index}" for index, name in enumerate(rows[0])], rows[1:]
    below: list[list[str]] = []
    if not sampled:
        count = rows_of_table(rows)
        below = [row for row in rows[count + 1 :] if any(cell.strip() for cell in row)]
        data = rows[1 : count + 1] if below else rows[1:]
    data = [row for row in data if not _is_blank(row)]
    second = "grouped" if grouped and named and data else ""
    second = second or (_second_line(rows[0], data, "".join(lines[1:2]), separator) if named else "")
    skipped = _count_records(start.lines[:above])
    notes += [f"{_SECOND_LINE[second].format(pairs=_header_note(skipped, 2))}: {_row_text(data[0])}"] if second else []
    if heads := heads_above(start.lines[:above], rows[0], separator) if named and not second else 0:
        lines_of = f"{pluralize(heads, 'line')} above the names may hold heads of them"
        notes.append(f"{lines_of}, {_header_note(skipped - heads, heads + 1)}")
    units = second in ("units", "grouped")
    data = data[units:]
    read = len(data) if below else 0
    data, empty = drop_blank_rows(data) if len(header) > 1 else (data, [])
    notes += empty
    plain = separator == "," and '"' not in "".join(lines[1:2])  # R quotes the names of rows
    if named and (labels := _row_names(header, data, commas=plain)):
        notes.append(f"{labels} begin its rows without a name in the header: pandas takes them for the index")
        data = [row[1:] for row in data]
    total = _row_count_text(start, len(lines) - 1 - units, share) if sampled else ""
    later, last = list[list[str]](), list[list[str]]()
    if data and sampled and not start.rows:
        later = _later_rows(start, lines[most + 1 :], separator, most=most // 2)
        last, below = _last_rows(rows[0], start.last or lines[most + 1 :] * start.whole, separator, quoting)
    later = [row for row in (*later, *last) if len(row) == len(data[0])]
    data = [*data, *later]
    wide = [row for row in data if len(row) > len(header)]
    short = [row for row in data if len(row) < len(header)]
    separators = find_number_separators(data, separator)
    notes += _doubtful_separators(header, separators)
    called = pandas_names(header) if named else header
    codes = code_columns(called, data, separators.thousands)
    if any(any(row[len(header) :]) for row in wide):
        notes.append(f"{len(wide)} rows have more values than the header, such as: {_row_text(wide[0])}")
    if comments := [row for row in short if row[0].startswith("#")]:
        lines_of = f"{pluralize(len(comments), 'line')} among its rows begin{'s' * (len(comments) == 1)}"
        notes.append(f"{lines_of} with '#', as comments do, which comment='#' leaves out: {_row_text(comments[0])}")
    elif short:
        notes.append(f"{len(short)} rows have fewer values than the header, such as: {_row_text(short[0])}")
    notes += _doubtful_names(header, rows, separator, skipped) if named else [_NO_NAMES]
    if not sampled:
        notes += total_notes(header, data, decimal=separators.decimal, thousands=separators.thousands)
    notes += _below_notes(below, [row[0].strip() for row in data if row])
    if len(header) == 1 and any(any(row[1:]) for row in wide) and not any("\t" in line for line in start.lines):
        return csv_table(start, name, above, "\t", call=call, doubtful=doubtful)  # commas of texts part its lines
    columns = (0, len(header)) if wide else None  # else pandas fails, or takes the first values for an index
    shown = itertools.dropwhile(lambda line: not line.strip(BLANKS), start.lines[: above + _RAW_LINES])
    dialect = CsvDialect(
        separator,
        start.encoding,
        separators.decimal,
        separators.thousands,
        skipped,
        codes,
        () if start.rows else long_integer_columns(called, data),
        read,
        columns,
        named=named,
        units=units,
        quoting=quoting,
        broken=start.broken > 0,
    )
    return TextTable(
        header,
        data,
        name,
        raw=[cut_line(line) for line in shown],
        first_line=above + 1,
        read=read,
        count=total,
        sampled=sampled,
        later=len(later),
        notes=notes,
        decimal=separators.decimal,
        thousands=separators.thousands,
        call=call(dialect) if call else dialect.call(name),
        named=named,
    )


def _parsed_rows(
    lines: Sequence[str], separator: str, *, sampled: bool, values: list[list[str]] | None
) -> tuple[list[list[str]], Mapping[str, Any], float]:
    """Return the rows of lines, how their quotes are read, and how many rows a line holds.

    Args:
        lines: From the header on.
        separator: Between the values of a row.
        sampled: More lines follow.
        values: Of the lines, where they need not be parsed.

    Raises:
        ValueError: there are no rows.
    """
    if values:
        return values, {}, 1.0
    rows, quoting = parse_table(lines, separator)
    share = len(rows) / len(lines)
    if "quoting" not in quoting and sum(line.count('"') for line in lines) % 2:
        if sampled:
            rows.pop()  # cut within a value
        elif parse_rows([*lines, "\n", "end"], separator, **quoting)[-1] != ["end"]:  # pandas fails there
            quoting = {"quoting": csv.QUOTE_NONE}
            rows = parse_rows(lines, separator, **quoting)
    del rows[: next((index for index, row in enumerate(rows) if not _is_blank(row)), len(rows))]
    if not rows:
        raise ValueError("it has no rows")
    rows[0][0] = rows[0][0].lstrip("\ufeff")
    return rows, quoting, share


def _later_rows(start: TextStart, rest: Sequence[str], separator: str, *, most: int) -> list[list[str]]:
    """Return rows from all over what is not among the first ones; a file may be sorted.

    Args:
        start: The text.
        rest: Its lines that were read, behind those that are parsed.
        separator: Between the values of a row.
        most: How many rows.
    """
    half, rest = max(1, most // 2), rest if start.last else rest[:-_LAST_LINES]
    lines = [*rest[:: len(rest) // half + 1], *start.later[:: len(start.later) // half + 1]]
    return parse_rows([line for line in lines if '"' not in line], separator)


def _last_rows(
    header: list[str], lines: Sequence[str], separator: str, quoting: Mapping[str, Any]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the last rows of a text, and what stands below them; none where quoted values go over several lines.

    Args:
        header: The names.
        lines: The text's last ones.
        separator: Between the values of a row.
        quoting: How quotes are read.
    """
    if any(line.count('"') % 2 for line in lines[-_LAST_LINES:]):
        return [], []
    rows = parse_rows(lines[-_LAST_LINES:], separator, **quoting)
    count = rows_of_table([header, *rows])
    return rows[:count], [row for row in rows[count:] if any(map(str.strip, row))]


def _row_names(header: Sequence[str], rows: Sequence[Sequence[str]], *, commas: bool) -> str:
    """Return the first names of rows, as R's `write.table` puts them before the columns of the header; empty: none.

    Args:
        header: The names of columns.
        rows: Below it.
        commas: Commas part its values; one that stands in each line below a single name may be part of a value.
    """
    wider = all(len(row) == len(header) + 1 for row in rows) and any(row[-1] for row in rows)
    if not wider or (commas and len(header) == 1 and _have_commas(rows)):
        return ""
    return ", ".join(show(row[0]) for row in rows[:2]) + ", …"


def _have_commas(pairs: Sequence[Sequence[str]]) -> bool:
    """Return whether what a comma parts is one value: a number but for those that R counts its rows by, or a text."""
    if all(after[:1] == " " and not is_number(after.strip()) for _, after in pairs):
        return True
    counted = all(before == str(number) for number, (before, _) in enumerate(pairs, 1))
    return not counted and all(NUMBER.fullmatch(f"{before},{after}".strip(" €$£¥")) for before, after in pairs)


def _is_narrow(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first of some rows has far fewer values than all others: it can't name their columns."""
    first, widths = len(rows[0]), {len(row) for row in rows[1:] if not _is_blank(row)}
    return first > 1 and len(rows) > _MIN_ROWS and len(widths) == 1 and min(widths) > first + 1 and any(rows[1][first:])


_NO_NAMES = "its first line holds no names: with header=None the columns are the numbers 0, 1, …"


def _doubtful_names(header: Sequence[str], rows: Sequence[Sequence[str]], separator: str, skipped: int) -> list[str]:
    if (alone := all(is_number(name.strip()) for name in header)) or may_lack_names(rows):
        names = "in its first line" if alone else "above its numbers"
        return [f"every name {names} is a number; if that line is data, read it with header=None"]
    if may_be_sentence(rows, separator):
        return [f"its names may be a sentence about the table: then read it with skiprows={skipped + 1}, header=None"]
    return []


def _below_notes(below: Sequence[Sequence[str]], values: Sequence[str]) -> list[str]:
    """Return a note on the lines below a table; some that hold only a first value, which is no note, may be rows.

    Args:
        below: Their values.
        values: Of the table's first column.
    """
    if not below:
        return []
    may = not any(any(map(str.strip, row[1:])) or is_note(row[0].strip(), values) for row in below)
    headline = f"{pluralize(len(below), 'line')} below its rows, {'which may be ' * may}no rows of it:"
    return [headline, *(f"| {cut_line(line)}" for line in as_lines(below[:_BELOW_LINES]))]


def _doubtful_separators(names: Sequence[str], separators: NumberSeparators) -> list[str]:
    """Return a note on columns of numbers whose points, or commas, stand before three digits, as between thousands."""
    found, kind = (
        [repr(names[index]) for index in separators.doubtful if index < len(names)],
        {".": "points", ",": "commas"},
    )
    sign = kind.get(separators.thousands or separators.decimal, "signs")
    other = "in front of decimals" if separators.thousands else "between thousands"
    return [f"{sign} in {', '.join(found)} may stand {other}, which is not certain"] * bool(found)


def _is_blank(row: Sequence[str]) -> bool:
    """Return whether a row is that of a line without values, which pandas skips and does not count."""
    return not row or len(row) == 1 and row[0].isspace()


def _second_line(header: Sequence[str], rows: Sequence[Sequence[str]], line: str, separator: str) -> str:
    """Return what stands below a header: `units`, `more names` of groups; empty: a row.

    Args:
        header: The first line, in which names may be empty, or the same.
        rows: Below it.
        line: The second line; if it is not the first row alone, that is a row.
        separator: Between values.
    """
    alone = bool(rows) and line.count('"') % 2 == 0 and parse_rows([line], separator) == [rows[0]]
    gaps = header.count("") >= _MIN_GAPS or len(set(header)) < len(header)  # pandas repeats names of groups
    if not alone or not is_units_row(rows, missing=MISSING, words=gaps):
        return ""
    return "more names" if gaps else "units"


def _header_note(skipped: int, levels: int) -> str:
    """Return with which arguments the names of so many lines are read together, after others are skipped."""
    skiprows = f"skiprows={skipped}, " * bool(skipped)
    return f"with {skiprows}header={list(range(levels))} they are {'pairs' if levels == 2 else 'tuples'}"


def _count_records(lines: Sequence[str]) -> int:
    """Return as how many lines pandas counts lines that it skips: those that a quoted text spans are one."""
    count, quoted = 0, False
    for line in lines:
        quoted ^= line.count('"') % 2 == 1
        count += not quoted
    return count


def drop_blank_rows(rows: Sequence[list[str]]) -> tuple[list[list[str]], list[str]]:
    """Return the rows that have a value, and a note on the others."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    count = len(rows) - len(filled)
    note = f"{pluralize(count, 'empty row')}, separators only, not counted; pandas reads nan there"
    return filled, [note] if count else []


def _row_count_text(start: TextStart, seen: int, share: float) -> str:
    """Return how many rows a table has of whose text only the beginning was read, in words.

    Args:
        start: The text.
        seen: How many lines of it hold rows.
        share: How many rows a line holds: less than one where texts go over several.
    """
    if start.more_lines is None:
        return f"more than {int(seen * share)}"
    lines = seen + start.more_lines
    return f"about {_round_count(lines if share == 1 else int(float(f'{lines * share:.2g}')))}"


def _round_count(count: int) -> int:
    """Return a count with three digits if it is so large that it may be an estimate."""
    return count if count < 1_000_000 else int(float(f"{count:.3g}"))


def blocks_of_text(start: TextStart, separator: str) -> tuple[list[TableBlock], str]:
    """Return the blocks of a text that holds several tables, and the separator of their values.

    Args:
        start: The text; one that is not whole is taken for one table.
        separator: The most likely one; another is taken if only by that several tables are certain.
    """
    lines = start.lines
    if not start.whole or len(lines) > _BLOCK_LINES:
        return [], separator
    parted = any(separator * 2 in line for line in lines[:_SIDE_LINES])
    if parted and (found := find_side_blocks(parse_rows(lines, separator))):
        return found, separator
    if not any(map(_may_part, lines[1:])):
        return [], separator
    for candidate in (separator, *(other for other in SEPARATORS if other != separator)):
        if candidate != separator and sum(candidate in line for line in lines) < 4:
            continue
        rows = parse_rows(lines, candidate)
        if rows and rows[0]:
            rows[0][0] = rows[0][0].lstrip("\ufeff")
        found = find_blocks(rows)
        if candidate == separator and found or sum(bool(block.header) for block in found) > 1:
            return found, candidate
    return [], separator


def _may_part(line: str) -> bool:
    """Return whether a line may part two tables: it is empty, or holds one value."""
    value = line.strip(BLANKS)
    return not value or value[0] == value[-1] == '"' or not any(separator in value for separator in SEPARATORS)


def block_lines(
    blocks: Sequence[TableBlock], name: str, separator: str, call: Callable[[CsvDialect], str]
) -> tuple[str, list[str], list[Column]]:
    """Return a headline, lines and the columns of a file that holds several tables.

    Args:
        blocks: Its tables, and the rows between them.
        name: What code calls the file.
        separator: Between values.
        call: Returns the call that reads a table.
    """
    lines: list[str] = []
    columns: list[Column] = []
    known: dict[tuple[str, ...], int] = {}
    count = sum(bool(block.header) for block in blocks)
    number = 0
    for index, block in enumerate(blocks):
        if index == _MAX_BLOCKS:
            lines.append(f"… {len(blocks) - index} more of them, down to line {blocks[-1].end}")
            break
        if not block.header:
            lines += _group_lines(block)
            continue
        number += 1
        names = [name or f"Unnamed: {(block.left or 0) + at}" for at, name in enumerate(block.header)]
        title = f" under {show(block.title)}" if block.title else ""
        size = f"{pluralize(len(block.rows), 'row')} x {len(names)} columns"
        place = "" if block.left is None else f"columns {block.left + 1}–{block.left + len(names)}, "
        lines.append(f"table {number}{title}: {place}header in line {block.header_at + 1}, {size}")
        same = known.setdefault(tuple(names), number)
        shown = [block.header, block.rows[0]] if same == number else [block.rows[0]]
        lines[-1] += f", columns as in table {same}" if same != number else ""
        lines += [f"  | {line[:_BLOCK_CHARS]}" for line in as_lines(shown)]
        some, dialect = _profile_block(block, names, separator)
        if same == number and len(block.rows) >= _RAW_LINES and len(columns) + len(some) <= _SHOWN_COLUMNS:
            lines += [f"  {line}" for line in column_lines(some)]
        else:
            lines += [f"  {column.line}" for column in some if any(word in column.line for word in _TELLING)]
        totals = total_notes(names, block.rows, decimal=dialect.decimal, thousands=dialect.thousands)
        lines += [f"  {total}" for total in totals]
        lines.append(f"  {call(dialect) if number == 1 else call(dialect).replace(repr(name), '…', 1)}")
        columns += some
    kinds = {0: "several tables or groups of rows", 1: "several tables or groups of rows, of one the header is certain"}
    order = "one below the other" if blocks[0].left is None else "side by side, parted by empty columns"
    return f"{kinds.get(count, f'{count} tables')}, {order}", lines, columns


def _profile_block(block: TableBlock, names: Sequence[str], separator: str) -> tuple[list[Column], CsvDialect]:
    """Return the columns of a table, and how it has to be read."""
    rows = [row[: len(names)] for row in block.rows]
    separators = find_number_separators(rows, separator)
    columns = profile_columns(names, rows, decimal=separators.decimal, thousands=separators.thousands)
    left = block.left or 0
    wide = block.left is not None or any(len(row) > len(names) for row in block.rows)
    codes = code_columns(names, rows, separators.thousands)
    dialect = CsvDialect(
        separator,
        decimal=separators.decimal,
        thousands=separators.thousands,
        lines_above=block.header_at,
        codes=codes,
        long_integers=long_integer_columns(names, rows),
        rows=len(rows),
        columns=(left, left + len(names)) if wide else None,
    )
    return columns, dialect


def _group_lines(block: TableBlock) -> list[str]:
    """Return the first lines of rows that belong to no certain table."""
    shown = [f"| {line.rstrip(',')[:_BLOCK_CHARS]}" for line in as_lines(block.rows[:_RAW_LINES])]
    if len(block.rows) == 1:
        return [f"line {block.at + 1}: {shown[0]}"]
    return [f"lines {block.at + 1}–{block.end}, no table is certain:", *(f"  {line}" for line in shown)]


def _row_text(values: Sequence[str]) -> str:
    return cut_line(as_lines([values])[0])


def cut_line(line: str) -> str:
    """Return a line without its end, cut where it is long."""
    line = line.rstrip("\r\n")
    return line if len(line) <= RAW_CHARS else f"{line[:RAW_CHARS]}…"
