"""Python as text, which others wrote: its lines as Python counts them, its tree, and a cell's without its magics."""

from __future__ import annotations

import ast
import contextlib
import re
import threading
import warnings
from collections.abc import Iterator

_QUIET = threading.RLock()

MAGIC_LINE = re.compile(r"^([ \t]{0,80})[%!].*$", re.M)


def python_lines(code: str) -> list[str]:
    r"""Return the lines of code as Python counts them: `str.splitlines` ends some at a form feed or U+2028, too.

    Args:
        code: Any; `"\n".join` of the lines is the same code.

    Example:
        >>> python_lines("a = 1\r\nb = '\x0c\u2028'\rc")
        ['a = 1', "b = '\x0c\u2028'", 'c']
    """
    return code.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Silence what Python says of code that is parsed or compiled inside: that concerns its author, not our user.

    Python would write the warning to the user's terminal, with signs of the code as they are. One thread at a time,
    since `catch_warnings` changes what holds for all.
    """
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse(text: str) -> ast.Module:
    """Return the tree of Python, without a warning.

    Args:
        text: Any.

    Raises:
        SyntaxError: it is no Python; a ValueError if there is a NUL in it.
        RecursionError: it is nested too deeply; a MemoryError also is raised for that.
    """
    with without_warnings():
        return ast.parse(text)


def expression_of(text: str) -> ast.expr:
    """Return the tree of one expression, without a warning.

    Args:
        text: Any.

    Raises:
        SyntaxError: it is none; for the others see `parse`.
    """
    with without_warnings():
        return ast.parse(text, mode="eval").body


def parsed_cell(code: str) -> ast.Module | None:
    r"""Return the tree of a cell, in which a line of magics or of a shell stands as `pass`; None if it is no Python.

    Args:
        code: Any text.

    Example:
        >>> [len(tree.body) for tree in map(parsed_cell, ["%matplotlib inline\nx = 1", "x = (7\n% 2)"])]
        [2, 1]
        >>> parsed_cell("see below") is None
        True
    """
    found = tree_or_line(code)
    return found if isinstance(found, ast.Module) else None


def tree_or_line(code: str) -> ast.Module | int:
    """Return the tree as `parsed_cell` does, or the number of the first line, from 1, that does not parse.

    Args:
        code: Any text. A line that begins with `%` or `!` may be Python too, inside of brackets or of a string.
    """
    line = 1
    for text in (code, MAGIC_LINE.sub(r"\1pass", code)):
        try:
            return parse(text)
        except SyntaxError as error:
            line = max(line, error.lineno or 1)
        except (ValueError, RecursionError, MemoryError):
            continue
    return line


def is_python(code: str) -> bool:
    """Return whether a cell is Python, its lines of magics or of a shell aside.

    Args:
        code: Any text.
    """
    return parsed_cell(code) is not None
