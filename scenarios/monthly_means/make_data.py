"""Makes `meter.csv`: what an office building used each day of eight months, in kWh."""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

START, DAYS, SEED = date(2021, 1, 1), 243, 23
HEADER = ("date", "kwh")
BASE = (410.0, 455.0, 380.0, 320.0, 300.0, 345.0, 470.0, 440.0)


def rows() -> list[tuple[str, ...]]:
    """Give one row a day; each month has a level of its own."""
    dice = random.Random(SEED)
    days = [START + timedelta(days=at) for at in range(DAYS)]
    return [(day.isoformat(), f"{dice.gauss(BASE[day.month - 1], 30.0):.1f}") for day in days]


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("meter.csv"))
