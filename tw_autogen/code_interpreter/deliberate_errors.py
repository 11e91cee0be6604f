"""Errors that a cell raises on purpose, to say why there is no answer, told apart from all others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tw_autogen.python_source import parsed_cell

FRAME = re.compile(r"^  (?:cell \d+, line (?P<line>\d{1,9})(?P<inside>, in .*)?|plugin .*, line \d+.*)$", re.M)


def raised_by_cell(code: str, error: str) -> bool:
    r"""Return True if an error came from a `raise` at the top level of a cell, with a message of the cell's own.

    A `raise` below `if`, `for`, `while` and `with` counts; one in a function, a class or a `try` does not, because
    there it may be caught or stand for another error. The message must show: a part that is written out in the `raise`,
    or a variable's text.

    Args:
        code: The cell.
        error: Its traceback, as `Execution.error` has it.

    Example:
        >>> code = "rows = []\nif not rows:\n    raise ValueError(f'no rows in {rows}')"
        >>> raised_by_cell(code, "Traceback …\n  cell 1, line 3\n    raise …\nValueError: no rows in []")
        True
    """
    frames = list(FRAME.finditer(error))
    if len(frames) != 1 or not frames[0]["line"] or frames[0]["inside"]:
        return False
    line, message = int(frames[0]["line"]), error[frames[0].end() :]
    tree = parsed_cell(code)
    found = (
        one
        for one in _raise_statements(tree.body if tree else [])
        if one.lineno <= line <= (one.end_lineno or one.lineno)
    )
    return any(_matches_message(one, message) for one in found)


def _raise_statements(statements: list[ast.stmt]) -> Iterator[ast.Raise]:
    for statement in statements:
        if isinstance(statement, ast.Raise):
            yield statement
        elif isinstance(statement, ast.If | ast.For | ast.While | ast.With):
            yield from _raise_statements(statement.body)
            yield from _raise_statements(getattr(statement, "orelse", []))


def _matches_message(one: ast.Raise, message: str) -> bool:
    """Return True if an error's words are those of a `raise`: its type, and what of the message is written out."""
    made = one.exc
    if not isinstance(made, ast.Call) or not made.args:
        return False
    if one.cause is not None and ast.unparse(one.cause) != "None":
        return False
    name = ast.unparse(made.func).rsplit(".", 1)[-1]
    if re.search(rf"^(?:[\w.]+\.)?{re.escape(name)}: \S", message, re.M) is None:
        return False
    if isinstance(made.args[0], ast.Name):
        return True
    found = (part.value for part in ast.walk(made.args[0]) if isinstance(part, ast.Constant))
    texts = [text.strip() for text in found if isinstance(text, str) and sum(map(str.isalpha, text)) > 1]
    return any(text in message or repr(text)[1:-1] in message for text in texts)
