"""Thoughts of a model in its reply: the marks around them, and the reply without them."""

from __future__ import annotations

import json
import re

from tw_autogen.python_source import PYTHON_LANGUAGE

_THOUGHTS = r"think|thinking|thought|thoughts|reasoning"
_EARLY = r"reflection|analysis|scratchpad"
"""Tags that are data as well: they count as the first words of a reply only."""
_CLOSINGS = {
    "<think>": "</think>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<unused94>thought": "<unused95>",
}
"""Of chat templates, asked for by no prompt: Qwen and DeepSeek, Magistral, Seed-OSS, Kimi, OpenThinker, MedGemma."""
_OPENING = "|".join(map(re.escape, _CLOSINGS))
_OPEN_TEMPLATE = re.compile(rf"\A\s*({_OPENING})")
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final[ \t]{0,9}(?:<\|constrain\|>\w{1,20})?<\|message\|>|assistantfinal")
"""Where gpt-oss begins its answer; also as it is left where a server drops special tokens."""
_CHANNELS = ("<|channel|>", "<|start|>", "analysis")
OPENING = rf"(?:<(?:{_THOUGHTS}|{_EARLY})>|{_OPENING}|<\|channel\|>analysis)"
CLOSING = rf"(?:</(?:{_THOUGHTS}|{_EARLY})>|{'|'.join(map(re.escape, _CLOSINGS.values()))}|<\|channel\|>final)"
OPENINGS = (*_CLOSINGS, *(f"<{name}>" for name in f"{_THOUGHTS}|{_EARLY}".split("|")), "<|channel|>analysis")
"""What `OPENING` matches, for a text of which only the beginning is there."""
_EARLY_THOUGHT = re.compile(rf"\A\s*<({_EARLY})>", re.I)
_OPEN_THOUGHT = re.compile(rf"\A\s*(?:<(?:{_THOUGHTS})>|{_OPENING})", re.I)
# The end of a thought whose beginning the server's template swallowed. What follows tells it from the same words in
# a string of code or JSON, where a quote or more text of the line would follow.
_END_OF_THOUGHT = re.compile(rf"</(?:{_THOUGHTS})>[ \t]*(?=[\n{{`]|\Z)", re.I)
_END = "</think>"
OBJECT = re.compile(r"""\{\s*(?:["'“”]|//|/\*|#[ \t])|^[ \t]*\{\s*[A-Za-z_]\w*\s*:""", re.M)
PYTHON_FENCE = re.compile(rf"^[ \t]*```[ \t]*{PYTHON_LANGUAGE}[ \t]*$", re.I | re.M)
CLOSING_FENCE = re.compile(r"^[ \t]*```[ \t]*$", re.M)
_THOUGHT_CODE_OR_OBJECT = re.compile(
    rf"^[ \t]*<(?P<thought>{_THOUGHTS})>|(?P<code>{PYTHON_FENCE.pattern})|{OBJECT.pattern}", re.I | re.M
)
_TAG = re.compile(rf"<(/?)({_THOUGHTS})>", re.I)
_QUOTED_TAG = "</\0"
"""How the end of a tag in code or in an object begins until thoughts are taken out."""
_PYTHON_TAG = re.compile(r"<\|python_tag\|>(?![\"'])")
_LAST_TOKEN = re.compile(r"<\|\w{1,30}\|>\Z")
_LONGEST_TAG = 40
_MAX_QUOTED = 100
"""In how many objects and blocks tags are looked for."""
_DECODER = json.JSONDecoder(strict=False)


def without_thoughts(text: str) -> str:
    r"""Return a reply without the thoughts that a chat template has marked; as it is if it has none, or nothing else.

    Only marks that stand before all else count, and that no prompt asks for: `<analysis>` may be what was wanted.

    Args:
        text: The whole reply.

    Example:
        >>> without_thoughts("<think>6*7.</think>\n\nIt is 42."), without_thoughts("<analysis>a</analysis> b")
        ('It is 42.', '<analysis>a</analysis> b')
    """
    rest = _after_template(text)
    end = text.find(_END) if rest is None else -1
    if end >= 0 and _END_OF_THOUGHT.match(text, end):  # its begin is in the prompt
        before = text[:end]
        quoted = before.lstrip().startswith(("{", "[")) or before.count("```") % 2
        rest = None if quoted else text[end + len(_END) :]
    return rest.lstrip() if rest and rest.strip() else text


def _after_template(text: str) -> str | None:
    """Return what follows the thoughts at the beginning that a chat template has marked; None: there are none."""
    if begun := _OPEN_TEMPLATE.match(text):
        _, closed, rest = text[begun.end() :].partition(_CLOSINGS[begun[1]])
        return rest if closed else None
    if text.lstrip().startswith(_CHANNELS) and (ends := [match.end() for match in _FINAL_CHANNEL.finditer(text)]):
        return _without_tokens(text[ends[-1] :])
    return None


def strip_thoughts(text: str) -> tuple[str, bool]:
    """Take thoughts in tags out; also say whether one stayed open, so that drafts may stand before the reply."""
    text = _without_tokens(text.lstrip("\ufeff").replace("\r\n", "\n"))
    rest = _after_template(text)
    text = _without_whole_thoughts(_without_early_thought(text) if rest is None else rest)
    ends = list(_END_OF_THOUGHT.finditer(text))
    if ends and text[ends[-1].end() :].strip():
        text = text[ends[-1].end() :]
    elif ends:  # all that was said stands in front of it
        text = text[: ends[-1].start()]
    shorter = _OPEN_THOUGHT.sub("", text)
    return shorter.replace(_QUOTED_TAG, "</"), shorter != text


def _without_early_thought(text: str) -> str:
    if begun := _EARLY_THOUGHT.match(text):
        rest = text[begun.end() :].partition(f"</{begun[1]}>")[2]
        return rest if rest.strip() else text
    return text


def _without_tokens(text: str) -> str:
    """Take out the special tokens of a chat template that a server has left before code and at the end."""
    text = _PYTHON_TAG.sub("\n", text, count=1)
    while text.endswith("|>") and (token := _LAST_TOKEN.search(text, max(0, len(text) - _LONGEST_TAG))):
        text = text[: token.start()].rstrip()
    return text


def _without_whole_thoughts(text: str) -> str:
    """Take out thoughts that are opened at the beginning of a line and closed by the same tag; mark other ends of tags.

    Those are ends in a well-formed object, and in a Python block in which the tag is opened.
    """
    kept, position, seen, broken, unclosed = list[str](), 0, 0, 0, set[str]()
    while match := _THOUGHT_CODE_OR_OBJECT.search(text, seen):
        seen = match.end()
        name = (match["thought"] or "").lower()
        if not name and broken < _MAX_QUOTED:
            seen = _end_of_quotation(text, match)
            kept += [
                text[position : match.start()],
                _with_marked_tags(text[match.start() : seen], always=not match["code"]),
            ]
            position, broken = seen, broken + (seen == match.end())
        elif name and name not in unclosed:
            closed = re.compile(rf"</{name}>[ \t]*\n?", re.I).search(text, seen)
            if closed is None:
                unclosed.add(name)  # the rest of the text is searched once for each name
            else:
                kept.append(text[position : match.start()])
                position = seen = closed.end()
    return "".join([*kept, text[position:]])


def _end_of_quotation(text: str, begun: re.Match[str]) -> int:
    """Return where a Python block ends, or an object; the end of the match if it is not well-formed."""
    if begun["code"]:
        closing = CLOSING_FENCE.search(text, begun.end())
        return closing.end() if closing else len(text)
    try:
        return _DECODER.raw_decode(text, text.index("{", begun.start()))[1]
    except (ValueError, RecursionError):
        return begun.end()


def _with_marked_tags(quoted: str, *, always: bool) -> str:
    """Mark the ends of tags; unless `always`, of those that are opened before."""
    opened = set[str]()

    def marked(tag: re.Match[str]) -> str:
        if not tag[1]:
            opened.add(tag[2].lower())
        elif always or tag[2].lower() in opened:
            return f"{_QUOTED_TAG}{tag[2]}>"
        return tag[0]

    return _TAG.sub(marked, quoted)
