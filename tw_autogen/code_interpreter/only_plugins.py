"""Code that may hold nothing but calls of plugins, literals and variables, judged."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator

from tw_autogen.code_interpreter.names import assumed
from tw_autogen.code_interpreter.policy import listed
from tw_autogen.code_interpreter.rules import Fault

_HOLDERS = (ast.List, ast.Tuple, ast.Set)
_WHAT = {
    "Import": "an import",
    "ImportFrom": "an import",
    "FunctionDef": "a definition",
    "AsyncFunctionDef": "a definition",
    "ClassDef": "a definition",
    "Lambda": "a definition",
    "For": "a loop",
    "While": "a loop",
    "If": "a condition",
    "Attribute": "an attribute or method",
    "BinOp": "a computation",
    "UnaryOp": "a computation",
    "Compare": "a comparison",
    "JoinedStr": "a formatted text",
    "Subscript": "an index",
    "ListComp": "a comprehension",
    "GeneratorExp": "a comprehension",
    "DictComp": "a comprehension",
    "SetComp": "a comprehension",
}

Found = Iterator[tuple[int, Fault]]


def only_plugins(tree: ast.Module, plugins: Collection[str]) -> Found:
    """Give what is neither a call of a plugin nor a literal nor a variable, with its line.

    Allowed are assignments to variables (also `a, b = …`), expressions, calls of plugins by name, also inside one
    another and with `*` and `**`, lists, tuples, sets and dicts, and a sign in front of a number.

    Args:
        tree: Of a cell, after IPython's transformation.
        plugins: The functions that may be called.
    """
    for node in tree.body:
        if isinstance(node, ast.Expr):
            yield from _value(node.value, plugins)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _target(target, plugins)
            yield from _value(node.value, plugins)
        elif not isinstance(node, ast.Pass):
            yield _refused(node, plugins)


def _target(node: ast.expr, plugins: Collection[str]) -> Found:
    if isinstance(node, ast.Tuple | ast.List):
        for one in node.elts:
            yield from _target(one, plugins)
    elif not isinstance(node, ast.Name):
        yield _refused(node, plugins)
    elif node.id in plugins:
        remedy = f"Choose another name; {node.id!r} stays the plugin."
        yield node.lineno, Fault("plugin", f"{node.id!r} is a plugin and may not be replaced", remedy)
    elif hasattr(builtins, node.id) or node.id.startswith("__"):
        yield node.lineno, Fault("plugin", f"{node.id!r} is no name for a variable here", "Choose another name.")


def _value(root: ast.expr, plugins: Collection[str]) -> Found:
    todo: list[ast.expr | None] = [root]
    while todo:  # a list instead of recursion: a cell may be nested deeper than Python's stack
        node = todo.pop()
        if node is None or isinstance(node, ast.Constant):  # None: the key of `**` in a dict
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in plugins:
            todo += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, _HOLDERS):
            todo += node.elts
        elif isinstance(node, ast.Starred):
            todo.append(node.value)
        elif isinstance(node, ast.Dict):
            todo += [*node.keys, *node.values]
        elif not (_is_variable(node, plugins) or _is_number(node)):
            yield _refused(node, plugins)


def _is_variable(node: ast.expr, plugins: Collection[str]) -> bool:
    if not isinstance(node, ast.Name) or node.id in plugins:
        return False
    return not (hasattr(builtins, node.id) or node.id.startswith("__") or node.id == "get_ipython" or assumed(node.id))


def _is_number(node: ast.expr) -> bool:
    sign = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd)
    return sign and isinstance(node.operand, ast.Constant)  # type: ignore[attr-defined]  # UnaryOp has an operand


def _refused(node: ast.AST, plugins: Collection[str]) -> tuple[int, Fault]:
    line = getattr(node, "lineno", 1)
    remedy = f"Call only these: {listed(plugins)}. If they can't do the task, say so in words, without a block."
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else "this"
        return line, Fault("plugin", f"{called[:60]!r} is none of the plugins that may be called here", remedy)
    if isinstance(node, ast.Name):
        what = "a plugin that is not called" if node.id in plugins else "no variable"
        return line, Fault("plugin", f"{node.id!r} is {what}", remedy)
    what = _WHAT.get(type(node).__name__, f"`{ast.unparse(node).splitlines()[0][:40]}`")
    return line, Fault("plugin", f"{what} is neither a call of a plugin nor a literal nor a variable", remedy)
