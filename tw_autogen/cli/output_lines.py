"""Cutting text to lines: the head and tail of what a cell writes piece by piece, and of long texts."""

from __future__ import annotations

import re
from collections import deque

from tw_autogen.cli.terminal import clean

_NEWEST_CHARS = 4000
"""Of a line that has not ended: it may grow by single characters, and is asked for each time."""
_GAP = re.compile(r"\S {2,}\S")


class OutputLines:
    r"""What a cell writes, piece by piece, as whole lines: its head at once, its tail when the cell has ended.

    Args:
        head: How many lines are given as they come.
        tail: How many of the last lines are given at the end; those in between are counted. A single one is given.

    Example:
        >>> lines = OutputLines(head=2, tail=1)
        >>> lines.feed("stdout", "a\nb"), lines.feed("stdout", "c\nd\ne")
        (['a'], ['bc'])
        >>> lines.feed("stdout", "f\ng\n"), lines.rest(), lines.hidden_line_count
        ([], [('stdout', '(2 lines are not shown)'), ('stdout', 'g')], 2)
    """

    def __init__(self, head: int, tail: int) -> None:
        self.fed = False
        self._head = head
        self._tail: deque[tuple[str, str]] = deque(maxlen=tail + 1)
        self._open: dict[str, list[str]] = {}
        self._newest: dict[str, str] = {}
        self._count = 0

    def feed(self, stream: str, text: str) -> list[str]:
        """Take a piece; return those lines of the head that it completed.

        Args:
            stream: "stdout" or "stderr"; each has its own unfinished line.
            text: The piece, which may end within a line.
        """
        self.fed = self.fed or bool(text)
        *whole, rest = text.split("\n")
        if whole:
            whole[0] = "".join((*self._open.pop(stream, ()), whole[0]))
            self._newest[stream] = ""
        self._open.setdefault(stream, []).append(rest)
        self._newest[stream] = (self._newest.get(stream, "") + rest)[-_NEWEST_CHARS:]
        return self._take_head_lines(stream, whole)

    def unfinished(self, stream: str) -> str:
        """Return the end of the line that has not ended yet; of a progress bar that is its newest state."""
        return self._newest.get(stream, "").rstrip("\r").rsplit("\r", 1)[-1]

    def rest(self) -> list[tuple[str, str]]:
        """Return, by stream, the lines that never ended, how many lines are not shown, and the tail."""
        left = {stream: "".join(pieces) for stream, pieces in self._open.items()}
        self._open, self._newest = {}, {}
        shown = [
            (stream, line) for stream, text in left.items() if text for line in self._take_head_lines(stream, [text])
        ]
        tail = [(stream, clean(line)) for stream, line in self._tail]
        if self.hidden_line_count:
            tail[0] = ("stdout", f"({self.hidden_line_count} lines are not shown)")
        return [*shown, *tail]

    @property
    def hidden_line_count(self) -> int:
        """How many lines are in neither head nor tail."""
        left = self._count - self._head - len(self._tail)
        return left + 1 if left > 0 else 0

    def _take_head_lines(self, stream: str, lines: list[str]) -> list[str]:
        room = max(0, self._head - self._count)
        self._count += len(lines)
        self._tail.extend((stream, line) for line in lines[room:])
        return [clean(line) for line in lines[:room]]


def head_and_tail(text: str, head: int, tail: int) -> str:
    r"""Return the first and the last lines of a text, and between them how many are not shown.

    Args:
        text: Output as code wrote it; control characters are made visible or dropped, blank lines at both ends go.
        head: How many lines at the beginning.
        tail: How many lines at the end; a text of `head + tail + 1` lines or fewer is returned whole.

    Example:
        >>> head_and_tail("a\nb\nc\nd", head=1, tail=1)
        'a\n(2 lines are not shown)\nd'
    """
    lines = clean(text).strip("\n").splitlines()
    hidden = len(lines) - head - tail
    if hidden <= 1:
        return "\n".join(lines)
    return "\n".join([*lines[:head], f"({hidden} lines are not shown)", *lines[len(lines) - tail :]])


def tail_of(text: str, limit: int) -> str:
    """Return the last lines, as suits a traceback.

    Args:
        text: Output as code wrote it; control characters are made visible or dropped.
        limit: How many lines at the most; at least 1.
    """
    return "\n".join(clean(text).strip("\n").splitlines()[-limit:])


def is_tabular(line: str) -> bool:
    """Return whether a line looks like a row of a table, which is better cut at the edge than wrapped.

    Example:
        >>> is_tabular("0  Berlin   12"), is_tabular("A sentence.  And one more."), is_tabular("plain words")
        (True, False, False)
    """
    return len(_GAP.findall(line)) > 1 or bool(re.match(r"\d+ {2,}\S", line))
