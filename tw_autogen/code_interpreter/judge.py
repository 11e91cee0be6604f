"""The walk over a cell's syntax tree that asks a policy's rules about each import, name, path and call."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from tw_autogen.code_interpreter.expressions import COLUMN, EVALUATORS, assigned, is_computed, parsed, takes_evaluator
from tw_autogen.code_interpreter.literals import is_shell_call, last_name, literal_text, opens_files
from tw_autogen.code_interpreter.names import (
    OWN,
    PLUGIN,
    Function,
    Path,
    Scope,
    assumed,
    bindings,
    comprehension_scope,
    function_scope,
    module_scope,
)
from tw_autogen.code_interpreter.rules import EVALUATED, Fault, Rules

_GETTERS = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_NAMESPACES = frozenset({"globals", "locals", "vars"})
_DUNDER = re.compile(r"__\w+__")
_AT_NAME = re.compile(r"@\s*([A-Za-z_][\w.]*)")
_RELATIVE = Fault(
    "module", "relative import is not allowed: a cell is in no package", "Import the module by its full name."
)

_HANDED_GETATTR = Fault(
    "function",
    "'getattr' may be called, but not handed around",
    "Write the attributes out, or a function that calls it.",
)

OnCode = Callable[[ast.Call, int], bool]
"""Called with each `get_ipython().…(…)` and its line; tells whether it was dealt with."""


class Judge:
    """Walks one tree.

    Args:
        tree: Of a cell, after IPython's transformation.
        rules: What to ask.
        plugins: Names of functions that exist in the kernel.
        on_shell_call: See `OnCode`.

    Attributes:
        faults: What was found, with the tree's line.
    """

    def __init__(self, tree: ast.Module, rules: Rules, *, plugins: Iterable[str], on_shell_call: OnCode) -> None:
        self.faults: list[tuple[int, Fault]] = []
        self._rules = rules
        self._tree = tree
        self._on_shell_call = on_shell_call
        self._refused: set[str] = set()
        self._uses: list[tuple[int, Fault, str]] = []
        self._plugins = frozenset(plugins)
        bound = list(bindings(tree.body))
        for name, _, _, node in bound:
            self._rebound(name, node)
        self._todo: list[tuple[ast.AST, Scope]] = [(tree, module_scope(bound, self._plugins))]
        while self._todo:  # a list instead of recursion: a cell may be nested deeper than Python's stack
            node, scope = self._todo.pop()
            visit = _VISITS.get(type(node))
            if visit:
                visit(self, node, scope)
            else:
                self._push(ast.iter_child_nodes(node), scope)
        # one finding for a refused import or function is enough; each use of it, or its file, would only repeat it
        self.faults += [(line, fault) for line, fault, root in self._uses if root not in self._refused]
        refused = {line for line, fault in self.faults if fault.kind == "function"}
        self.faults = [(line, fault) for line, fault in self.faults if fault.kind != "file" or line not in refused]

    @cached_property
    def _values(self) -> dict[str, list[ast.expr]]:
        return assigned(self._tree)

    def _push(self, nodes: Iterable[ast.AST | None], scope: Scope) -> None:
        self._todo.extend((node, scope) for node in nodes if node is not None)

    def _add(self, line: int, fault: Fault | None) -> None:
        if fault:
            self.faults.append((line, fault))

    def _rebound(self, name: str, node: ast.AST) -> None:
        if name in self._plugins:
            remedy = f"Choose another name; {name!r} stays the plugin."
            self._add(
                getattr(node, "lineno", 1), Fault("plugin", f"{name!r} is a plugin and may not be replaced", remedy)
            )

    # Imports

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            path = tuple(alias.name.split("."))
            fault = self._rules.path(path, importing=True)
            if fault is None and alias.asname not in (None, path[-1]):
                fault = self._rules.renamed(path)
            self._refuse(node, fault, path)

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        if node.level:
            self._add(node.lineno, _RELATIVE)
            return
        module = tuple((node.module or "").split("."))
        for alias in node.names:
            path = (*module, alias.name)
            if alias.name == "*":
                fault = self._rules.star(module)
            else:
                fault = self._rules.path(path, importing=True)
                if fault is None and alias.asname not in (None, alias.name):
                    fault = self._rules.renamed(path)
            self._refuse(alias, fault, path)

    def _refuse(self, node: ast.Import | ast.alias, fault: Fault | None, path: Path) -> None:
        if fault:
            self._refused.add(".".join(path))
            self._refused.add(path[0])
            self._add(node.lineno, fault)

    # Names and paths

    def _name(self, node: ast.Name, scope: Scope) -> None:
        path = scope.find(node.id, (node.lineno, node.col_offset))
        if isinstance(node.ctx, ast.Load) and path != OWN:
            self._known(node, path, ())
            if path is None and node.id == "getattr":  # a call of it doesn't come here
                self._add(node.lineno, _HANDED_GETATTR)
        elif not isinstance(node.ctx, ast.Load):
            self._add(node.lineno, self._rules.defined(node.id))

    def _known(self, node: ast.Name, path: Path | None, names: Path) -> bool:
        """Judge a name, or what stands behind its dots; tell whether it is in a module."""
        guess = None
        if path is None:
            fault = self._rules.name(node.id)
            self._add(node.lineno, fault)
            guess = None if fault else assumed(node.id)
        whole = path or guess
        if not whole:
            return False
        fault = self._rules.path(whole + names, assumed=path is None)
        if fault:
            self._uses.append((node.lineno, fault, whole[0]))
        return True

    def _attribute(self, node: ast.Attribute, scope: Scope) -> None:
        self._chain(node, scope, called=None)

    def _chain(self, node: ast.Attribute, scope: Scope, *, called: ast.Call | None) -> None:
        """Judge `root.a.b.c` as a whole, and then the root if it is no plain name."""
        names: list[str] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            self._add(root.end_lineno or root.lineno, self._rules.attribute(root.attr))
            names.append(root.attr)
            root = root.value
        in_module = False
        if isinstance(root, ast.Name):
            path = scope.find(root.id, (root.lineno, root.col_offset))
            in_module = path != OWN and self._known(root, path, tuple(reversed(names)))
        else:
            self._todo.append((root, scope))
        if in_module and "__dict__" in names:
            self._add(node.lineno, Fault("attribute", "'__dict__' of a module is not allowed", "Name what you need."))
        self._add(node.end_lineno or node.lineno, self._rules.evaluator(names[1:] if called else names))
        if in_module:
            return
        for i, name in enumerate(names):  # the last name first
            if called and not i:
                fault = self._rules.call_of(name, called)
            else:
                fault = self._rules.inside(name) or self._rules.handed(name)
            self._add(node.end_lineno or node.lineno, fault)

    def _constant(self, node: ast.Constant, scope: Scope) -> None:
        if isinstance(node.value, str):
            self._add(node.lineno, self._rules.text(node.value))

    def _sum(self, node: ast.BinOp, scope: Scope) -> None:
        """Judge the literals of a sum together: `"__cla" + "ss__"` is one text."""
        if not isinstance(node.op, ast.Add):
            self._push([node.left, node.right], scope)
            return
        texts: list[str] = []
        operands: list[ast.expr] = [node]
        while operands:
            one = operands.pop()
            text = one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else None
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
                operands += [one.right, one.left]
                continue
            if text is not None:
                texts.append(text)
            else:
                self._todo.append((one, scope))
            if texts and (text is None or not operands):
                self._add(node.lineno, self._rules.text("".join(texts)))
                texts.clear()

    # Calls

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
        self._push([node.value, node.slice], scope)

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

    # Scopes

    def _function(self, node: Function, scope: Scope) -> None:
        inner = function_scope(node, scope)
        args = node.args
        self._push([*args.defaults, *args.kw_defaults], scope)
        if isinstance(node, ast.Lambda):
            self._push([node.body], inner)
            return
        self._add(node.lineno, self._rules.defined(node.name))
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        self._push([*node.decorator_list, node.returns, *(arg.annotation for arg in every if arg)], scope)
        self._push(node.body, inner)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope) -> None:
        inner = comprehension_scope(node, scope)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._push(results, inner)
        for i, generator in enumerate(node.generators):
            self._push([generator.iter], inner if i else scope)
            self._push([generator.target, *generator.ifs], inner)

    def _global(self, node: ast.Global, scope: Scope) -> None:
        for name in node.names:
            self._rebound(name, node)

    def _match_class(self, node: ast.MatchClass, scope: Scope) -> None:
        for name in node.kwd_attrs:
            self._add(node.lineno, self._rules.attribute(name) or self._rules.reached(name))
        self._add(node.lineno, self._rules.evaluator(node.kwd_attrs))
        self._push([node.cls, *node.patterns, *node.kwd_patterns], scope)


_VISITS: dict[type[ast.AST], Callable[[Judge, Any, Scope], None]] = {
    ast.Import: Judge._import,
    ast.ImportFrom: Judge._import_from,
    ast.Name: Judge._name,
    ast.Attribute: Judge._attribute,
    ast.Constant: Judge._constant,
    ast.BinOp: Judge._sum,
    ast.Call: Judge._call,
    ast.FunctionDef: Judge._function,
    ast.AsyncFunctionDef: Judge._function,
    ast.Lambda: Judge._function,
    ast.ListComp: Judge._comprehension,
    ast.SetComp: Judge._comprehension,
    ast.DictComp: Judge._comprehension,
    ast.GeneratorExp: Judge._comprehension,
    ast.Global: Judge._global,
    ast.MatchClass: Judge._match_class,
    ast.Subscript: Judge._subscript,
}
