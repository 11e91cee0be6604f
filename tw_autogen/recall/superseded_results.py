"""`SupersededResults`: results in a history that a later one has made superfluous, with what stays of each."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from functools import partial

_FAILURE_CHARS, _CUT_CHARS = 240, 600
_MENDED = "(What replaced it ran; this is a part of the report.)"
_SEEN = "(It was looked at again further down; this is a part of it.)"


class SupersededResults:
    """Finds failures that a later cell has mended, and cut outputs that a later cell has looked at again.

    Texts in a history stay as they are until `shortener` is called for them, when the history is shortened anyway. A
    report may stand in it several times, as the same failure in two tasks: the oldest ones are those superseded.
    """

    def __init__(self) -> None:
        self._failed: list[str] = []
        self._cut = ("", "")
        self._shorter: dict[str, str] = {}
        self._left: Counter[str] = Counter()

    def begin_task(self) -> None:
        """Note that another task begins: what failed before it is not mended by what it does."""
        self._failed.clear()

    def note(self, report: str, *, code: str, ok: bool, kept_as: str) -> None:
        """Note the next result.

        Args:
            report: As it stands in the history.
            code: What ran, or was to run.
            ok: Whether it ran to its end.
            kept_as: The variable that holds the whole output, of which the report has a part only; empty: it has all.
        """
        if not ok:
            self._failed.append(report)
            return
        for one in self._failed:
            self._note_shorter(one, _FAILURE_CHARS, _MENDED)
        self._failed.clear()
        name, cut = self._cut
        if name and _reads(code, name):
            self._note_shorter(cut, _CUT_CHARS, _SEEN)
            self._cut = ("", "")
        if kept_as:
            self._cut = kept_as, report

    def shortener(self) -> Callable[[str], str]:
        """Return what shortens the texts of a history, to be called for each from the oldest on."""
        return partial(self._shorten, Counter(self._left))

    def drop(self, text: str) -> None:
        """Note that a text, the oldest one, has left the history."""
        self._shorten(self._left, text)

    def forget(self) -> None:
        """Forget the results that are superseded, after they were shortened."""
        self._shorter.clear()
        self._left.clear()

    def _shorten(self, left: Counter[str], text: str) -> str:
        """Return a text in which of each superseded result only a part is left; reduce how many are left."""
        for report, kept in self._shorter.items():
            if count := min(left[report], text.count(report)):
                text = text.replace(report, kept, count)
                left[report] -= count
        return text

    def _note_shorter(self, report: str, limit_chars: int, why: str) -> None:
        tail = limit_chars // 3
        kept = f"{report[: limit_chars - tail]}\n…\n{report[-tail:]}\n{why}"
        if len(kept) < len(report):
            self._shorter[report] = kept
            self._left[report] += 1


def _reads(code: str, name: str) -> bool:
    """Return whether code reads a variable; False for code of other kinds than plain Python.

    Example:
        >>> _reads("print(last_output[:9])", "last_output"), _reads("last_output = 5", "last_output")
        (True, False)
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    loaded = (one for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return any(one.id == name for one in loaded)
