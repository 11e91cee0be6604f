"""Makes `fuel_march.csv` here and `fuel_april.csv` for `mistake_not_repeated`: slips of fuel that boats were sold.

Two things don't show at the beginning of either: a slip whose number comes again corrects the earlier line, and from
some day on another clerk writes the days as 2026/03/24.
"""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

HERE = Path(__file__).parent
HEADER = ("slip", "day", "berth", "litres")
BERTHS = ("A1", "A4", "B2", "C7")
MONTHS = {
    HERE / "fuel_march.csv": (date(2026, 3, 1), 31, 23, 7100),
    HERE.parent / "mistake_not_repeated" / "fuel_april.csv": (date(2026, 4, 1), 30, 17, 7300),
}
"""For each file the first day, how many days it has, how many of them are written as 2026-03-21, and the first slip."""


def rows(first: date, days: int, iso_days: int, slip: int) -> list[tuple[str, ...]]:
    """Give four slips a day, and now and then one of an earlier day again, with other litres."""
    dice = random.Random(slip)
    made: list[tuple[int, date, str, int]] = []
    for number in range(days):
        for _ in range(4):
            made.append((slip, first + timedelta(days=number), dice.choice(BERTHS), dice.randint(40, 400)))
            slip += 1
        if number % 3 == 2:
            wrong = made[-dice.randint(2, 7)]
            made.append((*wrong[:3], wrong[3] // 10))
    last_iso = first + timedelta(days=iso_days - 1)
    return [
        (str(one), day.isoformat() if day <= last_iso else f"{day:%Y/%m/%d}", berth, str(litres))
        for one, day, berth, litres in made
    ]


def write() -> None:
    """Write both tables anew."""
    for path, month in MONTHS.items():
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows(*month)])


if __name__ == "__main__":
    write()
