"""Text of others in Markdown: blocks of code that stay closed, and no HTML that a renderer would take as such."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from tw_autogen.conversation import AttachmentType, Post, RequestedFormat
from tw_autogen.lazy_module import LazyModule
from tw_autogen.render_limits import is_quickly_rendered
from tw_autogen.text_escaping import visible_line

if TYPE_CHECKING:
    import markdown_it
else:
    markdown_it = LazyModule("markdown_it")  # takes 50 ms

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_PICTURE = r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}\)"
_IMAGE = re.compile(rf"!\[(?![^\[\]\n\\`$]{{0,200}}\]\({_PICTURE})")
"""What begins an image, but for one that brings its data."""
_LINK = re.compile(rf"\]\((?!https?://|file:///|{_PICTURE}|#|[\w ./%-]*\))")
_DEFINITION = re.compile(r"\]:(?![ \t]*https?://)")
"""What begins the address of a link, here or for links elsewhere, unless it runs nothing (`javascript:` does)."""
_CODE = ("fence", "code_block")
_LANGUAGES = ("bash", "csv", "json", "python", "r", "sh", "sql", "text", "toml", "yaml")
"""Of blocks of code: what others are, a program may draw (`mermaid`)."""
_FENCE = re.compile(r"```|~~~")
_LIST_SIGN = re.compile(r"\d{1,9}[.)]|\[[xX]\]")
_WORD = re.compile(r"\w")
_AT = re.compile(r"@(?![A-Za-z])")
_MARKED = re.compile(r"^ {0,3}(?:#{1,6} |[-*+] |\d{1,3}[.)] |>|\||```|~~~)|\*\*|!?\[[^\]\n]{0,200}\]\(", re.M)
"""Signs of Markdown that code has printed on purpose."""
_ALIGNED = re.compile(r"^(?![ \t]*\|).*\S {2,}\S", re.M)
"""A line of a table in columns; those between `|` are Markdown."""


def fence_printed_output(text: str, posts: Iterable[Post]) -> str:
    """Return an answer as Markdown, in which the lines of printed output at its end are a block that keeps them.

    Words, output of one line, and output that is Markdown itself stay as they are.

    Args:
        text: The answer, or its beginning as `Answer.message` has it.
        posts: Those of its round, the request first.
    """
    text, posts = text.rstrip(), list(posts)
    form = RequestedFormat.read(posts[0].message if posts else "")
    for output in (one for post in posts for one in _output_forms(post, form)):
        words = text.removesuffix(output)
        if words != text and words[-1:] in ("", "\n") and "\n" in output:
            if _MARKED.search(output) and not _ALIGNED.search(output):
                return text
            return "\n\n".join(part for part in (words.rstrip(), fenced(output)) if part)
    return text


def _output_forms(post: Post, form: RequestedFormat) -> tuple[str, ...]:
    """Return what a post's code has printed as it may stand in an answer: head or all, printed or shaped."""
    if post.content(AttachmentType.execution_status) != "SUCCESS":
        return ()
    thought = post.content(AttachmentType.thought)
    whole = post.content(AttachmentType.answer).removeprefix(f"{thought}\n\n")
    shown = (post.content(AttachmentType.execution_result), whole)
    printed = [output for one in shown if (output := one.rstrip())]
    return (*printed, *(form.shaped(one) for one in printed))


def fenced(text: str, language: str = "") -> str:
    """Return text as a Markdown block of code, with a fence that nothing in the text closes.

    Args:
        text: Any.
        language: Of the text, for colors.
    """
    marks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{marks}{language}\n{_normalize_line_ends(text)}\n{marks}"


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


def markdown_cells(markdown: str) -> list[str]:
    r"""Return Markdown in pieces, each to be a cell of its own, in which no program that shows it finds HTML.

    Blocks of code begin a piece, where every program takes them for such; all other text is as of `without_html`.

    Args:
        markdown: Written by a user or a model. What is longer than 20 000 characters, or has tables with more cells
            than these could fill, is shown as it stands, in a block of code.

    Example:
        >>> markdown_cells("So <b>it</b> is:\n\n    <b>\n\nEnd.")
        ['So &lt;b>it&lt;/b> is:', '```\n<b>\n```', 'End.']
    """
    text = _normalize_line_ends(markdown)
    if not is_quickly_rendered(text):
        return [fenced(text)]
    inert = without_html(text)
    as_written, lines, pieces, begin = text.split("\n"), inert.split("\n"), list[str](), 0
    for token in _parser().parse(inert):  # what is shown is what is read: a tag that is none any more begins no block
        if token.type in _CODE and token.level == 0 and token.map:
            line, language = token.map[0] + (token.type == "fence"), token.info.strip()
            code = _code_as_written(token.content, lines[line:], as_written[line:])
            pieces += ["\n".join(lines[begin : token.map[0]])]
            pieces += [fenced(code, language if language in _LANGUAGES else "")]
            begin = token.map[1]
    pieces += ["\n".join(lines[begin:])]
    return [piece.strip("\n") for piece in pieces if piece.strip()]


def _code_as_written(content: str, lines: Sequence[str], as_written: Sequence[str]) -> str:
    """Return a block of code as it stood before `without_html`, less what each of its lines is indented by.

    Args:
        content: The block's, after `without_html`, without that indent.
        lines: Of the text after it, from the block on.
        as_written: The same lines before it.
    """
    shown = content.removesuffix("\n").split("\n")
    indents = (max(0, len(line) - len(one)) for one, line in zip(shown, lines, strict=False))
    return "\n".join(said[indent:] for indent, said in zip(indents, as_written, strict=False))


def without_html(markdown: str) -> str:
    """Return Markdown whose HTML is shown as text, in its code too: programs differ on what is code.

    A formula, the end of an address or a cell of a table can take away what begins code. So are images by address,
    which whoever looks at them would load, and links that are no address of the web, a file or a place in the text;
    pictures that bring their data stay. Lines stay lines. JupyterLab puts formulas in the place of `@@0@@`, even in
    attributes: a space without width stands behind each `@` that no letter follows.

    Args:
        markdown: Written by a user or a model.

    Example:
        >>> without_html("a < b, <b>c</b>, ![chart](http://x/a.png)")
        'a < b, &lt;b>c&lt;/b>, !&#91;chart](http://x/a.png)'
    """
    markdown = _AT.sub("@\u200b", "\n".join(map(_plain_fence, markdown.split("\n"))))
    return _DEFINITION.sub("]&#58;", _LINK.sub("]&#40;", _IMAGE.sub("!&#91;", _TAG.sub("&lt;", markdown))))


def _plain_fence(line: str) -> str:
    """Return a line that begins a block of code with a language of ours, or none: JupyterLab makes it an attribute."""
    match = _FENCE.search(line)
    if match is None:
        return line
    before, rest = line[: match.start()], line[match.start() :]
    info = rest.lstrip(rest[0])
    if rest[0] == "`" and "`" in info:  # a span
        return line
    if _WORD.search(_LIST_SIGN.sub("", before)):  # in a footnote, for instance, it may begin one as well
        return f"{before}{rest[0]}\u200b{rest[1:]}"
    language = info.strip()
    return f"{before}{rest[: len(rest) - len(info)]}{language if language in _LANGUAGES else ''}"


def with_html_signs(markdown: str) -> str:
    """Return what `without_html` was given, for a renderer that takes nothing in it for HTML."""
    for sign, written in (("&lt;", "<"), ("!&#91;", "!["), ("]&#40;", "]("), ("]&#58;", "]:")):
        markdown = markdown.replace(sign, written)
    return markdown


@cache
def _parser() -> markdown_it.MarkdownIt:
    return ready_parser(markdown_it.MarkdownIt("commonmark"))


def ready_parser(parser: markdown_it.MarkdownIt) -> markdown_it.MarkdownIt:
    """Return a parser that several threads can use: its first text makes it compile its rules."""
    parser.parse("a")
    return parser


def _normalize_line_ends(text: str) -> str:
    """Return text with one kind of line end: a lone carriage return ends a line of Markdown, too."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
