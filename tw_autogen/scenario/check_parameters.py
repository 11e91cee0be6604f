"""What the checks share: the types of their parameters, and how they word what they found."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tw_autogen.safe_folder import SafeFolder
from tw_autogen.scenario.evidence import RoundEvidence
from tw_autogen.text_truncation import shortened

LARGEST_FILE_BYTES = 16 << 20
"""Of a file that a check reads."""
_MAX_ENTRIES = 20_000
_SHOWN_CHARS = 200
_LISTED_CHARS = 4000


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_path(value: Any) -> Any:
    return [name.strip() for name in value.split(">")] if isinstance(value, str) else value


Rounds = Sequence[RoundEvidence]
Problems = Iterator[str]
Words = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_path), Field(min_length=2)]
Regex = re.Pattern[str]


def count(where: str, what: str, found: int, at_least: int | None, at_most: int | None) -> Problems:
    """Expect so many of something.

    Args:
        where: The rounds in words, for the message.
        what: What was counted, in the plural.
        found: How many there are.
        at_least: Fewest that are right; None: no limit.
        at_most: Most that are right; None: no limit.
    """
    if at_least is not None and found < at_least:
        yield f"{where}: expected at least {at_least} {what}, found {found}"
    if at_most is not None and found > at_most:
        yield f"{where}: expected at most {at_most} {what}, found {found}"


def near(found: float, wanted: float, within: float) -> bool:
    """Return whether a number is right; 27.6 is within 0.1 of 27.5, in floats too.

    Args:
        found: The number.
        wanted: The one that was expected.
        within: How far from it the number may be.
    """
    return abs(found - wanted) <= within + 1e-12 * abs(wanted)


def span(rounds: Rounds) -> str:
    """Name rounds by the first and the last of them."""
    first, last = rounds[0].number, rounds[-1].number
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def listing(folder: Path) -> str:
    """Name the files that are there, with what is too large for a check.

    Args:
        folder: The session's. Of many entries the first ones are looked at; names beyond 200 characters are left out.
    """
    names = []
    with SafeFolder(folder) as opened:
        for one in itertools.islice(opened.walk(), _MAX_ENTRIES):
            if one.is_file and len(one.name) <= _SHOWN_CHARS:
                large = one.info.st_size > LARGEST_FILE_BYTES
                names.append(f"{one.name} (larger than {LARGEST_FILE_BYTES >> 20} MB: not read)" if large else one.name)
    return f"the files {shortened(', '.join(sorted(names)), _LISTED_CHARS)}" if names else "no file"


def short(text: str) -> str:
    """Show a text in one line, whole or its beginning."""
    return repr(shortened(text, _SHOWN_CHARS))


def row(values: Sequence[Any]) -> str:
    """Show values in one line."""
    return short(", ".join(map(str, values))) if values else "none"
