"""Checks on the files in the session's folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import NonNegativeFloat, NonNegativeInt

from tw_autogen.safe_folder import SafeFolder
from tw_autogen.scenario.check_parameters import Problems, Regex, Words, listing, row, short


def file(folder: Path, name: Words, *, contains: Words | None = None, matches: Regex | None = None) -> Problems:
    """Expect a file under this name, or under one of these, which is not empty and holds certain text.

    Args:
        folder: The session's.
        name: Any of these is right, relative to the folder.
        contains: Texts that all must be in it; None: any.
        matches: A regular expression; None: any text.
    """
    found = next(((one, data) for one in name if (data := _read(folder, one)) is not None), None)
    if found is None:
        yield f"expected the file {' or '.join(name)}, found {listing(folder)}"
        return
    last, data = found[0].rpartition("/")[2], found[1]
    if not data.strip():
        yield f"{last}: expected something in the file, found nothing"
        return
    text = data.decode("utf-8", errors="replace")
    for part in contains or ():
        if part not in text:
            yield f"{last}: expected {part!r} in the file, found {short(text)}"
    if matches and not matches.search(text):
        yield f"{last}: expected text that matches {matches.pattern!r}, found {short(text)}"


def same_content(folder: Path, names: Words) -> Problems:
    """Expect that these files are there and hold the same text, whatever spaces stand around it.

    Args:
        folder: The session's.
        names: Of the files, relative to the folder.
    """
    texts = {
        name: content.decode("utf-8", errors="replace").strip()
        for name in names
        if (content := _read(folder, name)) is not None
    }
    if missing := [name for name in names if not texts.get(name)]:
        yield f"expected text in {', '.join(missing)}, found {listing(folder)}"
    elif len(set(texts.values())) > 1:
        yield "expected the same text in all, found " + ", ".join(
            f"{one}: {short(text)}" for one, text in texts.items()
        )


def table(
    folder: Path,
    name: str,
    *,
    columns: Words | None = None,
    rows: NonNegativeInt | None = None,
    values: Mapping[str, tuple[float, ...]] | None = None,
    within: NonNegativeFloat = 0.0,
) -> Problems:
    """Expect a CSV file with these columns, so many rows, and these numbers in a column, in whatever order.

    Args:
        folder: The session's.
        name: Of the file, relative to the folder.
        columns: All its columns, in order; None: any.
        rows: How many, without the head; None: any number.
        values: All numbers of a column, by the column's name.
        within: How far from these a number may be, in the column's unit.
    """
    content = _read(folder, name)
    if content is None:
        yield f"expected the table {name}, found {listing(folder)}"
        return
    text = content.decode("utf-8-sig", errors="replace")
    lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
    header, body = tuple(lines[0]) if lines else (), lines[1:]
    if columns is not None and header != columns:
        yield f"{name}: expected the columns {', '.join(columns)}, found {', '.join(header) or 'none'}"
    if rows is not None and len(body) != rows:
        yield f"{name}: expected {rows} rows, found {len(body)}"
    for column, wanted in (values or {}).items():
        if column not in header:
            yield f"{name}: expected a column {column!r}, found {', '.join(header) or 'none'}"
            continue
        cells = [line[header.index(column)] if header.index(column) < len(line) else "" for line in body]
        if not _same_numbers(cells, wanted, within):
            yield f"{name}: expected in {column!r} the numbers {row(wanted)}, found {row(cells)}"


def _read(folder: Path, name: str) -> bytes | None:
    """Return what is in a file of the session's folder; None if there is no plain file of that name."""
    try:
        with SafeFolder(folder) as opened:
            return opened.read_file(name)
    except OSError:
        return None


def _same_numbers(cells: Sequence[str], wanted: Sequence[float], within: float) -> bool:
    try:
        found = sorted(map(float, cells))
    except ValueError:
        return False
    return len(found) == len(wanted) and all(
        abs(one - other) <= within for one, other in zip(found, sorted(wanted), strict=True)
    )
