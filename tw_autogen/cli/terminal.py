"""Where the command line writes: consoles, the marks they can show, and text that is safe to show there."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from tw_autogen.lazy_module import LazyModule
from tw_autogen.render_limits import is_quickly_colored, is_quickly_rendered
from tw_autogen.text_escaping import visible_line

if TYPE_CHECKING:
    import markdown_it
    from rich import markdown as rich_markdown
    from rich import syntax
else:
    markdown_it = LazyModule("markdown_it")
    rich_markdown = LazyModule("rich.markdown")  # only an answer at a terminal needs it
    syntax = LazyModule(  # code in color
        "rich.syntax", also=("pygments.lexers.python", "pygments.lexers.shell", "pygments.styles.monokai")
    )

_COLORED = ("python", "py", "sql", "json", "bash", "sh")
"""Languages whose code in an answer is shown in color; lexers of some others take minutes for a few kB."""
_ESCAPE = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[ -/]+[0-~]|[0-Z\\^-~]?)")
"""Titles, links, the clipboard; colors and moves; choices of characters; all others."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNLIMITED = 10_000
_DUMB_LINES = 25


@dataclass(frozen=True)
class Marks:
    """The signs in front of lines; every one is a single column wide."""

    done: str = "✓"
    current: str = "▸"
    pending: str = "○"
    failed: str = "✗"
    code: str = "│"
    dot: str = "·"
    to: str = "→"
    spinner: str = "dots"


_ASCII = Marks(done="+", current=">", pending="-", failed="x", code="|", dot="-", to="->", spinner="line")


def marks(console: Console) -> Marks:
    """Return the marks that this console's encoding can show."""
    return Marks() if console.encoding.lower().replace("-", "").startswith("utf8") else _ASCII


def console(stream: TextIO, *, color: bool = True) -> Console:
    """Make a console of a standard stream (see `tw_autogen.cli.standard_streams.prepare_streams`).

    Args:
        stream: `sys.stdout` or `sys.stderr`.
        color: False for plain text without any style; `NO_COLOR` in the environment says the same.

    Returns:
        A console that leaves lines whole, for grep, where its stream is no terminal. A dumb one (`TERM=dumb`) gets no
        escape code at all, and is as wide as `COLUMNS` says, or 80.
    """
    tty = stream.isatty()
    plain = not color or bool(os.environ.get("NO_COLOR"))
    columns = os.environ.get("COLUMNS", "")
    return Console(
        file=stream,
        color_system=None if plain else "auto",
        width=None if tty else _UNLIMITED,
        height=_DUMB_LINES if tty and is_dumb() and columns.isdecimal() else None,  # else rich leaves COLUMNS out
        highlight=False,
        emoji=False,
        markup=False,
    )


def highlighted(code: str, console: Console) -> Text:
    """Return Python code in color, or as it is where a console shows none, or finding it would take long.

    Args:
        code: Without tabs and escape sequences.
        console: Where it is to be shown.
    """
    if console.color_system is None or not is_quickly_colored(code):
        return Text(code)
    shown = syntax.Syntax("", "python", theme="ansi_dark").highlight(code)
    shown.rstrip()
    return shown


def code_block(code: str, language: str) -> syntax.Syntax:
    """Return code in color that wraps at the edge of a console.

    Args:
        code: Without escape sequences.
        language: `python` or `bash`.
    """
    colored = language if is_quickly_colored(code) else "text"
    return syntax.Syntax(code, colored, background_color="default", word_wrap=True)


def is_dumb() -> bool:
    """Return whether the terminal understands no escape codes."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def stdout_console(*, color: bool = True) -> Console:
    """Make the console of standard output."""
    return console(sys.stdout, color=color)


def stderr_console(*, color: bool = True) -> Console:
    """Make the console of standard error."""
    return console(sys.stderr, color=color)


def clean(text: str) -> str:
    r"""Return text that can't move the cursor, ring or rename the window; lines and tabs stay.

    Example:
        >>> clean("a\x07b\x1b[31mc")
        'abc'
    """
    lines = _ESCAPE.sub("", text.replace("\t", "    ")).split("\n")
    return _CONTROL.sub("", "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines))


def markdown(text: str) -> rich_markdown.Markdown | Text:
    """Return an answer as a terminal shows it: Markdown, but with the line breaks of its paragraphs and HTML as text.

    Args:
        text: Written by a model; what takes long as Markdown is shown as it stands.
    """
    shown = clean(text)
    if not is_quickly_rendered(shown):
        return Text(shown)
    found = rich_markdown.Markdown("", hyperlinks=False)  # not every terminal shows where a link leads
    parser = markdown_it.MarkdownIt("commonmark", {"html": False})  # rich leaves out what looks like HTML: `<NA>`
    found.parsed = parser.enable(["strikethrough", "table"]).parse(shown)
    for token in found.parsed:
        info = token.info.split()
        if token.type == "fence" and not (info[:1] and info[0] in _COLORED and is_quickly_colored(token.content)):
            token.info = "text"
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return found


def link(path: Path) -> Text:
    """Return a path that a terminal opens on a click; relative to the current folder where it lies below it.

    Args:
        path: A file or folder; it need not exist.
    """
    path = path.absolute()
    here = Path.cwd()
    shown = str(path.relative_to(here) if path.is_relative_to(here) else path)
    return Text(visible_line(shown), style=Style(link=path.as_uri()))
