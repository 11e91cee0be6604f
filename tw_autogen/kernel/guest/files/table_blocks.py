"""`find_blocks`, `find_side_blocks`: the tables of a file that stand below or beside one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .column_profile import is_missing
from .csv_dialect import pandas_names

_MAX_NAME_CHARS = 80
"""A longer text names no column."""
_LOOKED_ROWS = 20
_NUMBER = re.compile(r"[+\-−<>]?=? ?[$€£¥(]? ?-?[.,]?\d[\d.,]{0,40} ?[%kKmMbB)€$£]?")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.{0,15}")
_YEAR = re.compile(r"(?:19|20)\d\d")

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class TableBlock:
    """Rows of a file that stand together.

    Args:
        at: Number of its first row, from 0.
        rows: Of data; of what is no table, all.
        title: The row of one value above the header, which may stand above an empty row; empty: none.
        header: The names; empty: no table was recognized.
        header_at: Number of the header's row, from 0; without a header that of the first row.
        left: Number of its first column, from 0; None: it has its rows for itself.
    """

    at: int
    rows: Rows
    title: str = ""
    header: Sequence[str] = ()
    header_at: int = 0
    left: int | None = None

    @property
    def end(self) -> int:
        """Return the number of the row below the last one."""
        return self.header_at + bool(self.header) + len(self.rows)


def find_blocks(rows: Rows) -> list[TableBlock]:
    """Return the blocks of a file that holds several tables; empty: it holds one, or that can't be told.

    Empty rows end a block, and so does a row of one value above a header. A table is certain if its header has words
    or years only, all different, and stands above rows with numbers or dates in its columns. A file holds several if
    two are certain; or if its first row has one value, several blocks have rows of more, and the first of them is no
    certain table.

    Args:
        rows: All of a file, empty ones included.
    """
    found = _split_blocks(rows)
    first = next((block for block in found if block.header), None)
    found = [
        replace(block, header=(), rows=[block.header, *block.rows]) if first and _is_row(block, first) else block
        for block in found
    ]
    several = sum(bool(block.header) for block in found) > 1
    if not several and rows and _count_filled(rows[0]) == 1:
        wide = [block for block in found if sum(_count_filled(row) > 1 for row in block.rows) > 1]
        several = len(wide) > 1 and not wide[0].header
    return _with_titles(found) if several else []


def _split_blocks(rows: Rows) -> list[TableBlock]:
    """Return the rows that empty rows and titles part."""
    blocks: list[TableBlock] = []
    index = 0
    while index < len(rows):
        end = index + 1
        if _count_filled(rows[index]):
            while end < len(rows) and _count_filled(rows[end]) and not _begins_titled(rows, end):
                end += 1
            blocks.append(_block(index, rows[index:end]))
        index = end
    return blocks


def _is_row(block: TableBlock, first: TableBlock) -> bool:
    """Return whether the header of a block may be a row of a table above, with a word in a column of numbers.

    One row below it fits that table, and it has no name of that.
    """
    if block is first or block.title or len(block.rows) != 1 or len(block.header) != len(first.header):
        return False
    kinds = [_has_values(_column_values(index, first.rows)) for index in range(len(first.header))]
    row = [cell.strip() for cell in block.rows[0][: len(kinds)]]
    fits = all(_is_value(cell) == kind for cell, kind in zip(row, kinds, strict=False) if cell)
    return fits and not set(block.header) & set(first.header)


def find_side_blocks(rows: Rows) -> list[TableBlock]:
    """Return the blocks of a file whose tables stand side by side, parted by empty columns; empty: that is not certain.

    Two tables at least are certain. One that begins with numbers beside another of the same rows may be more columns of
    that, unless its first name is the same.

    Args:
        rows: All of a file, empty ones included.
    """
    width = max(map(len, rows), default=0)
    filled = {index for row in rows for index, cell in enumerate(row) if cell.strip()}
    starts = [index for index in sorted(filled) if index - 1 not in filled]
    if len(starts) < 2:
        return []
    found: list[TableBlock] = []
    for left in starts:
        right = next(index for index in range(left, width + 1) if index not in filled)
        part = [row[left:right] for row in rows]
        blocks = _with_titles(_split_blocks(part))
        for block in blocks:
            names = pandas_names(rows[block.header_at])[left : left + len(block.header)]
            found.append(replace(block, left=left, header=names if block.header else ()))
    tables = [block for block in found if block.header]
    certain = len({table.left for table in tables}) > 1 and not any(
        _is_continuation(tables[0], table) for table in tables[1:]
    )
    return found if certain else []


def _is_continuation(first: TableBlock, other: TableBlock) -> bool:
    """Return whether a table beside another may be more columns of that."""
    if (other.header_at, len(other.rows)) != (first.header_at, len(first.rows)):
        return False
    values = _column_values(0, other.rows)
    numbers = sum(bool(_NUMBER.fullmatch(value)) for value in values) * 2 > len(values)
    return numbers and other.header[0].partition(".")[0] != first.header[0]


def _block(index: int, rows: Rows) -> TableBlock:
    above = _count_titles(rows)
    if above < len(rows) - 1 and _is_header(rows[above], rows[above + 1 :]):
        width = max(number for number, cell in enumerate(rows[above]) if cell.strip()) + 1
        title = " / ".join(row[0].strip() for row in rows[:above])
        return TableBlock(index, rows[above + 1 :], title, rows[above][:width], index + above)
    return TableBlock(index, rows, header_at=index)


def _with_titles(blocks: Sequence[TableBlock]) -> list[TableBlock]:
    """Return the blocks, where a row of one value and the table without a title below it are one."""
    found: list[TableBlock] = []
    for block in blocks:
        before = found[-1] if found else None
        untitled = block.header and not block.title
        if untitled and before and not before.header and len(before.rows) == _count_titles(before.rows) == 1:
            found.pop()
            block = replace(block, at=before.at, title=before.rows[0][0].strip())
        found.append(block)
    return found


def _count_titles(rows: Rows) -> int:
    """Return how many of the first rows have one value, in the first column."""
    count = 0
    while count < len(rows) and _count_filled(rows[count]) == 1 and rows[count][0].strip():
        count += 1
    return count


def _begins_titled(rows: Rows, index: int) -> bool:
    """Return whether a row of one value is the title of a table, with no empty row above it."""
    below = index + _count_titles(rows[index : index + _LOOKED_ROWS])
    return index < below < len(rows) - 1 and _is_header(rows[below], rows[below + 1 : below + 2])


def _is_header(row: Sequence[str], rows: Rows) -> bool:
    """Return whether a row certainly names the columns of those below it."""
    names = {index: cell.strip() for index, cell in enumerate(row) if cell.strip()}
    if len(names) < 2 or len(set(names.values())) < len(names):
        return False
    below = rows[:_LOOKED_ROWS]
    for column, name in names.items():
        if _YEAR.fullmatch(name) and column > 0:
            if any(_YEAR.fullmatch(value) for value in _column_values(column, below)):
                return False
        elif _is_value(name) or is_missing(name) or len(name) > _MAX_NAME_CHARS:
            return False
    named = sum(all(index in names for index, cell in enumerate(row) if index and cell.strip()) for row in below)
    return named >= 0.8 * len(below) and any(_has_values(_column_values(index, below)) for index in names)


def _column_values(index: int, rows: Rows) -> list[str]:
    return [row[index].strip() for row in rows if index < len(row) and row[index].strip()]


def _has_values(texts: Sequence[str]) -> bool:
    """Return whether most texts are numbers or dates."""
    return sum(map(_is_value, texts)) * 2 > len(texts)


def _is_value(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))


def _count_filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell.strip())
