"""Text of others in Markdown: blocks of code that stay closed, and no HTML that a renderer would take as such."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from tw_autogen.conversation import AttachmentType, Post
from tw_autogen.escaped_text import is_quickly_rendered, visible_line
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    import markdown_it
    from markdown_it.token import Token
else:
    markdown_it = LazyModule("markdown_it")  # takes 50 ms

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_READINGS: tuple[tuple[str, ...], ...] = ((), ("table", "strikethrough"))
"""Rules beside CommonMark's with which text is read: programs differ, and cells of a table end spans of code."""
_MATHEMATICS = re.compile(r"\$|\\\\[(\[]|\\begin")
"""What formulas begin with: programs for notebooks look for them before, and in, spans and blocks of code."""
_BEHIND = "behind"
_MARKED = re.compile(r"^ {0,3}(?:#{1,6} |[-*+] |\d{1,3}[.)] |>|\||```|~~~)|\*\*|!?\[[^\]\n]{0,200}\]\(", re.M)
"""Signs of Markdown that code has printed on purpose."""
_ALIGNED = re.compile(r"^(?![ \t]*\|).*\S {2,}\S", re.M)
"""A line of a table in columns; those between `|` are Markdown."""


def answer_markdown(text: str, posts: Iterable[Post]) -> str:
    """Return an answer as Markdown, in which the lines of printed output at its end are a block that keeps them.

    Words, output of one line, and output that is Markdown itself stay as they are.

    Args:
        text: The answer, or its beginning as `Answer.message` has it.
        posts: Those of its round.
    """
    text = text.rstrip()
    for output in (one for post in posts for one in _outputs(post)):
        words = text.removesuffix(output)
        if words != text and words[-1:] in ("", "\n") and "\n" in output:
            if _MARKED.search(output) and not _ALIGNED.search(output):
                return text
            return "\n\n".join(part for part in (words.rstrip(), fenced(output)) if part)
    return text


def _outputs(post: Post) -> tuple[str, ...]:
    """Return what a post's code has printed as it may stand in an answer: its beginning, and all of it."""
    if post.content(AttachmentType.execution_status) != "SUCCESS":
        return ()
    thought = post.content(AttachmentType.thought)
    whole = post.content(AttachmentType.answer).removeprefix(f"{thought}\n\n")
    shown = (post.content(AttachmentType.execution_result), whole)
    return tuple(output for one in shown if (output := one.rstrip()))


def fenced(text: str, language: str = "") -> str:
    """Return text as a Markdown block of code, with a fence that nothing in the text closes.

    Args:
        text: Any.
        language: Of the text, for colors.
    """
    marks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{marks}{language}\n{_lines(text)}\n{marks}"


def code_span(text: str) -> str:
    """Return text as a span of code on one line, hidden characters as escapes, with marks that it can't close.

    Args:
        text: Any, such as the name of a file.

    Example:
        >>> code_span("a`b`.csv")
        '``a`b`.csv``'
    """
    line = visible_line(text) or " "
    marks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    pad = " " if "`" in line[:1] + line[-1:] else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def without_html(markdown: str) -> str:
    r"""Return Markdown whose HTML is shown as text, outside of its blocks of code too, and which ends all its blocks.

    So are images by address, which whoever looks at them would load; those that bring their data stay. Where formulas
    could begin (`$`), tags in code are shown as entities, and no image stays: a formula takes the mark of code away.

    Args:
        markdown: Written by a user or a model. What is longer than 20 000 characters, has tables with more cells than
            these could fill, or leaves a block of code open, is shown as it stands, in a block of code.

    Example:
        >>> without_html("a < b, <b>c</b>")
        'a < b, &lt;b>c&lt;/b>'
        >>> without_html("![chart](http://x/a.png)")
        '!\\[chart](http://x/a.png)'
    """
    text = _lines(markdown)
    if not is_quickly_rendered(text):
        return _apart_from_formulas(fenced(text))
    for rules in _READINGS:
        lines = text.split("\n")
        for token in _parsed(text, rules):
            if token.type == "html_block":
                for at in range(*token.map or ()):
                    lines[at] = _TAG.sub("&lt;", lines[at])
            for tag in [one.content.split("\n")[0] for one in token.children or () if one.type == "html_inline"]:
                for at in range(*token.map or ()):
                    lines[at] = lines[at].replace(tag, f"&lt;{tag[1:]}")
            if any(_loads(one) or _may_load(one) for one in token.children or ()):
                for at in range(*token.map or ()):
                    lines[at] = lines[at].replace("![", r"!\[")
        text = "\n".join(lines)
    return _apart_from_formulas(text if all(_is_plain(text, rules) for rules in _READINGS) else fenced(text))


def _apart_from_formulas(markdown: str) -> str:
    """Return text in which tags are no tags in code either, if a formula could begin: then readers differ on code."""
    if not _MATHEMATICS.search(markdown):
        return markdown
    return _TAG.sub("&lt;", markdown).replace("![", r"!\[")


def _is_plain(markdown: str, rules: tuple[str, ...]) -> bool:
    """Return whether Markdown holds no HTML, loads nothing, and has no block of code without an end.

    Such a block would hold all that follows.
    """
    tokens = _parsed(f"{markdown}\n\n{_BEHIND}", rules)
    last = tokens[-3:]
    ends = [one.type for one in last[::2]] == ["paragraph_open", "paragraph_close"] and last[1].content == _BEHIND
    parts = [one for token in tokens for one in (token, *(token.children or ()))]
    return ends and not any(one.type.startswith("html") or _loads(one) for one in parts)


def _loads(token: Token) -> bool:
    """Return whether a part of Markdown is an image by address, or has one in its description."""
    by_address = token.type == "image" and not str(token.attrs.get("src", "")).startswith("data:")
    return by_address or (token.type == "image" and any(map(_loads, token.children or ())))


def _may_load(token: Token) -> bool:
    """Return whether words may be an image by an address that another part of the document defines."""
    return token.type in ("text", "text_special") and "![" in token.content


def _parsed(markdown: str, rules: tuple[str, ...]) -> list[Token]:
    return _parser(rules).parse(markdown)


@cache
def _parser(rules: tuple[str, ...]) -> markdown_it.MarkdownIt:
    return ready_parser(markdown_it.MarkdownIt("commonmark").enable(list(rules)))


def ready_parser(parser: markdown_it.MarkdownIt) -> markdown_it.MarkdownIt:
    """Return a parser that several threads can use: its first text makes it compile its rules."""
    parser.parse("a")
    return parser


def _lines(text: str) -> str:
    """Return text with one kind of line end: a lone carriage return ends a line of Markdown, too."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
