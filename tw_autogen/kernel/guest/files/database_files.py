"""How a database of SQLite is opened, to be described or searched."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


def open_database(path: str) -> sqlite3.Connection:
    """Open a database of SQLite for reading.

    Raises:
        sqlite3.Error: it can't be opened.
    """
    return sqlite3.connect(f"{Path(os.path.abspath(path)).as_uri()}?mode=ro", uri=True)
