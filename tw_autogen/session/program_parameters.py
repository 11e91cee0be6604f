"""What can be changed in a program that a session becomes: files, folders and numbers, and where they stand in code."""

from __future__ import annotations

import ast
import contextlib
import keyword
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tw_autogen.file_suffixes import DATA, DOCUMENTS, PACKED, PICTURES
from tw_autogen.python_source import expression_of, parse, python_lines

_NUMBER = re.compile(r"(?<![\w.,/-])(\d+(?:\.\d+)?)(?:\s?(%|percent\b|Prozent\b))?(?![\w]|[.,]\d|[-/]\d)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_READERS = re.compile(r"(read_\w+|open|loadtxt|genfromtxt|load|imread)$")
_FOLDERS = re.compile(r"(i?glob|rglob|listdir|scandir|walk|describe|(Posix|Windows)?Path)$")
_DATA = tuple(DATA | DOCUMENTS | PICTURES | {*PACKED})
_QUERIES = re.compile(r"(query|eval)$")
"""Methods that evaluate a text, in which `@name` is a variable."""
_WILD = re.compile(r"[*?\[{]")
_JOINED = re.compile(r"(?:[fF][rR]?|[rR][fF])(?:'{3}|\"{3}|'|\")")
_GLUED = re.compile(rb"^[\w\x80-\xff]|[\w\x80-\xff]$")
_MAX_FILES = 1000
"""Names of given files that are looked for in the questions; the names of more would take long."""
_NEAR_CHARS = 100
_LOOKS = frozenset(("figsize", "dpi", "fontsize", "labelsize", "rotation", "linewidth", "lw", "markersize", "bins")) | {
    *("random_state", "seed", "axis", "level", "header", "skiprows", "index_col", "usecols", "sheet_name", "ddof"),
    *("decimals", "ndigits", "indent"),
}
"""Keywords whose number is a question's only if the word stands beside it: `20 bins`."""
_NO_COUNTS = frozenset(("round", "around", "date", "datetime", "Timestamp", "group", "reshape", "subplots"))
"""Functions whose arguments are digits, dates, or places: no number of a question, though it may be equal to one."""
_VALUE = "value"
"""What a number is for, where the code around it does not say."""
_SMALL = (0, 1, 2)
"""Numbers that stand in code for something else than what a question means, such as an axis or a square."""
_FILLERS = frozenset(("an", "and", "are", "as", "at", "by", "for", "from", "how", "in", "is", "it", "many", "more")) | {
    *("most", "of", "on", "or", "than", "that", "the", "to", "with"),
}


@dataclass(frozen=True)
class Parameter:
    """What can be changed in a program.

    Args:
        name: Of the variable in the code: upper case.
        value: What it was in the session: the path of a file or folder, or a number.
        about: Where it comes from, in words.
        brought: A request brought this file; otherwise code alone named it.
        is_folder: It is the path of a folder that code reads files from.
    """

    name: str
    value: str | int | float
    about: str = ""
    brought: bool = False
    is_folder: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is the path of a file."""
        return isinstance(self.value, str) and not self.is_folder

    @property
    def option(self) -> str:
        """Its name on a command line."""
        return self.name.lower().replace("_", "-")


Place = tuple[int, int, int, int, str]
"""First line and column, last line and column (in bytes), and what stands there instead."""


class ParameterFinder:
    """Finds the parameters of code: files that were given, folders that it reads, and numbers that a question names.

    A number is one parameter for each use that code makes of it, such as the argument of `head`, or a limit in
    comparisons: equal numbers may mean different things. An index, a key of a dictionary, and digits are none.

    Args:
        requests: The questions.
        files: Names of the files that they brought.
        taken: Names that no parameter may have.
        folder: The session's.
        uses: Of each number all its uses, as `self.uses` of a finder that has seen the same code; None: unknown, and
            the parameters are named as if each number had one.
    """

    def __init__(
        self,
        requests: Sequence[str],
        files: Sequence[str],
        taken: set[str],
        folder: str,
        uses: Mapping[float, set[str]] | None = None,
    ) -> None:
        self.known: dict[tuple[str | int | float, str], Parameter] = {}
        self.uses: dict[float, set[str]] = {}
        self._all_uses = uses or {}
        self._files = {spelt: file for file in reversed(files) for spelt in (f"./{file}", file)}
        self._names = {PurePath(file).name: file for file in reversed(files)}
        self._folder = folder
        self._lines: list[bytes] = []
        self._numbered: dict[str, int] = {}
        self._taken = {*taken} | {"parser", "arguments", "show", "save_charts", "run_cell", "HELP"}
        self._numbers: dict[float, tuple[str, str]] = {}
        for request in requests:
            words, question = request, " ".join(request.split())
            for name in files[:_MAX_FILES]:
                words = words.replace(PurePath(name).name, " ")
            for match in _NUMBER.finditer(words):
                value = float(match[1])
                near = _word_near(words, match.start(), match.end())
                for number in (value, value / 100) if match[2] else (value,):
                    before, asked = self._numbers.setdefault(number, (near, question))
                    if before.lower() != near.lower():  # `12 months over 12 %`: code may mean either
                        self._numbers[number] = "", asked

    def places(self, tree: ast.Module, code: str) -> list[Place]:
        """Return where parameters stand in a cell, last one first, with the text that stands there instead.

        Args:
            tree: The cell's.
            code: What the tree was parsed from.
        """
        found: list[Place] = []
        before, self._lines = self._lines, [line.encode() for line in python_lines(code)]
        self._visit(tree, "", False, found, use=_VALUE)
        self._lines = before
        return sorted(found, reverse=True)

    def _visit(
        self, node: ast.AST, name: str, reads: bool, found: list[Place], *, use: str, lists: bool = False
    ) -> None:
        """Look at a node.

        Args:
            node: The node.
            name: Of the keyword or variable that takes its value; empty: it has none.
            reads: It is an argument of a function that reads files.
            found: Takes the places.
            use: What a number that stands there is for; empty: for nothing that a question names.
            lists: It is an argument of a function that reads folders.
        """
        if isinstance(node, ast.JoinedStr | ast.Constant):
            if isinstance(node, ast.JoinedStr):  # its parts have no places of their own before Python 3.12
                text = self._fstring_code(node, reads or lists or bool(name))
                text = self._between_braces(text or self._source_of(node)) or text
            else:
                known = self._parameter(node.value, name, reads, use)
                text = known.name if known is not None else self._path_code(node.value, reads or lists or bool(name))
            if text and node.end_lineno is not None and node.end_col_offset is not None:
                before = self._lines[node.lineno - 1][: node.col_offset]
                behind = self._lines[node.end_lineno - 1][node.end_col_offset :]
                if _GLUED.search(before[-1:] + b" " + behind[:1]):  # `return"a.csv"`
                    text = f"({text})"
                found.append((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text))
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.Mod | ast.FloorDiv):
            sides = [one for one in (node.left, node.right) if not _is_number(one)]
            for one in [node.left] if isinstance(node.op, ast.Pow) else sides:
                self._visit(one, "", False, found, use=_VALUE)
            return
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._visit(node.value, node.targets[0].id, False, found, use=node.targets[0].id)
            return
        if isinstance(node, ast.Call):
            self._visit_call(node, found)
            return
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.pattern):  # a name in a pattern would match everything
            return
        for inner, inner_use in _parts_with_use(node, use):
            self._visit(inner, "", reads, found, use=inner_use, lists=lists)

    def _visit_call(self, node: ast.Call, found: list[Place]) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self._visit(node.func, "", False, found, use=_VALUE)
        reads, lists = bool(_READERS.match(called)), _reads_folders(node.func, called)
        for number, arg in enumerate(node.args, 1):
            if _QUERIES.match(called) and isinstance(node.func, ast.Attribute):
                found += self._in_query(arg)
            use = "" if called in _NO_COUNTS else f"{called or _VALUE}_{number}" if number > 1 else called or _VALUE
            self._visit(arg, "", reads, found, use=use, lists=lists)
        for pair in node.keywords:
            if self._is_asked_for(pair):
                self._visit(pair.value, pair.arg or "", reads, found, use=pair.arg or _VALUE, lists=lists)

    def _is_asked_for(self, pair: ast.keyword) -> bool:
        """Return whether a number that this keyword has may be one of a question: of looks, if it stands beside it."""
        if pair.arg not in _LOOKS:
            return True
        value = pair.value.value if isinstance(pair.value, ast.Constant) else None
        return isinstance(value, int | float) and self._numbers.get(value, ("", ""))[0].lower() == pair.arg

    def _parameter(self, value: object, name: str, reads: bool, use: str) -> Parameter | None:
        if isinstance(value, str):
            given = self._files.get(value)
            if given is None and PurePath(value).is_absolute():
                given = self._names.get(PurePath(value).name)
            is_data = (
                reads and PurePath(value).is_absolute() and value.lower().endswith(_DATA) and not _WILD.search(value)
            )
            if given is None and is_data and not self._is_own(value):
                given = value
            if given is None:
                return None
            base = re.sub(r"\W+", "_", PurePath(given).name).strip("_")
            return self._ensure_parameter(given, base or "file", "a file of the session", brought=given in self._files)
        if not isinstance(value, int | float) or isinstance(value, bool) or value not in self._numbers:
            return None
        if value in _SMALL or not use:
            return None
        near, request = self._numbers[value]
        self.uses.setdefault(value, set()).add(use)
        alone = len(self._all_uses.get(value, ())) < 2
        base = (name or near or use) if alone else f"{near}_{use}".strip("_")
        return self._ensure_parameter(value, base, f"{use}: {request}", use=use)

    def _path_code(self, value: object, lists: bool) -> str:
        """Return code for a path: in the session's folder a relative one, below one that is read with its parameter."""
        if not isinstance(value, str) or (split := self._split_at_folder(value, lists)) is None:
            return ""
        folder, rest = split
        if folder == self._folder:
            return repr(rest[1:] or ".")
        name = self._folder_parameter(folder)
        return f"({name} + {rest!r})" if rest else name

    def _fstring_code(self, node: ast.JoinedStr, lists: bool) -> str:
        """Return the code of an f-string that begins with such a path; empty: it does not."""
        first = node.values[0] if node.values else None
        code = self._source_of(node)
        begin = _JOINED.match(code)
        if begin is None or not isinstance(first, ast.Constant) or len(node.values) == 1:
            return ""
        value = str(first.value)
        split = self._split_at_folder(f"{value}{{", lists)
        if split is None or not code.startswith(split[0], begin.end()):
            return ""
        rest, left = code[begin.end() + len(split[0]) :], value[len(split[0]) :]
        parts: list[ast.expr] = [ast.Constant(left[1:])]
        made = rest[1:]
        if split[0] != self._folder:
            name = self._folder_parameter(split[0])
            parts = [ast.FormattedValue(ast.Name(name, ast.Load()), -1), ast.Constant(left)]
            made = f"{{{name}}}{rest}"
        meant = [part for part in parts if not isinstance(part, ast.Constant) or part.value]
        return begin[0] + made if _is_joined(begin[0] + made, [*meant, *node.values[1:]]) else ""

    def _between_braces(self, code: str) -> str:
        """Return the code of an f-string with parameters in the expressions of its braces; empty: there are none."""
        changed = False
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):  # before 3.12 quotes may not suffice
            made = parse(f"({code}\n)")
            left = [made.body[0].value] if isinstance(made.body[0], ast.Expr) else []
            for node in left:  # grows
                if isinstance(node, ast.JoinedStr):
                    left += node.values
                elif isinstance(node, ast.FormattedValue):
                    inner = "" if isinstance(node.value, ast.Name) else f"({ast.unparse(node.value)}\n)"
                    if places := self.places(parse(inner), inner):
                        node.value = expression_of(replaced(inner, places))
                        changed = True
            return ast.unparse(made) if changed else ""
        return ""

    def _in_query(self, node: ast.expr) -> list[Place]:
        """Return the place of a text that pandas evaluates, with parameters for its numbers; none: it has none."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node.end_lineno is None:
            return []
        code = f"({node.value.replace('@', ' ')}\n)"
        try:
            places = self.places(parse(code), code)
        except (SyntaxError, ValueError, RecursionError):  # such as a name between backticks
            return []
        numbers = {one.name for one in self.known.values() if not isinstance(one.value, str)}
        places = [(*place[:4], f"@{place[4]}") for place in places if place[4] in numbers]
        made = replaced(f"({node.value}\n)", places)[1:-2]
        return [(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset or 0, repr(made))] if places else []

    def _source_of(self, node: ast.expr) -> str:
        last = node.end_lineno or node.lineno
        lines = self._lines[node.lineno - 1 : last]
        lines[-1:] = [line[: node.end_col_offset] for line in lines[-1:]]
        lines[:1] = [line[node.col_offset :] for line in lines[:1]]
        return b"\n".join(lines).decode()

    def _split_at_folder(self, path: str, lists: bool) -> tuple[str, str] | None:
        """Split an absolute path behind the session's folder, or behind the one in which its first wildcard lies.

        Args:
            path: None is returned for any other text.
            lists: It may name a folder that code reads; otherwise only the session's counts.
        """
        if self._is_own(path):
            return self._folder, path[len(self._folder) :]
        wild = _WILD.search(path)
        folder = str(PurePath(f"{path[: wild.start()]}x").parent) if wild else path.rstrip("/")
        odd = not PurePath(folder).name or folder.startswith("//") or "\n" in folder or folder.lower().endswith(_DATA)
        if odd or not lists or not PurePath(folder).is_absolute() or not path.startswith(folder):
            return None
        return folder, path[len(folder) :]

    def _is_own(self, path: str) -> bool:
        """Return whether a path is that of the session's folder, or lies below it."""
        return bool(self._folder) and (
            path == self._folder or path.startswith((f"{self._folder}/", f"{self._folder}\\"))
        )

    def _folder_parameter(self, folder: str) -> str:
        base = re.sub(r"\W+", "_", PurePath(folder).name).strip("_") or "folder"
        return self._ensure_parameter(folder, base, "a folder that is read", is_folder=True).name

    def _ensure_parameter(
        self,
        value: str | int | float,
        base: str,
        about: str,
        *,
        use: str = "",
        brought: bool = False,
        is_folder: bool = False,
    ) -> Parameter:
        if (value, use) not in self.known:
            plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", base).upper())  # as Python reads a name
            plain = "".join(sign if f"_{sign}".isidentifier() else "_" for sign in plain)
            plain = plain if plain.isidentifier() else f"_{plain}"
            name, number = plain, self._numbered.get(plain, 2)
            while name in self._taken or keyword.iskeyword(name):
                name, number = f"{plain}_{number}", number + 1
            self._numbered[plain] = number
            self._taken.add(name)
            self.known[value, use] = Parameter(name, value, about, brought, is_folder)
        return self.known[value, use]


def _parts_with_use(node: ast.AST, use: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield the parts of a node, each with what a number that stands there is for.

    Args:
        node: No call, assignment, text or number.
        use: What the node is for; empty: its own numbers are an index, a key or digits.
    """
    uses: dict[int, str] = {}
    others = _VALUE
    if isinstance(node, ast.Subscript):
        uses = {id(node.slice): ""}
    elif isinstance(node, ast.Slice):
        others = "" if node.lower and node.upper or node.step else "first" if node.upper else "from"
    elif isinstance(node, ast.Dict):
        uses = {id(value): _text_of(key) or _VALUE for key, value in zip(node.keys, node.values, strict=True)}
        uses |= {id(key): "" for key in node.keys}
    elif isinstance(node, ast.arguments):
        named = [*node.posonlyargs, *node.args][::-1]
        uses = {id(default): inner.arg for inner, default in zip(named, node.defaults[::-1], strict=False)}
        uses |= {id(default): inner.arg for inner, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)}
    elif isinstance(node, ast.Compare):
        others = next(filter(None, map(_text_of, (node.left, *node.comparators))), "limit")
    elif isinstance(node, ast.BinOp):
        others = type(node.op).__name__.lower() if use else ""
    elif isinstance(node, ast.UnaryOp | ast.Tuple | ast.List | ast.Set | ast.IfExp | ast.BoolOp):
        others = use
    for inner in ast.iter_child_nodes(node):
        yield inner, uses.get(id(inner), others)


def _text_of(node: ast.expr | None) -> str:
    """Return what code calls a value: a text, or the last name of a variable, column or function; empty: nothing."""
    if isinstance(node, ast.Subscript | ast.Call):
        text = _text_of(node.slice) if isinstance(node, ast.Subscript) else ""
        return text or _text_of(node.value if isinstance(node, ast.Subscript) else node.func)
    value = getattr(node, "value", "")
    return str(getattr(node, "attr", "") or getattr(node, "id", "") or (value if isinstance(value, str) else ""))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_joined(code: str, values: list[ast.expr]) -> bool:
    """Return whether code is an f-string of these parts and nothing else: text was cut, in which quotes may stand."""
    try:
        tree = parse(f"({code}\n)")
    except (SyntaxError, ValueError, RecursionError):
        return False
    meant = ast.Module([ast.Expr(ast.JoinedStr(values))], [])
    return ast.dump(tree) == ast.dump(meant)


def _reads_folders(function: ast.expr, called: str) -> bool:
    """Return whether a function reads folders: of `join` the one of `os.path`."""
    if called == "join":
        owner = getattr(function, "value", None)
        return "path" in (getattr(owner, "attr", ""), getattr(owner, "id", ""))
    return bool(_FOLDERS.match(called))


def _word_near(text: str, start: int, end: int) -> str:
    """Return the word before a number of a question, else the one after it; empty if neither says anything."""
    before = _WORD.findall(text[max(0, start - _NEAR_CHARS) : start])[-1:]
    after = _WORD.findall(text[end : end + _NEAR_CHARS])[:1]
    return next((one for one in (*before, *after) if one.lower() not in _FILLERS and one.isascii()), "")


def replaced(code: str, places: Sequence[Place]) -> str:
    """Return code with other text in some places.

    Args:
        code: The code.
        places: Last one first.
    """
    lines = [line.encode() for line in python_lines(code)]
    for first, start, last, end, text in places:
        lines[first - 1 : last] = [lines[first - 1][:start] + text.encode() + lines[last - 1][end:]]
    return b"\n".join(lines).decode()
