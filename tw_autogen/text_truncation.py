"""Shorter text: its beginning, its ends, its first parts, without known paragraphs or blank lines around it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

_LONG_PARAGRAPH_CHARS = 200
_SEARCHED_CHARS = 20_000


def shortened(text: str, limit_chars: int) -> str:
    """Return a text, or its beginning and an ellipsis.

    Args:
        text: Any length.
        limit_chars: How many characters of it are kept.

    Example:
        >>> shortened("sales", 5), shortened("sales", 3)
        ('sales', 'sal…')
    """
    return text if len(text) <= limit_chars else f"{text[:limit_chars]}…"


def without_known_paragraphs(text: str, known: str) -> str:
    r"""Return a text in which each long paragraph that stands in another text is only named.

    Args:
        text: Paragraphs, with blank lines between them.
        known: The text that a reader has seen.

    Example:
        >>> without_known_paragraphs(f"{'x' * 201}\n\nNew.", f"Old.\n\n{'x' * 201}").splitlines()[0]
        '(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… as before)'
    """
    seen = set(long_paragraphs(known))
    return "\n\n".join(f"({_first_words(part)}… as before)" if part in seen else part for part in text.split("\n\n"))


def _first_words(text: str) -> str:
    """Return the first words of a text, up to 60 characters."""
    return text[:60].rpartition(" ")[0] or text[:60]


def long_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text that are worth naming instead of repeating.

    Args:
        text: Paragraphs, with blank lines between them.
    """
    return [part for part in text.split("\n\n") if len(part) > _LONG_PARAGRAPH_CHARS]


def without_middle(text: str, limit_chars: int, *, tail_percent: int = 30) -> str:
    r"""Return a text, or its head and tail with a line between them that says how much is left out.

    Args:
        text: Any length.
        limit_chars: How many characters of it are kept.
        tail_percent: How much of them are its end; 0: only the beginning is kept, 100: only the end.

    Example:
        >>> without_middle("0123456789" * 10, 20)
        '01234567890123\n… 80 characters left out …\n456789'
    """
    if len(text) <= limit_chars:
        return text
    tail = limit_chars * tail_percent // 100
    mark = f"… {len(text) - limit_chars} characters left out …"
    return "\n".join(filter(None, (text[: limit_chars - tail], mark, text[len(text) - tail :])))


def ends_of(text: str) -> str:
    """Return the part of a request in which words that say how to answer are looked for: its beginning and its end.

    A search through pasted data of any length would hold up all other threads.
    """
    return without_middle(text, _SEARCHED_CHARS, tail_percent=50)


def first_of(parts: Sequence[str], limit_chars: int) -> list[str]:
    """Return the first parts, so many that they have up to `limit_chars` characters, and in words how many follow.

    Args:
        parts: In order.
        limit_chars: Of those that are returned, together.

    Example:
        >>> first_of(["a.csv", "b.csv", "c.csv"], 12)
        ['a.csv', 'b.csv', 'and 1 more']
    """
    ends = itertools.accumulate(map(len, parts))
    count = sum(1 for _ in itertools.takewhile(lambda end: end <= limit_chars, ends))
    return [*parts[:count], *([f"and {len(parts) - count} more"] if count < len(parts) else [])]


def trimmed(text: str) -> str:
    r"""Return a text without blank lines around it; the indentation of a table's head stays.

    Example:
        >>> trimmed("\n   a  b\n0  1  2\n")
        '   a  b\n0  1  2'
    """
    lines = text.rstrip().splitlines()
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    several = len(lines) - first > 1
    return "\n".join(lines[first:]) if several else text.strip()
