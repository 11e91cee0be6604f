"""Text of others in Markdown: blocks of code that stay closed, and no HTML that a renderer would take as such."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    import markdown_it
else:
    markdown_it = LazyModule("markdown_it")  # takes 50 ms

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MOST_MARKDOWN_CHARS = 20_000
"""Of longer text all tags are shown as text, in blocks of code too."""


def fenced(text: str, language: str = "") -> str:
    """Return text as a Markdown block of code, with a fence that nothing in the text closes.

    Args:
        text: Any.
        language: Of the text, for colors.
    """
    marks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{marks}{language}\n{_lines(text)}\n{marks}"


def without_html(markdown: str) -> str:
    r"""Return Markdown whose HTML is shown as text, outside of its blocks of code too.

    Args:
        markdown: Written by a user or a model.

    Example:
        >>> without_html("a < b, <b>c</b>")
        'a < b, &lt;b>c&lt;/b>'
    """
    lines = _lines(markdown).split("\n")
    is_short = len(markdown) <= _MOST_MARKDOWN_CHARS
    tokens = markdown_it.MarkdownIt("commonmark").parse("\n".join(lines)) if is_short else None
    code: set[int] = set()
    if tokens is not None:
        if not any(one.type.startswith("html") for token in tokens for one in (token, *(token.children or ()))):
            return "\n".join(lines)
        code = {at for one in tokens if one.type in ("fence", "code_block") and one.map for at in range(*one.map)}
    return "\n".join(line if at in code else _TAG.sub("&lt;", line) for at, line in enumerate(lines))


def _lines(text: str) -> str:
    """Return text with one kind of line end: a lone carriage return ends a line of Markdown, too."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
