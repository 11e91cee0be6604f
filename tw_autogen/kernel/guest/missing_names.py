"""`also_missing`: what else a cell that failed for want of a name or a module lacks, so that it is mended once."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import symtable
from collections.abc import Container, Iterator

_MOST_NAMED = 8
_USUAL = (
    *("numpy", "pandas", "polars", "scipy", "sklearn", "statsmodels", "xgboost", "lightgbm", "torch"),
    *("matplotlib", "seaborn", "plotly", "openpyxl"),
)
_IMPLIED = {"__file__", "__path__", "__class__", "__debug__", "__annotations__"}


def also_missing(code: str, error: BaseException, known: Container[str]) -> str:
    """Return one line, with the usual libraries that are there if one is not; empty if it has nothing to tell.

    Args:
        code: The cell's, as Python.
        error: What has ended it.
        known: Names that it could use.
    """
    if type(error) not in (NameError, ModuleNotFoundError):
        return ""
    try:
        tree = ast.parse(code)
        names = [] if "import *" in code else sorted(set(_unbound(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    first = getattr(error, "name", None)
    lacking = [
        one for one in names if one not in known and not hasattr(builtins, one) and one not in (first, *_IMPLIED)
    ]
    modules = [one for one in dict.fromkeys(_modules(tree)) if one != (first or "").partition(".")[0] and _absent(one)]
    parts = [
        f"{said}: {', '.join(found[:_MOST_NAMED])}"
        for said, found in (("not defined", lacking), ("not installed", modules))
        if found
    ]
    more = f"This cell lacks more; {'; '.join(parts)}." if parts else ""
    there = [one for one in _USUAL if not _absent(one)] if isinstance(error, ModuleNotFoundError) or modules else []
    return " ".join(filter(None, (more, f"Installed are {', '.join(there)}." if there else "")))


def _unbound(code: str) -> Iterator[str]:
    """Yield the names that a cell reads and nowhere binds."""
    top = symtable.symtable(code, "cell", "exec")
    tables, at = [top], 0
    while at < len(tables):
        tables += tables[at].get_children()
        at += 1
    symbols = [(table is top, one) for table in tables for one in table.get_symbols()]
    bound = {
        one.get_name()
        for is_top, one in symbols
        if (is_top or one.is_declared_global()) and (one.is_assigned() or one.is_imported())
    }
    for is_top, one in symbols:
        if one.is_referenced() and (is_top or one.is_global()) and one.get_name() not in bound:
            yield one.get_name()


def _modules(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a cell imports outside of `try`, where a missing one may be expected."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
        elif not isinstance(node, ast.Try):
            waiting += ast.iter_child_nodes(node)


def _absent(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is None
    except (ImportError, ValueError, AttributeError):  # a module whose `__spec__` is None
        return False
