"""Turns an exception into the text that the model reads: its own code's lines, the exception, no paths."""

from __future__ import annotations

import contextlib
import os
import re
import site
import sys
import sysconfig
import traceback
from collections import OrderedDict
from collections.abc import Callable

from .output import clip

_CELL = re.compile(r"<cell (\d+)>$")
_MOST_CELLS = 1000
_MOST_FRAMES = 20
_ERROR_CHARS = 8000


class Cells:
    """Remembers the code of cells as it was written, so that a traceback can quote it.

    Args:
        forget: Told the number of each cell that is forgotten.
    """

    def __init__(self, forget: Callable[[int], object]) -> None:
        self._forget = forget
        self._lines: OrderedDict[int, tuple[list[str], int]] = OrderedDict()

    def add(self, number: int, code: str) -> None:
        """Remember a cell; the oldest is forgotten."""
        lines = code.splitlines()
        blank = next((place for place, line in enumerate(lines) if line.strip()), 0)
        self._lines[number] = (lines, blank)  # IPython drops leading blank lines before it counts
        while len(self._lines) > _MOST_CELLS:
            self._forget(self._lines.popitem(last=False)[0])

    def find(self, file_name: str, line: int) -> tuple[int, int, str] | None:
        """Give cell number, line as written and its text; None if the file is no cell."""
        match = _CELL.match(file_name)
        if match is None:
            return None
        number = int(match[1])
        lines, blank = self._lines.get(number, ([], 0))
        line += blank
        return number, line, lines[line - 1].strip() if 0 < line <= len(lines) else ""


def trace(error: BaseException, cells: Cells, plugins: dict[str, str]) -> str:
    """Give the frames of cells and plugins, innermost last, and the exception's own line.

    Args:
        error: With its traceback.
        cells: The code that was run.
        plugins: File name of each plugin's source, and the plugin's name.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines = [line for frame in frames if (line := _frame(frame, cells, plugins))]
    if len(lines) > _MOST_FRAMES:
        half = _MOST_FRAMES // 2
        lines = [*lines[:half], f"  [... {len(lines) - 2 * half} more ...]", *lines[-half:]]
    text = "\n".join([*(["Traceback (most recent call last):"] if lines else []), *lines, _last(error, cells)])
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and cause is not error and str(cause) != str(error):
        text = f"{_last(cause, cells)}\n\nThe error above led to this one:\n\n{text}"
    return clip(without_paths(text), _ERROR_CHARS)


def without_paths(text: str) -> str:
    """Shorten the paths of this machine to what is below the working folder, or to the package."""
    for start in _starts():
        text = text.replace(start, "")
    return text


def short_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Word a warning in one line; put in the place of `warnings.formatwarning`."""
    where = "" if _CELL.match(filename) is None else f"line {lineno}: "
    return f"{where}{category.__name__}: {without_paths(str(message))}\n"


def _frame(frame: traceback.FrameSummary, cells: Cells, plugins: dict[str, str]) -> str:
    line = frame.lineno or 0
    function = "" if frame.name == "<module>" else f", in {frame.name}"
    found = cells.find(frame.filename, line)
    if found is not None:
        number, line, text = found
        return f"  cell {number}, line {line}{function}\n    {text}"
    if frame.filename in plugins:
        return f"  plugin {plugins[frame.filename]}, line {line}{function}\n    {frame.line or ''}"
    return ""


def _last(error: BaseException, cells: Cells) -> str:
    try:
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            found = cells.find(error.filename, error.lineno)
            if found is not None:
                number, line, text = found
                kind = type(error).__name__.replace(
                    "_IncompleteInputError", "SyntaxError"
                )  # a name of Python 3.13's own
                return f"  cell {number}, line {line}\n    {text}\n{kind}: {error.msg}"
        return "".join(traceback.format_exception_only(type(error), error)).strip()
    except Exception:  # noqa: BLE001 - the exception is foreign code, and so is its `__str__`
        return f"{type(error).__name__}: (its text could not be made)"


def _starts() -> list[str]:
    """Give the folders that a reader need not see, longest first."""
    known = {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, os.path.expanduser("~")}
    known.update(site.getsitepackages() if hasattr(site, "getsitepackages") else [])
    with contextlib.suppress(OSError):  # the code removed the folder that it is in
        known.add(os.getcwd())
    long = [one for one in known if len(one) > 3]
    return sorted((one.rstrip(os.sep) + os.sep for one in long), key=len, reverse=True)
