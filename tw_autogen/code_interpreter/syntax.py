"""What the syntax tree of a cell tells of its names and texts: scopes, module paths, texts that are put together."""

from __future__ import annotations

import ast
import re
import string
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from tw_autogen.code_interpreter.rules import METHODS_BY_NAME, RULES, SHARED_NAMES, USUAL_NAMES, WORDS
from tw_autogen.python_source import expression_of, parse

ModulePath = tuple[str, ...]

OWN: Final[ModulePath] = ()
"""What `Scope.find` returns for a name that holds a value of the cell's own."""

COLUMN: Final = "<column>"
"""Stands in a parsed expression for each name that is no variable of the cell."""

_ITEM = re.compile(r"\[[^\[\]]*\]")
_FIELD = re.compile(r"\w*(?:\.\w+|\[[^\[\]{}]*\])+")
_LOCAL = "__local_of_cell_"
_ASSUMED = (sys.stdlib_module_names.union(*(rule.modules for rule in RULES)) - WORDS) - {"this"}
_NUMBER_CALLS = frozenset({"int", "float", "len", "round", "abs"})
_MAX_TEXTS = 50
_TYPE_CALLS = frozenset({"TypeVar", "NewType", "ParamSpec", "namedtuple", "NamedTuple", "TypedDict", "Enum", "type"})
_NUMBER_FORMAT = re.compile(r"[ +\-#0-9,_.]*[bcdeEfFgGnoxX%]")
_QUOTED = re.compile(
    r"""'''.*?(?:'''|\Z)|\"\"\".*?(?:\"\"\"|\Z)|'[^'\\]*(?:\\.?[^'\\]*)*'?|"[^"\\]*(?:\\.?[^"\\]*)*"?|"""
    r"`[^`]*(?P<end>`)?",
    re.DOTALL,
)
"""A text or a quoted name; what is never closed goes to the end."""
_AT = re.compile(r"@\s*(?=[^\W\d])")


class Scope:
    """The names of a module, function, class or comprehension.

    In a function a bound name is local from its first line to its last, so a built-in of that name is out of reach.
    In a module a name is the cell's own only after its binding, where the binding has surely run.

    Args:
        outer: The scope around it.
        own: Names that hold values of the cell's own.
    """

    def __init__(self, outer: Scope | None = None, own: Iterable[str] = ()) -> None:
        self.outer = outer
        self.paths: dict[str, ModulePath] = {}
        self.own = set(own)

    def find(self, name: str) -> ModulePath | None:
        """Return the path of a module or of a part of one, `OWN`, or None for a built-in and an unknown name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.paths:
                return scope.paths[name]
            if name in scope.own:
                return OWN
            scope = scope.outer
        return None

    def read(self, body: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
        """Note the modules that statements bind; return the names that they bind, and those they delete or declare."""
        bound: set[str] = set()
        elsewhere: set[str] = set()
        for node in _nodes_of_scope(body):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                (bound if isinstance(node.ctx, ast.Store) else elsewhere).add(node.id)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                elsewhere.update(node.names)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias, path, name in imported(node):
                    self.paths[name] = path if alias.asname or isinstance(node, ast.ImportFrom) else path[:1]
            elif isinstance(node, ast.Assign):
                for target, value in pairs(node):
                    self._bind_alias(target, value)
            elif defined := bound_name(node):
                bound.add(defined)
        return bound, elsewhere

    def _bind_alias(self, target: ast.expr, value: ast.expr) -> None:
        root, names = chain(value)
        if isinstance(target, ast.Name) and isinstance(root, ast.Name):
            path = self.find(root.id)
            if path is None and root.id in USUAL_NAMES:
                path = assumed(root.id, names)
            if path:
                self.paths[target.id] = path + names


def assumed(name: str, attributes: ModulePath = ()) -> ModulePath | None:
    """Return the module that a name probably stands for which this cell doesn't bind: an earlier one may import it.

    Args:
        name: As the cell uses it.
        attributes: What is taken from it.
    """
    if name in SHARED_NAMES and not SHARED_NAMES[name].intersection(attributes[:1]):
        return None
    if name in USUAL_NAMES:
        return tuple(USUAL_NAMES[name].split("."))
    return (name,) if name in _ASSUMED else None


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[ast.alias, ModulePath, str]]:
    """Yield each alias of an import, with the path that it names in full, and the name that it binds."""
    module = () if isinstance(node, ast.Import) else tuple((node.module or "").split("."))
    for alias in node.names:
        path = (*module, alias.name) if module else tuple(alias.name.split("."))
        yield alias, path, alias.asname or (alias.name if module else path[0])


def arguments(args: ast.arguments) -> list[ast.arg]:
    """Return all arguments of a function."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return [argument for argument in every if argument]


def chain(node: ast.expr) -> tuple[ast.expr, ModulePath]:
    """Return the root of `root.a.b.c`, and the names after it."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return node, tuple(reversed(names))


def last_name(node: ast.expr) -> str:
    """Return the last name of `a.b.c`; empty for what is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_shell_call(node: ast.Call) -> bool:
    """Return whether it is `get_ipython().…(…)`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "get_ipython"


def pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a node binds, each target with its value; the items of a literal after `for … in`."""
    targets: list[ast.expr] = []
    values: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets, values = node.targets, [node.value]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        targets, values = [node.target], [node.value]
    elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.List | ast.Tuple | ast.Set):
        targets, values = [node.target], node.iter.elts
    for target in targets:
        for value in values:
            if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
                yield from zip(target.elts, value.elts, strict=False)
            else:
                yield target, value


def bound_name(node: ast.AST) -> str | None:
    """Return the name that a node binds by itself: a definition, an argument, a capture, an exception."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
        return node.name
    if isinstance(node, ast.MatchAs | ast.MatchStar):
        return node.name
    if isinstance(node, ast.MatchMapping):
        return node.rest
    return node.arg if isinstance(node, ast.arg) else None


def _nodes_of_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of statements in their order, without the insides of functions, classes and comprehensions."""
    todo = list(body)[::-1]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            todo += [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
        else:
            todo += list(ast.iter_child_nodes(node))[::-1]


def operands(node: ast.BinOp) -> list[ast.expr]:
    """Return what one operator joins in `a + b + c`, in its order."""
    found: list[ast.expr] = []
    todo: list[ast.expr] = [node]
    while todo:
        operand = todo.pop()
        if isinstance(operand, ast.BinOp) and type(operand.op) is type(node.op):
            todo += [operand.right, operand.left]
        else:
            found.append(operand)
    return found


def literal_text(node: ast.expr) -> str | None:
    """Return the text that a literal, a sum of literals, or a literal that joins literals stands for.

    Example:
        >>> literal_text(ast.parse("'-'.join(['a', 'b' + 'c'])", mode="eval").body)
        'a-bc'
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    parts, separator = None, ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = operands(node)
    elif isinstance(node, ast.JoinedStr):
        parts = node.values
    elif isinstance(node, ast.FormattedValue) and node.conversion == -1 and node.format_spec is None:
        parts = [node.value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args:
        separator = literal_text(node.func.value) or ""
        parts = node.args[0].elts if isinstance(node.args[0], ast.List | ast.Tuple) else None
    texts = [literal_text(part) for part in parts or ()]
    return None if parts is None or None in texts else separator.join(filter(None, texts))


def parse_at(text: str, place: ast.AST) -> list[ast.stmt]:
    """Return the statements of a text, all at the place of a node; none if it is no Python.

    Args:
        text: Python that a call runs.
        place: The node whose line and column the statements get.
    """
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for each in ast.walk(tree):
        if isinstance(each, ast.expr | ast.stmt | ast.alias):
            ast.copy_location(each, place)
    return tree.body


def parse_pandas_expression(text: str, place: ast.AST) -> list[ast.stmt]:
    """Return the statements of an expression that pandas runs, line by line, with `COLUMN` for names without `@`.

    Args:
        text: As for `DataFrame.query` and `eval`.
        place: The node whose line and column the statements get.

    Example:
        >>> [ast.unparse(one) for one in parse_pandas_expression("`unit price` > @limit", ast.Name("x"))]
        ['<column> > limit']
    """
    plain = _QUOTED.sub(lambda match: "_" if match["end"] else match[0], text)
    marked = "\n".join(filter(None, map(str.strip, _AT.sub(_LOCAL, plain).splitlines())))
    body = parse_at(marked, place)  # `a & not b` is right for pandas
    body = body or parse_at(marked.replace("&", " and ").replace("|", " or "), place)
    for node in (node for statement in body for node in ast.walk(statement)):
        if isinstance(node, ast.Name):
            node.id = node.id.removeprefix(_LOCAL) if node.id.startswith(_LOCAL) else COLUMN
    return body


class Values:
    """What the variables of a cell are set to, wherever that happens, and the texts that they may hold.

    Args:
        tree: Of the cell.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.known: dict[str, list[ast.expr]] = {}
        self._unsure: set[str] = set()  # arguments, captures, targets of `with`, and so on
        targets: set[ast.AST] = set()
        for node in ast.walk(tree):
            for target, value in pairs(node):
                if isinstance(target, ast.Name):
                    self.known.setdefault(target.id, []).append(value)
                    targets.add(target)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in targets:
                self._unsure.add(node.id)
            elif name := bound_name(node):
                self._unsure.add(name)

    def texts(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> list[str] | None:
        """Return the texts that an expression may come to, with `0` for numbers in formatted ones; None if unknown.

        Args:
            node: An expression that is used as a text.
            seen: Names that are being looked up, which ends circles.
        """
        if isinstance(node, ast.Name) and node.id in self.known and node.id not in seen | self._unsure:
            return self._texts_of_all(self.known[node.id], seen | {node.id})
        if isinstance(node, ast.IfExp):
            return self._texts_of_all([node.body, node.orelse], seen)
        if isinstance(node, ast.FormattedValue) and self.is_number(node.value, node.format_spec):
            return ["0"]
        if isinstance(node, ast.FormattedValue) and node.format_spec is None and node.conversion in (-1, 115):
            return self.texts(node.value, seen)
        text = literal_text(node)
        if text is not None:
            return [text]
        if not isinstance(node, ast.JoinedStr) and not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
            return None
        texts = [""]
        for part in node.values if isinstance(node, ast.JoinedStr) else operands(node):
            more = self.texts(part, seen)
            if more is None or len(texts) * len(more) > _MAX_TEXTS:
                return None
            texts = [first + second for first in texts for second in more]
        return texts

    def _texts_of_all(self, nodes: Iterable[ast.expr], seen: frozenset[str]) -> list[str] | None:
        found: list[str] = []
        for node in nodes:
            texts = self.texts(node, seen)
            if texts is None or len(found) > _MAX_TEXTS:
                return None
            found += texts
        return found

    def is_number(self, node: ast.expr, spec: ast.expr | None = None) -> bool:
        """Return whether it is a number, or a list of them, or formatted as one.

        Args:
            node: The expression.
            spec: The format after the colon, if it stands in a formatted text.
        """
        if spec is not None and _NUMBER_FORMAT.fullmatch(literal_text(spec) or ""):
            return True
        if isinstance(node, ast.Constant):
            return not isinstance(node.value, str | bytes)
        if isinstance(node, ast.List | ast.Tuple):
            return all(map(self.is_number, node.elts))
        if isinstance(node, ast.UnaryOp):
            return self.is_number(node.operand)
        if isinstance(node, ast.Name) and node.id in self.known and node.id not in self._unsure:
            return all(isinstance(value, ast.Constant) and self.is_number(value) for value in self.known[node.id])
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NUMBER_CALLS

    def is_computed(self, node: ast.expr) -> bool:
        """Return whether it is a text that is put together: `f"ev{x}"`, `"ev" + x`, `"".join(…)`."""
        if isinstance(node, ast.BinOp):
            return any(
                self.is_computed(operand) or literal_text(operand) is not None for operand in (node.left, node.right)
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = node.func.value
            return self.is_computed(held) or literal_text(held) is not None or last_name(node.func) == "decode"
        return isinstance(node, ast.JoinedStr)

    def may_build_text(self, node: ast.AST) -> bool:
        """Return whether a part of an annotation, or a variable in it, may put a text together."""
        if isinstance(node, ast.Name):
            return any(
                self.may_build_text(each) for each in self.known.get(node.id, ()) if not isinstance(each, ast.Name)
            )
        if isinstance(node, ast.Call):
            return last_name(node.func) not in _TYPE_CALLS
        return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and not isinstance(node.op, ast.BitOr))

    def named_methods(self, node: ast.Call) -> Iterator[ast.expr]:
        """Yield the names of methods that `df.apply("to_csv")` and its like get, also in a variable or a container."""
        func = node.func
        ways = [func, *(self.known.get(func.id, ()) if isinstance(func, ast.Name) else ())]
        name = next((way for way in map(last_name, ways) if way in METHODS_BY_NAME), "")
        handed = any(isinstance(arg, ast.Attribute) and arg.attr in METHODS_BY_NAME for arg in node.args)
        if not name and not handed:
            return
        first = node.args if handed else node.args[1:2] if name == "NamedAgg" else node.args[:1]
        named = [keyword.value for keyword in node.keywords if keyword.arg not in ("args", "kwargs", "axis", "column")]
        # `agg(total=("eval", "sum"))`: a column and a method
        for operand in [
            *first,
            *(target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else target for target in named),
        ]:
            if not (name == "map" and isinstance(operand, ast.Dict)):  # what values become
                yield from self.possible(operand)

    def possible(self, node: ast.expr) -> Iterator[ast.expr]:
        """Yield what an expression may come to, through variables, conditions and containers."""
        todo, seen = [node], set[str]()
        while todo:
            expression = todo.pop()
            if isinstance(expression, ast.Name) and expression.id not in seen:
                seen.add(expression.id)
                todo += self.known.get(expression.id, ())
            elif isinstance(expression, ast.Dict | ast.BoolOp):
                todo += expression.values
            elif isinstance(expression, ast.List | ast.Tuple | ast.Set):
                todo += expression.elts
            elif isinstance(expression, ast.IfExp):
                todo += [expression.body, expression.orelse]
            elif isinstance(expression, ast.Starred | ast.NamedExpr | ast.Subscript):
                todo.append(expression.value)
            else:
                yield expression

    def keys(self, node: ast.expr) -> list[ast.expr | None]:
        """Return the keys of a dict, also of a variable that is set to one; else the expression itself."""
        known = self.known.get(node.id, [node]) if isinstance(node, ast.Name) else [node]
        key_nodes: list[ast.expr | None] = []
        for key in known:
            if isinstance(key, ast.Call) and last_name(key.func) == "dict" and not key.args:
                key_nodes += [ast.Constant(each.arg) if each.arg else None for each in key.keywords]
            else:
                key_nodes += key.keys if isinstance(key, ast.Dict) else [key]
        return key_nodes


def format_attributes(text: str) -> list[str]:
    """Return the attributes that `text.format(…)` would read."""
    if "{" not in text or "." not in text:
        return []
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(text) if field]
    except ValueError:  # no format at all, such as JSON
        return []
    names = (_ITEM.sub("", field).split(".")[1:] for field in fields if _FIELD.fullmatch(field))
    return [name for some in names for name in some]


def formula_callees(text: str) -> list[ast.expr]:
    """Return what is called in a text that reads as an expression, such as the right side of a formula."""
    try:
        tree = expression_of(text.rpartition("~")[2].strip().lstrip("=").replace("@", ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
