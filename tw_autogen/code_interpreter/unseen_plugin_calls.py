"""Calls of plugins whose stub the model has not seen: which fit the plugin all the same, and which need not."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tw_autogen.code_interpreter.plugin_selection import names_used, parsed
from tw_autogen.code_interpreter.syntax import bound_name
from tw_autogen.plugin import PluginSpec

LOOKUP = "find_plugins"
"""What code calls, with words, to be told which plugins there are for it; it is answered, and never run."""


def unclear_calls(code: str, specs: Sequence[PluginSpec]) -> tuple[PluginSpec, ...]:
    """Return the plugins that code uses in a way that need not fit them.

    A call fits if its arguments are those of the spec. A name that the code binds itself is no plugin's. What can't be
    told counts as unclear: `f(*rows)`, `map(f, rows)`, `f.submit(x)`.

    Args:
        code: A cell.
        specs: Those that count.

    Example:
        >>> from tw_autogen.plugin import Parameter
        >>> joke = PluginSpec("joke", "Tell a joke.", (Parameter("about", "str", True),))
        >>> [bool(unclear_calls(code, [joke])) for code in ("joke('cats')", "joke()", "joke(topic='cats')")]
        [False, True, True]
    """
    tree = parsed(code)
    wanted = names_used(code, specs) - _bound_names(tree)
    calls = {node.func: node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in wanted)
    known = {spec.name: spec for spec in specs}
    unclear = {name.id for name in names if name not in calls or not _fits_signature(calls[name], known[name.id])}
    return tuple(spec for spec in specs if spec.name in unclear)


def looked_up(code: str) -> tuple[str, ...]:
    """Return the words of each lookup in a cell.

    Example:
        >>> looked_up('find_plugins("fill gaps")')
        ('fill gaps',)
    """
    return tuple(
        str(node.args[0].value)
        for node in ast.walk(parsed(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == LOOKUP
        and node.args
        and isinstance(node.args[0], ast.Constant)
    )


def _fits_signature(call: ast.Call, spec: PluginSpec) -> bool:
    names = [keyword.arg for keyword in call.keywords]
    if None in names or any(isinstance(arg, ast.Starred) for arg in call.args):
        return False
    try:
        spec.signature().bind(*call.args, **{str(name): True for name in names})
    except TypeError:
        return False
    return len(set(names)) == len(names)


def _bound_names(tree: ast.AST) -> frozenset[str]:
    """Return the names that code gives a meaning of its own."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif name := bound_name(node):
            names.add(name)
    return frozenset(names)
