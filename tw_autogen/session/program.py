"""`Program`: the code of a session as a Python script that runs on new data."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from tw_autogen.escaped_text import visible, visible_line
from tw_autogen.events import CellRan, CellStarted, Event, RoundOpened, SessionOpened
from tw_autogen.python_source import parse, python_lines
from tw_autogen.session.earlier_session import EarlierSession
from tw_autogen.session.notebook import loading_code

_NUMBER = re.compile(r"(?<![\w.,/-])(\d+(?:\.\d+)?)(?:\s?(%|percent\b|Prozent\b))?(?![\w]|[.,]\d|[-/]\d)")
_FAILED_LINE = re.compile(r"^Traceback \(most recent call last\):\n  cell \d+, line (\d+)$", re.MULTILINE)
_RUNS_CELL = re.compile(r"%%(?:time|capture)\b")
_MOST_MAGICS = 50
_WORD = re.compile(r"[^\W\d_]{2,}")
_READERS = re.compile(r"(read_\w+|open|loadtxt|genfromtxt|load|imread)$")
_FOLDERS = re.compile(r"(i?glob|rglob|listdir|scandir|walk|describe|(Posix|Windows)?Path)$")
_DATA = re.compile(r"\.(csv|tsv|txt|jsonl?|xlsx?|parquet|feather|db|sqlite3?|zip|gz|xml|html?)$", re.IGNORECASE)
_WILD = re.compile(r"[*?\[{]")
_JOINED = re.compile(r"(?:[fF][rR]?|[rR][fF])(?:'{3}|\"{3}|'|\")")
_GLUED = re.compile(rb"^[\w\x80-\xff]|[\w\x80-\xff]$")
_MOST_FILES = 1000
"""Names of given files that are looked for in the questions; the names of more would take long."""
_NEAR_CHARS = 100
_SMALL = (0, 1, 2)
"""Numbers that stand in code for something else than what a question means, such as an axis or a square."""
_FILLERS = frozenset(("an", "and", "are", "as", "at", "by", "for", "from", "how", "in", "is", "it", "many", "more")) | {
    *("most", "of", "on", "or", "than", "that", "the", "to", "with"),
}
_HEAD = '''"""{about}

Written by tw-autogen from {session}. Run it on new data: python {name}{usage}
Files that are no parameter are read from the current folder, and its own are written there.
"""

import argparse
from pathlib import Path

parser = argparse.ArgumentParser(description={about!r})
{arguments}arguments = parser.parse_args()
{assignments}{checks}
'''
_CHECK = """for path in ({names},):
    if not Path(path).is_{kind}():
        parser.error(f"there is no {word} {{path}}")
"""
_SHOW = '''
def show(*values):
    """Print what the last line of a cell gives, as a notebook shows it."""
    for value in values:
        if value is not None:
            print(value if isinstance(value, str) or hasattr(value, "to_string") else repr(value))


'''
_CHARTS = '''def save_charts(name):
    """Save the charts that are open, and close them."""
    import matplotlib.pyplot as plt

    for number in plt.get_fignums():
        plt.figure(number).savefig(f"{name}.png" if number == 1 else f"{name}-{number}.png")
    plt.close("all")


'''


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


@dataclass(frozen=True)
class ProgramCell:
    """One cell that ran to its end.

    Args:
        source: Its code, with parameters in the places of their values.
        request: The question for which it ran; empty: the same as for the cell before.
        ran: What came of it; None: the statements before the failure of a cell that failed, which others need.
    """

    source: str
    request: str
    ran: CellRan | None


@dataclass
class Program:
    """The code of a session: cells that ran to their end, in order, without those that failed or were refused.

    Args:
        session: The session's name.
        requests: The questions.
        cells: The code.
        parameters: Files that were given, folders that code reads, and numbers that the questions name.
        files: Names of all files that requests brought, also of those that no code names, such as `glob("*.csv")`.
        plugins: Names of the plugins that it calls.
        left_out: Why cells that ran are not there, a line each.
    """

    session: str
    requests: list[str] = field(default_factory=list)
    cells: list[ProgramCell] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    plugins: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Program:
        """Make a program of what happened in a session.

        Args:
            events: Oldest first, as `read_journal` gives them.
        """
        read = _Reader()
        for event in events:
            read.take(event)
        made = cls(read.session, read.requests, files=list(read.files), left_out=read.left_out)
        names = {name for _, tree, _, _ in read.cells for name in _names(tree)}
        found = _Parameters(read.requests, made.files, names, read.folder)
        request = ""
        for code, tree, asked, ran in _with_needed(read):
            source = _replaced(code, found.places(tree, code))
            made.cells.append(ProgramCell(source, asked if asked != request else "", ran))
            request = asked
        made.parameters = list(found.known.values())
        made.plugins = [name for name in read.plugins if name in names]
        return made

    @classmethod
    def of_session(cls, folder: Path, *, trust: bool = False) -> Program:
        """Read the program of a session that has ended.

        Args:
            folder: The session's.
            trust: Also of one that this user did not make there.

        Raises:
            ConfigError: as for a session that is gone on with.
        """
        return cls.of(EarlierSession.read(folder, trust=trust).events)

    def source(self, name: str = "program.py") -> str:
        """Return the program's text.

        Args:
            name: Of its file, for its help.
        """
        paths = [one for one in self.parameters if isinstance(one.value, str)]
        about = _in_docstring(" / ".join(" ".join(one.split()) for one in self.requests)[:200])
        usage = "".join(f" [{one.name}]" for one in paths)
        usage += "".join(f" [--{one.option} N]" for one in self.parameters if not isinstance(one.value, str))
        names = ", ".join(one.name for one in self.parameters)
        values = ", ".join(f"arguments.{one.name}" for one in self.parameters)
        head = _HEAD.format(
            about=about or "Code of a session.",
            session=_in_docstring(self.session) or "a session",
            name=name,
            usage=usage,
            arguments="".join(map(_argument, self.parameters)),
            assignments=f"{names} = {values}\n" if names else "",
            checks=_checks(paths),
        )
        text = [head, _SHOW]
        if any(_makes_charts(one) for one in self.cells):
            text.append(_CHARTS)
        if any("display(" in one.source for one in self.cells):
            text.append("display = show\n\n")
        if self.plugins:
            text.append(f"{loading_code(self.plugins)}\n\n")
        for number, cell in enumerate(self.cells, 1):
            text += [f"# {visible(line)}\n" for line in cell.request.splitlines()]
            text.append(f"{_shown(cell.source)}\n")
            if _makes_charts(cell):
                text.append(f'save_charts("chart-{number}")\n')
            text.append("\n")
        text += [f"# Left out: {line}\n" for line in self.left_out]
        return "".join(text).rstrip() + "\n"


def _in_docstring(text: str) -> str:
    return visible_line(text).replace("\\", "/").replace('"', "'")


class _Reader:
    """Collects cells, questions and files of a session."""

    def __init__(self) -> None:
        self.session = self.folder = ""
        self.plugins: dict[str, None] = {}
        self.requests: list[str] = []
        self.files: dict[str, None] = {}
        self.left_out: list[str] = []
        self.cells: list[tuple[str, ast.Module, str, CellRan]] = []
        self._running: dict[int, str] = {}

    def take(self, event: Event) -> None:
        if isinstance(event, SessionOpened):
            self.session, self.folder = event.session_id, event.folder
            self.plugins.update(dict.fromkeys(event.plugins))
        elif isinstance(event, RoundOpened):
            self.requests.append(event.user_query)
            self.files.update(dict.fromkeys(event.files))
        elif isinstance(event, CellStarted):
            self._running[event.cell] = event.code
        elif isinstance(event, CellRan) and event.cell in self._running:
            code = _without_magics(self._running.pop(event.cell))
            try:
                tree = parse(code)
            except (SyntaxError, ValueError, RecursionError):
                if event.ok:
                    self.left_out.append(f"cell {event.cell}: it is no plain Python")
                return
            self.cells.append((code, tree, self.requests[-1] if self.requests else "", event))


def _without_magics(code: str) -> str:
    """Return code with the lines that only IPython understands as comments; as it is where more than lines would go."""
    lines = list(python_lines(code))
    cell_magic = next((line for line in lines if line.strip()), "").startswith("%%")
    if cell_magic and not _RUNS_CELL.match(code.lstrip()):  # what stands below it may be no code
        return code
    for _ in range(_MOST_MAGICS):
        try:
            parse(made := "\n".join(lines))
            return made
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            if not 0 <= at < len(lines) or lines[at].lstrip()[:1] not in ("%", "!") or lines[at].endswith("\\"):
                return code
            lines[at] = f"# {lines[at]}"
        except (ValueError, RecursionError):
            return code
    return code


def _with_needed(read: _Reader) -> Iterator[tuple[str, ast.Module, str, CellRan | None]]:
    """Yield the cells that ran, and before them what they need of cells that failed: statements that had run."""
    known = {*dir(builtins), *read.plugins, "display", "get_ipython"}
    failed: dict[int, tuple[str, set[str], str]] = {}
    makers: dict[str, list[int]] = {}
    """Numbers of the failed cells that give a name its value."""
    for number, (code, tree, asked, ran) in enumerate(read.cells):
        if not ran.ok:
            kept, lines = _before_failure(code, tree, ran.error)
            if kept.body:
                failed[number] = (lines, _stored(kept), asked)
                for name in failed[number][1]:
                    makers.setdefault(name, []).append(number)
            continue
        needed = {one for name in _missing(tree, known) for one in makers.pop(name, ())}
        for one in sorted(needed & failed.keys()):
            lines, stored, of = failed.pop(one)
            known |= stored
            yield f"# Of a cell that failed later:\n{lines}", parse(f"#\n{lines}"), of, None
        known |= _stored(tree)
        yield code, tree, asked, ran


def _missing(tree: ast.Module, known: set[str]) -> set[str]:
    """Return names that a cell uses before it makes them; a few too many, such as variables of loops."""
    missing: set[str] = set()
    made: set[str] = set()
    for one in tree.body:
        own = _stored(one) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else set()
        used = {node.id for node in ast.walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        missing |= {name for name in used if name not in made and name not in own and name not in known}
        made |= _stored(one)
    return missing


def _before_failure(code: str, tree: ast.Module, error: str) -> tuple[ast.Module, str]:
    """Return the statements of a cell that ended before the one that failed; none where that is not known."""
    found = _FAILED_LINE.findall(error)  # text of an exception may look so as well
    line = int(found[0]) if len(found) == 1 else 0
    body = [one for one in tree.body if (one.end_lineno or one.lineno) < line]
    while body and len(body) < len(tree.body) and tree.body[len(body)].lineno <= (body[-1].end_lineno or 0):
        body.pop()  # the next one begins on its line
    last = body[-1].end_lineno if body else 0
    return ast.Module(body, []), "\n".join(python_lines(code)[:last])


def _names(tree: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}


def _stored(tree: ast.AST) -> set[str]:
    """Return the names that code gives a value, wherever in it."""
    made = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            made.add(one.name)
        elif isinstance(one, ast.Import | ast.ImportFrom):
            made |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
        elif isinstance(one, ast.arg):
            made.add(one.arg)
        elif isinstance(one, ast.ExceptHandler) and one.name:
            made.add(one.name)
    return made


_Place = tuple[int, int, int, int, str]
"""First line and column, last line and column (in bytes), and what stands there instead."""


class _Parameters:
    """Finds the parameters of code: files that were given, folders that it reads, and numbers that a question names."""

    def __init__(self, requests: Sequence[str], files: Sequence[str], taken: set[str], folder: str) -> None:
        self.known: dict[str | int | float, Parameter] = {}
        self._files = {spelt: one for one in reversed(files) for spelt in (f"./{one}", one)}
        self._names = {PurePath(one).name: one for one in reversed(files)}
        self._folder = folder
        self._lines: list[bytes] = []
        self._numbered: dict[str, int] = {}
        self._taken = {*taken} | {"parser", "arguments", "show", "save_charts"}
        self._numbers: dict[float, tuple[str, str]] = {}
        for request in requests:
            words, question = request, " ".join(request.split())
            for name in files[:_MOST_FILES]:
                words = words.replace(PurePath(name).name, " ")
            for one in _NUMBER.finditer(words):
                value = float(one[1])
                around = _word_near(words, one.start(), one.end()), question
                self._numbers.setdefault(value, around)
                if one[2]:
                    self._numbers.setdefault(value / 100, around)

    def places(self, tree: ast.Module, code: str) -> list[_Place]:
        """Return where parameters stand in a cell, last one first, with the text that stands there instead.

        Args:
            tree: The cell's.
            code: What the tree was parsed from.
        """
        found: list[_Place] = []
        self._lines = [line.encode() for line in python_lines(code)]
        self._visit(tree, "", False, found)
        return sorted(found, reverse=True)

    def _visit(self, node: ast.AST, name: str, reads: bool, found: list[_Place], *, lists: bool = False) -> None:
        """Look at a node.

        Args:
            node: The node.
            name: Of the keyword or variable that takes its value; empty: it has none.
            reads: It is an argument of a function that reads files.
            found: Takes the places.
            lists: It is an argument of a function that reads folders.
        """
        if isinstance(node, ast.JoinedStr | ast.Constant):
            if isinstance(node, ast.JoinedStr):  # its parts have no places of their own before Python 3.12
                text = self._joined(node, reads or lists or bool(name))
            else:
                known = self._parameter(node.value, name, reads)
                text = known.name if known is not None else self._placed(node.value, reads or lists or bool(name))
            if text and node.end_lineno is not None and node.end_col_offset is not None:
                before = self._lines[node.lineno - 1][: node.col_offset]
                behind = self._lines[node.end_lineno - 1][node.end_col_offset :]
                if _GLUED.search(before[-1:] + b" " + behind[:1]):  # `return"a.csv"`
                    text = f"({text})"
                found.append((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text))
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            self._visit(node.left, "", False, found)
            return
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._visit(node.value, node.targets[0].id, False, found)
            return
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            self._visit(node.func, "", False, found)
            reads, lists = bool(_READERS.match(called)), _lists(node.func, called)
            for one in node.args:
                self._visit(one, "", reads, found, lists=lists)
            for pair in node.keywords:
                self._visit(pair.value, pair.arg or "", reads, found, lists=lists)
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            return
        for inner in ast.iter_child_nodes(node):
            self._visit(inner, "", reads, found, lists=lists)

    def _parameter(self, value: object, name: str, reads: bool) -> Parameter | None:
        if isinstance(value, str):
            given = self._files.get(value)
            if given is None and PurePath(value).is_absolute():
                given = self._names.get(PurePath(value).name)
            is_data = reads and PurePath(value).is_absolute() and _DATA.search(value) and not _WILD.search(value)
            if given is None and is_data and not self._is_own(value):
                given = value
            if given is None:
                return None
            base = re.sub(r"\W+", "_", PurePath(given).name).strip("_")
            return self._known(given, base or "file", "a file of the session", brought=given in self._files)
        if not isinstance(value, int | float) or isinstance(value, bool) or value not in self._numbers:
            return None
        if value in _SMALL:
            return None
        near, request = self._numbers[value]
        return self._known(value, name or near or "number", request)

    def _placed(self, value: object, lists: bool) -> str:
        """Return code for a path: in the session's folder a relative one, below one that is read with its parameter."""
        if not isinstance(value, str) or (split := self._split(value, lists)) is None:
            return ""
        folder, rest = split
        if folder == self._folder:
            return repr(rest[1:] or ".")
        name = self._folder_parameter(folder)
        return f"({name} + {rest!r})" if rest else name

    def _joined(self, node: ast.JoinedStr, lists: bool) -> str:
        """Return the code of an f-string that begins with such a path; empty: it does not."""
        first = node.values[0] if node.values else None
        code = self._source_of(node)
        begin = _JOINED.match(code)
        if begin is None or not isinstance(first, ast.Constant) or len(node.values) == 1:
            return ""
        value = str(first.value)
        split = self._split(f"{value}{{", lists)
        if split is None or not code.startswith(split[0], begin.end()):
            return ""
        rest, left = code[begin.end() + len(split[0]) :], value[len(split[0]) :]
        parts: list[ast.expr] = [ast.Constant(left[1:])]
        made = rest[1:]
        if split[0] != self._folder:
            name = self._folder_parameter(split[0])
            parts = [ast.FormattedValue(ast.Name(name, ast.Load()), -1), ast.Constant(left)]
            made = f"{{{name}}}{rest}"
        meant = [one for one in parts if not isinstance(one, ast.Constant) or one.value]
        return begin[0] + made if _is_joined(begin[0] + made, [*meant, *node.values[1:]]) else ""

    def _source_of(self, node: ast.expr) -> str:
        last = node.end_lineno or node.lineno
        lines = self._lines[node.lineno - 1 : last]
        lines[-1:] = [one[: node.end_col_offset] for one in lines[-1:]]
        lines[:1] = [one[node.col_offset :] for one in lines[:1]]
        return b"\n".join(lines).decode()

    def _split(self, path: str, lists: bool) -> tuple[str, str] | None:
        """Split an absolute path behind the session's folder, or behind the one in which its first wildcard lies.

        Args:
            path: None is returned for any other text.
            lists: It may name a folder that code reads; otherwise only the session's counts.
        """
        if self._is_own(path):
            return self._folder, path[len(self._folder) :]
        wild = _WILD.search(path)
        folder = str(PurePath(f"{path[: wild.start()]}x").parent) if wild else path.rstrip("/")
        odd = not PurePath(folder).name or folder.startswith("//") or "\n" in folder or _DATA.search(folder)
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
        return self._known(folder, base, "a folder that is read", is_folder=True).name

    def _known(
        self, value: str | int | float, base: str, about: str, *, brought: bool = False, is_folder: bool = False
    ) -> Parameter:
        if value not in self.known:
            plain = re.sub(r"\W|^(?=\d)", "_", base).upper()
            name, number = plain, self._numbered.get(plain, 2)
            while name in self._taken or keyword.iskeyword(name):
                name, number = f"{plain}_{number}", number + 1
            self._numbered[plain] = number
            self._taken.add(name)
            self.known[value] = Parameter(name, value, about, brought, is_folder)
        return self.known[value]


def _is_joined(code: str, values: list[ast.expr]) -> bool:
    """Return whether code is an f-string of these parts and nothing else: text was cut, in which quotes may stand."""
    try:
        tree = parse(f"({code}\n)")
    except (SyntaxError, ValueError, RecursionError):
        return False
    meant = ast.Module([ast.Expr(ast.JoinedStr(values))], [])
    return ast.dump(tree) == ast.dump(meant)


def _lists(function: ast.expr, called: str) -> bool:
    """Return whether a function reads folders: of `join` the one of `os.path`."""
    if called == "join":
        owner = getattr(function, "value", None)
        return "path" in (getattr(owner, "attr", ""), getattr(owner, "id", ""))
    return bool(_FOLDERS.match(called))


def _word_near(words: str, start: int, end: int) -> str:
    """Return the word before a number of a question, else the one after it; empty if neither says anything."""
    before = _WORD.findall(words[max(0, start - _NEAR_CHARS) : start])[-1:]
    after = _WORD.findall(words[end : end + _NEAR_CHARS])[:1]
    return next((one for one in (*before, *after) if one.lower() not in _FILLERS and one.isascii()), "")


def _replaced(code: str, places: Sequence[_Place]) -> str:
    """Return code with other text in some places, which are given last one first."""
    lines = [line.encode() for line in python_lines(code)]
    for first, start, last, end, text in places:
        lines[first - 1 : last] = [lines[first - 1][:start] + text.encode() + lines[last - 1][end:]]
    return b"\n".join(lines).decode()


def _shown(source: str) -> str:
    """Return a cell's code with its last expression printed, as a notebook shows it."""
    tree = parse(source)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        return source.rstrip("\n")
    value = last.value
    prints = isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("print", "display", "show")
    if prints or last.end_lineno is None or last.end_col_offset is None:
        return source.rstrip("\n")
    text = ast.get_source_segment(source, last) or ast.unparse(last)
    return _replaced(source, [(last.lineno, last.col_offset, last.end_lineno, last.end_col_offset, f"show({text})")])


def _makes_charts(cell: ProgramCell) -> bool:
    """Return whether a cell left a chart open, which the kernel saved for it."""
    images = cell.ran is not None and any(str(one.get("path", "")).endswith(".png") for one in cell.ran.artifacts)
    return images and "savefig" not in cell.source


def _checks(paths: Sequence[Parameter]) -> str:
    """Return code that ends the program where a file or folder is not there."""
    checks = ""
    for word, kind in ("file", "file"), ("folder", "dir"):
        if names := "".join(f"{one.name}, " for one in paths if one.is_folder == (word == "folder")):
            checks += _CHECK.format(names=names.rstrip(", "), kind=kind, word=word)
    return checks


def _argument(one: Parameter) -> str:
    about = one.about[:100].replace("%", "%%") + " (default: %(default)s)"
    if isinstance(one.value, str):
        return f"parser.add_argument({one.name!r}, nargs='?', default={one.value!r}, help={about!r})\n"
    kind = type(one.value).__name__
    given = f"dest={one.name!r}, type={kind}, default={one.value!r}, help={about!r}"
    return f"parser.add_argument('--{one.option}', {given})\n"
