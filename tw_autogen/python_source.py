"""Python as text, which others wrote: its lines as Python counts them, its tree, and a cell's without its magics."""

from __future__ import annotations

import ast
import contextlib
import re
import threading
import warnings
from collections.abc import Iterator

PYTHON_LANGUAGE = r"(?:i?python(?:\d(?:\.\d{1,2}){0,2})?|py\d?|jupyter|tool_code)(?![\w.])"
"""What a block of Python is called on its fence, as a pattern to be searched for without case: `python3.11`, `py3`."""
_QUIET = threading.RLock()

_MAX_SQUARED_NODES = 100_000_000
"""Sum of the squares of statements' nodes: about a second where Python is slowest, at parameters of types."""

_STATEMENTS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.For, ast.With, ast.If, ast.While, ast.Try)
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


def parse(text: str, path: str = "<unknown>") -> ast.Module:
    """Return the tree of Python, without a warning.

    Args:
        text: Any.
        path: What to call it in an error.

    Raises:
        SyntaxError: it is no Python; a ValueError if there is a NUL in it.
        RecursionError: it is nested too deeply; a MemoryError also is raised for that.
    """
    with without_warnings():
        return ast.parse(text, path)


def check_compiles(tree: ast.Module, path: str, *, flags: int = 0) -> None:
    """Compile what is parsed, for mistakes that parsing doesn't find, such as a stray `return`; nothing is run.

    Statement by statement, as IPython does: Python takes very long for many functions that are alike. What would take
    long or much memory all the same is left to the process that is to run it, whose limits hold there.

    Args:
        tree: From `ast.parse`.
        path: What to call it in an error.
        flags: Of `compile`.

    Raises:
        SyntaxError: there is such a mistake; for the others see `parse`.
    """
    if sum(_compiled_nodes(node) ** 2 for node in tree.body) > _MAX_SQUARED_NODES:
        return
    with without_warnings():
        for node in tree.body:
            compile(ast.Module([node], type_ignores=[]), path, "exec", flags, dont_inherit=True)


def _compiled_nodes(statement: ast.stmt) -> int:
    """Return how many nodes are compiled: those of a `finally` once for each way out of its `try`."""
    nodes: list[tuple[ast.AST, int, bool]] = [(statement, 0, False)]
    for index, (node, _, _) in enumerate(nodes):  # grows as it is walked through: each after the one that it is in
        last = {id(one) for one in getattr(node, "finalbody", ())}
        nodes += [(inner, index, id(inner) in last) for inner in ast.iter_child_nodes(node)]
    sizes = [1] * len(nodes)
    exits = [int(isinstance(node, (ast.Return, ast.Break, ast.Continue))) for node, _, _ in nodes]
    finals: dict[int, tuple[int, int]] = {}
    for index in range(len(nodes) - 1, -1, -1):
        size, ways = finals.pop(index, (0, 0))
        copies = exits[index] + 2
        sizes[index] += copies * size
        exits[index] += copies * ways
        _, parent, is_final = nodes[index]
        if is_final:
            size, ways = finals.get(parent, (0, 0))
            finals[parent] = size + sizes[index], ways + exits[index]
        elif index:
            sizes[parent] += sizes[index]
            exits[parent] += exits[index]
    return sizes[0]


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


def does_something(code: str, *, alone: bool = True) -> bool:
    """Return whether there is an import, a call, a compound statement, an assignment or a magic in a cell.

    Args:
        code: Any text; of what is no Python only its magics count.
        alone: Nothing was said before it; else assignments of plain values count for nothing, as in `R = 0.95`.
    """
    tree = parsed_cell(code)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (*_STATEMENTS, ast.Call)):
            return True
        if isinstance(node, ast.Assign | ast.AugAssign) and (alone or not isinstance(node.value, ast.Constant)):
            return True
    return bool(MAGIC_LINE.search(code))
