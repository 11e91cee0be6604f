"""`fit`: the printed output of a cell within a limit, each print cut for itself by whole lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from tw_autogen.escaped_text import without_middle

_PADDING = re.compile(r"(?<=\S) {3,}(?=\S)|^ {3,}(?=\S)", re.M)
_COLUMNS = re.compile(r"\S {2,}\S")
_TABLE_CHARS = 4000
"""How much of one table is shown where the output doesn't fit."""
_TAIL_PERCENT = 30


def fit(text: str, limit_chars: int, print_ends: Sequence[int] = ()) -> str:
    r"""Return a text within a limit; one that fits stays as it is.

    Tables lose their padding first. What still doesn't fit is cut print by print: short prints stay whole, and of each
    long one the first and the last lines stay, with a mark between them.

    Args:
        text: Any length.
        limit_chars: How long the text may be, without the marks.
        print_ends: Where prints end in it, in characters, ascending; without them the text counts as one print.

    Example:
        >>> fit("total 12\n" + "row\n" * 9 + "mean 3\n", 30, print_ends=[9, 45, 52])
        'total 12\nrow\nrow\n… 6 of 9 lines (24 characters) left out …\nrow\nmean 3'
    """
    if len(text) <= limit_chars:
        return text
    prints = [_without_padding(one) for one in _prints(text, print_ends)]
    if sum(map(len, prints)) > limit_chars:
        wanted = [min(len(one), _TABLE_CHARS) if _is_table(one) else len(one) for one in prints]
        shares = _shares(wanted, limit_chars)
        prints = [_cut(one, share) for one, share in zip(prints, shares, strict=True)]
    return "".join(prints).rstrip("\n")


def _prints(text: str, print_ends: Sequence[int]) -> list[str]:
    """Split a text into its prints; neighbours of one line each stay together."""
    ends = sorted({0, *(end for end in print_ends if 0 < end < len(text)), len(text)})
    prints: list[str] = []
    lines_apart = True
    for start, end in pairwise(ends):
        one = text[start:end]
        several = one.count("\n") > 1
        if prints and not several and not lines_apart:
            prints[-1] += one
        else:
            prints.append(one)
        lines_apart = several
    return prints


def _is_table(text: str) -> bool:
    """Return whether most lines of a text are aligned in columns."""
    lines = text.splitlines()
    return len(lines) > 2 and sum(1 for line in lines if _COLUMNS.search(line)) * 2 > len(lines)


def _without_padding(text: str) -> str:
    return _PADDING.sub("  ", text) if _is_table(text) else text


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """Share room: who wants little gets it all, and the others get equal parts of the rest."""
    shares = [0] * len(wanted)
    for left, place in zip(range(len(wanted), 0, -1), sorted(range(len(wanted)), key=wanted.__getitem__), strict=True):
        shares[place] = min(wanted[place], max(0, room) // left)
        room -= shares[place]
    return shares


def _cut(text: str, room: int) -> str:
    """Return the first and last lines of a print that has more characters than there is room for."""
    if len(text) <= room:
        return text
    lines = text.splitlines(keepends=True)
    tail_room = room * _TAIL_PERCENT // 100
    tail = _lines_within(lines[::-1], tail_room)
    head = _lines_within(lines[: len(lines) - tail], room - sum(map(len, lines[len(lines) - tail :])))
    if not head or not tail:  # lines longer than the room are cut inside
        return without_middle(text, room, tail_percent=_TAIL_PERCENT)
    left_out = lines[head : len(lines) - tail]
    mark = f"… {len(left_out)} of {len(lines)} lines ({sum(map(len, left_out))} characters) left out …\n"
    return "".join([*lines[:head], mark, *lines[len(lines) - tail :]])


def _lines_within(lines: Sequence[str], room: int) -> int:
    """Return how many of the first lines fit."""
    for count, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return count
    return len(lines)
