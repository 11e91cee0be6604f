"""Cutting text to lines: what a cell writes piece by piece, and long words to their head or tail."""

from __future__ import annotations

from tw_autogen.cli.terminal import clean


class OutputLines:
    r"""What a cell writes, piece by piece, as whole lines; beyond a number of lines they are only counted.

    Args:
        limit: How many lines are given.

    Example:
        >>> lines = OutputLines(limit=2)
        >>> lines.feed("stdout", "a\nb"), lines.feed("stdout", "c\nd\ne"), lines.rest()
        (['a'], ['bc'], [('stdout', '(2 more lines)')])
    """

    def __init__(self, limit: int) -> None:
        self.fed = False
        self._limit = limit
        self._partial: dict[str, str] = {}
        self._count = 0

    def feed(self, stream: str, text: str) -> list[str]:
        """Take a piece, give the lines that it made whole."""
        self.fed = self.fed or bool(text)
        *whole, self._partial[stream] = (self._partial.get(stream, "") + text).split("\n")
        return self._within(whole)

    def unfinished(self, stream: str) -> str:
        """Give the line that has not ended yet; of a progress bar that is its newest state."""
        return self._partial.get(stream, "").rstrip("\r").rsplit("\r", 1)[-1]

    def rest(self) -> list[tuple[str, str]]:
        """Give the lines that never ended, by stream, and how many lines were only counted."""
        left = [(stream, line) for stream, text in self._partial.items() if text for line in self._within([text])]
        beyond = self._count - self._limit
        return [*left, ("stdout", _more(beyond))] if beyond > 0 else left

    def _within(self, lines: list[str]) -> list[str]:
        room = max(0, self._limit - self._count)
        self._count += len(lines)
        return [clean(line) for line in lines[:room]]


def head_of(text: str, limit: int) -> str:
    """Give the first lines, and how many there are more."""
    lines = clean(text).strip("\n").splitlines()
    return "\n".join([*lines[:limit], *([_more(len(lines) - limit)] if len(lines) > limit else [])])


def tail_of(text: str, limit: int) -> str:
    """Give the last lines, as befits a traceback."""
    return "\n".join(clean(text).strip("\n").splitlines()[-limit:])


def _more(count: int) -> str:
    return f"({count} more line{'s' * (count != 1)})"
