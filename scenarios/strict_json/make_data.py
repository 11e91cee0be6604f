"""Makes a table of the depths of stations, too long to be shown whole in a prompt."""

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = 7
NAMED = (("Kestrel", 41.5), ("Harrier", 18.2), ("Merlin", 63.9), ("Osprey", 57.4), ("Buzzard", 22.8), ("Hobby", 35.1))


def rows() -> list[tuple[str, float]]:
    """Return the stations with their depths in metres, in no order."""
    dice = random.Random(SEED)
    numbered = [(f"Buoy {number:03d}", round(dice.uniform(2, 40), 1)) for number in range(1, 155)]
    found = [*NAMED, *numbered]
    dice.shuffle(found)
    return found


def write(folder: Path) -> None:
    """Write the table anew."""
    with (folder / "depths.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([("station", "depth_m"), *rows()])


if __name__ == "__main__":
    write(Path(__file__).parent)
