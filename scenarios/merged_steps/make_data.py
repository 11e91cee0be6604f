"""Makes `parcels.csv`: weights of parcels, with a few that must be mistakes of the scale."""

from __future__ import annotations

import csv
import random
from pathlib import Path

COUNT, SEED = 400, 31
HEADER = ("parcel", "grams")
MISTAKES = {37: 9800.0, 120: 8650.0, 121: 9120.0, 288: 20.0, 350: 10240.0}


def rows() -> list[tuple[str, ...]]:
    """Give one row a parcel."""
    dice = random.Random(SEED)
    grams = [MISTAKES.get(at, round(dice.gauss(2400.0, 300.0), 1)) for at in range(COUNT)]
    return [(f"P{at:04d}", str(one)) for at, one in enumerate(grams)]


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("parcels.csv"))
