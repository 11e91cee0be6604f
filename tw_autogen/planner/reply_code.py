"""The Python of a reply of the Planner's model: in its field `code`, and beside its object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tw_autogen.errors import Unreadable
from tw_autogen.model import read_code
from tw_autogen.planner.loose_reply import folded
from tw_autogen.python_source import PYTHON_LANGUAGE, does_something, is_python, parsed_cell

_BLOCK = re.compile(rf"^[ \t]{{0,20}}(?:```|~~~)[ \t]{{0,9}}\{{?{PYTHON_LANGUAGE}[^\n`]{{0,80}}$", re.I | re.M)
_FENCE = re.compile(r"[ \t]{0,20}(?:```|~~~)[ \t]{0,9}\n?", re.I)
_OPEN_FENCE = re.compile(r"(?:```|~~~)[ \t]{0,9}(?:json\w{0,2})?\s{0,9}\Z", re.I)
_TEXTS = ("code", "source", "content", "python", "text", "value", "body")
"""The fields of an object in the place of code in which the code may stand."""
_CODE_NAMES = ("code", "python", "pythoncode")
_TALK = re.compile(r"^[ \t]{0,20}(?:From|User|Human|Assistant|Observation)\b", re.M)
"""Where a model goes on with the conversation by itself; code there is no part of its reply."""
_MAX_OBJECTS, _LONGEST_CHARS = 20, 50_000
_DECODER = json.JSONDecoder(strict=False)


def field_text(value: Any) -> str:
    r"""Return the field `code` as text: models send lines, an object that holds it, and line breaks escaped twice.

    Args:
        value: As it was sent.

    Example:
        >>> field_text({"language": "python", "source": "x = 1\\nprint(x)"})
        'x = 1\nprint(x)'
    """
    if isinstance(value, Mapping):
        texts = [value[name] for name in _TEXTS if value.get(name)]
        value = texts[0] if len(texts) == 1 and isinstance(texts[0], str | list) else json.dumps(value)
    text = "\n".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    if "\\n" in text and "\n" not in text.strip() and not _has_statements(text):
        quoted = text if '\\"' in text else text.replace('"', '\\"')
        try:
            decoded = str(json.loads(f'"{quoted}"'))
        except ValueError:
            return text
        return decoded if _has_statements(decoded) else text
    return text


def code_of(field: str, text: str, problems: list[str], *, lenient: bool) -> str:
    """Return the code that a reply sends to a worker; empty if it sends none.

    Args:
        field: The field `code`, as of `field_text`.
        text: The whole reply.
        problems: Takes what is wrong: code of which it is not certain that it is all, or that it is meant.
        lenient: The model was told before: the field counts.
    """
    own = read_code(field, is_field=True).code or ""
    beside = code_beside(text)
    if own and beside and not is_python(own):
        own = ""  # words such as "see below", or a mistake that the block has not
    if own and _is_data(own):
        problems.append("`code` is an object without Python: write the Python as a string, or in one ```python block")
    elif own and beside and not lenient and _without_whitespace(own) != _without_whitespace(beside):
        problems.append(
            "there is Python in `code` and other Python beside the object: send all that is to run in one of them"
        )
    elif not lenient and len(set(map(_without_whitespace, _codes_of_objects(text))) - {""}) > 1:
        problems.append("there are two objects with different `code`: send one object, with one step and all its code")
    return own or beside


def code_beside(text: str) -> str:
    r"""Return the Python that stands beside the object of a reply: in blocks, or behind it without any; else empty.

    Args:
        text: The whole reply.

    Example:
        >>> code_beside('{"message": "add"}\n\nx = 6 * 7\nprint(x)')
        'x = 6 * 7\nprint(x)'
    """
    try:
        if block := _BLOCK.search(text):
            return read_code(text[block.start() :]).code or ""
        first, *others = [*islice(_well_formed_objects(text), _MAX_OBJECTS), None]
        if first is None:
            return ""
        behind = text[first[2] : others[0][1] if others and others[0] else len(text)]
        if _OPEN_FENCE.search(text[max(0, first[1] - 20) : first[1]]):  # what closes the fence around the object
            behind = _FENCE.sub("", behind.lstrip("\n"), count=1)
        code = "" if _TALK.search(behind) or not behind.strip() else read_code(behind).code or ""
    except Unreadable:
        return ""
    return code if is_python(code) and does_something(code) else ""


def unshown_code(message: str, text: str) -> str:
    """Return the Python beside the object of a reply, if its message does not hold it.

    Args:
        message: The field.
        text: The whole reply.
    """
    beside = code_beside(text)
    return "" if _without_whitespace(beside) in _without_whitespace(message) else beside


def _has_statements(code: str) -> bool:
    """Return whether a text is Python and more than a comment."""
    tree = parsed_cell(code)
    return bool(tree and tree.body)


def _is_data(code: str) -> bool:
    try:
        return isinstance(json.loads(code), dict)
    except (ValueError, RecursionError):
        return False


def _well_formed_objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the well-formed objects in a reply, and where each begins and ends."""
    position, tries = text.find("{"), 0
    while position >= 0 and tries < _MAX_OBJECTS and len(text) <= _LONGEST_CHARS:
        tries += 1
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find("{", position + 1)
            continue
        yield value, position, end
        position = text.find("{", end)


def _codes_of_objects(text: str) -> list[str]:
    """Return the code of each object of a reply, up to where the model goes on with the conversation by itself."""
    found, before = list[str](), 0
    for value, begin, end in _well_formed_objects(text):
        if found and _TALK.search(text[before:begin]):
            break
        before = end
        fields = {folded(key): one for key, one in value.items()}
        code = next((fields[name] for name in _CODE_NAMES if isinstance(fields.get(name), str)), "")
        found.append(read_code(code, is_field=True).code or "")
    return found


def _without_whitespace(code: str) -> str:
    return "".join(code.split())
