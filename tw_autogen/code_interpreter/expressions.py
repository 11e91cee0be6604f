"""Text that pandas runs: the expressions of `df.query("a > @b")` and `df.eval(…)`, and methods taken by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from tw_autogen.code_interpreter.literals import last_name, literal_text

EVALUATORS = frozenset({"eval", "query"})
"""Methods that run a text."""

COLUMN = "<column>"
"""Stands in a parsed expression for each name that is no variable of the cell."""

_BY_NAME = frozenset({"apply", "agg", "aggregate", "transform", "pipe", "map", "applymap", "NamedAgg"})
_OPTIONS = frozenset(
    {"expr", "inplace", "parser", "engine", "truediv", "local_dict", "global_dict", "resolvers", "level", "target"}
)
_NO_METHODS = frozenset({"args", "kwargs", "axis", "column"})
_NUMBERS = (ast.List, ast.Tuple, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context)
_QUOTED = re.compile(r"""(?s:'''.*?'''|\"\"\".*?\"\"\")|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`""")
_AT = re.compile(r"@\s*(?=[^\W\d])")
_LOCAL = "__local_of_cell_"


def is_computed(call: ast.Call) -> bool:
    """Say whether a call of `eval` or `query` may run a text that isn't written out in it.

    An option that pandas doesn't know makes it refuse the call, so `tree.query(point, k=3)` runs no text.

    Example:
        >>> [is_computed(ast.parse(code).body[0].value) for code in ("df.query(q)", "df.query('a > 1')", "net.eval()")]
        [True, False, False]
    """
    if any(one.arg and one.arg not in _OPTIONS for one in call.keywords):
        return False
    run = call.args[:1] or [one.value for one in call.keywords if one.arg in ("expr", None)]
    return any(literal_text(one) is None and not _is_number(one) for one in run)


def _is_number(node: ast.expr) -> bool:
    """Say whether it is a number, or a list of them; of anything else pandas would run what `str` makes of it."""
    return all(
        isinstance(one, _NUMBERS) and not (isinstance(one, ast.Constant) and isinstance(one.value, str | bytes))
        for one in ast.walk(node)
    )


def parsed(text: str) -> list[ast.stmt] | None:
    """Read an expression as pandas does, line by line; None for what is no Python.

    Example:
        >>> [ast.unparse(one) for one in parsed("`unit price` > @limit")]
        ['<column> > limit']
    """
    plain = _QUOTED.sub(lambda found: "_" if found[0].startswith("`") else found[0], text)
    marked = "\n".join(filter(None, map(str.strip, _AT.sub(_LOCAL, plain).splitlines())))
    tree = _tree(marked) or _tree(marked.replace("&", " and ").replace("|", " or "))  # `a & not b` is right for pandas
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = node.id.removeprefix(_LOCAL) if node.id.startswith(_LOCAL) else COLUMN
    return tree.body


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def takes_evaluator(call: ast.Call, values: Mapping[str, Collection[ast.expr]]) -> bool:
    """Say whether `df.apply("eval", …)` or its like gets `eval` or `query` as a method's name, or a name put together.

    Args:
        call: Any call.
        values: What the cell's variables are set to, all that is known.

    Example:
        >>> takes_evaluator(ast.parse("df.agg({'a': 'query'})").body[0].value, {})
        True
    """
    name = _by_name(call.func, values)
    handed = any(isinstance(one, ast.Attribute) and one.attr in _BY_NAME for one in call.args)
    if not name and not handed:
        return False
    first = call.args if handed else call.args[1:2] if name == "NamedAgg" else call.args[:1]
    named = [one.value for one in call.keywords if one.arg not in _NO_METHODS]
    # `agg(total=("eval", "sum"))`: a column and a method
    todo = [*first, *(one.elts[-1] if isinstance(one, ast.Tuple) and one.elts else one for one in named)]
    known: set[str] = set()
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Name):
            todo += () if one.id in known else values.get(one.id, ())
            known.add(one.id)
        elif isinstance(one, ast.Dict) and name == "map":  # what values become
            continue
        elif (text := literal_text(one)) is not None:
            if text in EVALUATORS:
                return True
        elif _is_built(one):
            return True
        else:
            todo += _parts(one)
    return False


def _by_name(func: ast.expr, values: Mapping[str, Collection[ast.expr]]) -> str:
    """Give which of the methods that take others by name is called; empty for none."""
    ways = [func, *values.get(func.id, ())] if isinstance(func, ast.Name) else [func]
    return next((name for name in map(last_name, ways) if name in _BY_NAME), "")


def _parts(node: ast.expr) -> list[ast.expr]:
    """Give the expressions that one may come to."""
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    return [node.value] if isinstance(node, ast.Starred | ast.NamedExpr | ast.Subscript) else []


def _is_built(node: ast.expr) -> bool:
    """Say whether it is a text that is put together: `f"ev{x}"`, `"ev" + x`, `"".join(…)`."""
    if isinstance(node, ast.BinOp):
        return any(_is_built(one) or literal_text(one) is not None for one in (node.left, node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _is_built(node.func.value) or literal_text(node.func.value) is not None
    return isinstance(node, ast.JoinedStr)


def assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    r"""Give what the variables of a tree are set to, wherever that happens.

    Example:
        >>> {name: len(values) for name, values in assigned(ast.parse("a = b = 1\nfor a in [2]: pass")).items()}
        {'a': 2, 'b': 1}
    """
    found: dict[str, list[ast.expr]] = {}
    for target, value in _settings(tree):
        if isinstance(target, ast.Name):
            found.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            for one, its in zip(target.elts, value.elts, strict=False):
                if isinstance(one, ast.Name):
                    found.setdefault(one.id, []).append(its)
    return found


def _settings(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.target, node.iter
