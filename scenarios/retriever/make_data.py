"""Makes the house rules of a museum, which no model can know, and the index of them."""

from __future__ import annotations

from pathlib import Path

from tw_autogen import DocumentIndex

DOCUMENTS = {
    "bookings.md": """# Bookings

## Adult groups

Groups of ten or more book at least a week ahead. They may cancel free of charge until 7 days before the visit; later
half of the price is due.

## School classes

Classes book by letter or by telephone, with the name of a teacher who comes along. They may cancel free of charge until
3 days before the visit. Later a fee of 18 crowns a class is due, however many pupils were to come.

## Birthdays

A birthday party has a guide of its own for 90 minutes. It can't be cancelled, but moved once.
""",
    "opening.md": """# Opening hours

The museum is open from Wednesday to Sunday, 10 to 17 hours. In July it is open on Tuesdays too.

The tower closes whenever the wind is stronger than 60 km/h; tickets for it are then paid back at the desk.
""",
    "tickets.md": """# Tickets

## Prices

Adults pay 14 crowns, children under 16 pay 5 crowns. Pupils of a class that has booked pay 3 crowns each, teachers nothing.

## Lost tickets

A lost ticket is not replaced. A yearly card is, once, for 4 crowns.
""",  # noqa: E501 - a document has lines of any length
    "bags.txt": """Bags larger than an A4 sheet go into a locker. Lockers take a coin of one crown, which comes back.

Class bags are kept in the blue room behind the desk; the teacher gets the key.
""",
    "pictures.md": """# Taking pictures

Without flash and tripod, everywhere but in the silver room. Classes may draw in the silver room, with pencils only.
""",
}


def write(folder: Path) -> None:
    """Write the documents and their index anew."""
    docs = folder / "rules"
    docs.mkdir(exist_ok=True)
    for name, text in DOCUMENTS.items():
        (docs / name).write_text(text, encoding="utf-8")
    DocumentIndex.build(docs, passage_chars=500).write()


if __name__ == "__main__":
    write(Path(__file__).parent)
