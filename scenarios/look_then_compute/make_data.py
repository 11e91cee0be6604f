"""Makes `harbours.txt`: a yearly report whose table stands in the middle of its prose, with marks and footnotes."""

from __future__ import annotations

import random
from pathlib import Path

SEED = 11
YEARS = (2019, 2020, 2021)
NAMES = ("Alnes", "Borvik", "Dunmore", "Eskay", "Fjellby", "Lund", "Marstal", "Orrin", "Selby", "Tarbert")
PROSE = (
    "The harbour board met in spring and in autumn, and looked at dues, dredging and the berths for ferries.",
    "Pilots were on duty on every day of the year; no ship had to wait for longer than a tide.",
    "The cranes of the north quay were overhauled, and their motors exchanged one by one.",
    "Of the fishing fleet two boats were sold, and one was built at the yard behind the church.",
)


def text() -> str:
    """Return the report."""
    dice = random.Random(SEED)
    before = [f"{number}. {dice.choice(PROSE)}" for number in range(1, 61)]
    after = [f"{number}. {dice.choice(PROSE)}" for number in range(61, 101)]
    rows = [f"{'Harbour':<12}{''.join(f'{year:>12}' for year in YEARS)}"]
    for name in NAMES:
        counts = [f"{dice.randint(1_000, 60_000):,}" for _ in YEARS]
        if name == "Lund":
            counts[2] += "*"
        if name == "Selby":
            counts[1] = "-"
        rows.append(f"{name:<12}{''.join(f'{count:>12}' for count in counts)}")
    notes = ["* preliminary", "- not reported"]
    table = ["Table 7: containers unloaded, by harbour", "", *rows, "", *notes]
    return "\n".join(["Report of the harbour board", "", *before, "", *table, "", *after, ""])


def write(path: Path) -> None:
    """Write the report anew."""
    path.write_text(text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(Path(__file__).with_name("harbours.txt"))
