"""Fields of a reply while it still grows, for live display; the whole reply is read by `read_object`, `read_code`."""

from __future__ import annotations

import bisect
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tw_autogen import bounded_json
from tw_autogen.lazy_module import LazyModule
from tw_autogen.model.fenced_blocks import Fence, one_line_code, opening
from tw_autogen.model.thoughts import CLOSING, OPENING, OPENINGS

if TYPE_CHECKING:
    import pydantic_core
else:
    pydantic_core = LazyModule("pydantic_core")  # a reply in pieces needs the partial mode of its parser

Grown = list[tuple[str, str]]
"""Fields in the order in which they grew, each with its new text."""

_OBJECT_OR_THOUGHT = re.compile(rf'(?P<object>\{{\s*")|(?P<end>{CLOSING})|{OPENING}', re.I)
_THOUGHT_BEGINS = re.compile(rf"\s*{OPENING}", re.I)
_THOUGHT_ENDS = re.compile(CLOSING, re.I)
_MAX_CHARS_PARSED = 8_000_000
"""Up to this sum of their lengths, all states of a reply are parsed; beyond, only each that is an eighth longer."""
_LONG_LINE = 20_000
"""Beyond so many characters a line of code is not looked at again with each piece, but when it ends."""
_STRING = re.compile(r'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)', re.S)
_CONTROL = re.compile(r"[\x00-\x1f]")


class FieldStream:
    r"""String fields of a JSON reply as it grows: escapes decoded, TaskWeaver's wrapper and text around it skipped.

    What is no JSON any more ends the stream silently, at the same place however the text was cut. Fields of a reply
    that is long beyond use grow in larger steps, and their last piece may be left to whoever reads the whole.

    Example:
        >>> stream = FieldStream()
        >>> stream.feed('Here: {"message": "two\\nli'), stream.feed('nes", "n": 1}')
        ([('message', 'two\nli')], [('message', 'nes')])
    """

    def __init__(self) -> None:
        self._text = ""
        self._more: list[str] = []  # what came since `_text` was looked at: to join them takes the time of the whole
        self._length = 0
        self._begin = -1
        self._checked = 0
        self._broken = False
        self._parsed_chars = 0
        self._next_length = 0
        self._given: dict[str, str] = {}

    def feed(self, delta: str) -> Grown:
        """Add new text, and return what it adds to which field."""
        if self._broken:
            return []
        self._more.append(delta.encode("utf-8", "replace").decode())  # the parser takes no half of a surrogate pair
        self._length += len(delta)
        if self._parsed_chars > _MAX_CHARS_PARSED and self._length < self._next_length:
            return []
        self._text += "".join(self._more)
        self._more.clear()
        self._parsed_chars += len(self._text)
        self._next_length = len(self._text) * 9 // 8
        if self._begin < 0:
            self._begin = self._find_object()
        if self._begin < 0:
            return []
        clean = _STRING.sub(_escape_controls, self._text[self._begin :])
        fields = self._parse_partial(clean)
        if fields is None:
            self._broken = True
            first = max(self._checked, 1)
            ends = range(first, len(clean))
            good = first + bisect.bisect_left(ends, True, key=lambda end: self._parse_partial(clean[:end]) is None) - 1
            fields = self._parse_partial(clean[:good]) or {}
        self._checked = len(clean)
        return self._new_text(fields)

    def _find_object(self) -> int:
        """Find where the object begins: not within a thought."""
        thinking = False
        for match in _OBJECT_OR_THOUGHT.finditer(self._text):
            if match["object"] is None:
                thinking = not match["end"]
            elif not thinking:
                return match.start()
        return -1

    def _parse_partial(self, text: str) -> dict[str, Any] | None:
        value = _whole(text)
        if value is None:
            try:
                value = pydantic_core.from_json(text, allow_partial="trailing-strings")
            except ValueError:
                return None
        inner = value.get("response")
        return inner if len(value) == 1 and isinstance(inner, dict) else value

    def _new_text(self, fields: dict[str, Any]) -> Grown:
        grown: Grown = []
        for name, value in fields.items():
            before = self._given.get(name, "")
            if isinstance(value, str) and len(value) > len(before) and value.startswith(before):
                self._given[name] = value
                grown.append((name, value[len(before) :]))
        return grown


def _whole(text: str) -> Any:
    """Return an object that has come to its end; None for any other, and where the two parsers may differ."""
    if text.endswith("}") and r"\u" not in text:
        with suppress(ValueError):
            return bounded_json.loads(text)
    return None


class CodeStream:
    r"""`thought` and `reply_content` (the code) of a reply with fenced code as it grows.

    Example:
        >>> stream = CodeStream()
        >>> stream.feed("I add.\n``"), stream.feed("`python\n1 +"), stream.feed(" 1\n```")
        ([('thought', 'I add.\n')], [('reply_content', '1 +')], [('reply_content', ' 1\n')])
    """

    def __init__(self) -> None:
        self._json: FieldStream | None = None
        self._begun = False
        self._fence: Fence | None = None
        self._thinking = False
        self._line = ""  # the line that is not yet whole
        self._more: list[str] = []  # what follows in it, once it is long: a look at it takes the time of a whole line
        self._shown = 0  # how much of it was given already

    def feed(self, delta: str) -> Grown:
        """Add new text, and return what it adds to which field; of a long line not before it ends."""
        if self._json is None and len(self._line) > _LONG_LINE:
            self._more.append(delta)
            if "\n" not in delta:
                return []
            delta = "".join(self._more)
            self._more.clear()
        if not self._begun:
            delta = (self._line + delta).lstrip("\r\n")
            self._line = ""
            self._begun = bool(delta.strip())
            self._json = FieldStream() if delta.lstrip().startswith("{") else None
        if self._json:
            return [(name, text) for name, text in self._json.feed(delta) if name in ("thought", "reply_content")]
        *lines, rest = (self._line + delta).split("\n")
        grown: Grown = []
        for line in lines:
            grown += self._whole(line)
            self._shown = 0
        self._line = rest
        grown += self._certain_part(rest)
        return _merge_neighbours(grown)

    @property
    def _current_field(self) -> str:
        return "reply_content" if self._fence and self._fence.kind in ("python", "untagged") else "thought"

    def _whole(self, line: str) -> Grown:
        """Return what a complete line adds."""
        if self._thinking or self._starts_thought(line):
            self._thinking = not _THOUGHT_ENDS.search(line)
            return []
        if self._fence is None:
            return self._whole_outside(line)
        last = self._fence.closed_by(line)
        if last is None:
            return [(self._current_field, f"{self._unreturned_part(line)}\n")]
        rest = (
            self._unreturned_part(last)
            if self._current_field == "reply_content"
            else f"{self._unreturned_part(line)}\n"
        )
        ends = [(self._current_field, rest)]
        self._fence = None
        return ends

    def _whole_outside(self, line: str) -> Grown:
        code, opened = one_line_code(line), opening(line)
        if code is not None:
            return [("reply_content", f"{code}\n")]
        if opened is None:
            return [("thought", f"{self._unreturned_part(line)}\n")]
        before, self._fence = opened
        if self._current_field == "thought":
            return [("thought", f"{self._unreturned_part(line)}\n")]
        return [("thought", f"{before[self._shown :]}\n")] if before else []

    def _certain_part(self, line: str) -> Grown:
        """Return the certain part of an incomplete line: nothing that may still become a fence or a tag."""
        if self._thinking or not line.strip() or self._may_be_tag(line):
            return []
        end = len(line)
        for marks in ("```", "~~~"):
            if marks in line:
                end = min(end, line.index(marks))
        end = min(end, len(line[:end].rstrip("`~").rstrip()))
        text = self._unreturned_part(line[:end])
        self._shown = max(self._shown, end)
        return [(self._current_field, text)] if text else []

    def _unreturned_part(self, line: str) -> str:
        """Return the part of a line that was not returned yet, without the indentation of its fence."""
        if self._shown or self._fence is None:
            return line[self._shown :]
        return self._fence.dedented(line)

    def _starts_thought(self, line: str) -> bool:
        return self._fence is None and bool(_THOUGHT_BEGINS.match(line))

    def _may_be_tag(self, line: str) -> bool:
        bare = line.strip().lower()
        return (
            self._fence is None
            and not self._shown
            and (self._starts_thought(line) or any(one.lower().startswith(bare) for one in OPENINGS))
        )


def _escape_controls(string: re.Match[str]) -> str:
    """Escape line breaks inside a string, which models write as they are and JSON forbids."""
    return _CONTROL.sub(lambda char: f"\\u{ord(char[0]):04x}", string[0])


def _merge_neighbours(grown: Grown) -> Grown:
    """Join neighbours of one field."""
    merged: Grown = []
    for name, text in grown:
        if merged and merged[-1][0] == name:
            merged[-1] = (name, merged[-1][1] + text)
        elif text:
            merged.append((name, text))
    return merged
