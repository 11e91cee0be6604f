"""A docstring in parts: what a function does, what its parameters mean, what it gives, how it is called."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    import docstring_parser
else:
    docstring_parser = LazyModule("docstring_parser")  # specs in YAML need none

_PROMPTS = (">>> ", "... ")
_FIELDS = re.compile(r"^[^\S\n]*:", re.MULTILINE)
_MARKS = {
    "REST": _FIELDS,
    "GOOGLE": re.compile(r":[^\S\n]*$", re.MULTILINE),
    "NUMPYDOC": re.compile(r"^[^\S\n]*(--|\.\. )", re.MULTILINE),
    "EPYDOC": re.compile(r"^[^\S\n]*@", re.MULTILINE),
}
"""Without which a text is in none of these forms: each takes long to look for its own."""


@dataclass(frozen=True)
class Doc:
    """What a docstring says.

    Args:
        description: Its first paragraph, on one line.
        parameters: Words for each parameter, by name.
        returns: Words for what is given.
        examples: The lines behind `>>>` of its first example.
    """

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    returns: str = ""
    examples: str = ""


def read_doc(text: str | None) -> Doc:
    r"""Read a docstring in Google's, NumPy's, Sphinx's or Epydoc's form, or in none of them.

    Example:
        >>> read_doc("Look up a price.\n\nArgs:\n    product: Its name.").parameters
        {'product': 'Its name.'}
    """
    if not text or not text.strip():
        return Doc()
    try:
        parsed = _parse_best_style(text)
    except (docstring_parser.ParseError, LookupError, ValueError):  # it looks like one of the forms, and isn't
        return Doc(_on_one_line(text.strip().split("\n\n")[0]))
    names = (
        (name.strip(), param) for param in parsed.params for name in param.arg_name.split(",")
    )  # NumPy: `x, y : float`
    texts = {name: _on_one_line(one.description or "") for name, one in names}
    description = (parsed.description or "").strip().split("\n\n")[0]
    return Doc(
        _on_one_line(description),
        {name: text for name, text in texts.items() if text},
        _returns_text(parsed),
        _example_calls(text),
    )


def _parse_best_style(text: str) -> docstring_parser.Docstring:
    """Return what the form finds that finds most, as the library does, which looks for each of them."""
    best: docstring_parser.Docstring | None = None
    for style, mark in _MARKS.items():
        if mark.search(text):
            with contextlib.suppress(docstring_parser.ParseError):
                found = docstring_parser.parse(text, docstring_parser.DocstringStyle[style])
                if best is None or len(found.meta) > len(best.meta):
                    best = found
    if not (best and best.meta) and not _FIELDS.search(text):
        return docstring_parser.parse(text, docstring_parser.DocstringStyle.REST)  # the first of them
    return best or docstring_parser.parse(text)


def _returns_text(parsed: docstring_parser.Docstring) -> str:
    found = parsed.returns
    if found is None:
        return ""
    text = _on_one_line(found.description or "")
    start = (found.type_name or "").strip()
    return f"{start}: {text}" if " " in start and "[" not in start else text  # prose with a colon is no type


def _example_calls(text: str) -> str:
    lines: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith(_PROMPTS[bool(lines)]) or (lines and line.startswith(_PROMPTS)):
            lines.append(line[len(_PROMPTS[0]) :])
        elif lines and not line:
            break
    return "\n".join(lines)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
