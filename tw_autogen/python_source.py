"""Python as text: its lines as Python counts them, and a cell's tree without its magics."""

from __future__ import annotations

import ast
import re

_MAGIC = re.compile(r"^([ \t]{0,80})[%!].*$", re.M)


def python_lines(code: str) -> list[str]:
    r"""Return the lines of code as Python counts them: `str.splitlines` ends some at a form feed or U+2028, too.

    Args:
        code: Any; `"\n".join` of the lines is the same code.

    Example:
        >>> python_lines("a = 1\r\nb = '\x0c\u2028'\rc")
        ['a = 1', "b = '\x0c\u2028'", 'c']
    """
    return code.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def parsed_cell(code: str) -> ast.Module | None:
    r"""Return the tree of a cell, in which a line of magics or of a shell stands as `pass`; None if it is no Python.

    Args:
        code: Any text.

    Example:
        >>> len(parsed_cell("%matplotlib inline\nx = 1").body), parsed_cell("see below")
        (2, None)
    """
    try:
        return ast.parse(_MAGIC.sub(r"\1pass", code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
