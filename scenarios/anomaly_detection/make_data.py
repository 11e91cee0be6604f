"""Makes `plant.db`: four months of a pumping station's intake, in which eleven values are far out."""

from __future__ import annotations

import math
import random
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

START = datetime(2023, 2, 1, tzinfo=timezone.utc)
STEP = timedelta(hours=4)
ROWS = 720
SEED = 41
JUMPS = {
    37: 212.0,
    98: 41.5,
    155: 208.5,
    156: 214.0,
    243: 36.0,
    311: 221.5,
    402: 44.0,
    468: 205.0,
    529: 33.5,
    604: 217.0,
    671: 39.0,
}
"""Row and value of what is far out."""


def rows() -> list[tuple[str, float]]:
    """Give the rows: a daily and a monthly swing with noise that stays within two of its standard deviations."""
    dice = random.Random(SEED)
    made = []
    for at in range(ROWS):
        swing = 9.0 * math.sin(2 * math.pi * at / 6) + 6.0 * math.sin(2 * math.pi * at / 180)
        noise = max(-10.0, min(10.0, dice.gauss(0.0, 5.0)))
        value = JUMPS.get(at, round(126.0 + swing + noise, 1))
        made.append(((START + at * STEP).strftime("%Y-%m-%dT%H:%M:%SZ"), value))
    return made


def write(path: Path) -> None:
    """Write the database anew."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE time_series (ts TEXT NOT NULL, val REAL NOT NULL)")
        database.executemany("INSERT INTO time_series VALUES (?, ?)", rows())


if __name__ == "__main__":
    write(Path(__file__).with_name("plant.db"))
