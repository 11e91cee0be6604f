"""Checks on the files in the session's folder."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import NonNegativeFloat, NonNegativeInt

from tw_autogen.safe_folder import SafeFolder
from tw_autogen.scenario.check_parameters import LARGEST_FILE_BYTES, Problems, Regex, Words, listing, near, row, short
from tw_autogen.text_truncation import shortened

_HEADER_CHARS = 1000
_SHOWN_CELLS = 100


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
    texts: dict[str, tuple[bytes, str]] = {}  # of each a digest and its beginning: scenarios name as many as they like
    for name in names:
        if text := (_read(folder, name) or b"").decode("utf-8", errors="replace").strip():
            texts[name] = hashlib.sha256(text.encode()).digest(), short(text)
    if missing := [name for name in names if name not in texts]:
        yield f"expected text in {', '.join(missing)}, found {listing(folder)}"
    elif len({digest for digest, _ in texts.values()}) > 1:
        yield "expected the same text in all, found " + ", ".join(f"{one}: {text}" for one, (_, text) in texts.items())


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
    wanted = values or {}
    cells: dict[str, list[str]] = {column: [] for column in wanted}  # as many as are compared or shown
    header: tuple[str, ...] = ()
    count = 0
    try:
        for line in filter(None, csv.reader(io.StringIO(text, newline=""))):
            if not header:
                header = tuple(line)
                continue
            count += 1
            for column, numbers in wanted.items():
                if column in header and len(cells[column]) <= max(len(numbers), _SHOWN_CELLS):
                    index = header.index(column)
                    cells[column].append(line[index] if index < len(line) else "")
    except csv.Error as error:
        yield f"{name}: expected a CSV file, found {error}"
        return
    if columns is not None and header != columns:
        yield f"{name}: expected the columns {', '.join(columns)}, found {_header_text(header)}"
    if rows is not None and count != rows:
        yield f"{name}: expected {rows} rows, found {count}"
    for column, numbers in wanted.items():
        if column not in header:
            yield f"{name}: expected a column {column!r}, found {_header_text(header)}"
        elif not _same_numbers(cells[column], numbers, within):
            yield f"{name}: expected in {column!r} the numbers {row(numbers)}, found {row(cells[column])}"


def _header_text(header: Sequence[str]) -> str:
    return shortened(", ".join(header), _HEADER_CHARS) or "none"


def _read(folder: Path, name: str) -> bytes | None:
    """Return what is in a file of the session's folder; None if it is missing, too large, or no plain file."""
    try:
        with SafeFolder(folder) as opened:
            return opened.read_file(name, limit_bytes=LARGEST_FILE_BYTES)
    except OSError:
        return None


def _same_numbers(cells: Sequence[str], wanted: Sequence[float], within: float) -> bool:
    try:
        found = sorted(map(float, cells))
    except ValueError:
        return False
    return len(found) == len(wanted) and all(map(near, found, sorted(wanted), itertools.repeat(within)))
