"""Turns an exception into the text that the model reads: its own code's lines, the exception, no paths."""

from __future__ import annotations

import builtins
import contextlib
import linecache
import os
import re
import site
import sys
import sysconfig
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from .output_capture import clip

_CELL = re.compile(r"<cell (\d+)>$")
_MAX_CELLS = 1000
_MAX_FRAMES = 20
_MAX_MEMBERS = 5
_ERROR_CHARS = 8000


def code_lines(code: str) -> list[str]:
    """Return the lines of code as Python counts them: `str.splitlines` ends some at a form feed or U+2028, too."""
    return code.replace("\r\n", "\n").replace("\r", "\n").split("\n")


class Cells:
    """Remembers the code of cells as it was written, so that a traceback can quote it.

    Args:
        forget: Told the number of each cell that is forgotten.
    """

    def __init__(self, forget: Callable[[int], object]) -> None:
        self._forget = forget
        self._lines: OrderedDict[int, tuple[list[str], int]] = OrderedDict()

    def add(self, number: int, code: str) -> None:
        """Remember a cell; the oldest is forgotten.

        Args:
            number: The cell's number.
            code: Its text.
        """
        lines = code_lines(code)
        blank = next((place for place, line in enumerate(lines) if line.strip()), 0)
        self._lines[number] = (lines, blank)  # IPython drops leading blank lines before it counts
        while len(self._lines) > _MAX_CELLS:
            self._forget(self._lines.popitem(last=False)[0])

    def text(self, number: int) -> str:
        """Return a cell's code; empty if it is forgotten."""
        return "\n".join(self._lines.get(number, ([], 0))[0])

    def find(self, file_name: str, line: int) -> tuple[int, int, str] | None:
        """Return cell number, line as written and its text; None if the file is no cell.

        Args:
            file_name: As a frame names it.
            line: The line in that file.
        """
        match = _CELL.match(file_name)
        if match is None:
            return None
        number = int(match[1])
        lines, blank = self._lines.get(number, ([], 0))
        line += blank
        return number, line, lines[line - 1].strip() if 0 < line <= len(lines) else ""


def trace(error: BaseException, cells: Cells, plugins: dict[str, str], notes: Iterable[str]) -> str:
    """Return the frames of cells and plugins, innermost last, the exception's own line, and what is known about it.

    Args:
        error: With its traceback.
        cells: The code that was run.
        plugins: File name of each plugin's source, and the plugin's name.
        notes: A line each; empty ones are passed over.
    """
    lines = _frame_lines(error, cells, plugins)
    text = "\n".join(
        [*(["Traceback (most recent call last):"] if lines else []), *lines, _exception_text(error, cells)]
    )
    if members := _group_members(error):
        each = "\n".join(
            line
            for member in members
            for line in (*_frame_lines(member, cells, plugins)[-1:], _exception_text(member, cells))
        )
        text = f"{each}\n\nThe errors above are in this group:\n\n{text}"
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and cause is not error and own_words(cause) != own_words(error):
        text = f"{_exception_text(cause, cells)}\n\nThe error above led to this one:\n\n{text}"
    return "\n".join([without_paths(clip(text, _ERROR_CHARS)), *filter(None, notes)])


def _group_members(error: BaseException) -> list[BaseException]:
    """Return the first exceptions of a group, of groups in it theirs; none if it is no group, or before Python 3.11."""
    group: Any = getattr(builtins, "BaseExceptionGroup", None)
    found, waiting = list[BaseException](), [error]
    while group and waiting and len(found) < _MAX_MEMBERS:
        one = waiting.pop(0)
        if isinstance(one, group):
            waiting = [*group.exceptions.__get__(one), *waiting]
        elif one is not error:
            found.append(one)
    return found


def without_paths(text: str) -> str:
    """Shorten the paths of this machine to what is below the working folder, or to the package."""
    starts = "|".join(map(re.escape, _path_prefixes()))
    return re.sub(rf"(?<![\w.~-])(?:{starts})", "", text)


def short_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Word a warning in one line; put in the place of `warnings.formatwarning`.

    Args:
        message: The warning.
        category: Its class.
        filename: Where it was raised.
        lineno: At which line.
        line: That line's text.
    """
    where = "" if _CELL.match(filename) is None else f"line {lineno}: "
    return f"{where}{category.__name__}: {without_paths(str(message))}\n"


def _frame_lines(error: BaseException, cells: Cells, plugins: dict[str, str]) -> list[str]:
    """Return the outermost and the innermost frames of cells and plugins; there may be millions between them."""
    half = _MAX_FRAMES // 2
    first: list[tuple[FrameType, int]] = []
    last: deque[tuple[FrameType, int]] = deque(maxlen=half)
    count = 0
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if name in plugins or _CELL.match(name):
            count += 1
            (first if count <= half else last).append((frame, line))
    between = [f"  [... {count - 2 * half} more ...]"] if count > 2 * half else []
    return [
        *(_frame_text(*one, cells, plugins) for one in first),
        *between,
        *(_frame_text(*one, cells, plugins) for one in last),
    ]


def _frame_text(frame: FrameType, line: int, cells: Cells, plugins: dict[str, str]) -> str:
    code = frame.f_code
    function = "" if code.co_name == "<module>" else f", in {code.co_name}"
    found = cells.find(code.co_filename, line)
    if found is not None:
        number, line, text = found
        return f"  cell {number}, line {line}{function}\n    {text}"
    text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
    return f"  plugin {plugins[code.co_filename]}, line {line}{function}\n    {text}"


def _exception_text(error: BaseException, cells: Cells) -> str:
    try:
        str(error)
    except BaseException as problem:  # noqa: BLE001 - the exception is foreign code, and so is its `__str__`
        message = f"{kind_of(problem)}: {own_words(problem)}".removesuffix(": ")
        return f"{kind_of(error)}: (its text could not be made: {message})"
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
    except BaseException:  # noqa: BLE001 - the same
        return f"{kind_of(error)}: (its text could not be made)"


def own_words(error: BaseException) -> str:
    """Return the text of an exception; empty if it has none, or its own code raises."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - the same
        return ""


def kind_of(error: BaseException) -> str:
    """Return the name of an exception's class, also of one whose own code raises."""
    try:
        return str(type.__getattribute__(type(error), "__name__"))
    except BaseException:  # noqa: BLE001 - the same
        return "BaseException"


def _path_prefixes() -> list[str]:
    """Return the folders that a reader need not see, longest first."""
    known = {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, os.path.expanduser("~")}
    known.update(site.getsitepackages() if hasattr(site, "getsitepackages") else [])
    with contextlib.suppress(OSError):  # the code removed the folder that it is in
        known.add(os.getcwd())
    long = [one for one in known if len(one) > 3]
    return sorted((one.rstrip(os.sep) + os.sep for one in long), key=len, reverse=True)
