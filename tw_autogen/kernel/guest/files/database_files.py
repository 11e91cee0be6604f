"""How a database of SQLite is opened, to be described or searched."""

from __future__ import annotations

import os
import sqlite3


def open_database(path: str) -> sqlite3.Connection:
    """Open a database of SQLite for reading.

    Raises:
        sqlite3.Error: it can't be opened.
    """
    name = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(f"file:{name}?mode=ro", uri=True)
