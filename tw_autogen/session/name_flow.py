"""Which variables the statements of a cell use, make and change, as far as their text says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

_EVALUATED_FIRST = ("decorator_list", "defaults", "kw_defaults", "generators", "iter", "value")
"""Fields of nodes that run before those that stand before them in the tree."""
_CHANGES_OWNER = re.compile(r"(pop|popitem|popleft|setdefault)$")
_CHANGES_ARGUMENT = re.compile(r"(shuffle|heappush|heappop|heapify|insort\w*|fill_diagonal|copyto|put|place)$")
_ACTS = re.compile(r"(seed|makedirs|mkdir|chdir|set_option|set_theme|setlocale)$")
_SHOWS = re.compile(r"(print|display|show|info|head|tail|describe|sample|plot|hist|boxplot|value_counts|to_\w+|keys)$")
"""Functions whose result is thrown away because they are to show something, or write a file."""


def names_stored(tree: ast.AST) -> set[str]:
    """Return the names that code gives a value, wherever in it.

    Args:
        tree: Of the code.
    """
    return {name for node in ast.walk(tree) for name in _stored_by(node)}


def variables_made(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the variables that have a value of these statements when they have run: not those of a branch or loop.

    Args:
        statements: One after the other.
    """
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign):
            names |= {name for target in statement.targets for name in names_stored(target)}
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            names |= names_stored(statement.target)
        elif isinstance(statement, ast.With | ast.AsyncWith):
            names |= {
                name for item in statement.items if item.optional_vars for name in names_stored(item.optional_vars)
            }
            names |= variables_made(statement.body)
        else:  # a function, a class, an import
            names.update(_stored_by(statement))
    return names


def free_variables(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the variables that statements use before they make them; a few too many, such as those of a lambda.

    Args:
        statements: One after the other.
    """
    names: set[str] = set()
    before: set[str] = set()
    for statement in statements:
        here: set[str] = set()
        for node in _in_order(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store) and node.id not in here:
                names |= {node.id} - before
            here.update(_stored_by(node))
        before |= variables_made([statement])
    return names


def free_variables_of_functions(tree: ast.AST) -> set[str]:
    """Return the variables that functions look up when they are called, which may be in a later cell.

    Args:
        tree: Of the cell with the functions.
    """
    names: set[str] = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            names |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name)} - names_stored(one)
    return names


def acts_outside(statements: Iterable[ast.stmt]) -> bool:
    """Return whether statements call what changes more than variables: a seed, folders, options.

    Args:
        statements: One after the other.
    """
    calls = (node.func for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Attribute) and _ACTS.match(function.attr) for function in calls)


def variables_changed(statements: Iterable[ast.stmt], modules: set[str], functions: set[str]) -> set[str]:
    """Return the variables that statements make, or whose value they change in place.

    Args:
        statements: One after the other.
        modules: Names of what is imported: a call of a module's function is no change of it.
        functions: Names of functions that the code defines: each may change what it is given.
    """
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(statement.name)
            continue
        for node in ast.walk(statement):
            names.update(_stored_by(node))
            if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
                names.add(_root_variable(node))
            elif isinstance(node, ast.Call):
                names |= _changed_by_call(node, alone=False) - modules
                if isinstance(node.func, ast.Name) and node.func.id in functions:
                    names |= {_root_variable(given) for given in (*node.args, *(pair.value for pair in node.keywords))}
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                names |= _changed_by_call(node.value, alone=True) - modules
    return names - {""}


def _changed_by_call(call: ast.Call, *, alone: bool) -> set[str]:
    """Return the variables that a call may change.

    Args:
        call: The call.
        alone: Its result is thrown away.
    """
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    acts = alone and not _SHOWS.match(name)
    names: set[str] = set()
    if isinstance(function, ast.Attribute):
        in_place = any(keyword.arg == "inplace" for keyword in call.keywords)
        if acts or in_place or _CHANGES_OWNER.match(name):
            names.add(_root_variable(function))
    if (acts and isinstance(function, ast.Name)) or _CHANGES_ARGUMENT.match(name):
        names |= {_root_variable(arg) for arg in call.args}
    return names


def _root_variable(node: ast.AST) -> str:
    """Return the variable at which `a.b[0].c()` begins; empty: at none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _stored_by(node: ast.AST) -> Iterator[str]:
    """Yield the names to which one node gives a value."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""
    elif isinstance(node, _NAMED) and node.name:
        yield node.name


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


def _in_order(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement about as they run: what is assigned before the name that it gets."""
    left: list[ast.AST] = [statement]
    while left:
        node = left.pop()
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield ast.Name(node.target.id, ast.Load())
        yield node
        first = [name for name in _EVALUATED_FIRST if name in node._fields]
        names = [*first, *(name for name in node._fields if name not in first)]
        left += reversed([one for name in names for one in _as_nodes(getattr(node, name, None))])


def _as_nodes(value: object) -> list[ast.AST]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]
