"""Makes a table of readings from weather stations, and the instructions by which it is to be prepared."""

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = 11
MANUAL = """# Preparing the readings

For whoever takes over the table. First comes what the stations are, then how the table is made ready (sections 4 to 7,
in this order), and last what else one may want to know.

## 1. The network

The four stations were set up between 1994 and 2003 by the drainage board, which wanted to know when the fields along the
river freeze. Fenwick and Farrow came first and kept the instruments of that time; Holt and Moss were added when the pumps
at the lock were replaced, and have been fitted with new ones since. Nobody lives near Moss, so that a fault there may last
for a week until somebody passes by.

## 2. How a reading comes about

Each station takes the mean of six looks at the sensor in the ten minutes before the full hour and sends it by radio to the
lock. What does not come through is asked for again once; the second answer is written below the first one, with a remark.
Whoever checks a station on the spot warms the sensor by hand and writes a remark as well, so that nobody takes that for
the weather. The lock's clock has run on winter time throughout the year since 2007.

## 3. Who has had the table

Until 2015 the lock keeper kept it on paper, and the sheets are in the board's archive. Then it was kept by the school at
Holt, whose pupils drew the curves for the yearly fair. Since 2021 it has been sent on to the university each quarter, and
the university does not take tables that have not been prepared.

## 4. Rows that don't count

Leave out the rows whose `note` is `test`, in any case of letters. A `temp` of -999 means that the sensor was off: leave
those rows out too. What remains may still hold the same station and hour twice: of those keep the one that stands later
in the file.

## 5. Units

Stations whose name begins with F measure in degrees Fahrenheit. Convert them to Celsius: (value - 32) * 5 / 9. All
others are in Celsius already. Round no value before the report.

## 6. The file

Save `prepared.csv` with the columns station, hour, celsius, sorted by station, then by hour, without an index.

## 7. The report

Say how many rows the file has, and the mean of `celsius` over all rows with two decimals. Add the name of the station
with the highest mean.

## 8. What else there is

The sensors' certificates hang in the lock. A station that was silent for more than a day is to be named to the board by
telephone, not in the report. The board pays for spare parts, and the school still wants the curves in spring.
"""  # noqa: E501 - a text with lines of its own length


def rows() -> list[list[str]]:
    """Return the readings as they come from the stations."""
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
