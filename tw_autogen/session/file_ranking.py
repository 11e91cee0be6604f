"""`rank_files`: which files of a folder have to do with a request, by names, content and the years that they cover."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from tw_autogen.model import LexicalRanker, Ranked

_WEIGHTS = (2.0, 1.5, 0.7)
"""What a word of the name, of the heads and of the values counts."""
_SPAN = re.compile(
    r"(?<!\d)((?:1[5-9]|20)\d\d)"
    r"(?:\s{0,3}(?:-|–|—|\bto\b|\band\b|\buntil\b|\bthrough\b)\s{0,3}((?:1[5-9]|20)?\d\d)(?![-\d]))?(?!\d)"
)
_MAX_YEARS = 300
_YEAR_WEIGHT, _LONG_SPAN = 1.0, 10
_ASKS_FOR_YEARS = re.compile(
    r"\b(?:years?|yearly|annual(?:ly)?|jahre?n?|années?|ans|años?|ann[oi]|anos?|год[аы]?|лет)\b|年", re.IGNORECASE
)
"""A request for years that it does not name: files whose rows are of many of them are meant."""
_PARTS = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True)
class FileTerms:
    """What a file, or the first of several of one layout, is found by.

    Args:
        name: Its path below the folder.
        count: How many files have its layout.
        names: The names of the others.
        heads: Titles, names of columns, sheets and tables.
        values: Short texts in it.
        years: First and last of each span of years that it covers.
    """

    name: str
    count: int = 1
    names: str = ""
    heads: str = ""
    values: str = ""
    years: tuple[tuple[int, int], ...] = ()


def rank_files(request: str, files: Sequence[FileTerms]) -> Ranked:
    """Rank files by what they share with a request; what all files have does not count.

    Args:
        request: The user's words.
        files: Of one folder.
    """
    fields = [(f"{split_to_words(file.name)} {split_to_words(file.names)}", file.heads, file.values) for file in files]
    scores = dict(LexicalRanker().rank_fields(request, fields, _WEIGHTS))
    years = years_of(request)
    for year in years:
        covering = [
            index for index, file in enumerate(files) if any(first <= year <= last for first, last in file.years)
        ]
        for position in covering:
            scores[position] = (
                scores.get(position, 0.0) + _YEAR_WEIGHT * _rarity(len(covering), len(files)) / len(years) ** 0.5
            )
    if not years and _ASKS_FOR_YEARS.search(request):
        spans = {
            index: max((last - first for first, last in file.years), default=0) for index, file in enumerate(files)
        }
        long = {index: min(1.0, span / _LONG_SPAN) for index, span in spans.items() if span}
        for position, share in long.items():
            scores[position] = scores.get(position, 0.0) + _YEAR_WEIGHT * share * _rarity(len(long), len(files))
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _rarity(having: int, of: int) -> float:
    return math.log(1 + (of - having + 0.5) / (having + 0.5))


def years_of(text: str) -> list[int]:
    """Return the years that a text names; of a span all.

    Example:
        >>> years_of("between 2003 and 2006, and in 1999"), years_of("2019-21"), years_of("12003 of 15")
        ([1999, 2003, 2004, 2005, 2006], [2019, 2020, 2021], [])
    """
    found: set[int] = set()
    for match in _SPAN.finditer(text):
        first = int(match[1])
        last = int(match[2] if len(match[2]) == 4 else match[1][:2] + match[2]) if match[2] else first
        found.update(range(first, last + 1) if first <= last <= first + _MAX_YEARS else {first, last})
    return sorted(found)


def split_to_words(name: str) -> str:
    """Return a path as words, for a ranker.

    Example:
        >>> split_to_words("raw/birthRates_2003.csv"), split_to_words("CSVGröße")
        ('raw birth Rates 2003 csv', 'CSV Größe')
    """
    parts: list[str] = []
    for match in _PARTS.findall(unicodedata.normalize("NFC", name)):
        upper = (index for index in range(1, len(match)) if match[index].isupper())
        begin = [index for index in upper if match[index - 1].islower() or match[index + 1 : index + 2].islower()]
        parts += (match[first:last] for first, last in itertools.pairwise([0, *begin, len(match)]))
    return " ".join(parts)
