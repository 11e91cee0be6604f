"""What a kernel answers that was asked about files, checked: code in it can have made that answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tw_autogen.session.file_ranking import FileTerms

_SAID_CHARS, _LINES_CHARS, JOINS_CHARS = 1000, 25_000, 10_000
"""Of a kernel's answer: one text of it, all lines that it says of one file or folder, all about columns that join."""
_MAX_NAMES, _MAX_FAMILIES, _MAX_SPANS, _ABOUT_CHARS = 2000, 1000, 50, 2000
"""Of a kernel's answer: columns of a file, and kinds of files of a folder; of these spans of years, and each text."""
_LAST_YEAR, _MAX_FILES = 9999, 10**9


def read_description(plain: Any, name: str) -> dict[str, Any]:
    """Return what a kernel says of a file, in which nothing is of another kind or size than it should be.

    Args:
        plain: An entry of `files` as `FileDescriber.describe_files` returns it; code in the kernel can have made it.
        name: The file's.

    Raises:
        ValueError: it is no such entry.
    """
    texts = {key: _text_field(plain, key) for key in ("headline", "problem", "size")}
    lines = {key: lines_of(plain, key, _LINES_CHARS) for key in ("lines", "whole")}
    columns = [_text_of(one, "columns") for one in list_of(plain, "columns")[:_MAX_NAMES]]
    return {**texts, **lines, "columns": columns, "late": plain.get("late") is True, "name": name}


def read_listing(plain: Any) -> tuple[list[str], list[FileTerms], str]:
    """Return lines, what files of each kind are found by, and the problem: as `read_description`.

    Args:
        plain: What `FileDescriber.list_files` returns.
    """
    found = []
    for one in list_of(plain, "files")[:_MAX_FAMILIES]:
        if not (isinstance(one, list | tuple) and len(one) == 3 and _is_number(one[1], _MAX_FILES)):
            raise ValueError("files are triples of a name, a number and what they are found by")
        name, count, about = one
        names, heads, values = (_text_field(about, key, chars=_ABOUT_CHARS) for key in ("names", "heads", "values"))
        years = tuple(map(_read_year_span, list_of(about, "years")[:_MAX_SPANS]))
        found.append(FileTerms(_text_of(name, "files", chars=_LINES_CHARS), count, names, heads, values, years))
    return lines_of(plain, "lines", _LINES_CHARS), found, _text_field(plain, "problem")


def _read_year_span(plain: Any) -> tuple[int, int]:
    if not (isinstance(plain, list | tuple) and len(plain) == 2 and all(_is_number(one, _LAST_YEAR) for one in plain)):
        raise ValueError("years are pairs of numbers")
    return plain[0], plain[1]


def _is_number(plain: Any, most: int) -> bool:
    """Return whether it is an integer up to `most`: larger ones can't be counted with."""
    return isinstance(plain, int) and abs(plain) <= most


def _text_field(plain: Any, key: str, *, chars: int = _SAID_CHARS) -> str:
    return _text_of(plain.get(key, "") if isinstance(plain, Mapping) else None, key, chars=chars)


def _text_of(value: Any, key: str, *, chars: int = _SAID_CHARS) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected a text, got {type(value).__name__}")
    return value[:chars]


def list_of(plain: Any, key: str) -> Sequence[Any]:
    """Return the list that stands under a key.

    Args:
        plain: An answer, or a part of it.
        key: Names it.

    Raises:
        ValueError: there is none.
    """
    found = plain.get(key, ()) if isinstance(plain, Mapping) else None
    if not isinstance(found, list | tuple):
        raise ValueError(f"{key}: expected a list, got {type(found).__name__}")
    return found


def lines_of(plain: Any, key: str, chars: int) -> list[str]:
    """Return the first lines of a list that have so many characters together.

    Args:
        plain: An answer, or a part of it.
        key: Names the list.
        chars: How many.

    Raises:
        ValueError: there is no such list, or something else in it.
    """
    lines = []
    for line in list_of(plain, key):
        if chars <= 0:
            break
        lines.append(_text_of(line, key, chars=chars))
        chars -= len(lines[-1]) + 1
    return lines
