"""JSON from a model, a kernel, a gateway or a server: nothing in it is nested deeper than its readers can follow."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100


def loads(text: str | bytes) -> Any:
    """Parse JSON of which whoever sent it is not trusted; half a surrogate pair in it becomes a `?`.

    Args:
        text: JSON; bytes are UTF-8.

    Raises:
        ValueError: it is no JSON, holds a number of thousands of digits, or is nested more than 100 deep.

    Example:
        >>> loads('{"a": [1]}')
        {'a': [1]}
    """
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
