"""What is said of a table whose file says the types of its columns, such as Parquet or SQLite."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from .column_profile import NO_VALUE, NULLS, Column
from .csv_dialect import as_lines
from .json_outline import record_lines
from .text_table import TextTable, cut_line


def describe_schema_table(
    name: str, names: list[str], rows: list[list[Any]], kinds: Sequence[str], count: str
) -> tuple[str, list[str], list[tuple[str, list[Column]]]]:
    """Describe rows of values whose types the file says.

    Args:
        name: Of the file or table.
        names: Of the columns, length m.
        rows: The first ones, or all.
        kinds: The types of the columns, length m; empty: it has none.
        count: How many rows there are, in words.

    Returns:
        A headline, lines, and the columns by the name.
    """
    nested = [
        index for index, _ in enumerate(names) if any(isinstance(row[index], (list, dict)) for row in rows[:1000])
    ]
    flat = [index for index, _ in enumerate(names) if index not in nested]
    table = TextTable(
        [names[index] for index in flat],
        [[value_text(row[index]) for index in flat] for row in rows],
        name,
        raw=[
            cut_line(line.replace(NO_VALUE, ""))
            for line in as_lines([names, *([*map(value_text, one)] for one in rows[:2])])
        ],
        count=count,
        sampled=count != str(len(rows)),
        kinds={number: kinds[index] for number, index in enumerate(flat) if kinds[index]},
        missing=NULLS,
    )
    headline, lines, columns = table.describe()
    if nested:
        lines += record_lines([{names[index]: row[index] for index in nested} for row in rows])
    return headline.replace(f"x {len(flat)} ", f"x {len(names)} "), lines, [(name, columns)]


def value_text(value: Any) -> str:
    """Return a value of a cell as text; the length and a hash of bytes."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes, SHA-1 {hashlib.sha1(value, usedforsecurity=False).hexdigest()[:12]}…>"
    return NO_VALUE if value is None or value != value else str(value)[:1000]


def rows_of(columns: Sequence[Sequence[Any]], kept: Sequence[int]) -> list[list[Any]]:
    """Return the rows of some columns.

    Args:
        columns: The values of each.
        kept: The numbers of those that are wanted.
    """
    return [list(row) for row in zip(*(columns[index] for index in kept), strict=True)] if columns else []
