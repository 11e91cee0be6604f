"""Sizes of files in words."""

from __future__ import annotations


def size_words(size: int, *, brief: bool = False) -> str:
    """Return a size in bytes in words.

    Args:
        size: In bytes.
        brief: With fewer digits and letters.

    Example:
        >>> size_words(812), size_words(45_678), size_words(45_678, brief=True)
        ('812 bytes', '45.7 kB', '46 kB')
    """
    if size < 1000:
        return f"{size} {'B' if brief else 'bytes'}"
    whole_from = 9.95 if brief else 99.95
    for unit, many in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if size < many * 999.5 or unit == "GB":
            return f"{size / many:.1f} {unit}" if size < many * whole_from else f"{size / many:.0f} {unit}"
    return ""
