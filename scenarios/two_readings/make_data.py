"""Makes `parcels.csv`: when parcels were due and delivered; some are still on their way."""

from __future__ import annotations

import csv
import datetime
import random
from pathlib import Path

SEED = 23
HEADER = ("parcel", "due", "delivered")
FIRST = datetime.date(2024, 3, 1)


def rows() -> list[tuple[str, str, str]]:
    """Return 200 parcels."""
    dice = random.Random(SEED)
    made = []
    for number in range(1, 201):
        due = FIRST + datetime.timedelta(days=dice.randint(0, 60))
        days = dice.choice((-2, -1, -1, 0, 0, 0, 1, 3))
        there = dice.random() < 0.85
        made.append((f"P{number:03d}", str(due), str(due + datetime.timedelta(days=days)) if there else ""))
    return made


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("parcels.csv"))
