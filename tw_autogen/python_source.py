"""Python as text: its lines as Python counts them, and a cell's tree without its magics."""

from __future__ import annotations

import ast
import re

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
            return ast.parse(text)
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
