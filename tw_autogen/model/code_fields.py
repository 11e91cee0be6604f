"""The field with Python in an object that is not JSON: its code up to the real end, or an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice

from tw_autogen.errors import Unreadable
from tw_autogen.python_source import PYTHON_LANGUAGE, is_python

CODE_FIELDS = ("code", "python_code", "python", "source_code", "script")
"""What models call the field that holds Python."""
_UNSURE = (
    "it is not certain where the code in the field `code` ends: leave `code` null and write the code after the object, "
    "in one ```python block, or escape quotes and line breaks in it"
)
_NAMES = "|".join(CODE_FIELDS)
_FIELD = re.compile(
    rf"""["'](?:{_NAMES})["'][ \t]*:\s*(?P<mark>```(?:{PYTHON_LANGUAGE})?[ \t]*\n|\"{{3}}|'{{3}}|["'`]|(?=\S))"""
)
_PLAIN = re.compile(r"(?:null|None|true|false|-?\d[\d.eE+-]*)\s*(?=[,}]|\Z)")
_FOLLOWS = re.compile(r"""\s*(?:,\s*["']\w{1,40}["']\s*:|,\s*\}|\}|,\s*\Z|\Z)""")
"""What stands behind the last mark of a field."""
_ESCAPE = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|(["'\\/bfnrt]))""")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_TRIPLE_OR_QUOTE = re.compile(r""":\s*(?P<triple>\"{3}|'{3})|\\.|\"""", re.S)
_COMMA = re.compile(r",\s*\}")
_MAX_ENDS = 30
_MAX_BLANKS = 100
"""Between two fields of an object."""
_LONGEST_CHARS = 50_000
_DECODER = json.JSONDecoder(strict=False)


def mend_code_field(text: str, begin: int) -> str:
    r"""Return a text in which the code of an object that is not JSON stands as a JSON string.

    Quotes that are not escaped, triple quotes, backticks, and a fenced block in the place of a string are read. An end
    of the code counts if the code before it is Python, and the object without it is JSON, at most with a comma too many
    or without its last brace. A string whose quotes are escaped counts by itself if it is Python. Other values in
    triple quotes become JSON strings, too.

    Args:
        text: The reply.
        begin: Where the object begins.

    Returns:
        The text; without a field for code, or with one without code, only triple quotes are changed.

    Raises:
        Unreadable: there is no such end, or more than one, so that code might be cut off.

    Example:
        >>> print(mend_code_field('{"code": "print("a")", "then": null}', 0))
        {"code": "print(\"a\")", "then": null}
    """
    found = next((match for match in _FIELD.finditer(text, begin) if _is_key(text, match.start())), None)
    if found is None:
        return f"{text[:begin]}{_without_triple_quotes(text[begin:])}"
    text = f"{text[:begin]}{(head := _without_triple_quotes(text[begin : found.start()]))}{text[found.start() :]}"
    found = _FIELD.match(text, begin + len(head)) or found
    if _PLAIN.match(text, found.end()):
        return f"{text[: found.end()]}{_without_triple_quotes(text[found.end() :])}"
    position, mark = found.start("mark"), found["mark"].strip()
    if not mark:  # a list or an object of lines, or code without any mark
        return _with_lines(text, position)
    ends = [] if len(text) - begin > _LONGEST_CHARS else list(_possible_ends(text, begin, found))
    python = {code: end for end, code in reversed(ends) if is_python(code)}
    if not python and mark in ('"', "'") and (string_end := _string_end(text, position, mark)):
        code = _unescape(text[position + 1 : string_end - 1])
        if is_python(code) or any(end == string_end for end, _ in ends):  # a mistake in the code is for its worker
            python = {code: string_end}
    if len(python) != 1:
        raise Unreadable(_UNSURE)
    code, end = python.popitem()
    return f"{text[:position]}{json.dumps(code, ensure_ascii=False)}{_without_triple_quotes(text[end:])}"


def _without_triple_quotes(text: str) -> str:
    """Return a part of an object with JSON strings in place of values in triple quotes, as Python has them."""
    parts, position, quoted, copied = list[str](), 0, False, 0
    while match := _TRIPLE_OR_QUOTE.search(text, position):
        mark = match["triple"]
        if not mark:
            quoted ^= match[0] == '"'
            position = match.end()
        elif quoted:
            position = match.start("triple")
        elif (end := next(_closing_marks(text, mark, match.end()), -1)) < 0:
            break
        else:
            value = json.dumps(_unescape(text[match.end() : end]), ensure_ascii=False)
            parts.append(f"{text[copied : match.start('triple')]}{value}")
            position = copied = end + len(mark)
    return "".join([*parts, text[copied:]])


def _is_key(text: str, position: int) -> bool:
    """Return whether a name stands where an object has one, and not in its words: `"message": "Set "code": to 5"`."""
    return text[max(0, position - _MAX_BLANKS) : position].rstrip()[-1:] in ("{", ",")


def _with_lines(text: str, position: int) -> str:
    try:
        _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        raise Unreadable(_UNSURE) from None
    return text


def _possible_ends(text: str, begin: int, match: re.Match[str]) -> Iterator[tuple[int, str]]:
    """Yield where the code may end, behind its closing mark, and the code up to there."""
    mark = match["mark"].strip()
    mark = "```" if mark.startswith("```") else mark
    head = f'{text[begin : match.start("mark")]}""'
    for last in islice(_closing_marks(text, mark, match.end()), _MAX_ENDS):
        end = last + len(mark)
        if _is_object(f"{head}{_without_triple_quotes(text[end:])}"):
            code = text[match.end() : last].rstrip()
            yield end, _unescape_if_needed(code, verbatim=len(mark) > 1 or mark == "`" or "\n" in code)


def _closing_marks(text: str, mark: str, position: int) -> Iterator[int]:
    """Yield where a mark stands from some place on, behind which the field may end."""
    while (position := text.find(mark, position)) >= 0:
        if _FOLLOWS.match(text, position + len(mark)):
            yield position
        position += 1


def _string_end(text: str, begin: int, mark: str) -> int:
    """Return where a string ends whose quotes are escaped; 0: it doesn't, or the field doesn't end there."""
    position = begin
    while (position := text.find(mark, position + 1)) >= 0:
        first = position
        while text[first - 1] == "\\":
            first -= 1
        if (position - first) % 2 == 0:
            return position + 1 if _FOLLOWS.match(text, position + 1) else 0
    return 0


def _is_object(text: str) -> bool:
    for one in (text, _COMMA.sub("}", text, count=1), f"{text.rstrip().rstrip(',')}}}"):
        try:
            _DECODER.raw_decode(one)
        except (ValueError, RecursionError):
            continue
        return True
    return False


def _unescape_if_needed(code: str, *, verbatim: bool) -> str:
    """Return code as it was meant: as it stands, or with the escapes of a JSON string taken off."""
    return code if verbatim and is_python(code) else _unescape(code)


def _unescape(code: str) -> str:
    def one(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])

    return _ESCAPE.sub(one, code)
