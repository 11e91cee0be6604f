"""Makes `prices.csv`: closing prices of a share that does not exist, which wander upwards."""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

START, COUNT, SEED = date(2022, 3, 1), 250, 71
HEADER = ("date", "close")


def rows() -> list[tuple[str, ...]]:
    """Give one row a trading day, Mondays to Fridays."""
    dice, price, day, made = random.Random(SEED), 180.0, START, []
    while len(made) < COUNT:
        if day.weekday() < 5:
            price += 0.12 + dice.gauss(0.0, 1.1)
            made.append((day.isoformat(), f"{price:.2f}"))
        day += timedelta(days=1)
    return made


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("prices.csv"))
