"""Makes `visitors.csv`: a year of a small museum's days, with gaps where somebody forgot to count."""

from __future__ import annotations

import csv
import math
import random
from datetime import date, timedelta
from pathlib import Path

START = date(2022, 1, 1)
DAYS = 365
SEED = 17
HEADER = ("date", "visitors", "tickets_eur", "rain_mm", "school_classes")


def rows() -> list[tuple[str, ...]]:
    """Give the rows as text; an empty cell is a missing value."""
    dice = random.Random(SEED)
    made = []
    for at in range(DAYS):
        day = START + timedelta(days=at)
        rain = round(max(0.0, dice.gauss(1.0, 4.0)), 1)
        season = 60.0 * math.sin(2 * math.pi * (at - 80) / 365)
        weekend = 70 if day.weekday() >= 5 else 0
        visitors = max(3, round(dice.gauss(150 + season + weekend + 4.0 * min(rain, 12.0), 20)))
        tickets = round(visitors * dice.uniform(5.5, 7.5), 2)
        classes = 0 if weekend else dice.choice((0, 0, 0, 1, 1, 2))
        cells = [str(visitors), f"{tickets:.2f}", f"{rain:.1f}", str(classes)]
        for column, chance in enumerate((0.04, 0.03, 0.05, 0.0)):
            if dice.random() < chance:
                cells[column] = ""
        made.append((day.isoformat(), *cells))
    return made


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("visitors.csv"))
