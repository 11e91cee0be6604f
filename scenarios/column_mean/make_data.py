"""Makes `bakery.csv`: what a bakery has sold of each kind, day by day."""

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = 5
HEADER = ("day", "kind", "sold", "left_over")
KINDS = ("rye", "spelt", "wheat")


def rows() -> list[tuple[str, ...]]:
    """Give 40 days of three kinds."""
    dice = random.Random(SEED)
    return [
        (str(day), kind, str(dice.randint(20, 180)), str(dice.randint(0, 25))) for day in range(1, 41) for kind in KINDS
    ]


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("bakery.csv"))
