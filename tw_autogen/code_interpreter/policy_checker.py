"""`PolicyChecker`: one visitor over a cell's syntax tree, which asks a `RuleSet` about each name, call and text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from tw_autogen.code_interpreter import syntax
from tw_autogen.code_interpreter.policy import PLUGIN, RuleSet
from tw_autogen.code_interpreter.rules import FORMULA_MODULES, PURE_MODULES, RUN_TEXT, Finding
from tw_autogen.code_interpreter.syntax import OWN, ModulePath, Scope, Values, chain, last_name, literal_text

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
OnShellCall = Callable[[ast.Call], bool]
"""Called with each `get_ipython().…(…)`; returns whether the call was checked."""

_GETTERS = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_QUERY_OPTIONS = frozenset(
    {"expr", "inplace", "parser", "engine", "truediv", "local_dict", "global_dict", "resolvers", "level", "target"}
)
_STYLER_OPTIONS = frozenset({"precision", "subset", "formatter", "na_rep", "thousands", "decimal", "escape"})
_DUNDER = re.compile(r"__\w+__")
_AT_NAME = re.compile(r"@\s*[A-Za-z_]\w*(?:\.\w+)*")
_HANDED = "'getattr' may be called, but not handed around"
EVALUATED = Finding(
    0,
    "function",
    "'.eval' and '.query' of a text that is not written out in the call are not allowed",
    "Write the expression in the call, with `@name` for values, such as `df.query('a > @limit')`, or plain Python; "
    "`query` of a search tree passes with its `k=`.",
)
_RUN_LATER = Finding(
    0,
    "function",
    "text that is run or read as a format, formula, annotation, style or setting must be written out",
    "Write the text where it is used, in one piece.",
)


class PolicyChecker(ast.NodeVisitor):
    """Check one tree: imports, names, attributes, calls with their arguments, texts and class patterns.

    Args:
        tree: Of a cell, after IPython's transformation.
        rules: What to ask.
        plugins: Names of functions that exist in the kernel.
        own: Names of variables that exist in the kernel, and stand for what earlier cells have put there.
        on_shell_call: See `OnShellCall`.
    """

    def __init__(
        self,
        tree: ast.Module,
        rules: RuleSet,
        *,
        plugins: Iterable[str],
        own: Iterable[str],
        on_shell_call: OnShellCall,
    ) -> None:
        self._tree = tree
        self._rules = rules
        self._strict = not rules.policy.dynamic
        self._plugins = frozenset(plugins)
        self._on_shell_call = on_shell_call
        self._findings: list[Finding] = []
        self._refused: set[str] = set()
        self._uses: list[tuple[Finding, str]] = []
        self._log: list[str] = []
        self._values = Values(tree)
        self._module = self._scope = Scope()
        self._module.paths.update({name: (PLUGIN, name) for name in self._plugins})
        self._deleted = self._module.read(tree.body)[1]
        self._module.paths.update({name: (PLUGIN, name) for name in self._plugins})
        self._module.own.update(name for name in own if name not in self._deleted)

    def run(self) -> list[Finding]:
        """Check the tree, once.

        Returns:
            The findings, with lines of the tree. A refused import is reported once, without each use of it.
        """
        for statement in self._tree.body:
            self.visit(statement)
        found = self._findings + [finding for finding, root in self._uses if root not in self._refused]
        refused = {finding.line for finding in found if finding.kind == "function"}
        return [finding for finding in found if finding.kind != "file" or finding.line not in refused]

    def _add_finding(self, node: ast.AST, finding: Finding | None, *, end: bool = False) -> None:
        if finding:
            line = getattr(node, "end_lineno" if end else "lineno", None) or 1
            self._findings.append(finding.at(line))

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # Scopes and bindings

    def _visit_in_scope(self, scope: Scope, nodes: Iterable[ast.AST | None]) -> None:
        outer, self._scope = self._scope, scope
        self._visit_all(nodes)
        self._scope = outer

    def _visit_conditional_block(self, *nodes: ast.AST | str) -> None:
        """Visit nodes, or bind names, whose bindings hold no longer than to the last of them: the block may not run."""
        before = len(self._log)
        for node in nodes:
            if isinstance(node, str):
                self._bind(node, None)
            else:
                self.visit(node)
        while len(self._log) > before:
            self._module.own.discard(self._log.pop())

    def _bind(self, name: str, node: ast.AST | None) -> None:
        if self._scope is not self._module:
            return
        if name in self._plugins and node is not None:
            remedy = f"Choose another name; {name!r} stays the plugin."
            self._add_finding(node, Finding(0, "plugin", f"{name!r} is a plugin and may not be replaced", remedy))
        if name not in self._module.own and name not in self._deleted:
            self._module.own.add(name)
            self._log.append(name)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        every = syntax.arguments(node.args)
        self._add_finding(node, self._rules.check_definition(node.name))
        self._visit_all([*node.args.defaults, *node.args.kw_defaults, *node.decorator_list])
        self._check_annotations([node.returns, *(argument.annotation for argument in every)])
        scope = Scope(self._scope)
        bound, elsewhere = scope.read(node.body)
        scope.own = (bound - elsewhere - scope.paths.keys()).union(argument.arg for argument in every)
        self._visit_in_scope(scope, node.body)
        self._bind(node.name, node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all([*node.args.defaults, *node.args.kw_defaults])
        self._visit_in_scope(
            Scope(self._scope, (argument.arg for argument in syntax.arguments(node.args))), [node.body]
        )

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        self._visit_in_scope(Scope(self._scope), node.body)
        self._bind(node.name, node)

    def visit_ListComp(self, node: Comprehension) -> None:
        targets = (
            each.id
            for generator in node.generators
            for each in ast.walk(generator.target)
            if isinstance(each, ast.Name)
        )
        inner = Scope(self._scope, targets)
        for i, generator in enumerate(node.generators):
            self._visit_in_scope(inner if i else self._scope, [generator.iter])
            self._visit_in_scope(inner, [generator.target, *generator.ifs])
        self._visit_in_scope(inner, [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                self._check_option(target, "", target.attr, node.value)
            if isinstance(target, ast.Subscript) and self._is_settings(target.value):
                self._check_settings(target, [target.slice])
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self._is_settings(node.target):
            self._check_settings(node, [node.value])
        self._visit_all([node.value, node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._check_annotations([node.annotation])
        self._visit_all([node.value])
        if node.value is not None or not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._visit_conditional_block(node.target)  # it may not run: `0 and (x := 1)`

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._visit_conditional_block(node.target, *node.body)
        self._visit_conditional_block(*node.orelse)

    visit_AsyncFor = visit_For

    def visit_If(self, node: ast.If | ast.While | ast.Try) -> None:
        """Visit the fields of `if`, `while` and `try`; each list in them is a block that may not run."""
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                self._visit_conditional_block(*value)
            else:
                self.visit(value)

    visit_While = visit_Try = visit_TryStar = visit_If

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._visit_all([node.type])
        self._visit_conditional_block(*([node.name] if node.name else []), *node.body)

    def visit_match_case(self, node: ast.match_case) -> None:
        names = filter(None, map(syntax.bound_name, ast.walk(node.pattern)))
        self._visit_conditional_block(*names, node.pattern, *([node.guard] if node.guard else []), *node.body)

    def visit_Global(self, node: ast.Global) -> None:
        for name in self._plugins.intersection(node.names):
            self._visit_in_scope(self._module, [ast.copy_location(ast.Name(name, ast.Store()), node)])

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom) and node.level:
            message = "relative import is not allowed: a cell is in no package"
            return self._add_finding(node, Finding(0, "module", message, "Import the module by its full name."))
        for alias, path, name in syntax.imported(node):
            self._check_import(alias, path, name=alias.asname or path[-1])
            self._bind(name, alias)

    visit_ImportFrom = visit_Import

    def _check_import(self, node: ast.AST, path: ModulePath, *, name: str) -> None:
        finding = self._rules.star(path[:-1]) if path[-1] == "*" else self._rules.path(path, importing=True)
        finding = finding or self._rules.check_import_alias(path, name)
        if finding:
            self._refused.update((".".join(path), path[0]))
            self._add_finding(node, finding)

    # Names and attributes

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._add_finding(node, self._rules.check_definition(node.id))
            self._bind(node.id, node)
            return
        path = self._scope.find(node.id)
        if path != OWN:
            self._check_path(node, path, ())
            if path is None and node.id == "getattr":  # a call of it is not visited here
                self._add_finding(
                    node, Finding(0, "function", _HANDED, "Write the attributes out, or a function that calls it.")
                )

    def _check_path(self, node: ast.Name, path: ModulePath | None, names: ModulePath) -> bool:
        """Check a name with the attributes after it; return whether it is in a module."""
        guess = None
        if path is None:
            finding = self._rules.name(node.id)
            self._add_finding(node, finding)
            guess = None if finding else syntax.assumed(node.id, names)
        whole = path or guess
        if not whole:
            return False
        finding = self._rules.path(whole + names, guessed=path is None)
        if finding:
            self._uses.append((finding.at(node.lineno), whole[0]))
        return True

    def visit_Attribute(self, node: ast.Attribute, call: ast.Call | None = None) -> None:
        """Check `root.a.b.c` as a whole, called by `call`, and then the root if it is no plain name.

        Args:
            node: The attribute.
            call: The call of which it is the function; None: it is not called.
        """
        each: ast.expr = node
        while isinstance(each, ast.Attribute):
            self._add_finding(each, self._rules.attribute(each.attr), end=True)
            each = each.value
        root, names = chain(node)
        in_module = False
        if isinstance(root, ast.Name):
            path = self._scope.find(root.id)
            in_module = path != OWN and self._check_path(root, path, names)
        else:
            self.visit(root)
        if in_module and "__dict__" in names:
            message = "'__dict__' of a module is not allowed"
            self._add_finding(node, Finding(0, "attribute", message, "Name what you need."))
        taken = names[:-1] if call else names
        if self._strict and not {"eval", "query"}.isdisjoint(taken):
            self._add_finding(node, EVALUATED, end=True)
        if self._strict and taken[-1:] in (("format",), ("format_map",)) and not isinstance(root, ast.Name):
            self._run_text(node, node.value if not call else root)
        if in_module:
            return
        for name in taken:
            self._add_finding(
                node, self._rules.check_nested_module(name) or self._rules.method(name, called=False), end=True
            )
        if call:
            self._add_finding(node, self._rules.call(names[-1], call), end=True)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._add_finding(node, self._rules.attribute(name) or self._rules.check_dynamic_attribute(name))
            if self._strict and name in ("eval", "query"):
                self._add_finding(node, EVALUATED)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._check_namespace_item(node.value, node.slice)
        root, names = chain(node.value)
        if isinstance(node.ctx, ast.Store) and isinstance(root, ast.Name) and names == ("environ",):
            path = self._scope.find(root.id)
            is_os = root.id == "os" if path is None else path == ("os",)
            if is_os and isinstance(node.slice, ast.Constant) and self._rules.may_set_env(str(node.slice.value)):
                return
        self._visit_all([node.value, node.slice])

    def _check_namespace_item(self, held: ast.expr, key: ast.expr) -> None:
        """Check `globals()["name"]` as `name`."""
        name = literal_text(key)
        if name and isinstance(held, ast.Call) and ast.unparse(held) in ("globals()", "locals()", "vars()"):
            self.visit_Name(ast.copy_location(ast.Name(name, ast.Load()), key))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._add_finding(node, self._rules.check_literal(node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        text = literal_text(node)
        self._add_finding(node, self._rules.check_literal(text) if text else None)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Check the literals of a sum together: `"__cla" + "ss__"` is one text."""
        pieces: list[str] = []
        for operand in [*syntax.operands(node), None]:
            text = literal_text(operand) if operand is not None and isinstance(node.op, ast.Add) else None
            if text is not None:
                pieces.append(text)
                continue
            if pieces:
                self._add_finding(node, self._rules.check_literal("".join(pieces)))
                pieces.clear()
            self._visit_all([operand])

    def _check_annotations(self, nodes: Iterable[ast.expr | None]) -> None:
        """Check annotations; where a text in one could be run later (`strict`), it must be written out."""
        for node in filter(None, nodes):
            self.visit(node)
            if self._strict and any(map(self._values.may_build_text, ast.walk(node))):
                self._add_finding(node, _RUN_LATER)

    def _run_text(self, node: ast.AST, value: ast.expr) -> None:
        """Check a text that a library runs, or the texts of a dict; what it is must be seen here."""
        for inner in value.values if isinstance(value, ast.Dict) else [value]:
            texts = self._values.texts(inner)
            if texts is None and not self._values.is_number(inner):
                self._add_finding(node, _RUN_LATER)
            for text in texts or ():
                self._add_finding(node, self._rules.check_literal(f"~{text}") or self._rules.place(text, names=True))

    # Calls

    def visit_Call(self, node: ast.Call) -> None:
        func, name = node.func, last_name(node.func)
        if syntax.is_shell_call(node) and self._on_shell_call(node):
            return
        if self._rules.policy.functions is not None:
            self._listed_call(node)
        given: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(func, ast.Attribute):
            self.visit_Attribute(func, node)
        elif not (isinstance(func, ast.Name) and func.id == "getattr"):
            self.visit(func)
        if isinstance(func, ast.Name) and func.id in _GETTERS:
            given = self._check_getattr(node, func) + given[2:]
        self._text_arguments(node, name, given)
        if self._strict:
            wrapped = node.args[0] if name == "partial" and node.args else func
            function = self._dotted_path(wrapped)[-1:]
            for keyword in node.keywords:
                self._check_keyword(node, function[0] if function else name, keyword)
            self._run_texts(node, wrapped, node.args if wrapped is func else node.args[1:])
            self._methods_by_name(node)
            for argument in given if name != "print" else ():
                for item in argument.elts if isinstance(argument, ast.List | ast.Tuple | ast.Set) else [argument]:
                    self._add_finding(node, self._rules.place(literal_text(item) or ""))
        self._visit_all(given)

    def _text_arguments(self, node: ast.Call, name: str, given: list[ast.expr]) -> None:
        """Check the literal texts of a call that name attributes, variables or a module, or that are code."""
        if name in ("get", "pop", "setdefault") and node.args and isinstance(node.func, ast.Attribute):
            self._check_namespace_item(node.func.value, node.args[0])
        elif name in ("eval", "query") and isinstance(node.func, ast.Attribute):
            self._check_query(node)
        elif name in ("attrgetter", "methodcaller"):
            for attribute in ".".join(filter(None, map(literal_text, node.args))).split("."):
                self._add_finding(node, self._rules.attribute(attribute) or self._rules.method(attribute))
                self._add_finding(node, self._rules.check_dynamic_attribute(attribute))
        elif name in ("timeit", "repeat", "Timer"):
            for text in filter(None, map(literal_text, given)):
                self._visit_all(syntax.parse_at(text, node))
        for option, value in zip(node.args, node.args[1:], strict=False):
            if literal_text(option) == "plotting.backend" and (module := literal_text(value)):
                self._add_finding(node, self._rules.path((module,), importing=True))

    def _check_keyword(self, node: ast.Call, name: str, keyword: ast.keyword) -> None:
        """Check a keyword for what only `strict` refuses; also those in `**{"name": …}`."""
        takes_files = name.endswith("Vectorizer") or name in ("set_params", "rc")
        if keyword.arg is None and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                texts = self._values.texts(key) if key is not None else None
                for text in texts or ():
                    self._check_option(node, name, text, value)
                self._add_finding(node, _RUN_LATER if takes_files and texts is None else None)
        elif keyword.arg is None:
            self._add_finding(node, _RUN_LATER if name.endswith("Vectorizer") else None)
        else:
            self._check_option(node, name, keyword.arg, keyword.value)
            self._check_settings(node, [keyword.value] if keyword.arg == "rc" else [])
            if "formula" in keyword.arg or keyword.arg == RUN_TEXT.get(name):
                self._run_text(node, keyword.value)

    def _dotted_path(self, node: ast.expr) -> ModulePath:
        """Return the names in `a.b.c`, where `a` may stand for a path of its own."""
        root, names = chain(node)
        return (self._scope.find(root.id) or (root.id,)) + names if isinstance(root, ast.Name) else names

    def _is_settings(self, node: ast.expr) -> bool:
        return self._strict and self._dotted_path(node)[-1:] in (("rcParams",), ("rcParamsDefault",))

    def _run_texts(self, node: ast.Call, func: ast.expr, given: list[ast.expr]) -> None:
        """Check the texts that a library runs, or takes as a format, a formula, a style or a setting."""
        path = self._dotted_path(func)
        name = path[-1] if path else ""
        first: list[ast.expr] = given[:1]
        if (name in RUN_TEXT and (RUN_TEXT[name] != "style" or "style" in path)) or ".".join(
            path[:2]
        ) in FORMULA_MODULES:
            for argument in [*first, *(literal for literal in given[1:] if isinstance(literal, ast.Dict))]:
                self._run_text(node, argument)
        elif name in ("format", "format_map") and isinstance(func, ast.Attribute):
            styled = "style" in "".join(path) or (first and isinstance(first[0], ast.Dict) and name == "format")
            styled = styled or any(keyword.arg in _STYLER_OPTIONS for keyword in node.keywords)
            for argument in (first if path[-2:-1] == ("str",) else [func.value]) if not styled else ():
                self._run_text(node, argument)
        elif name in ("set_option", "option_context", "rc"):
            self._check_settings(node, given[::2])
        elif name == "rc_context" or (isinstance(func, ast.Attribute) and self._is_settings(func.value)):
            self._check_settings(node, first)

    def _check_option(self, node: ast.AST, function: str, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Constant) and not isinstance(value.value, str) and name != "usetex":
            return
        self._add_finding(node, self._rules.option(function, name, literal_text(value)))

    def _check_settings(self, node: ast.AST, keys: Iterable[ast.expr]) -> None:
        """Check the names of settings of matplotlib or pandas; a dict stands for its keys."""
        for key in keys:
            for value in self._values.keys(key):
                texts = None if value is None else self._values.texts(value)
                if texts is None:
                    self._add_finding(node, _RUN_LATER)
                for text in texts or ():
                    self._add_finding(node, self._rules.setting(text))

    def _methods_by_name(self, node: ast.Call) -> None:
        """Check `df.apply("to_csv")` and its like, with a name that may be a variable or put together."""
        for way in self._values.named_methods(node):
            text = literal_text(way)
            if text in ("eval", "query") or (text is None and self._values.is_computed(way)):
                self._add_finding(node, EVALUATED)
            elif text:
                self._add_finding(node, self._rules.method(text))

    def _check_getattr(self, node: ast.Call, func: ast.Name) -> list[ast.expr]:
        """Check `getattr(x, "name")` as `x.name`; return the arguments that are still to be visited."""
        held = node.args[0] if node.args else func
        texts = self._values.texts(node.args[1]) if len(node.args) > 1 else None
        root, names = chain(held)
        path = (self._scope.find(root.id) or ()) + names if isinstance(root, ast.Name) else ()
        known = self._scope.find(func.id)
        allowed = self._strict and known is None and (bool(texts) or ".".join(path) in PURE_MODULES)
        if func.id == "getattr" and known != OWN and not allowed:
            self._check_path(func, known, ())
        for text in texts or ():
            called = node if func.id == "getattr" else None
            self.visit_Attribute(ast.copy_location(ast.Attribute(held, text, ast.Load()), node), called)
        return [] if texts else list(node.args[:2])

    def _check_query(self, node: ast.Call) -> None:
        """Check `df.query("a > @b.c")`: what follows an `@` pandas takes from the cell's variables."""
        if any(keyword.arg and keyword.arg not in _QUERY_OPTIONS for keyword in node.keywords):
            return  # pandas has no such option: this is no call of it
        run = node.args[:1] or [keyword.value for keyword in node.keywords if keyword.arg in ("expr", None)]
        texts: list[str] = []
        for argument in run:
            found = self._values.texts(argument)
            texts += found or ()
            if found is None and self._strict and not self._values.is_number(argument):
                self._add_finding(node, EVALUATED)
        scope = Scope(self._scope, [syntax.COLUMN])
        for text in texts:
            for name in _DUNDER.findall(text):
                self._add_finding(node, self._rules.attribute(name) or self._rules.check_dunder_in_expression(name))
            for part in [text, *_AT_NAME.findall(text)]:  # the variables also where the text is no Python
                self._visit_in_scope(scope, syntax.parse_pandas_expression(part, node))

    def _listed_call(self, node: ast.Call) -> None:
        """Check a call under a list of functions that may be called."""
        root, names = chain(node.func)
        path = self._scope.find(root.id) if isinstance(root, ast.Name) else OWN
        own = not names and path == OWN and isinstance(root, ast.Name | ast.Lambda)  # its body is checked
        if own or (path and path[0] == PLUGIN):
            return
        dotted = ".".join((*path, *names)) if path else f".{names[-1]}" if names else ast.unparse(root)
        self._add_finding(node, self._rules.unlisted_function(dotted))
