"""A session as a file for people: a notebook, a program, Markdown or HTML, by the file's ending."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.errors import ConfigError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.named_folders import refuse_private
from tw_autogen.render_limits import is_quickly_colored
from tw_autogen.safe_folder import open_or_make_folder
from tw_autogen.session.answer_html import markdown_html, output_html
from tw_autogen.session.earlier_session import read_events
from tw_autogen.session.markdown_text import fenced, with_html_signs
from tw_autogen.session.notebook_export import notebook, write_notebook
from tw_autogen.session.program import Program
from tw_autogen.text_escaping import visible

if TYPE_CHECKING:
    import pygments
    from pygments.formatters import html as html_formatter
    from pygments.lexers import python as python_lexer
    from pygments.lexers import special as text_lexer
else:  # only a page needs them
    pygments = LazyModule("pygments")
    html_formatter = LazyModule("pygments.formatters.html", also=("pygments.styles.default",))
    python_lexer = LazyModule("pygments.lexers.python")
    text_lexer = LazyModule("pygments.lexers.special")

FORMATS = ("ipynb", "py", "md", "html")
_HEAD = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{title}</title><style>
body {{max-width: 60em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 sans-serif}}
pre {{overflow-x: auto; padding: .5em}} img {{max-width: 100%}} table {{border-collapse: collapse}}
td, th {{padding: .2em .6em; border: 1px solid #ddd}}
{colors}
</style></head><body>
"""
_PICTURE = "picture"


def export_session(folder: Path, path: Path, *, replace: bool = False) -> Path:
    """Write a session to a file.

    Args:
        folder: The session's, with its journal, reached over no link, as `session_folder` returns it. It may be open,
            or of another user: it is only read.
        path: Ends with `.ipynb` (a notebook), `.py` (a program that runs on new data), `.md` or `.html`.
        replace: Write it in place of a file or link that is there.

    Returns:
        The path.

    Raises:
        ConfigError: the journal is missing or damaged, no such format is known, the file is there already, or it can't
            be written, or a link on the way leads to a hidden folder.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ConfigError(f"{path}: a session is written as {', '.join(f'.{one}' for one in FORMATS)}")
    refuse_private(path.parent)
    if not replace and os.path.lexists(path):
        raise ConfigError(f"{path} is there already; choose another name, or add --force to replace it")
    events = read_events(folder)
    try:
        if ending == "ipynb":
            return write_notebook(events, path, below=folder)
        if ending == "py":
            text = Program.of(events).source(path.name)
        else:
            made = notebook(events, below=folder)
            text = _notebook_markdown(made) if ending == "md" else _notebook_html(made, folder.name)
        with open_or_make_folder(path.parent) as there:
            there.write_file(path.name, text.encode())
    except OSError as error:
        raise ConfigError(f"{path}: not written: {error.strerror or error}") from error
    return path


def _notebook_markdown(made: Any) -> str:
    """Return a notebook's cells as Markdown: nothing closes the fences of code and output; pictures are embedded."""
    parts = []
    for cell in made.cells:
        parts.append(fenced(visible(cell.source), "python") if cell.cell_type == "code" else visible(cell.source))
        for text, picture in _cell_outputs(cell):
            parts.append(f"![{_PICTURE}]({picture})" if picture else fenced(visible(text)))
    return "\n\n".join(parts) + "\n"


def _notebook_html(made: Any, title: str) -> str:
    """Return a notebook's cells as one HTML page that runs and loads nothing, pictures embedded."""
    lexer, plain, colors = python_lexer.PythonLexer(), text_lexer.TextLexer(), html_formatter.HtmlFormatter()
    parts = [_HEAD.format(title=html.escape(visible(title)), colors=colors.get_style_defs(".highlight"))]
    for cell in made.cells:
        if cell.cell_type == "code":
            source = visible(cell.source)
            parts.append(pygments.highlight(source, lexer if is_quickly_colored(source) else plain, colors))
        elif "sources" in cell.metadata.get("tags", ()):
            parts.append(cell.source)  # HTML of our own making
        else:
            parts.append(markdown_html(with_html_signs(cell.source), {}))
        for text, picture in _cell_outputs(cell):
            parts.append(f'<img src="{picture}" alt="{_PICTURE}">' if picture else output_html(text))
    return "\n".join([*parts, "</body></html>\n"])


def _cell_outputs(cell: Any) -> Iterator[tuple[str, str]]:
    """Return the outputs of a cell, each as its text and, of a picture, its address with all of its data."""
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            yield output.text, ""
        elif output.output_type == "error":
            yield "\n".join(output.traceback), ""
        else:
            mime = next((one for one in output.data if one.startswith("image/")), "")
            data = output.data.get(mime, "")
            if mime == "image/svg+xml":
                data = base64.b64encode(data.encode()).decode()
            yield output.data["text/plain"], f"data:{mime};base64,{data}" if mime else ""
