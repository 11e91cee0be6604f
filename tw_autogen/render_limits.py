"""Which code and Markdown can be colored and rendered without taking long."""

from __future__ import annotations

import re

_MAX_COLORED_CHARS = 20_000
_MANY_BLANK_LINES = re.compile(r"(?:\n[ \t]*){50}")
MAX_MARKDOWN_CHARS = 20_000
"""Of Markdown that is parsed, which can take a second or two."""
_TABLE_DIVIDER = re.compile(r"[ \t>]*[-:|][-:| \t]*")
"""The second line of a table, which says how many columns it has; `>` stands before it in a quotation."""


def is_quickly_colored(code: str) -> bool:
    """Return whether pygments reads code quickly: it takes quadratic time where many blank lines follow one another.

    Args:
        code: Any; more than 20 000 characters are not thought to be read quickly.
    """
    return len(code) <= _MAX_COLORED_CHARS and not _MANY_BLANK_LINES.search(code)


def is_quickly_rendered(markdown: str) -> bool:
    r"""Return whether Markdown is read and shown quickly: cells that a table's rows leave out are cells, too.

    Args:
        markdown: Any; neither more than 20 000 characters nor more cells than these could fill are thought to be.

    Example:
        >>> is_quickly_rendered("a|b\n-|-\n1|2")
        True
        >>> is_quickly_rendered("a|" * 200 + "\n" + "-|" * 200 + "\n" + "|\n" * 200)
        False
    """
    if len(markdown) > MAX_MARKDOWN_CHARS:
        return False
    cells = columns = 0
    for line in markdown.replace("\r", "\n").split("\n"):
        if not line.strip(" \t>"):  # it ends a table
            columns = 0
        elif _TABLE_DIVIDER.fullmatch(line):
            columns = max(columns, line.count("|") + 1)
        cells += columns
    return cells <= MAX_MARKDOWN_CHARS // 2
