"""Makes the files of this scenario: six months of a kiosk's takings as six tills and hands have written them.

python make_data.py
"""

import json
import random
from pathlib import Path

HERE = Path(__file__).parent
ITEMS = {"tea": 2.5, "coffee": 3.2, "cheese roll": 4.8, "postcard": 1.25}
GERMAN = {"tea": "Tee", "coffee": "Kaffee", "cheese roll": "Käsebrot", "postcard": "Ansichtskarte"}
TITLE = "Harbour kiosk, takings in {}, 2025"


def rows_of(month, chance):
    """Return (day, item, pieces, takings) of a month; some are trial entries, some are returns."""
    rows = []
    for day in range(1, 29, 2):
        for item in chance.sample(list(ITEMS), 2):
            pieces = chance.randint(3, 60) * (3 if month == 4 else 1)
            takings = round(pieces * ITEMS[item], 2)
            rows.append((day, item, pieces, takings))
        if chance.random() < 0.2:
            rows.append((day, "trial", 1, 0.0))
        if chance.random() < 0.3:
            rows.append((day, "postcard", -2, -2.5))
    return rows


def euros(value):
    """Return an amount as Germans write it: 1.234,50."""
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def write(name, lines, encoding="utf-8"):
    """Write lines as a file beside this one."""
    (HERE / name).write_bytes(("\n".join(lines) + "\n").encode(encoding))


def main():
    """Write all files, and print what they add up to."""
    chance = random.Random(11)
    months = {month: rows_of(month, chance) for month in range(1, 7)}
    for month, name in ((1, "January"), (2, "February")):
        rows = [
            f"{day:02d}.{month:02d}.2025;{item};{pieces};{euros(takings)}"
            for day, item, pieces, takings in months[month]
        ]
        total = f"Total;;{sum(row[2] for row in months[month])};{euros(sum(row[3] for row in months[month]))}"
        write(f"takings_2025-{month:02d}.csv", [TITLE.format(name), "", "day;item;pieces;takings", *rows, total])
    rows = [f'2025-03-{day:02d},{item},{pieces},"{takings:,.2f}"' for day, item, pieces, takings in months[3]]
    total = f'all,,{sum(row[2] for row in months[3])},"{sum(row[3] for row in months[3]):,.2f}"'
    write("takings_2025-03.csv", [TITLE.format("March"), "day,item,pieces,takings", *rows, total, "", "Source: till 2"])
    rows = [
        f"{day}.4.25;{GERMAN.get(item, 'Probe')};{pieces};{euros(takings)}" for day, item, pieces, takings in months[4]
    ]
    write("kasse_april.csv", ["Tag;Artikel;Stück;Umsatz (€)", *rows], "cp1252")
    rows = [f"{day}\t{item}\t{pieces}\t{takings:.2f}" for day, item, pieces, takings in months[5]]
    write("may.txt", rows)
    records = [{"day": f"2025-06-{day:02d}", "sold": {"item": item, "pieces": pieces}, "takings": f"{takings:,.2f} EUR"}
               for day, item, pieces, takings in months[6]]  # fmt: skip
    (HERE / "june.json").write_text(json.dumps({"till": 3, "entries": records}, indent=1), encoding="utf-8")
    notes = """# Takings

Rows of the total were printed by the tills. Trial entries have takings of 0. Returns are negative and count.

may.txt holds day of the month, item, pieces and takings.
In April a colleague wrote in German (Käsebrot: cheese roll)."""
    write("notes.md", notes.splitlines())
    sums = {month: round(sum(row[3] for row in rows), 2) for month, rows in months.items()}
    rolls = sum(pieces for rows in months.values() for _, item, pieces, _ in rows if item == "cheese roll")
    print(sums, round(sum(sums.values()), 2), rolls)  # noqa: T201 - for who writes `expect`


if __name__ == "__main__":
    main()
