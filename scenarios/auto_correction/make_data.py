"""Makes `orchard.csv`: a season's harvest, in which words and numbers stand side by side."""

from __future__ import annotations

import csv
import random
from pathlib import Path

ROWS = 160
SEED = 29
HEADER = ("row", "variety", "picker", "trees", "crates", "weight_kg", "sugar_brix")
VARIETIES = ("Boskoop", "Elstar", "Jonagold", "Topaz")
PICKERS = ("Anouk", "Bela", "Carmen", "Dragan", "Esther")


def rows() -> list[tuple[str, ...]]:
    """Give the rows as text; an empty cell is a missing value."""
    dice = random.Random(SEED)
    made = []
    for at in range(ROWS):
        trees = dice.randint(4, 18)
        crates = trees * dice.randint(2, 5)
        weight = f"{crates * dice.uniform(11.0, 14.5):.1f}"
        sugar = f"{dice.gauss(12.4, 1.1):.2f}" if dice.random() > 0.06 else ""
        label = f"{'NSEW'[at % 4]}{at // 4 + 1:02d}"
        made.append((label, dice.choice(VARIETIES), dice.choice(PICKERS), str(trees), str(crates), weight, sugar))
    return made


def write(path: Path) -> None:
    """Write the table anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])


if __name__ == "__main__":
    write(Path(__file__).with_name("orchard.csv"))
