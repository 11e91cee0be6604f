"""The judge of names: asks a policy's rules about each import, name, attribute and text of a cell's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from tw_autogen.code_interpreter.names import (
    OWN,
    Function,
    Path,
    Scope,
    assumed,
    bindings,
    comprehension_scope,
    function_scope,
    module_scope,
)
from tw_autogen.code_interpreter.rules import Fault, Rules

_RELATIVE = Fault(
    "module", "relative import is not allowed: a cell is in no package", "Import the module by its full name."
)

_HANDED_GETATTR = Fault(
    "function",
    "'getattr' may be called, but not handed around",
    "Write the attributes out, or a function that calls it.",
)

Visits = Mapping[type[ast.AST], Callable[[Any, Any, Scope], None]]
"""What judges a node of a kind; what no visit names is walked through."""


class NameJudge:
    """Judges imports, names, attributes and texts of one tree, each where it stands; a subclass may judge more nodes.

    Args:
        tree: Of a cell, after IPython's transformation.
        rules: What to ask.
        plugins: Names of functions that exist in the kernel.
    """

    def __init__(self, tree: ast.Module, rules: Rules, *, plugins: Iterable[str]) -> None:
        self._faults: list[tuple[int, Fault]] = []
        self._rules = rules
        self._tree = tree
        self._refused: set[str] = set()
        self._uses: list[tuple[int, Fault, str]] = []
        self._plugins = frozenset(plugins)
        bound = list(bindings(tree.body))
        for name, _, _, node in bound:
            self._rebound(name, node)
        self._todo: list[tuple[ast.AST, Scope]] = [(tree, module_scope(bound, self._plugins))]

    def run(self) -> list[tuple[int, Fault]]:
        """Judge the tree, once; give what was found, with the tree's lines."""
        while self._todo:  # a list instead of recursion: a cell may be nested deeper than Python's stack
            node, scope = self._todo.pop()
            visit = self._visits.get(type(node))
            if visit:
                visit(self, node, scope)
            else:
                self._push(ast.iter_child_nodes(node), scope)
        # one finding for a refused import or function is enough; each use of it, or its file, would only repeat it
        self._faults += [(line, fault) for line, fault, root in self._uses if root not in self._refused]
        refused = {line for line, fault in self._faults if fault.kind == "function"}
        self._faults = [(line, fault) for line, fault in self._faults if fault.kind != "file" or line not in refused]
        return self._faults

    def _push(self, nodes: Iterable[ast.AST | None], scope: Scope) -> None:
        self._todo.extend((node, scope) for node in nodes if node is not None)

    def _add(self, line: int, fault: Fault | None) -> None:
        if fault:
            self._faults.append((line, fault))

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

    _visits: ClassVar[Visits] = {
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Constant: _constant,
        ast.BinOp: _sum,
        ast.FunctionDef: _function,
        ast.AsyncFunctionDef: _function,
        ast.Lambda: _function,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.DictComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.Global: _global,
    }
