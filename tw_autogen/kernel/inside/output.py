"""Keeps text within a limit: its head and its tail stay, a mark says how much is missing between them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Clipped:
    r"""Text that grows without taking more room than its limit.

    Args:
        limit: How many characters are kept; two thirds of them from the head.

    Example:
        >>> text = Clipped(6)
        >>> for piece in ("abc", "defgh", "ij"):
        ...     _ = text.add(piece)
        >>> text.text()
        'abcd\n[... 4 characters left out ...]\nij'
    """

    def __init__(self, limit: int) -> None:
        self._head_room = limit * 2 // 3
        self._tail_room = limit - self._head_room
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._held = 0
        self._lost = 0

    def add(self, text: str) -> str:
        """Take more text; give the part of it that went into the head."""
        first, rest = text[: self._head_room], text[self._head_room :]
        if first:
            self._head.append(first)
            self._head_room -= len(first)
        if rest:
            self._lost += max(0, len(rest) - self._tail_room)
            self._tail.append(rest[-self._tail_room :] if self._tail_room else "")
            self._held += len(self._tail[-1])
            while self._held - len(self._tail[0]) >= self._tail_room and len(self._tail) > 1:
                gone = len(self._tail.popleft())
                self._held -= gone
                self._lost += gone
        return first

    def tail(self) -> str:
        """Give what follows the head: the mark, where something is missing, and the tail."""
        tail = "".join(self._tail)
        over = max(0, len(tail) - self._tail_room)
        lost = self._lost + over
        return f"\n[... {lost} characters left out ...]\n{tail[over:]}" if lost else tail

    def text(self) -> str:
        """Give all that was kept."""
        return "".join(self._head) + self.tail()


def clip(text: str, limit: int) -> str:
    """Cut one text to a limit."""
    kept = Clipped(limit)
    kept.add(text)
    return kept.text()


class LimitedStream:
    """Stands before a stream's `write`: one cell's head passes at once, the tail when the cell ends.

    So 100 MB of prints neither cross the wire nor fill anybody's memory.
    """

    def __init__(self, stream: Any, limit: int) -> None:
        self._write: Callable[[str], int | None] = stream.write
        self._flush: Callable[[], None] = stream.flush
        self._dirty = False
        self._limit = limit
        self._kept = Clipped(limit)
        self._lock = threading.RLock()  # a signal handler that prints may come in between
        stream.write = self.write
        stream.flush = self.flush
        stream.close = _stay_open

    def write(self, text: str) -> int:
        """Take text as a stream does; give its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair can't be sent
        with self._lock:
            head = self._kept.add(text)
        if head:
            self._dirty = True
            self._write(head)
        return len(text)

    def flush(self) -> None:
        """Send what was written, if anything was: the stream's own flush waits for another thread each time."""
        if self._dirty:
            self._dirty = False
            self._flush()

    def end(self) -> None:
        """Write the tail and begin anew."""
        with self._lock:
            tail = self._kept.tail()
            self._kept = Clipped(self._limit)
        if tail:
            self._dirty = True
            self._write(tail)


def _stay_open() -> None:
    """Take the place of a stream's `close`: the next cell prints too."""
