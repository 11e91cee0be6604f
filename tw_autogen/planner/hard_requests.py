"""`hard_because`: what makes a request one whose answer is worth checking, read from the code that ran for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from tw_autogen.file_suffixes import DATA, DOCUMENTS, PACKED
from tw_autogen.python_source import parsed_cell

_JOINS = frozenset({"merge", "merge_asof", "merge_ordered", "concat", "combine_first", "vlookup"})
_MODELS = frozenset({
    "fit", "polyfit", "lstsq", "linregress", "curve_fit", "OLS", "cross_val_score", "train_test_split",
    "solve", "inv", "pinv",
})  # fmt: skip
_LISTS_FILES = frozenset({"glob", "iglob", "rglob", "iterdir", "listdir", "scandir", "walk"})
_WRITES = re.compile(r"to_[a-z]+|savefig|write_\w+|dump|mkdir|unlink|remove")
_READS = re.compile(r"read_\w+|open|load|loadtxt|genfromtxt|connect")
_LIBRARIES = re.compile(r"\b(?:sklearn|statsmodels)\b")
_WORD = re.compile(r"\w+")
_LONG, _LONGEST, _ROUND = 10_000, 10**18, 100
"""From which whole number on, to which one, and unless it is a multiple of which, one in code counts as copied."""
_FILE = re.compile(
    rf"[^\n]{{1,200}}\.(?:{'|'.join(one[1:] for one in sorted([*DATA, *DOCUMENTS, *PACKED, '.dat', '.log']))})", re.I
)


def hard_because(codes: Iterable[str], earlier: Iterable[str] = (), *, request: str = "") -> str:
    """Return `a join`, `a model`, `several files` or `copied numbers`; empty if none makes the request hard.

    Files are told apart by name, however often and by whatever call one is read; tables that code of earlier requests
    has read count where they are used again. Numbers are copied where code holds long ones that the request does not
    name: they were read in what an earlier cell has printed.

    Args:
        codes: What ran for the request.
        earlier: What ran for earlier requests.
        request: The User's words.

    Example:
        >>> hard_because(["a = pd.read_csv('a.csv')", "b = pd.read_csv('b.csv')"])
        'several files'
        >>> hard_because(["lines = open('a.csv').readlines()", "a = pd.read_csv('a.csv')"])
        ''
    """
    trees = [tree for code in codes if (tree := parsed_cell(code)) is not None]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    called = {_called_name(node) for node in nodes if isinstance(node, ast.Call)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if called & _JOINS or any(map(_is_join, nodes)) or any(map(_joins_in_sql, texts)):
        return "a join"
    if called & _MODELS or any(map(_LIBRARIES.search, map(ast.unparse, filter(_is_import, nodes)))):
        return "a model"
    reads = any(_READS.fullmatch(name) for name in called)
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    files = {name for tree in trees for name in _names_of_files_read(tree)}
    files |= {f"earlier {name}" for name in used & _table_variables(earlier)}
    many = reads and (called & _LISTS_FILES or any("{" in name for name in files))
    if many or len(files) > 1:
        return "several files"
    numbers = [node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is int]
    asked = request.replace(",", "").replace(" ", "")
    copied = any(_LONG <= abs(number) < _LONGEST and number % _ROUND and str(number) not in asked for number in numbers)
    return "copied numbers" if copied else ""


def _called_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _joins_in_sql(text: str) -> bool:
    """Return whether the words of a query with a join come one after the other."""
    tokens = iter(_WORD.findall(text.lower()))
    return all(wanted in tokens for wanted in ("select", "from", "join"))


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_join(node: ast.AST) -> bool:
    """Return whether a call joins tables by `frame.join(other)`, or filters by another table's column."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    if node.func.attr == "isin":
        return isinstance(node.args[0], ast.Subscript | ast.Attribute)
    on, other = node.func.value, node.args[0]
    return node.func.attr == "join" and isinstance(on, ast.Name) and isinstance(other, ast.Name) and on.id != "os"


def _names_of_files_read(tree: ast.Module) -> Iterator[str]:
    """Yield the names of files that code reads; of one that is put together in a loop the parts, with `{`."""
    written = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (_WRITES.fullmatch(_called_name(node)) or _opens_to_write(node))
        for inner in ast.walk(node)
    }
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if node in written or node in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _FILE.fullmatch(node.value):
            yield PurePath(node.value).name.casefold()
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
            if _FILE.fullmatch(text):
                yield PurePath(text).name.casefold()


def _opens_to_write(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return _called_name(call) == "open" and any(
        isinstance(mode, ast.Constant) and "r" not in str(mode.value) for mode in modes
    )


def _table_variables(codes: Iterable[str]) -> set[str]:
    """Return the names of variables that were assigned from a call which reads a file."""
    found: set[str] = set()
    for tree in map(parsed_cell, codes):
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Assign) and any(
                isinstance(one, ast.Call) and re.match(r"read_", _called_name(one)) for one in ast.walk(node.value)
            ):
                found |= {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return found
