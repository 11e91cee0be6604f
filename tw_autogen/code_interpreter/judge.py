"""What a policy says of a whole cell: of its names, and of its calls, subscripts and class patterns."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import ClassVar

from tw_autogen.code_interpreter.expressions import COLUMN, EVALUATORS, assigned, is_computed, parsed, takes_evaluator
from tw_autogen.code_interpreter.literals import is_shell_call, last_name, literal_text, opens_files
from tw_autogen.code_interpreter.name_judge import NameJudge, Visits
from tw_autogen.code_interpreter.names import OWN, PLUGIN, Scope
from tw_autogen.code_interpreter.rules import EVALUATED, Rules

_GETTERS = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_NAMESPACES = frozenset({"globals", "locals", "vars"})
_DUNDER = re.compile(r"__\w+__")
_AT_NAME = re.compile(r"@\s*([A-Za-z_][\w.]*)")

OnCode = Callable[[ast.Call, int], bool]
"""Called with each `get_ipython().…(…)` and its line; tells whether it was dealt with."""


class Judge(NameJudge):
    """Judges one tree: beside names also calls with what they get, subscripts, and patterns of classes.

    Args:
        tree: Of a cell, after IPython's transformation.
        rules: What to ask.
        plugins: Names of functions that exist in the kernel.
        on_shell_call: See `OnCode`.
    """

    def __init__(self, tree: ast.Module, rules: Rules, *, plugins: Iterable[str], on_shell_call: OnCode) -> None:
        super().__init__(tree, rules, plugins=plugins)
        self._on_shell_call = on_shell_call

    @cached_property
    def _values(self) -> dict[str, list[ast.expr]]:
        return assigned(self._tree)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        func = node.func
        if isinstance(func, ast.Attribute) and is_shell_call(node) and self._on_shell_call(node, node.lineno):
            return
        if self._rules.calls_are_listed:
            self._listed_call(node, scope)
        arguments: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(func, ast.Attribute):
            self._chain(func, scope, called=node)
            if func.attr in EVALUATORS:
                self._query(node, arguments, scope)
            if func.attr in {"get", "pop", "setdefault"} and node.args:
                self._namespace(func.value, node.args[0], scope)
        elif isinstance(func, ast.Name) and func.id == "getattr":
            self._known(func, scope.find(func.id, (func.lineno, func.col_offset)), ())
        else:
            self._todo.append((func, scope))
        if isinstance(func, ast.Name) and func.id in _GETTERS and len(node.args) >= 2:
            arguments = self._getter(node, func.id, scope) + arguments[2:]
        if last_name(func) in {"attrgetter", "methodcaller"}:
            self._operator(node)
        if last_name(func) in {"timeit", "repeat", "Timer"}:
            self._code(node, arguments, scope)
        if not self._rules.policy.dynamic and takes_evaluator(node, self._values):
            self._add(node.lineno, EVALUATED)
        self._places(node, arguments)
        self._push(arguments, scope)

    def _places(self, node: ast.Call, arguments: Iterable[ast.expr]) -> None:
        """Judge the files and addresses that a call gets, also in a list of them, and a module that pandas imports."""
        for option, value in zip(node.args, node.args[1:], strict=False):
            if literal_text(option) == "plotting.backend" and (module := literal_text(value)):
                self._add(node.lineno, self._rules.path((module,), importing=True))
        if last_name(node.func) == "print":
            return
        named = {id(one.value): one.arg or "" for one in node.keywords}
        for one in arguments:
            opens = opens_files(named.get(id(one)) or last_name(node.func))
            for item in one.elts if isinstance(one, ast.List | ast.Tuple | ast.Set) else [one]:
                text = literal_text(item)
                if text is not None:
                    self._add(node.lineno, self._rules.place(text, opens=opens))

    def _subscript(self, node: ast.Subscript, scope: Scope) -> None:
        self._namespace(node.value, node.slice, scope)
        harmless = isinstance(node.ctx, ast.Store) and self._sets_library(node.value, node.slice, scope)
        self._push([node.slice] if harmless else [node.value, node.slice], scope)

    def _sets_library(self, held: ast.expr, key: ast.expr, scope: Scope) -> bool:
        """Return whether `os.environ["OMP_NUM_THREADS"] = …` sets up a library, and nothing else."""
        if not (isinstance(held, ast.Attribute) and held.attr == "environ" and isinstance(held.value, ast.Name)):
            return False
        path = scope.find(held.value.id, (held.value.lineno, held.value.col_offset))
        is_os = path == ("os",) if path is not None else held.value.id == "os"
        return is_os and isinstance(key, ast.Constant) and self._rules.settable(str(key.value))

    def _namespace(self, held: ast.expr, key: ast.expr, scope: Scope) -> None:
        """Judge `globals()["name"]` as `name`."""
        name = literal_text(key)
        if name and isinstance(held, ast.Call) and not held.args and last_name(held.func) in _NAMESPACES:
            self._name(ast.copy_location(ast.Name(name, ast.Load()), key), scope)

    def _listed_call(self, node: ast.Call, scope: Scope) -> None:
        names: list[str] = []
        root = node.func
        while isinstance(root, ast.Attribute):
            names.append(root.attr)
            root = root.value
        path = scope.find(root.id, (root.lineno, root.col_offset)) if isinstance(root, ast.Name) else OWN
        if path and path[0] == PLUGIN:
            return
        if names:
            dotted = ".".join((*path, *reversed(names))) if path else f".{names[0]}"
        elif isinstance(root, ast.Name) and path != OWN:
            dotted = ".".join(path or (root.id,))
        elif isinstance(root, ast.Name | ast.Lambda):  # the cell's own, and its body is judged
            return
        else:
            dotted = ast.unparse(root)
        self._add(node.lineno, self._rules.call(dotted))

    def _getter(self, node: ast.Call, name: str, scope: Scope) -> list[ast.expr]:
        """Judge `getattr(x, "name")` as `x.name`; give the arguments that are still to be judged."""
        attr = literal_text(node.args[1])
        if attr is None:
            return list(node.args[:2])
        chain = ast.copy_location(ast.Attribute(node.args[0], attr, ast.Load()), node)
        self._chain(chain, scope, called=node if name == "getattr" else None)
        return []

    def _operator(self, node: ast.Call) -> None:
        """Judge `attrgetter("a.b")` and `methodcaller("a")`, which take attributes by name."""
        for text in filter(None, map(literal_text, node.args)):
            for name in text.split("."):
                self._add(node.lineno, self._rules.attribute(name) or self._rules.method(name))
                self._add(node.lineno, self._rules.reached(name))

    def _code(self, node: ast.Call, arguments: Iterable[ast.expr], scope: Scope) -> None:
        """Judge the code in `timeit.timeit("code", setup="code")`."""
        for text in filter(None, map(literal_text, arguments)):
            with contextlib.suppress(SyntaxError, ValueError, RecursionError):  # then it is no code
                tree = ast.parse(text)
                for each in ast.walk(tree):
                    if isinstance(each, ast.expr | ast.stmt | ast.alias):
                        ast.copy_location(each, node)
                self._push(tree.body, scope)

    def _query(self, node: ast.Call, arguments: Iterable[ast.expr], scope: Scope) -> None:
        """Judge `df.query("a > @b.c")`: what follows an `@` pandas takes from the cell's variables."""
        if not self._rules.policy.dynamic and is_computed(node):
            self._add(node.lineno, EVALUATED)
        inner = Scope(scope)
        inner.own.add(COLUMN)
        for text in filter(None, map(literal_text, arguments)):
            for name in _DUNDER.findall(text):
                self._add(node.lineno, self._rules.attribute(name))
            body = parsed(text) or []
            for dotted in _AT_NAME.findall(text):  # also where it is no Python
                body += parsed(f"@{dotted.strip('.')}") or []
            for each in (each for statement in body for each in ast.walk(statement)):
                if isinstance(each, ast.expr | ast.stmt):
                    ast.copy_location(each, node)
                if isinstance(each, ast.Attribute):
                    self._add(node.lineno, self._rules.in_expression(each.attr))
            self._push(body, inner)

    def _match_class(self, node: ast.MatchClass, scope: Scope) -> None:
        for name in node.kwd_attrs:
            self._add(node.lineno, self._rules.attribute(name) or self._rules.reached(name))
        self._add(node.lineno, self._rules.evaluator(node.kwd_attrs))
        self._push([node.cls, *node.patterns, *node.kwd_patterns], scope)

    _visits: ClassVar[Visits] = {
        **NameJudge._visits,
        ast.Call: _call,
        ast.MatchClass: _match_class,
        ast.Subscript: _subscript,
    }
