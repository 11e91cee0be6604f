"""Text for people: every invisible, reordering or control character as an escape, for approvals."""

from __future__ import annotations

import re
import unicodedata

_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""First and last of each range of Unicode's property Default_Ignorable_Code_Point (17.0), which Python doesn't have."""
_BLANK = (0x1107F, 0x13441, 0x13442, 0x16FE4, 0x1D159, 0x2800, 0x2D7F, 0xFFFC)
"""Others without ink: joiners, fillers and blanks by their names, the null notehead, the object replacement."""
_HIDDEN = frozenset(_BLANK).union(*(range(first, last + 1) for first, last in _IGNORABLE))
_KEPT = "\n\t \u3000"
"""Shown as they are; the ideographic space is as wide as a character and can't be overlooked."""
_BLANKS = re.compile(r" {3,}|\u3000+")
"""They could push what follows to the beginning of a terminal's next row, where it looks like a line of its own."""
_NOT_PLAIN = re.compile(r"[^\x20-\x7e\n\t]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ACTED_ON = re.compile(
    r"``(?=`)|~~(?=~)|!(?=\[)"
    r"|<(?=im(?:g|age)|video|audio|source|i?frame|embed|object|input|script|link|body|style|base|meta|svg)",
    re.IGNORECASE,
)
"""What begins a block of code, which agents of a host may run, or an image or the like, which they may load."""
_MARKDOWN = re.compile(r"[\\`*\[\]]|(?<![^\W_])_|_(?![^\W_])")  # within a word, `_` emphasizes nothing
NO_FORMULAS = 'class="mathjax_ignore tex2jax_ignore"'
"""Of HTML elements in which programs that show notebooks look for no formulas: one can load an address."""


def visible(text: str) -> str:
    r"""Return the text with each character that can't be seen, or that moves others, as an escape such as `\u202e`.

    Escaped are control characters (terminal sequences begin with one), format characters (bidirectional controls,
    zero-width signs, tags), all that Unicode calls ignorable, blank letters, spaces but the plain and the ideographic
    one, line separators other than a line feed, and code points that are private, unassigned or surrogates. Lines and
    tabs stay; `\r\n` becomes `\n`. Two texts that differ only in such an escape written out look the same.

    Args:
        text: Any length; the time it takes is linear.

    Example:
        >>> visible("if user != 'none\u202e\u2066':  # \x1b[8m")
        "if user != 'none\\u202e\\u2066':  # \\x1b[8m"
    """
    return _NOT_PLAIN.sub(lambda match: _escape_character(match[0]), text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    r"""Return the text as `visible` does, on one line: line breaks, tabs and runs of blanks are escapes too.

    Example:
        >>> visible_line("python\n    [y/N]")
        'python\\n\\x20\\x20\\x20\\x20[y/N]'
    """
    line = visible(text).replace("\n", r"\n").replace("\t", r"\t")
    return _BLANKS.sub(lambda match: r"\x20" * len(match[0]), line)


def escape_controls(text: str) -> str:
    r"""Return a text with each control character and each sign that reorders others as an escape; lines and tabs stay.

    So is half a surrogate pair, which can't be written as UTF-8.

    For what another program prints: a terminal takes it for words only. Letters, emoji and blanks of all kinds stay.

    Args:
        text: Any length; the time it takes is linear.

    Example:
        >>> escape_controls("a\x1b[2Jb\n")
        'a\\x1b[2Jb\n'
    """
    return _CONTROLS.sub(lambda match: _escape_character(match[0]), text.replace("\r\n", "\n"))


def json_controls_escaped(text: str) -> str:
    r"""Return JSON of the same meaning whose text moves no terminal and hides nothing there.

    Args:
        text: JSON, whose characters below 32 are escaped already.

    Example:
        >>> json_controls_escaped('{"text": "\x9b31m"}')
        '{"text": "\\u009b31m"}'
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def inert_output(text: str) -> str:
    r"""Return what code has printed, or said in an error, for a chat of agents that act on what they read.

    It is as of `escape_controls`, and a space stands in what would begin a block of code in a fence, or an image or
    another element of a page that loads something by itself (`<img`, `<video`, `![`); a style of any element may, too.

    Args:
        text: Any length; the time it takes is linear.

    Example:
        >>> inert_output("```sh\nid\n```\n<img x> ![y](z)")
        '`` `sh\nid\n`` `\n< img x> ! [y](z)'
    """
    return _ACTED_ON.sub(lambda match: f"{match[0]} ", escape_controls(text))


def markdown_line(text: str) -> str:
    r"""Return text on one line as `visible_line` does, for Markdown that shows it as it is, such as the name of a link.

    Example:
        >>> markdown_line("a_1\n```[<b>.txt")
        'a_1\\\\n\\`\\`\\`\\[&lt;b>.txt'
    """
    return _MARKDOWN.sub(r"\\\g<0>", visible_line(text)).replace("<", "&lt;")


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8; the name of a file may hold bytes that are none."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _escape_character(character: str) -> str:
    code = ord(character)
    hidden = code in _HIDDEN or unicodedata.category(character) in _ESCAPED_CATEGORIES
    if not hidden or character in _KEPT:
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
