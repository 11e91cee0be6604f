"""What a cell lacks that failed for want of a name, a module or a column, and what is there: so it is mended once."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import re
import symtable
import sys
import traceback
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

_MAX_NAMED = 8
_USUAL = (
    *("numpy", "pandas", "polars", "scipy", "sklearn", "statsmodels", "xgboost", "lightgbm", "torch"),
    *("matplotlib", "seaborn", "plotly", "openpyxl"),
)
_MAX_COLUMNS, _NAME_CHARS = 30, 60
_QUOTED = re.compile(r"'([^'\n]{1,100})'")
_IMPLIED = {"__file__", "__path__", "__class__", "__debug__", "__annotations__"}


def also_missing(read: Callable[[], str], error: BaseException, known: Container[str]) -> str:
    """Return one line, with the usual libraries that are there if one is not; empty if it has nothing to tell.

    Args:
        read: Returns the cell's code, as Python.
        error: What has ended it.
        known: Names that it could use.
    """
    if type(error) not in (NameError, ModuleNotFoundError):
        return ""
    try:
        code = read()
        tree = ast.parse(code)
        names = [] if "import *" in code else sorted(set(_unbound_names(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    first = getattr(error, "name", None)
    lacking = [
        name for name in names if name not in known and not hasattr(builtins, name) and name not in (first, *_IMPLIED)
    ]
    modules = [
        fromkey
        for fromkey in dict.fromkeys(_imported_packages(tree))
        if fromkey != (first or "").partition(".")[0] and _is_not_installed(fromkey)
    ]
    parts = [
        f"{said}: {', '.join(found[:_MAX_NAMED])}"
        for said, found in (("not defined", lacking), ("not installed", modules))
        if found
    ]
    more = f"This cell lacks more; {'; '.join(parts)}." if parts else ""
    there = (
        [module for module in _USUAL if not _is_not_installed(module)]
        if isinstance(error, ModuleNotFoundError) or modules
        else []
    )
    return " ".join(filter(None, (more, f"Installed are {', '.join(there)}." if there else "")))


def missing_column(error: BaseException) -> str:
    """Return one line that names the columns of the table of pandas in which a key was looked for; empty: it was none.

    Args:
        error: What has ended a cell.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(error, KeyError):
        return ""
    try:
        table, name = _looked_in(error, pandas)
        if table is None:
            return ""
        columns = list(map(str, table.columns))
        message = str(error.args[0]) if error.args else ""
        near = ", ".join(
            repr(column[:_NAME_CHARS]) for column in nearest(_QUOTED.findall(message) or [message], columns)
        )
        more = f", … {len(columns) - _MAX_COLUMNS} more" if len(columns) > _MAX_COLUMNS else ""
        shown = ", ".join(repr(column[:_NAME_CHARS]) for column in columns[:_MAX_COLUMNS])
        return f"{name} has the columns {shown}{more}{f'; nearest: {near}' if near else ''}."
    except Exception:  # noqa: BLE001 - a table may be of a class of the cell's
        return ""


def _looked_in(error: BaseException, pandas: Any) -> tuple[Any, str]:
    """Return the table whose columns lack a key, and what the code calls it; None: it was looked for elsewhere."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    held = []
    while frames and str(frames[-1].f_globals.get("__name__")).partition(".")[0] == "pandas":
        inner = frames.pop().f_locals
        held.append(inner.get("self", inner.get("obj")))
    labels = next((value for value in held if isinstance(value, pandas.Index)), None)
    tables = (value for value in held if isinstance(value, pandas.DataFrame))
    table = next(
        (table for table in tables if labels is None or table.columns is labels or table.columns.equals(labels)), None
    )
    scopes = (frames[-1].f_locals, frames[-1].f_globals) if frames else ()
    called = (name for scope in scopes for name, value in scope.items() if value is table and not name.startswith("_"))
    return table, next(called, "The table")


def nearest(names: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return those of other names that look most like the given ones, three at most.

    Args:
        names: Which are missing.
        there: Which there are.
    """
    import difflib  # not needed before something is missing

    plain = {_fold_name(name): name for name in there}
    found = [match for name in names for match in difflib.get_close_matches(_fold_name(name), plain, 3)]
    return [plain[fromkey] for fromkey in dict.fromkeys(found)][:3]


def _fold_name(name: str) -> str:
    """Return a name in lower case, without accents."""
    return "".join(char for char in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(char))


def _unbound_names(code: str) -> Iterator[str]:
    """Yield the names that a cell reads and nowhere binds."""
    top = symtable.symtable(code, "cell", "exec")
    tables, at = [top], 0
    while at < len(tables):
        tables += tables[at].get_children()
        at += 1
    symbols = [(table is top, symbol) for table in tables for symbol in table.get_symbols()]
    bound = {
        symbol.get_name()
        for is_top, symbol in symbols
        if (is_top or symbol.is_declared_global()) and (symbol.is_assigned() or symbol.is_imported())
    }
    for is_top, one in symbols:
        if one.is_referenced() and (is_top or one.is_global()) and one.get_name() not in bound:
            yield one.get_name()


def _imported_packages(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a cell imports outside of `try`, where a missing one may be expected."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
        elif not isinstance(node, ast.Try):
            waiting += ast.iter_child_nodes(node)


def _is_not_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is None
    except (ImportError, ValueError, AttributeError):  # a module whose `__spec__` is None
        return False
