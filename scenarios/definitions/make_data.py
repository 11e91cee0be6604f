"""Makes `orders.csv`: half a year of orders of a small coffee roaster, with test orders of 0 kg among them."""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

START = date(2025, 1, 2)
ORDERS = 360
SEED = 5
CITIES = ("Oslo", "Bergen", "Turku")
HEADER = ("order", "date", "customer", "city", "kg", "eur_per_kg")


def rows() -> list[tuple[str, ...]]:
    """Return the rows as text."""
    dice = random.Random(SEED)
    homes = {f"C{number:02}": dice.choice(CITIES) for number in range(1, 31)}
    made = []
    for number in range(ORDERS):
        customer = dice.choices(list(homes), weights=[31 - at for at in range(30)])[0]
        day = START + timedelta(days=number // 2)
        kg = 0.0 if dice.random() < 0.06 else round(dice.uniform(1, 12), 1)
        price = dice.choice((14.5, 16.0, 17.9, 21.0))
        made.append((str(1000 + number), day.isoformat(), customer, homes[customer], f"{kg:.1f}", f"{price:.2f}"))
    return made


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("orders.csv"))
