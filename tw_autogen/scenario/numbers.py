"""The numbers that a text names, as a reader would take them."""

from __future__ import annotations

import re

_DATE_OR_TIME = re.compile(r"\b\d{4}-\d{2}(-\d{2})?([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)?|\b\d{1,2}:\d{2}(:\d{2})?\b")
_SEPARATORS = ",_'\u00a0\u202f\u2009"
_MINUS = "\u2212"
_NUMBER = re.compile(
    rf"(?<![\w.])([-{_MINUS}+]?)(\d{{1,3}}(?:[{_SEPARATORS}]\d{{3}})+(?!\d)|\d+)(\.\d+)?([eE][-+]?\d+)?(?!\.?\d)"
)


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text, in order; dates and times are none, nor are digits inside a word.

    Args:
        text: The decimal sign is the point. Thousands may be set apart by a comma, an apostrophe, an underscore, or a
            space that doesn't break; a plain space parts two numbers.

    Example:
        >>> numbers_in("On 2024-03-11 at 08:00: 1,234.5 kg in 3 runs of plot_7, -2.5 % less.")
        [1234.5, 3.0, -2.5]
    """
    bare = str.maketrans("", "", _SEPARATORS)
    return [
        float(f"{sign.replace(_MINUS, '-')}{whole.translate(bare)}{fraction}{exponent}")
        for sign, whole, fraction, exponent in _NUMBER.findall(_DATE_OR_TIME.sub(" ", text))
    ]
