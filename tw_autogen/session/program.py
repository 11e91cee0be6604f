"""`Program`: the code of a session as a Python script that runs on new data."""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.events import CellRan, CellStarted, Event, RoundOpened, SessionOpened
from tw_autogen.python_source import parse, python_lines
from tw_autogen.secret_masking import MASK
from tw_autogen.session.earlier_session import EarlierSession
from tw_autogen.session.name_flow import (
    acts_outside,
    free_variables,
    free_variables_of_functions,
    names_stored,
    variables_changed,
    variables_made,
)
from tw_autogen.session.notebook_export import EXIT, files_of_plugins, loading_code
from tw_autogen.session.program_parameters import Parameter, ParameterFinder, Place, replaced
from tw_autogen.text_escaping import visible, visible_line
from tw_autogen.text_truncation import shortened

_FAILED_LINE = re.compile(r"^Traceback \(most recent call last\):\n  cell \d+, line (\d{1,9})$", re.MULTILINE)
_RUNS_CELL = re.compile(r"%%(?:time|capture)\b")
_RUNS_LINE = re.compile(r"([ \t]*)%time[ \t]+(?=[^-\s])")
_MAX_MAGICS = 50
_ABOUT_CHARS = 200
_IMPORTS = (ast.Import, ast.ImportFrom)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_MODULE_NAMES = frozenset(("__name__", "__file__", "__doc__", "__builtins__"))
_HEAD = '''"""{about}

Written by tw-autogen from {session}. Run it on new data: python {name}{usage}
Files that are no parameter are read from the current folder, and its own are written there.
{missing}"""

{future}import argparse
{imports}from pathlib import Path

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
_CHARTS = '''def noting_saved(savefig):
    """Return `savefig` so that a figure knows that the code has saved it to a file of its own."""

    def save(figure, *args, **keywords):
        savefig(figure, *args, **keywords)
        if not hasattr(args[0] if args else keywords.get("fname"), "write"):
            figure.is_saved = True

    return save


def save_charts(name):
    """Save the charts that are open and not saved yet, and close them."""
    import matplotlib.pyplot as plt

    for number in plt.get_fignums():
        if not hasattr(figure := plt.figure(number), "is_saved"):
            figure.savefig(f"{name}.png" if number == 1 else f"{name}-{number}.png")
    plt.close("all")


matplotlib.figure.Figure.savefig = noting_saved(matplotlib.figure.Figure.savefig)


'''
_RUNS = '''def run_cell(code, loop=asyncio.new_event_loop()):
    """Run a cell that awaits something, or that may end before its last line, with `sys.exit(0)`."""
    asyncio.set_event_loop(loop)
    try:
        left = eval(compile(code, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), globals())
        if left is not None:
            loop.run_until_complete(left)
    except SystemExit as end:
        if end.code:
            raise


'''


_OWN = re.compile(r"\b(?:show|save_charts|noting_saved|run_cell)\b(?=\()")


@dataclass(frozen=True)
class ProgramCell:
    """One cell that ran to its end.

    Args:
        source: Its code, with parameters in the places of their values.
        request: The question for which it ran; empty: the same as for the cell before.
        ran: What came of it; None: the statements before the failure of a cell that failed, which others need.
        charts: It left charts open, which the kernel saved or closed.
    """

    source: str
    request: str
    ran: CellRan | None
    charts: bool = False


@dataclass
class Program:
    """The code of a session: cells that ran to their end, in order, and what they need of those that failed.

    Args:
        session: The session's name.
        requests: The questions.
        cells: The code.
        parameters: Files that were given, folders that code reads, and numbers that the questions name.
        files: Names of all files that requests brought, also of those that no code names, such as `glob("*.csv")`.
        plugins: The plugins that it calls: the file of each by name; empty: not known.
        left_out: What ran and is not there, and why, a line each.
        missing: Names that the code uses and that no cell makes, such as variables that were given.
    """

    session: str
    requests: list[str] = field(default_factory=list)
    cells: list[ProgramCell] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    plugins: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Program:
        """Make a program of what happened in a session.

        Args:
            events: Oldest first, as `read_journal` gives them.
        """
        read = _Reader()
        for event in events:
            read.take(event)
        cells, missing, unsure = _with_needed(read)
        left_out = [*read.left_out, *unsure, *_requests_without_code(read, cells)]
        made = cls(read.session, read.requests, files=list(read.files), left_out=left_out)
        made.missing = sorted(missing - read.plugins.keys())
        names = {name for _, tree, _, _ in read.cells for name in _used_names(tree)}
        first = ParameterFinder(read.requests, made.files, names, read.folder)
        for code, tree, _, _ in cells:
            first.places(tree, code)
        found = ParameterFinder(read.requests, made.files, names, read.folder, first.uses)
        request = ""
        for code, tree, asked, ran in cells:
            source = replaced(code, found.places(tree, code))
            charts = "savefig" in code or any(
                str(artifact.get("path", "")).endswith(".png") for artifact in ran.artifacts
            )
            made.cells.append(ProgramCell(source, asked if asked != request else "", ran if ran.ok else None, charts))
            request = asked
        made.parameters = list(found.known.values())
        made.plugins = {name: file for name, file in read.plugins.items() if name in names}
        return made

    @classmethod
    def of_session(cls, folder: Path, *, trust: bool = False) -> Program:
        """Read the program of a session that has ended.

        Args:
            folder: The session's.
            trust: Also of one that this user did not make there.

        Raises:
            ConfigError: as for a resumed session.
        """
        return cls.of(EarlierSession.read(folder, trust=trust).events)

    def source(self, name: str = "program.py") -> str:
        """Return the program's text.

        Args:
            name: Of its file, for its help.
        """
        paths = [parameter for parameter in self.parameters if isinstance(parameter.value, str)]
        asked = dict.fromkeys(cell.request for cell in self.cells if cell.request)
        about = _in_docstring(shortened(" / ".join(" ".join(request.split()) for request in asked), _ABOUT_CHARS))
        usage = "".join(f" [{path.name}]" for path in paths)
        usage += "".join(
            f" [--{parameter.option} N]" for parameter in self.parameters if not isinstance(parameter.value, str)
        )
        names = ", ".join(parameter.name for parameter in self.parameters)
        values = ", ".join(f"arguments.{parameter.name}" for parameter in self.parameters)
        missing = ", ".join(self.missing)
        features: set[str] = set()
        taken = {*self.plugins, *(name for cell in self.cells for name in names_stored(parse(cell.source)))}
        own = {name: _free_name(name, taken) for name in ("show", "save_charts", "noting_saved", "run_cell")}
        cells = [_Text.of(cell, features, own) for cell in self.cells]
        charts, run = any(cell.charts for cell in self.cells), any(text.is_text for text in cells)
        imports = ["ast", "asyncio"] * run + ["matplotlib.figure"] * charts
        head = _HEAD.format(
            about=about or "Code of a session.",
            session=_in_docstring(self.session) or "a session",
            name=_in_docstring(name),
            usage=usage,
            missing=f"It uses what no cell makes, such as variables that were given: {missing}.\n" if missing else "",
            future=f"from __future__ import {', '.join(sorted(features))}\n\n" if features else "",
            imports="".join(f"import {module}\n" for module in imports),
            arguments="".join(map(_argument_code, self.parameters)),
            assignments=f"{names} = {values}\n" if names else "",
            checks=_path_checks(paths),
        )
        helpers = "".join([_SHOW, _CHARTS * charts, _RUNS * run])
        text = [head, _OWN.sub(lambda match: own[match[0]], helpers)]
        if any("display(" in cell.source for cell in self.cells):
            text.append(f"display = {own['show']}\n\n")
        if self.plugins:
            text.append(f"{loading_code(self.plugins)}\n\n")
        for number, (cell, shown) in enumerate(zip(self.cells, cells, strict=True), 1):
            text += [f"# {visible(line)}\n" for line in cell.request.splitlines()]
            text.append(f"{shown.code}\n")
            if cell.charts:
                text.append(f'{own["save_charts"]}("chart-{number}")\n')
            text.append("\n")
        text += [f"# Left out: {line}\n" for line in self.left_out]
        return "".join(text).rstrip() + "\n"


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: it, or with a number behind it."""
    return next(
        free
        for free in itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        if free not in taken
    )


def _in_docstring(text: str) -> str:
    return visible_line(text).replace("\\", "/").replace('"', "'")


_Kept = tuple[str, ast.Module, str, CellRan]
"""Of a cell: its code, its tree, the question for which it ran, and what came of it."""


class _Reader:
    """Collects cells, questions and files of a session."""

    def __init__(self) -> None:
        self.session = self.folder = ""
        self.plugins: dict[str, str] = {}
        self.requests: list[str] = []
        self.files: dict[str, None] = {}
        self.left_out: list[str] = []
        self.cells: list[_Kept] = []
        self._running: dict[int, str] = {}

    @property
    def unfinished(self) -> bool:
        """Return whether a cell began of whose end nothing is known."""
        return bool(self._running)

    def take(self, event: Event) -> None:
        if isinstance(event, SessionOpened):
            self.session, self.folder = event.session_id, event.folder
            self.plugins |= files_of_plugins(event)
        elif isinstance(event, RoundOpened):
            self.requests.append(event.user_query)
            self.files.update(dict.fromkeys(event.files))
        elif isinstance(event, CellStarted) and not event.check:
            self._running[event.cell] = event.code
        elif isinstance(event, CellRan) and event.cell in self._running:
            code = _without_magics(self._running.pop(event.cell))
            if MASK in code:
                self.left_out.append(f"cell {event.cell}: a value that is kept as {MASK}, as those of secrets are")
            try:
                tree = parse(code)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
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
    for _ in range(_MAX_MAGICS):
        try:
            parse(made := "\n".join(lines))
            return made
        except SyntaxError as error:
            index = (error.lineno or 0) - 1
            if (
                not 0 <= index < len(lines)
                or lines[index].lstrip()[:1] not in ("%", "!")
                or lines[index].endswith("\\")
            ):
                return code
            timed = _RUNS_LINE.match(lines[index])
            lines[index] = f"{timed[1]}{lines[index][timed.end() :]}" if timed else f"# {lines[index]}"
        except (ValueError, RecursionError):
            return code
    return code


def _with_needed(read: _Reader) -> tuple[list[_Kept], set[str], list[str]]:
    """Return the cells that ran, and what they need of those that failed: statements that had run, in their place.

    Returns:
        The cells; the names that they use and nothing makes; and what of cells that failed may be missing, a line each.
    """
    kept: list[_Kept] = []
    unsure: list[str] = []
    imports = [node for _, tree, _, _ in read.cells for node in ast.walk(tree) if isinstance(node, _IMPORTS)]
    modules = {name for statement in imports for name in names_stored(statement)}
    functions = {node.name for _, tree, _, _ in read.cells for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
    called = {name for _, tree, _, _ in read.cells for name in free_variables_of_functions(tree)}
    needed = set(called)
    for code, tree, asked, ran in reversed(read.cells):
        if not ran.ok:
            if ran.undone or ran.state_lost:
                continue
            done, code = _before_failure(code, tree, ran.error)
            if partly := _changed_in_part(tree.body[len(done) :], ran.error, modules, functions) & needed:
                unsure.append(f"cell {ran.cell}, which failed: it may have changed {', '.join(sorted(partly))}")
            if not (variables_changed(done, modules, functions) & needed or acts_outside(done)):
                continue
            code = f"# Of a cell that failed later:\n{code}"
            tree = parse(code)
        needed -= variables_made(tree.body) - called
        needed |= free_variables(tree.body)
        kept.append((code, tree, asked, ran))
    stored = {name for _, tree, _, _ in kept for name in names_stored(tree)}
    known = needed if "*" in stored else {*stored, *dir(builtins), *read.plugins, "display", *_MODULE_NAMES}
    return kept[::-1], needed - known, unsure[::-1]


def _changed_in_part(left: list[ast.stmt], error: str, modules: set[str], functions: set[str]) -> set[str]:
    """Return the variables that a cell may have changed after the last statement that is known to have ended.

    Args:
        left: The statements from that which failed on, or all where the failure's place is not known.
        error: Says the place.
        modules: Names of what is imported.
        functions: Names of functions that the code defines.
    """
    if _failed_line(error):
        # Any other has no effect if it fails.
        left = [statement for statement in left[:1] if isinstance(statement, _BLOCKS)]
    return variables_changed(left, modules, functions)


def _failed_line(error: str) -> int:
    """Return the line in which a cell failed; 0 where that is not known."""
    found = _FAILED_LINE.findall(error)  # text of an exception may look so as well
    return int(found[0]) if len(found) == 1 else 0


def _before_failure(code: str, tree: ast.Module, error: str) -> tuple[list[ast.stmt], str]:
    """Return the statements of a cell that ended before the one that failed; none where that is not known."""
    line = _failed_line(error)
    body = [statement for statement in tree.body if (statement.end_lineno or statement.lineno) < line]
    while body and len(body) < len(tree.body) and tree.body[len(body)].lineno <= (body[-1].end_lineno or 0):
        body.pop()  # the next one begins on its line
    last = body[-1].end_lineno if body else 0
    return body, "\n".join(python_lines(code)[:last])


def _requests_without_code(read: _Reader, kept: Sequence[_Kept]) -> list[str]:
    """Return a line for each request of whose code nothing is kept."""
    ran = dict.fromkeys(asked for _, _, asked, ran in read.cells if not ran.undone)
    unfinished = dict.fromkeys(read.requests[-1:] if read.unfinished else [])
    left = [request for request in {**ran, **unfinished} if request not in {asked for _, _, asked, _ in kept}]
    return [
        f"{shortened(visible_line(request), _ABOUT_CHARS)}: none of its code ran to its end"
        for request in left
        if request
    ]


def _used_names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@dataclass(frozen=True)
class _Text:
    """A cell as it stands in a program.

    Args:
        code: The text.
        is_text: It is a text that `run_cell` runs: it awaits something outside of functions, or may end with an exit.
    """

    code: str
    is_text: bool

    @classmethod
    def of(cls, cell: ProgramCell, features: set[str], own: Mapping[str, str]) -> _Text:
        """Return a cell with its last expression printed, as a notebook shows it.

        Args:
            cell: The cell.
            features: Takes those of `from __future__`, which has to stand at the program's beginning.
            own: What the program calls its own functions.
        """
        source, tree = cell.source, parse(cell.source)
        places: list[Place] = []
        for statement in tree.body:
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            if isinstance(statement, ast.ImportFrom) and future:
                features.update(alias.name for alias in statement.names)
            # A `global` would have to stand before the cells that use its names.
            if future or isinstance(statement, ast.Global):
                places.append((*_statement_span(statement), "pass"))
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr) and cell.ran is not None and not _is_hidden(source, last):
            value = last.value
            prints = isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("print", "display")
            if not prints:
                text = ast.get_source_segment(source, last) or ast.unparse(last)
                places.append((*_statement_span(last), f"{own['show']}({text})"))
        code = replaced(source, places[::-1]).rstrip("\n")
        if not (_has_await(tree) or EXIT.search(code)):
            return cls(code, False)
        quoted = f"r'''\n{code}\n'''" if "'''" not in code else repr(code)
        return cls(f"{own['run_cell']}({quoted})", True)


def _statement_span(statement: ast.stmt) -> tuple[int, int, int, int]:
    return (
        statement.lineno,
        statement.col_offset,
        statement.end_lineno or statement.lineno,
        statement.end_col_offset or statement.col_offset,
    )


def _is_hidden(source: str, last: ast.Expr) -> bool:
    """Return whether a semicolon stands after the last statement, as notebooks have it where nothing is to be shown."""
    first, *_ = python_lines(source)[(last.end_lineno or 1) - 1 :]
    return first.encode()[last.end_col_offset or 0 :].lstrip().startswith(b";")


def _has_await(tree: ast.Module) -> bool:
    """Return whether code awaits something outside of functions."""
    left: list[ast.AST] = [tree]
    for node in left:  # grows
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) or getattr(node, "is_async", False):
            return True
        if not isinstance(node, _FUNCTIONS):
            left += ast.iter_child_nodes(node)
    return False


def _path_checks(paths: Sequence[Parameter]) -> str:
    """Return code that ends the program where a file or folder is not there."""
    checks = ""
    for word, kind in ("file", "file"), ("folder", "dir"):
        if names := "".join(f"{path.name}, " for path in paths if path.is_folder == (word == "folder")):
            checks += _CHECK.format(names=names.rstrip(", "), kind=kind, word=word)
    return checks


def _argument_code(parameter: Parameter) -> str:
    about = parameter.about[:100].replace("%", "%%") + " (default: %(default)s)"
    if isinstance(parameter.value, str):
        return f"parser.add_argument({parameter.name!r}, nargs='?', default={parameter.value!r}, help={about!r})\n"
    kind = type(parameter.value).__name__
    given = f"dest={parameter.name!r}, type={kind}, default={parameter.value!r}, help={about!r}"
    return f"parser.add_argument('--{parameter.option}', {given})\n"
