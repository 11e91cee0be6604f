"""Which names of a cell stand for modules, which for values of its own, and which for built-ins."""

from __future__ import annotations

import ast
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tw_autogen.code_interpreter.bans import BANS, USUAL_NAMES, WORDS

Path = tuple[str, ...]
Position = tuple[int, int]
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Binding = tuple[str, Position, Position, ast.AST]
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

OWN: Final[Path] = ()
"""What `Scope.find` gives for a name that holds a value of the cell's own."""

PLUGIN: Final = "<plugin>"
"""The root of paths that lead into plugins."""

_END: Position = (sys.maxsize, 0)
_ASSUMED = (sys.stdlib_module_names.union(*(ban.modules for ban in BANS)) - WORDS) - {"this"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Spans:
    """Stretches of a text, kept as few as they can be: a name that is bound often is found as quickly as another."""

    def __init__(self) -> None:
        self._firsts: list[Position] = []
        self._lasts: list[Position] = []

    def add(self, first: Position, last: Position) -> None:
        """Add one, both ends within; what overlaps becomes one."""
        if last < first:
            return
        low, high = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]

    def __contains__(self, at: Position) -> bool:
        before = bisect_right(self._firsts, at) - 1
        return before >= 0 and at <= self._lasts[before]


class Scope:
    """The names of a module, function or comprehension.

    In a function a bound name is local from its first line to its last, so a built-in of that name is out of reach.
    In a module it is not: there a name is the cell's own only behind its binding, where the binding has surely run.
    """

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.paths: dict[str, Path] = {}
        self.own: set[str] = set()
        self.spans: dict[str, Spans] = {}

    def find(self, name: str, at: Position) -> Path | None:
        """Say what a name stands for at a position.

        Returns:
            The path of a module or of something in one; `OWN`; or None for a built-in and for what isn't known here.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope.paths:
                return scope.paths[name]
            if name in scope.own or (name in scope.spans and at in scope.spans[name]):
                return OWN
            scope = scope.outer
        return None


def assumed(name: str) -> Path | None:
    """Say which module a name probably stands for that this cell doesn't bind: an earlier one may have imported it."""
    if name in USUAL_NAMES:
        return tuple(USUAL_NAMES[name].split("."))
    return (name,) if name in _ASSUMED else None


def module_scope(found: Iterable[Binding], plugins: Iterable[str] = ()) -> Scope:
    """Read the scope of a cell from its bindings; a plugin's name stands for the path `(PLUGIN, name)`."""
    scope = Scope()
    scope.paths.update({name: (PLUGIN, name) for name in plugins})
    gone: set[str] = set()
    for name, start, until, node in found:
        if isinstance(node, ast.Delete):
            gone.add(name)
        elif not isinstance(node, ast.Global | ast.Nonlocal) and not _brings_module(scope, name, node):
            scope.spans.setdefault(name, Spans()).add(start, until)
    for name in gone.union(scope.paths):
        scope.spans.pop(name, None)
    return scope


def function_scope(node: Function, outer: Scope) -> Scope:
    """Read the scope of a function."""
    scope = Scope(outer)
    args = node.args
    everything = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    scope.own.update(arg.arg for arg in everything if arg)
    if isinstance(node, ast.Lambda):
        return scope
    elsewhere: set[str] = set()
    for name, _, _, child in bindings(node.body):
        if isinstance(child, ast.Global | ast.Nonlocal):
            elsewhere.add(name)
        elif not _brings_module(scope, name, child):
            scope.own.add(name)
    scope.own -= elsewhere.union(scope.paths)
    return scope


def comprehension_scope(node: Comprehension, outer: Scope) -> Scope:
    """Read the scope of a comprehension."""
    scope = Scope(outer)
    for generator in node.generators:
        scope.own.update(each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name))
    return scope


def _brings_module(scope: Scope, name: str, node: ast.AST) -> bool:
    """Note a name that an import, or an assignment of a path, gives to a module or to something in it."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if name == (alias.asname or alias.name.partition(".")[0]):
                scope.paths[name] = tuple(alias.name.split(".")) if alias.asname else (name,)
        return True
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if name == (alias.asname or alias.name) and alias.name != "*":
                scope.paths[name] = (*(node.module or "").split("."), alias.name)
        return True
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
        path = _path(scope, node.value)
        if path and any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            scope.paths[name] = path
            return True
    return False


def _path(scope: Scope, node: ast.expr) -> Path | None:
    """Give the module path that `a.b.c` stands for, or None."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    root = scope.find(node.id, (node.lineno, node.col_offset))
    if root is None and node.id in USUAL_NAMES:
        root = assumed(node.id)
    return root + tuple(reversed(names)) if root else None


def bindings(body: Sequence[ast.stmt], until: Position = _END) -> Iterator[Binding]:
    """Give each binding of a name in these statements, without those of inner functions and classes.

    Yields:
        The name, from where to where it surely holds in a module, and the statement. `global`, `nonlocal` and `del` are
        given too.
    """
    for node in body:
        after = _end(node)
        if isinstance(node, _DEFINITIONS):
            yield node.name, after, until, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], after, until, node
        elif isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                yield name, after, until, node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete | ast.Expr | ast.Return):
            # an annotation without a value binds nothing
            last = after if isinstance(node, ast.AnnAssign) and node.value is None else until
            yield from _targets(node, node, after, last)
        else:
            yield from _compound(node, until)


def _compound(node: ast.stmt, until: Position) -> Iterator[Binding]:
    """Give the bindings of `for`, `with`, `try`, `match` and so on: those of a block hold up to its end."""
    body = getattr(node, "body", None)
    first = _start(body[0]) if body else _end(node)
    for _, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        if children and isinstance(children[0], ast.stmt):
            yield from bindings(children, min(until, _end(children[-1])))
            continue
        for child in children:
            if isinstance(child, ast.ExceptHandler | ast.match_case):
                last = _end(child.body[-1])
                if isinstance(child, ast.ExceptHandler) and child.name:
                    yield child.name, _start(child.body[0]), last, node
                elif isinstance(child, ast.match_case):
                    yield from _captures(child.pattern, node, last)
                yield from bindings(child.body, min(until, last))
            elif isinstance(child, ast.AST):
                last = _end(body[-1]) if body and isinstance(node, ast.For | ast.AsyncFor) else until
                yield from _targets(child, node, first, min(until, last))


def _captures(pattern: ast.pattern, node: ast.stmt, last: Position) -> Iterator[Binding]:
    first = (pattern.lineno, pattern.col_offset)
    for each in ast.walk(pattern):
        name = getattr(each, "rest" if isinstance(each, ast.MatchMapping) else "name", None)
        if isinstance(each, ast.MatchAs | ast.MatchStar | ast.MatchMapping) and name:
            yield name, first, last, node


def _targets(root: ast.AST, node: ast.stmt, first: Position, until: Position) -> Iterator[Binding]:
    """Give the names that an expression or simple statement stores or deletes.

    A `:=` may not run (`0 and (x := 1)`), so in a module it holds nowhere.
    """
    stack: list[tuple[ast.AST, bool]] = [(root, False)]
    while stack:
        each, inner = stack.pop()
        if isinstance(each, ast.NamedExpr):
            yield each.target.id, first, (0, 0), each
            stack.append((each.value, inner))
        elif isinstance(each, ast.Name):
            if not isinstance(each.ctx, ast.Load) and not inner:
                yield each.id, first, until, node
        elif not isinstance(each, ast.Lambda):
            inner = inner or isinstance(each, _COMPREHENSIONS)
            stack.extend((child, inner) for child in ast.iter_child_nodes(each))


def _start(node: ast.stmt) -> Position:
    return (node.lineno, node.col_offset)


def _end(node: ast.stmt) -> Position:
    return (node.end_lineno or node.lineno, node.end_col_offset or 0)
