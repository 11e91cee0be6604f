"""Tolerant parsing of a model's reply: its JSON object, or its thought and code.

Nothing is made up: if there is no object, `Unreadable` says what is wrong and what is expected, in words for the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from tw_autogen.bounded_json import DEEPEST, too_deep
from tw_autogen.errors import Unreadable
from tw_autogen.lazy_module import LazyModule
from tw_autogen.model.code_fields import CODE_FIELDS, mend_code_field
from tw_autogen.model.fenced_blocks import FencedBlock, split_blocks
from tw_autogen.model.thoughts import CLOSING_FENCE, OBJECT, PYTHON_FENCE, strip_thoughts
from tw_autogen.model.unfenced_code import extend_past_inner_fence, is_output, unfenced, without_prose
from tw_autogen.python_source import PYTHON_LANGUAGE, is_python

if TYPE_CHECKING:
    import json_repair
else:
    json_repair = LazyModule("json_repair")  # half of this package's start-up time, and only sloppy replies need it

WANTED = "reply with one JSON object and nothing else"
"""What errors of this module end with, for the model."""
_TOO_DEEP = f"the JSON object is nested too deep, or broken; {WANTED}, and keep it flat"

_CALL = re.compile(
    r"^[ \t]*<(?P<tag>tool_calls?|function_calls?|code|python|execute)\b[^>\n]*>\s*"
    r"(?P<inside>.*?)(?:</(?P=tag)>|\Z)",
    re.I | re.M | re.S,
)
_PARAMETER = re.compile(r"""(?is)<parameter(?:=|\s+name=["']?)code["']?>\n?(?P<code>.*?)(?:(?P<end></parameter>)|\Z)""")
_CODE_FIELD = re.compile(rf"""["'](?:{"|".join(CODE_FIELDS)})\\*["']\s*:""")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "function", "action_input")
_SPOKEN = ("thought", "thoughts", "reasoning", "explanation", "analysis")
_BARE_FIELDS = re.compile(r"""\A\s*"\w+"\s*:""")
_BEFORE_OBJECT = re.compile(r"(?:^|>|:)\s*\Z", re.M)
"""What stands before an object that is a reply or the arguments of a call; any other may be a dict in code."""
_FENCE = re.compile(r"```|~~~")
_LONGEST_TAG = 40
_MAX_CODE_FIELDS = 3
"""In how many objects of a reply the field with code is looked for."""
_MAX_REJOINED = 20
"""How many Python blocks of a reply may go on behind an inner fence."""
_MAX_REPAIRED = 100
"""How many objects of a reply are repaired: to find that one is not well-formed costs the whole text before it."""
_AS_WRITTEN = {"\b": "\\b", "\f": "\\f", "\t": "\\t", "\r": "\\r", "\n": "\\n"}
_CONTROLS = re.compile(
    r"[\x08\f](?=[A-Za-z])|\t(?=(?:heta|imes|frac|riangle|ilde)\b|ext(?:bf|it|rm)?\{)|\r(?=(?:ho|ight|angle|ceil|floor)\b)"
)
"""What JSON makes of backslashes before `beta`, `frac`, `theta` and `rho`, and no text holds."""
_FORMULA = re.compile(r"\$(?![\d\s])[^$]{1,300}\$")
_IN_FORMULA = re.compile(r"\t(?=au\b)|\n(?=(?:abla|eg|eq|otin|u)\b)")
_DECODER = json.JSONDecoder(strict=False)  # not strict: line breaks inside strings are as good as escaped ones
_READS_PER_CHAR = 40
"""How often json_repair may look at each character of an object: sloppy replies take 3, hostile ones any number."""


_BEHIND = re.compile(
    r"\}[ \t]*\n(?:[^\n`{}\"]{0,200}\n){0,3}(?P<block>[ \t]*```[ \t]*" + PYTHON_LANGUAGE + r"[ \t]*\n.*)",
    re.I | re.S,
)
"""A fenced block behind an object, with few words between them."""


class NoObject(Unreadable):
    """A reply in words, without any JSON object; `words` are these, without thoughts in tags."""

    def __init__(self, words: str) -> None:
        super().__init__(f"there is no JSON object in it; {WANTED}")
        self.words = words


@dataclass(frozen=True)
class CodeReply:
    """A reply of free text with code in it, or without.

    Args:
        thought: What was said around the code; without code it is the answer.
        code: Python, or None for an answer in text.
    """

    thought: str
    code: str | None


def read_object(text: str) -> dict[str, Any]:
    r"""Return the JSON object in a reply.

    Code fences, text around the object, thoughts in tags, a TaskWeaver-style `{"response": {…}}` around it, line breaks
    in strings, single quotes, missing or trailing commas and missing closing braces are all read over. Of several
    objects the first with the most fields counts: what follows is mostly the model talking to itself.

    Args:
        text: The whole reply.

    Raises:
        NoObject: it is words alone.
        Unreadable: it is empty, was cut off inside an object, or the object is nested more than 100 deep.

    Example:
        >>> read_object('Sure!\n```json\n{"send_to": "User", "message": "It is 42.",}\n```')
        {'send_to': 'User', 'message': 'It is 42.'}
    """
    return _read_object(text, wrapped=True)


def _read_object(text: str, *, wrapped: bool) -> dict[str, Any]:
    reply, drafts = strip_thoughts(text)
    if not reply.strip():
        raise Unreadable(
            f"the reply holds nothing but thoughts; {WANTED}" if text.strip() else f"it is empty; {WANTED}"
        )
    if _BARE_FIELDS.match(reply):
        reply = f"{{{reply.strip().rstrip(',')}}}"
    if reply.lstrip().startswith('"{'):
        reply = _decode_json_string(reply)
    elif reply.lstrip().startswith('{\\"'):  # an object that was escaped as if it stood in a string
        reply = _decode_json_string(f'"{reply.strip()}"')
    objects = [object_ for object_ in _find_objects(reply, in_code=False) if object_]
    objects = objects or [object_ for object_ in _find_objects(reply, in_code=True) if object_]
    objects = [object_ for object_ in map(_unwrap_response, objects) if object_] if wrapped else objects
    if not objects:
        raise NoObject(reply.strip())
    best = max(reversed(objects) if drafts else objects, key=len)
    if too_deep(best):
        raise Unreadable(_TOO_DEEP)
    return {name: _with_latex(value) if isinstance(value, str) else value for name, value in best.items()}


def _with_latex(text: str) -> str:
    """Return a string in which commands of LaTeX whose backslash was not escaped stand as they were meant."""
    text = _CONTROLS.sub(lambda control: _AS_WRITTEN[control[0]], text)
    return _FORMULA.sub(lambda formula: _IN_FORMULA.sub(lambda control: _AS_WRITTEN[control[0]], formula[0]), text)


def read_code(text: str, *, is_field: bool = False) -> CodeReply:
    r"""Return thought and code of a reply in which the code is a fenced Python block.

    Several Python blocks are one program in pieces: they are joined in order with a blank line between them. Blocks of
    other languages, shell and output among them, are no code and stay in the thought. A block that names no language is
    code if none names Python, unless it holds values or words alone. A missing closing fence is read over, with the
    prose after it; so are closing marks inside a string of the code. A reply without any block is code where it parses
    and does something, up to the prose after it. A reply in TaskWeaver's JSON form (`thought`, `reply_type`,
    `reply_content`) is read as well, and so is a JSON object with a field `code`, alone or as the arguments of a call
    in `<tool_call>` tags.

    Args:
        text: The whole reply.
        is_field: It is a field for code: all of it is code, or its blocks are. A mistake in it is for whoever wrote it;
            without the line that holds the mistake, another program would run.

    Raises:
        Unreadable: it is empty, holds nothing but thoughts, or its code block is empty; a field may be empty.

    Example:
        >>> read_code("I add.\n```python\n1 + 1\n```")
        CodeReply(thought='I add.', code='1 + 1')
        >>> read_code("There is nothing to run.")
        CodeReply(thought='There is nothing to run.', code=None)
        >>> read_code("x = (1\nprint(x)", is_field=True).code
        'x = (1\nprint(x)'
    """
    if is_field:
        found = None if is_python(text) or not _FENCE.search(text) else read_code(text).code
        return CodeReply("", (found or text).strip("\n").rstrip() or None)
    reply, _ = strip_thoughts(text)
    wanted = "write what you think, then the code in one fenced ```python block, or an answer without any block"
    if not reply.strip():
        raise Unreadable(
            f"the reply holds nothing but thoughts; {wanted}" if text.strip() else f"it is empty; {wanted}"
        )
    return _read_json_form(reply) or _read_call(reply) or _read_blocks(reply, wanted)


def breaks_off(text: str) -> bool:
    r"""Return True if a reply that ended at a length limit is the beginning of what it should say.

    It is not, where its first JSON object or a block of code is whole: what was cut is said beside them.

    Args:
        text: The whole reply.

    Example:
        >>> breaks_off("I load.\n```python\ndf = load()"), breaks_off("The mean is"), breaks_off('{"message": "42"} It')
        (True, True, False)
    """
    reply, _ = strip_thoughts(text)
    end = _end_of_object(reply)
    blocks = split_blocks(reply[end:])
    kinds = [block.kind in ("python", "untagged") for block in blocks]
    return kinds[-1] or not (end or any(kinds))


def _end_of_object(text: str) -> int:
    """Return where the first object outside of code ends; 0 if there is none, or it has no end."""
    start, fence = OBJECT.search(text), PYTHON_FENCE.search(text)
    if start is None or (fence and fence.start() < start.start()):
        return 0
    begin = text.index("{", start.start())
    try:
        return _DECODER.raw_decode(text, begin)[1]
    except (ValueError, RecursionError):
        try:
            end = _object_end(text, begin)
        except Unreadable:
            return 0
    return end if text[:end].rstrip().rstrip("`~").rstrip().endswith("}") else 0


def _read_blocks(reply: str, wanted: str) -> CodeReply:
    blocks = _rejoin_blocks(split_blocks(reply))
    if len(blocks) == 1 and (bare := unfenced(reply)):
        return CodeReply("\n".join(part for part in (bare[0], bare[2]) if part), bare[1])
    kind = "python" if any(block.kind == "python" for block in blocks) else "untagged"
    is_code = [block.kind == kind and not (kind == "untagged" and is_output(block.inner)) for block in blocks]
    pieces = [block.inner.strip("\n").rstrip() for block in compress(blocks, is_code)]
    code = "\n\n".join(piece for piece in pieces if piece.strip())
    if pieces and not code:
        raise Unreadable(f"the code block is empty; {wanted}")
    thought = "".join(block.text for block, coded in zip(blocks, is_code, strict=True) if not coded).strip()
    return CodeReply(thought, code or None)


def _rejoin_blocks(blocks: list[FencedBlock], most: int = _MAX_REJOINED) -> list[FencedBlock]:
    """Return blocks of which a Python block that does not parse goes on to later marks, or if open ends before prose.

    Args:
        blocks: Those of a reply, or of the rest of one.
        most: How many may go on; each is looked for in the whole rest.
    """
    if not most:
        return blocks
    for index, block in enumerate(blocks):
        if block.kind != "python":
            continue
        rest = "".join(block.text for block in blocks[index + 1 :])
        closed = index + 1 < len(blocks)
        code = extend_past_inner_fence(block.inner, rest) if closed else without_prose(block.inner.rstrip())
        if closed and code:
            follows = rest[len(code) - len(block.inner.rstrip()) - len("\n```\n") :].lstrip("\n")
            more = split_blocks(follows.removeprefix("```"))
            return [*blocks[:index], FencedBlock("python", block.text, code), *_rejoin_blocks(more, most - 1)]
        if not closed and code != block.inner.rstrip():
            prose = block.inner.rstrip()[len(code) :]
            return [*blocks[:index], FencedBlock("python", block.text, code), FencedBlock("text", prose)]
    return blocks


def _find_objects(text: str, *, in_code: bool) -> Iterator[dict[str, Any]]:
    """Yield the objects in a text in their order: well-formed ones as they are, others repaired, up to 100 of these.

    Args:
        text: The reply.
        in_code: Also those in fenced Python blocks.
    """
    position, mended, repaired, fence = 0, 0, 0, None if in_code else PYTHON_FENCE.search(text)
    while start := OBJECT.search(text, position):
        begin = text.index("{", start.start())
        if fence and fence.start() < position:  # inside the object before
            fence = PYTHON_FENCE.search(text, position)
        if fence and fence.start() < begin:
            closing = CLOSING_FENCE.search(text, fence.end())
            if closing is None:
                return
            position = closing.end()
            continue
        try:
            value, position = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or nested too deep
            repaired += 1
            if repaired > _MAX_REPAIRED:
                return
            if mended < _MAX_CODE_FIELDS and _BEFORE_OBJECT.search(text, max(0, begin - _LONGEST_TAG), begin):
                mended, text = mended + 1, mend_code_field(text, begin)
                fence = None if in_code else PYTHON_FENCE.search(text, begin)
            value, position = _decode_or_repair(text, begin)
        yield _dict_or_empty(value)


def _decode_or_repair(text: str, begin: int) -> tuple[Any, int]:
    """Return the object that begins at a place, repaired where it is not JSON, and where it ends."""
    try:
        return _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        position = _object_end(text, begin)
    value = _repair_object(text[begin:position])
    if not _dict_or_empty(value) and position < (last := text.rfind("}") + 1):  # stray quotes have misled the search
        return _repair_object(text[begin:last]), last
    return value, position


def _object_end(text: str, begin: int) -> int:
    """Find where an object that is not well-formed ends: at its closing brace, or with the text.

    Raises:
        Unreadable: the text stops inside a string or before a value, so that something is lost; or it is nested too
            deep.
    """
    depth, quoted, skip = 0, False, False
    for index in range(begin, len(text)):
        char = text[index]
        if skip:
            skip = False
        elif char == "\\":
            skip = True
        elif char == '"':
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return index + 1
            if depth > DEEPEST:
                raise Unreadable(_TOO_DEEP)
    rest = text.rstrip().rstrip("`~").rstrip()
    if (quoted or rest.endswith((":", ","))) and not rest.endswith("}"):
        raise Unreadable(f"it breaks off inside the JSON object, after {rest[-40:]!r}; {WANTED}, shorter if need be")
    return len(text)


class _Metered(str):
    """A text that counts how much of it is read, since json_repair looks ahead from each quote.

    Raises:
        Unreadable: more is read than `left` allows; by `__getitem__`.
    """

    __slots__ = ("left",)
    left: list[int]

    def __getitem__(self, at: Any) -> str:
        found = super().__getitem__(at)
        self.left[0] -= 1 + len(found) // 16
        if self.left[0] < 0:
            raise Unreadable(f"the JSON object is too broken to be read; {WANTED}")
        return _metered_text(found, self.left) if isinstance(at, slice) else found

    def __add__(self, other: str) -> str:
        return _metered_text(super().__add__(other), self.left)


def _metered_text(text: str, left: list[int]) -> str:
    metered = _Metered(text)
    metered.left = left
    return metered


def _repair_object(text: str) -> Any:
    """Mend an object that is not well-formed.

    Raises:
        Unreadable: that takes more than linear work, or it is nested too deep.
    """
    try:
        return json_repair.loads(_metered_text(text, [_READS_PER_CHAR * len(text) + 1000]), skip_json_loads=True)
    except Unreadable:
        raise
    except (ValueError, RecursionError, IndexError):
        raise Unreadable(_TOO_DEEP) from None


def _dict_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _decode_json_string(text: str) -> str:
    """Decode an object that was sent as one JSON string."""
    try:
        return str(_DECODER.raw_decode(text.lstrip())[0])
    except ValueError:
        return text


def _unwrap_response(value: Mapping[str, Any]) -> dict[str, Any]:
    """Take TaskWeaver's `{"response": {…}}` off, as well when the inner object came as a string."""
    inner = value.get("response")
    if len(value) == 1 and isinstance(inner, str) and OBJECT.match(inner.strip()):
        return _read_object(inner, wrapped=False)
    return dict(inner) if len(value) == 1 and isinstance(inner, dict) else dict(value)


def _read_json_form(text: str) -> CodeReply | None:
    """Read TaskWeaver's JSON form of a reply; None if it isn't one."""
    bare = re.sub(r"\A\s*(?:```|~~~)\w*\s*", "", text).lstrip()
    if not bare.startswith(("{", "[")) or "reply_content" not in bare:
        return None
    reply = read_object(text)
    content = reply.get("reply_content")
    if content is None:
        return None
    words = "\n".join(map(str, content)) if isinstance(content, list) else str(content)
    if str(reply.get("reply_type") or "python").lower() not in ("python", "code"):
        if behind := _BEHIND.search(text):
            return CodeReply(words.strip(), _read_blocks(behind["block"], "write the code there").code)
        return CodeReply(words.strip() or str(reply.get("thought") or ""), None)
    code = read_code(words, is_field=True).code
    if not code:
        raise Unreadable("`reply_content` is empty; write the code there, or an answer with `reply_type` text")
    return CodeReply(str(reply.get("thought") or "").strip(), code)


def _read_call(reply: str) -> CodeReply | None:
    """Read code that a reply holds as a field of a JSON object, or inside the tags of a call; None if there is none."""
    call = _CALL.search(reply)
    around = f"{reply[: call.start()]}\n{reply[call.end() :]}".strip() if call else ""
    inside = call["inside"].rstrip() if call else reply
    if any(block.kind == "python" for block in split_blocks(reply[: call.start()] if call else reply)):
        return None
    if (parameter := _PARAMETER.search(inside)) and parameter["end"]:
        return CodeReply(around, parameter["code"].strip("\n").rstrip())
    if _CODE_FIELD.search(inside):
        try:
            fields = read_object(inside)
        except Unreadable:
            if inside.lstrip().startswith("{"):
                raise
            return None
        if code := _code_field(fields, sure=call is not None):
            spoken = [str(fields[name]).strip() for name in _SPOKEN if fields.get(name)]
            return CodeReply("\n".join(text for text in (around, *spoken) if text), code)
    found = _read_blocks(inside, "write the code there").code if call and inside else None
    return CodeReply(around, found) if found else None


def _code_field(fields: Mapping[str, Any], *, sure: bool) -> str:
    """Return the code that stands in an object, or in the arguments of the call that it describes; empty if none does.

    Args:
        fields: The object.
        sure: The object is a call. Else a field `code` must do something, or stand beside a thought: `{"code": "JP"}`
            is data.
    """
    sure = sure or any(name in fields for name in _SPOKEN)
    for name in CODE_FIELDS:
        lines = fields.get(name)
        text = "\n".join(map(str, lines)) if isinstance(lines, list) else lines
        if isinstance(text, str) and text.strip() and (sure or _read_blocks(text, "write the code there").code):
            return read_code(text, is_field=True).code or ""
    for name in _ARGUMENTS:
        inner = fields.get(name)
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            inner = read_object(inner)
        if isinstance(inner, dict) and (code := _code_field(inner, sure=sure or "name" in fields)):
            return code
    return ""
