"""What the data of a request looks like, in a few lines, so that no step is needed only to look at it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

_HEAD_ROWS = 3
_WHOLE_BYTES = 50_000_000
_SAMPLE_ROWS = 10_000
_MOST_COLUMNS = 40
_TEXT_CHARS = 400


def profile_file(path: Path) -> str:
    """Describe a file: size, and what its kind allows (columns, dtypes, missing values, head; tables; first lines).

    Args:
        path: A file that exists. A table over 50 MB is judged by its first 10 000 rows, and that is said.

    Returns:
        Some lines; the first begins with the file's name. A file that can't be read as its kind is described by
        its size and the reason.
    """
    describe = _KINDS.get(path.suffix.lower(), _describe_other)
    head = f"{path.name}: {_size(path)}"
    try:
        return f"{head}, {describe(path)}"
    except (ValueError, OSError, sqlite3.Error, pd.errors.ParserError, ImportError) as error:
        return f"{head}, not readable as {path.suffix.lower().lstrip('.') or 'text'}: {_one_line(error)}"


def profile_value(name: str, value: Any) -> str:
    """Describe a variable that came with a request."""
    if isinstance(value, pd.DataFrame):
        return f"{name}: DataFrame, {_describe_frame(value)}"
    if isinstance(value, pd.Series):
        return f"{name}: Series, {_describe_frame(value.to_frame())}"
    text = repr(value)
    return f"{name}: {type(value).__name__}, {text if len(text) <= _TEXT_CHARS else text[:_TEXT_CHARS] + '…'}"


def profile_request(files: list[Path], variables: Mapping[str, Any], limit_chars: int) -> str:
    """Describe all that a request brings, within a limit; what doesn't fit is named by its first line only.

    Returns:
        Lines to put behind the user's words; empty if the request brings nothing.
    """
    parts = []
    for title, found in (
        ("Files in the working folder:", [profile_file(path) for path in files]),
        ("Variables in the kernel:", [profile_value(name, value) for name, value in variables.items()]),
    ):
        if found:
            parts.append(title)
            for text in found:
                fits = sum(map(len, parts)) + len(text) <= limit_chars
                parts.append("- " + (text if fits else text.splitlines()[0]).replace("\n", "\n  "))
    return "\n".join(parts)


def _describe_csv(path: Path) -> str:
    sample = path.stat().st_size > _WHOLE_BYTES
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    frame = pd.read_csv(path, sep=separator, nrows=_SAMPLE_ROWS if sample else None, low_memory=False)
    return ("its first rows: " if sample else "") + _describe_frame(frame)


def _describe_parquet(path: Path) -> str:
    return _describe_frame(pd.read_parquet(path))


def _describe_excel(path: Path) -> str:
    sheets = pd.read_excel(path, sheet_name=None)
    return "\n".join(f"sheet {name!r}: {_describe_frame(frame)}" for name, frame in sheets.items())


def _describe_json(path: Path) -> str:
    if path.stat().st_size > _WHOLE_BYTES:
        return "JSON"
    plain = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(plain, list) and plain and all(isinstance(one, dict) for one in plain):
        return f"a JSON list of objects: {_describe_frame(pd.DataFrame(plain))}"
    if isinstance(plain, dict):
        return f"a JSON object with the keys {', '.join(map(repr, list(plain)[:_MOST_COLUMNS]))}"
    return f"a JSON {type(plain).__name__}" + (f" of {len(plain)}" if isinstance(plain, list) else "")


def _describe_sqlite(path: Path) -> str:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        tables = [name for (name,) in rows]
        return "SQLite, " + "\n".join(_describe_table(database, name) for name in tables[:_MOST_COLUMNS])


def _describe_table(database: sqlite3.Connection, name: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    ((count,),) = database.execute(f"SELECT count(*) FROM {quoted}")
    columns = ", ".join(f"{row[1]} {row[2]}".strip() for row in database.execute(f"PRAGMA table_info({quoted})"))
    return f"table {name}: {count} rows, columns {columns}"


def _describe_text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        start = file.read(_TEXT_CHARS + 1)
    if len(start) <= _TEXT_CHARS:
        count = len(start.splitlines())
        return f"text of {count} line{'' if count == 1 else 's'}"
    return f"text, beginning:\n{start[:_TEXT_CHARS]}…"


def _describe_other(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(1024)
    if start.startswith(b"SQLite format 3\0"):
        return _describe_sqlite(path)
    return "binary" if b"\0" in start else _describe_text(path)


def _describe_frame(frame: pd.DataFrame) -> str:
    """Give shape, columns with dtypes and missing counts, and the first rows as CSV."""
    missing = frame.isna().sum()
    columns = [
        f"{name} ({dtype}{f', {count} missing' if count else ''})"
        for name, dtype, count in zip(frame.columns, frame.dtypes, missing, strict=True)
    ]
    more = f", … {len(columns) - _MOST_COLUMNS} more" if len(columns) > _MOST_COLUMNS else ""
    head = frame.iloc[:_HEAD_ROWS, :_MOST_COLUMNS].to_csv(index=False).strip()
    shape = f"{len(frame)} rows x {len(columns)} columns"
    return f"{shape}: {', '.join(columns[:_MOST_COLUMNS])}{more}\nfirst rows:\n{_cut_lines(head)}"


def _cut_lines(text: str) -> str:
    return "\n".join(line if len(line) <= _TEXT_CHARS else f"{line[:_TEXT_CHARS]}…" for line in text.splitlines())


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _size(path: Path) -> str:
    size = path.stat().st_size
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


_KINDS: Mapping[str, Callable[[Path], str]] = {
    ".csv": _describe_csv,
    ".tsv": _describe_csv,
    ".parquet": _describe_parquet,
    ".xlsx": _describe_excel,
    ".xls": _describe_excel,
    ".json": _describe_json,
    ".db": _describe_sqlite,
    ".sqlite": _describe_sqlite,
    ".sqlite3": _describe_sqlite,
    ".txt": _describe_text,
    ".md": _describe_text,
    ".log": _describe_text,
}
