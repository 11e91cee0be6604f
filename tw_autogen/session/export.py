"""A session as a file for people: a notebook, a program, Markdown or HTML, by the file's ending."""

from __future__ import annotations

import base64
import html
import importlib
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError
from tw_autogen.safe_folder import held_folder
from tw_autogen.session.earlier_session import read_events
from tw_autogen.session.notebook import notebook, write_notebook
from tw_autogen.session.program import Program

FORMATS = ("ipynb", "py", "md", "html")
_PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{title}</title><style>
body {{max-width: 60em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 sans-serif}}
pre {{overflow-x: auto; padding: .5em; background: #f6f6f6}} img {{max-width: 100%}} table {{border-collapse: collapse}}
td, th {{padding: .2em .6em; border: 1px solid #ddd}}
{colors}
</style></head><body>
"""
_TAGS = ["h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "em", "strong", "del", "code", "pre", "span", "div"] + [
    *("blockquote", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"),
]
"""What Markdown makes; no pictures from elsewhere, no scripts, no styles."""
_ATTRIBUTES = {"a": ["href", "title", "class"], "*": ["id", "class"]}
_NEEDS = 'needs nbconvert: pip install "tw-autogen[export]"; .ipynb and .py need nothing more'


def export_session(folder: Path, path: Path) -> Path:
    """Write a session to a file; a file that is there is replaced.

    Args:
        folder: The session's, with its journal. It may be open, or of another user: it is only read.
        path: Ends with `.ipynb` (a notebook), `.py` (a program that runs on new data), `.md` or `.html`.

    Returns:
        The path.

    Raises:
        ConfigError: the journal is missing or damaged, no such format is known, `.md` or `.html` is wanted without
            nbconvert, or the file can't be written.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ConfigError(f"{path}: a session is written as {', '.join(f'.{one}' for one in FORMATS)}")
    events = read_events(folder)
    try:
        if ending == "ipynb":
            return write_notebook(events, path, below=folder)
        text = Program.of(events).source(path.name) if ending == "py" else _converted(events, ending, folder)
        with held_folder(path.parent) as there:
            there.write_file(path.name, text.encode())
    except OSError as error:
        raise ConfigError(f"{path}: not written: {error.strerror or error}") from error
    return path


def _converted(events: list[Any], ending: str, folder: Path) -> str:
    """Return a session as Markdown or as one HTML file without scripts, pictures embedded."""
    try:
        nbconvert: Any = importlib.import_module("nbconvert")
    except ImportError as error:
        raise ConfigError(f".{ending} {_NEEDS}") from error
    made = notebook(events, below=folder)
    options: dict[str, Any] = {"exclude_input_prompt": True, "exclude_output_prompt": True}
    if ending == "md":
        embedded = importlib.import_module("traitlets.config").Config(ExtractOutputPreprocessor={"enabled": False})
        return str(nbconvert.MarkdownExporter(config=embedded, **options).from_notebook_node(made)[0])
    exporter = nbconvert.HTMLExporter(template_name="basic", sanitize_html=True, **options)  # others load scripts
    exporter.register_filter("clean_html", _clean_html)
    body, _ = exporter.from_notebook_node(made)
    colors = importlib.import_module("pygments.formatters").HtmlFormatter().get_style_defs(".highlight")
    return f"{_PAGE.format(title=html.escape(folder.name), colors=colors)}{body}</body></html>\n"


def _clean_html(text: Any) -> str:
    """Return HTML that Markdown has made without anything that runs or loads something; SVG as an embedded picture."""
    data = text if isinstance(text, bytes) else str(text).encode()
    if data.lstrip().startswith((b"<svg", b"<?xml")):
        return f'<img src="data:image/svg+xml;base64,{base64.b64encode(data).decode()}">'
    cleaned = importlib.import_module("bleach").clean(data.decode(), tags=_TAGS, attributes=_ATTRIBUTES)
    return str(cleaned)
