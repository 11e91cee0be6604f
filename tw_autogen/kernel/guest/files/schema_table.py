"""What is said of a table whose file says the types of its columns, such as Parquet or SQLite."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from .column_profile import NO_VALUE, NULLS, Column
from .csv_dialect import as_lines
from .json_outline import record_lines
from .text_table import MAX_CELLS, TextTable, cut_line


def describe_schema_table(
    name: str,
    names: list[str],
    rows: list[list[Any]],
    kinds: Sequence[str],
    count: str,
    *,
    ranges: Mapping[str, tuple[Any, Any]] | None = None,
) -> tuple[str, list[str], list[tuple[str, list[Column]]]]:
    """Describe rows of values whose types the file says.

    Args:
        name: Of the file or table.
        names: Of the columns, length m.
        rows: The first ones, or all.
        kinds: The types of the columns, length m; empty: it has none.
        count: How many rows there are, in words.
        ranges: The least and the greatest value of columns in all rows, by their names, where only the first are given.

    Returns:
        A headline, lines, and the columns by the name.
    """
    nested = [index for index, _ in enumerate(names) if any(isinstance(row[index], (list, dict)) for row in rows)]
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
        ranges={number: ranges[names[at]] for number, at in enumerate(flat) if names[at] in ranges} if ranges else {},
    )
    headline, lines, columns = table.describe()
    if nested:
        lines += record_lines([{names[index]: row[index] for index in nested} for row in rows])
        typed = [f"{names[index]!r} {cut_line(kinds[index])}" for index in nested if kinds[index]]
        pairs = ", of which a map is read as a list of pairs" * any(kinds[index].startswith("map<") for index in nested)
        lines += [f"their types in the file{pairs}: {'; '.join(typed)}"] if typed else []
    return headline.replace(f"x {len(flat)} ", f"x {len(names)} "), lines, [(name, columns)]


def value_text(value: Any) -> str:
    """Return a value of a cell as text; the length and a hash of bytes."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes, SHA-1 {hashlib.sha1(value, usedforsecurity=False).hexdigest()[:12]}…>"
    return NO_VALUE if value is None or value != value else str(value)


def rows_of(columns: Sequence[Sequence[Any]], kept: Sequence[int]) -> list[list[Any]]:
    """Return the rows of some columns.

    Args:
        columns: The values of each.
        kept: The numbers of those that are wanted.
    """
    return [list(row) for row in zip(*(columns[index] for index in kept), strict=True)] if columns else []


def stored_ranges(metadata: Any) -> dict[str, tuple[Any, Any]]:
    """Return the least and the greatest value of each column that a Parquet file keeps for all of its groups of rows.

    Args:
        metadata: The file's, as pyarrow has it.
    """
    groups, columns = metadata.num_row_groups, metadata.num_columns
    ranges: dict[str, tuple[Any, Any]] = {}
    for index in range(columns if groups * columns <= MAX_CELLS else 0):
        parts = [metadata.row_group(group).column(index) for group in range(groups)]
        kept = [part.statistics for part in parts if part.is_stats_set and part.statistics.has_min_max]
        if len(kept) == groups > 0:
            ranges[str(parts[0].path_in_schema)] = min(part.min for part in kept), max(part.max for part in kept)
    return ranges
