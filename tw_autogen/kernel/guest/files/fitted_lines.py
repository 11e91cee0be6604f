"""`fitted_lines`: a description that is too long is cut, first the ends of what is said of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COLUMN = re.compile(r"\s{0,8}(?:column |(['\"]).*\1(?:: | … ))")
"""What the line of a column, or of several alike, begins with."""
_COUNTED = re.compile(r"\(\d+\)\Z")
_KEPT = re.compile(r"\s*(?:to be read with |pd\.read_|(?:table|sheet|view) (?:\d|['\"]))")
"""What is left out last: calls, and the headings of tables that they read."""
_COLUMN_CHARS, _RAW_CHARS = 60, 100
"""How long the line of a column, and one of the text, is where not all fits."""
_MARK_CHARS = 30
ALL_OF_IT = "all of it:"
"""The line above a small text that is shown whole."""


def fitted_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return lines of a description that fit a limit.

    What is said of columns is shortened, from the last one on, then the table's first lines; then columns are left out.
    Only if that is not enough other lines are, the last ones first, and at last the calls that read the file.

    Args:
        lines: Below the first line, which says the file's name.
        limit: In characters, line ends included.

    Example:
        >>> fitted_lines(["'day': int, 1 … 7, all different", "its first line holds no names"], 55)
        ["'day': int, 1 … 7", 'its first line holds no names']
    """
    kept, gone = list(lines), set[int]()
    left = limit - sum(len(one) + 1 for one in lines)
    columns = {index: None for index, line in enumerate(lines) if _COLUMN.match(line)}
    raw = [index for index, line in enumerate(lines) if line.lstrip().startswith("| ")] if columns else []
    for position in (*reversed(columns), *raw):
        if left >= 0:
            return kept
        line = line_begun(lines[position], _COLUMN_CHARS) if position in columns else f"{lines[position][:_RAW_CHARS]}…"
        kept[position] = min(line, lines[position], key=len)
        left += len(lines[position]) - len(kept[position])
    left -= _MARK_CHARS * (left < 0)
    others = [index for index in range(len(lines)) if index not in columns]
    for position in (*reversed(columns), *sorted(reversed(others), key=lambda index: bool(_KEPT.match(lines[index])))):
        if left >= 0:
            break
        gone.add(position)
        left += len(kept[position]) + 1
    if not gone:
        return kept
    first = min(gone)
    kept = [f"{one.removesuffix(ALL_OF_IT)}its first lines:" if one.strip() == ALL_OF_IT else one for one in kept]
    cut = kept[0][: max(0, left)] if first == 0 else ""  # a line that is too long alone
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())] if not cut else ""
    kept[first] = f"{indent}{cut}…{' and more columns' * gone.issubset(columns)}"
    return [line for index, line in enumerate(kept) if index not in gone or index == first]


def line_begun(line: str, limit: int) -> str:
    """Return the first two clauses of what is said of a column; a value with its count is followed by an ellipsis.

    Args:
        line: The column's.
        limit: How many characters to keep.
    """
    begun = ", ".join(line.split(", ")[:2])
    begun = begun if len(begun) <= limit else f"{begun[: limit - 1]}…"
    if begun.count("(") > begun.count(")"):  # no half of an aside
        begun = begun[: begun.rindex("(")].rstrip()
    return f"{begun} …" if begun != line and _COUNTED.search(begun) else begun
