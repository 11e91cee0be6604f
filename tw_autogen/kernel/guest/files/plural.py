"""A count with its noun in the singular or plural; the kernel's process has this copy of its own."""

from __future__ import annotations


def pluralize(count: int, noun: str) -> str:
    """Return a count and its noun, with an `s` unless the count is 1.

    Args:
        count: How many.
        noun: In the singular, of which an `s` makes the plural.

    Example:
        >>> pluralize(1, "row"), pluralize(0, "row")
        ('1 row', '0 rows')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
