"""How a database of SQLite is opened, to be described or searched, and the ranges of its columns."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def open_database(path: str) -> sqlite3.Connection:
    """Open a database of SQLite for reading.

    Raises:
        sqlite3.Error: it can't be opened.
    """
    return sqlite3.connect(f"{Path(os.path.abspath(path)).as_uri()}?mode=ro", uri=True)


def quoted_name(name: str) -> str:
    """Return the name of a table or column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def whole_ranges(
    database: sqlite3.Connection, table: str, names: Sequence[str], ends: float
) -> dict[str, tuple[Any, Any]]:
    """Return the least and the greatest value of each column in all rows of a table; none if that takes too long.

    Args:
        database: Where it is.
        table: Its quoted name.
        names: Of its columns.
        ends: When there is no more time, by the monotonic clock.
    """
    if time.monotonic() >= ends:
        return {}
    asked = ", ".join(f"min({column}), max({column})" for column in map(quoted_name, names))
    database.set_progress_handler(lambda: int(time.monotonic() > ends), 10_000)
    try:
        values = database.execute(f"SELECT {asked} FROM {table}").fetchone()
    except sqlite3.OperationalError:  # of time, or of a query that is too long
        return {}
    return {name: (low, high) for name, low, high in zip(names, values[::2], values[1::2], strict=True)}
