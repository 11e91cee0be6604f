"""JSON from whoever is not trusted: nested no deeper than its readers can follow, with values of bounded memory."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100
MOST_BYTES = 256 << 20
"""What the values of one text may take in memory, by estimate; `[[],[],…]` takes 20 times its length."""

_PER_CONTAINER, _PER_VALUE = 64, 32


def loads(text: str | bytes, *, most_bytes: int = MOST_BYTES) -> Any:
    """Parse JSON of which whoever sent it is not trusted; half a surrogate pair in it becomes a `?`.

    Args:
        text: JSON; bytes are UTF-8. Whoever gives it bounds its length.
        most_bytes: What its lists, objects and values may take in memory, by estimate, beside its texts.

    Raises:
        ValueError: it is no JSON, holds a number of thousands of digits, is nested more than 100 deep, or would take
            too much memory.

    Example:
        >>> loads('{"a": [1]}')
        {'a': [1]}
    """
    if (needed := estimate_bytes(text)) > most_bytes:
        raise ValueError(f"its values would take about {needed >> 20} MB of memory, of {most_bytes >> 20}")
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    lists, objects = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    # Counting is what small messages can afford; only many brackets make it worth a look.
    if text.count(lists) + text.count(objects) > DEEPEST and too_deep(value):  # type: ignore[arg-type] # of the text's own type
        raise ValueError(f"nested more than {DEEPEST} deep")
    halves = (r"\ud", r"\uD") if isinstance(text, str) else (rb"\ud", rb"\uD")
    if any(one in text for one in halves):  # type: ignore[operator] # as above
        value = replace_half_pairs(value)
    return value


def estimate_bytes(text: str | bytes) -> int:
    """Return about how many bytes the lists, objects and values of a JSON text take in memory, beside its texts.

    Args:
        text: JSON, or a part of it: the numbers of parts add up.

    Example:
        >>> estimate_bytes("[1, 2, 3]")
        128
    """
    if isinstance(text, str):
        return _PER_CONTAINER * (text.count("{") + text.count("[")) + _PER_VALUE * text.count(",")
    return _PER_CONTAINER * (text.count(b"{") + text.count(b"[")) + _PER_VALUE * text.count(b",")


def replace_half_pairs(value: Any) -> Any:
    """Return values of JSON with a `?` for half a surrogate pair, which can be sent nowhere and written to no file.

    Args:
        value: Returned itself if there is none in it.
    """
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace"))
    return value


def too_deep(value: Any) -> bool:
    """Return whether lists and dictionaries lie in one another more than 100 deep; linear work, no recursion."""
    level = [value]
    for _ in range(DEEPEST + 1):
        holders = [one for one in level if isinstance(one, dict | list)]
        if not holders:
            return False
        level = [inner for one in holders for inner in (one.values() if isinstance(one, dict) else one)]
    return True
