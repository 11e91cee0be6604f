"""Write `docs/events-reference.md`: every event with its fields, from the classes of `tw_autogen.events`.

`python docs/scripts/events_page.py` writes the page; a test compares the committed one with `page()`.
"""

import dataclasses
import inspect
from pathlib import Path

from tw_autogen import events

PAGE = Path(__file__).parent.parent / "events-reference.md"
_HEAD = """# All events

Written by `docs/scripts/events_page.py` from the classes in `tw_autogen.events`; change those, not this page.

These are the lines of the journal, and of `--output-format stream-json` with `schema_version`: [Events](events.md).
"""


def _first_sentence(kind: type[events.Event]) -> str:
    return (inspect.getdoc(kind) or "").split("\n\n")[0].split(";")[0].replace("\n", " ").rstrip(".")


def page() -> str:
    """Return the page's text."""
    kinds = [subclass for subclass in events.Event.__subclasses__() if subclass.__module__ == events.__name__]
    rows = (f"| [`{kind.__name__}`](#{kind.__name__.lower()}) | {_first_sentence(kind)} |\n" for kind in kinds)
    parts = [_HEAD, f"| event | meaning |\n|---|---|\n{''.join(rows)}"]
    for kind in kinds:
        about = " ".join((inspect.getdoc(kind) or "").split())
        fields = "".join(f"| `{field.name}` | `{field.type}` |\n" for field in dataclasses.fields(kind))
        fields = fields.replace(" | None`", "`, or null")
        parts.append(f"## {kind.__name__}\n\n{about}\n\n| field | type |\n|---|---|\n{fields}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
