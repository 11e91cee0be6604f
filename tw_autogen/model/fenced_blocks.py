"""Fenced Markdown blocks, as models write them: opening and closing lines, and the language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tw_autogen.python_source import PYTHON_LANGUAGE

Kind = Literal["text", "python", "untagged", "other"]

_PYTHON = re.compile(PYTHON_LANGUAGE, re.I)
_TILDES = re.compile(r"~{3,}")
_MIN_MARKS = 3
_ONE_LINE = re.compile(rf"^\s*```[ \t]*{PYTHON_LANGUAGE}[ \t](?P<code>[^`]+)```\s*$", re.I)


@dataclass(frozen=True)
class Fence:
    """An open block: its opening marks, its indentation, and its language."""

    marks: str
    indent: int
    kind: Kind

    def closed_by(self, line: str) -> str | None:
        """Return the text before the closing marks, or None if the line doesn't close the block.

        Marks of the same sort, at least as many, alone on their line close a block, as in CommonMark; and, as hurried
        models write it, ``` at the end of the last line of code.
        """
        bare = line.strip()
        if len(bare) >= len(self.marks) and set(bare) == {self.marks[0]}:
            return ""
        if self.marks == "```" and bare.endswith("```") and bare.count("`") == 3:
            return line.rstrip()[:-3]
        return None

    def dedented(self, line: str) -> str:
        """Return a line without the indentation of the opening marks."""
        lead = len(line) - len(line.lstrip(" "))
        return line[min(lead, self.indent) :]


def opening(line: str) -> tuple[str, Fence] | None:
    """Return the words before the fence that a line opens, and the fence; None if it opens none.

    After words (`Here it is: ```python`) a fence must name its language, or it is taken for inline code.
    """
    last = line.rfind("`") + 1  # no backtick stands behind a fence
    before = line[:last].rstrip("`")
    marks = line[len(before) : last]
    if len(marks) < _MIN_MARKS:
        tildes = _TILDES.search(line, last)
        if tildes is None:
            return None
        before, marks = line[: tildes.start()], tildes[0]
    info = line[len(before) + len(marks) :].strip()
    kind = _kind(info)
    if before.strip() and (kind in ("other", "untagged") or marks[0] == "~"):
        return None
    indent = 0 if before.strip() else len(before)
    return before if before.strip() else "", Fence(marks, indent, kind)


def one_line_code(line: str) -> str | None:
    """Return the code of a whole block on one line, ` ```python 1 + 1``` `."""
    match = _ONE_LINE.match(line)
    return match["code"].strip() if match else None


@dataclass
class FencedBlock:
    """A run of lines of one kind: `text` as it was written, fences included, and the `inner` lines."""

    kind: Kind
    text: str = ""
    inner: str = ""


def split_blocks(text: str) -> list[FencedBlock]:
    """Split a reply into text and fenced blocks, in order; a block that is never closed ends with the reply."""
    blocks = [FencedBlock("text")]
    fence: Fence | None = None
    for line in re.split(r"(?<=\n)", text):
        if fence is None:
            code, opened = one_line_code(line), opening(line.rstrip("\r\n"))
            if code is not None:
                blocks += [FencedBlock("python", line, code), FencedBlock("text")]
            elif opened:
                before, fence = opened
                blocks[-1].text += f"{before}\n" if before else ""
                blocks.append(FencedBlock(fence.kind, line[len(before) :]))
            else:
                blocks[-1].text += line
            continue
        blocks[-1].text += line
        last = fence.closed_by(line)
        if last is None:
            blocks[-1].inner += fence.dedented(line)
        else:
            blocks[-1].inner += fence.dedented(last)
            blocks.append(FencedBlock("text"))
            fence = None
    return blocks


def _kind(info: str) -> Kind:
    language = re.split(r"[\s,:;{]", info.strip("{}.").lower(), maxsplit=1)[0]
    if not info:
        return "untagged"
    return "python" if _PYTHON.fullmatch(language) else "other"
