"""Makes a table of readings from weather stations, and the instructions by which it is to be prepared."""

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = 11
MANUAL = """# Preparing the readings

For whoever takes over the table. Do the steps in this order.

## 1. Rows that don't count

Leave out the rows whose `note` is `test`, in any case of letters. A `temp` of -999 means that the sensor was off: leave
those rows out too. What remains may still hold the same station and hour twice: of those keep the one that stands later
in the file.

## 2. Units

Stations whose name begins with F measure in degrees Fahrenheit. Convert them to Celsius: (value - 32) * 5 / 9. All
others are in Celsius already. Round no value before the report.

## 3. The file

Save `prepared.csv` with the columns station, hour, celsius, sorted by station, then by hour, without an index.

## 4. The report

Say how many rows the file has, and the mean of `celsius` over all rows with two decimals. Add the name of the station
with the highest mean.
"""


def rows() -> list[list[str]]:
    """Give the readings as they come from the stations."""
    dice = random.Random(SEED)
    found = []
    for station in ("Fenwick", "Holt", "Farrow", "Moss"):
        for hour in range(12):
            celsius = {"Fenwick": 11, "Holt": 9, "Farrow": 13, "Moss": 7}[station] + hour / 2 + dice.uniform(-1, 1)
            temp = celsius * 9 / 5 + 32 if station.startswith("F") else celsius
            found.append([station, str(hour), f"{temp:.1f}", ""])
    for at in (3, 17, 40):
        found[at][2] = "-999"
    for at in (8, 30):
        found.append([*found[at][:2], f"{float(found[at][2]) + 1.5:.1f}", "second reading"])
    found.insert(5, ["Holt", "3", "55.0", "TEST"])
    found.insert(33, ["Moss", "9", "-40.0", "test"])
    found.append(["Farrow", "2", "300.0", "Test"])
    return found


def write(folder: Path) -> None:
    """Write the table and the instructions anew."""
    with (folder / "readings.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([["station", "hour", "temp", "note"], *rows()])
    (folder / "preparing.md").write_text(MANUAL, encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent)
