"""`tw-autogen rerun`: run the code of a session again in the sandbox, on other files, and compare what comes of it."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.file_arguments import find_file
from tw_autogen.cli.options import RERUN_OPTIONS, Options, with_options
from tw_autogen.cli.session_opening import copy_files_of_answers, plugins_of, project_of, readable_folders
from tw_autogen.cli.terminal import clean
from tw_autogen.cli.trust_prompt import read_settings_and_warn
from tw_autogen.cli.user_path import UserPath
from tw_autogen.cli.workspace_choice import workspace_of
from tw_autogen.errors import ConfigError, ModelError
from tw_autogen.events import CellRan, CodeChecked, Event, RoundOpened
from tw_autogen.model import BaseChatModel, Completion, ModelRequest
from tw_autogen.plural import pluralize
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session import (
    Parameter,
    Program,
    Session,
    SessionSettings,
    distrusted_folder,
    open_session,
    read_settings,
    session_folder,
)
from tw_autogen.text_escaping import visible

_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
_PLACE = re.compile(r"^( *cell )(\d{1,9})(, line \d+)", re.M)
_MAX_LINES = 40
_MAX_COMPARED = 500
"""Lines from the first that differs on; a diff of many that are alike takes the square of their number, or more."""


class _NoModel(BaseChatModel):
    """Stands where a session needs a model, and is never asked by the code of cells."""

    name = "no model"

    def answer(self, request: ModelRequest) -> Completion:
        raise ModelError("a session is run again without a model")


@with_options(RERUN_OPTIONS)
@click.command("rerun")
@click.argument("session_id", metavar="SESSION")
@click.option("--file", "files", multiple=True, metavar="[OLD=]NEW", help="In place of the first file, or of OLD.")
@click.option(
    "--param",
    "values",
    multiple=True,
    metavar="NAME=N",
    help="In place of a number of the questions, or of a folder that the code reads.",
)
@click.option(
    "--out",
    type=UserPath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save all files that the cells make there; default: they stay in the new session's folder.",
)
@click.pass_context
def command(
    ctx: click.Context, /, session_id: str, files: tuple[str, ...], values: tuple[str, ...], **shared: Any
) -> None:
    """Run the cells of SESSION again, without a model, and show where results differ.

    They run in the sandbox, checked as before, in a session of their own; cells that failed or were refused are left
    out. `tw-autogen sessions export SESSION x.py` writes the same as a program.
    """
    options = Options(**shared)
    say = partial(click.echo, err=True)
    settings = read_settings_and_warn(options)
    workspace = workspace_of(options, settings).absolute()
    folder = session_folder(session_id, workspace)
    distrusted = distrusted_folder(settings)  # trust of a project says nothing of the sessions here
    trust = options.trust and not (distrusted and folder.is_relative_to(distrusted))
    program = Program.of_session(folder, trust=trust)
    if not program.cells:
        raise ConfigError(f"{folder.name}: no cell of this session ran to its end")
    for line in program.left_out:
        say(visible(f"left out: {line}"))
    brought = None  # the folder of its files; None: it has none of its own
    with contextlib.suppress(OSError):
        brought = ctx.with_resource(SafeFolder.without_links(folder / "files"))
    chosen = _choose_parameter_values(
        [*program.parameters, *_unnamed_files(program, brought, say)], brought, files, values
    )
    said = settings.read("session", SessionSettings).user_folder  # stays as it was said, with its links
    if not said and (readable := readable_folders(options)):
        keywords = {**options.keywords, "session.user_folder": str(readable[0])}
        settings = read_settings(keywords, project=options.project, trust=options.trust)
    events: list[Event] = []
    with open_session(
        _NoModel(),
        roles="code_interpreter",
        plugins=options.plugins,
        folder=options.workspace,
        handlers=[events.append],
        settings=settings,
        project=project_of(options, settings),
    ) as session:
        for line in _not_here(session, program):
            say(visible(line))
        if brought is not None:  # other kernels' code may be able to write there
            session.inputs.distrust(brought)
        files_chosen = [one for one in chosen.values() if isinstance(one, Path)]
        names = ", ".join(parameter.name for parameter in program.parameters) or "no parameters"
        session.run_code(f"# rerun of {folder.name}: {names}", files_chosen)
        placed = next(iter(event.files for event in events if isinstance(event, RoundOpened)), [])
        if chosen:
            session.run_code(_assignment_code(chosen, placed))
        code = _run_and_compare(session, program, events)
        if options.out and code is Exit.done:
            for one in copy_files_of_answers(session, options).land(session.artifacts, ""):
                said = f"saved {one.path}" if one.path else f"not saved: {one.problem}; it is {one.source}"
                say(visible(said))
        say(visible(f"{session.id}: {session.folder}"))
    ctx.exit(code)


def _not_here(session: Session, program: Program) -> list[str]:
    """Return what the cells use and this session does not have, a line each."""
    plugins, found = [name for name in program.plugins if name not in plugins_of(session)], []
    if plugins:
        found.append(f"plugins that are not here: {', '.join(plugins)}; -C DIR names their project, --plugins a file")
    if program.missing:
        found.append(f"cells use variables that were given, or that no cell makes: {', '.join(program.missing)}")
    return found


def _unnamed_files(program: Program, brought: SafeFolder | None, say: Callable[[str], None]) -> list[Parameter]:
    """Return a parameter for each file that a request brought and no cell names: code may have listed the folder.

    One that is gone is named, and left out.
    """
    named = {str(parameter.value) for parameter in program.parameters}
    found = []
    for number, name in enumerate(program.files):
        if name not in named:
            try:
                _earlier_file(brought, name)
            except ConfigError:
                say(f"{visible(name)}: this file of the session is gone; no cell names it")
            else:
                found.append(Parameter(f"_file_{number}", name, brought=True))
    return found


def _choose_parameter_values(
    parameters: Sequence[Parameter], brought: SafeFolder | None, files: Sequence[str], values: Sequence[str]
) -> dict[str, Path | str | int | float]:
    """Return the value of each parameter, by name: a path of each file that the user named, in a request or here.

    A path that code alone has named stays a text: what it may read of it, the sandbox decides again.

    Raises:
        ConfigError: a file is missing, or a name is unknown.
    """
    of_files = {str(parameter.value): parameter for parameter in parameters if parameter.is_file}
    by_name = {**{Path(name).name: one for name, one in reversed(of_files.items())}, **of_files}
    others = {parameter.option: parameter for parameter in parameters if not parameter.is_file}
    given: dict[str, Path | str | int | float] = {}
    for text in files:
        olds = () if os.path.lexists(text) else by_name  # a file of that very name is the new one
        old = max((name for name in olds if text.startswith(f"{name}=")), key=len, default="")
        new = text[len(old) + 1 :] if old else text
        known = by_name.get(old or next(iter(of_files), ""))
        if known is None or not old and "=" in text and find_file(text).path is None:
            raise ConfigError(f"--file {text}: the session read no such file; it read {_names_or_none(of_files)}")
        found = find_file(new)
        if found.path is None:
            raise ConfigError(f"--file {text}: {found.problem_sentence}")
        given[known.name] = found.path
    for text in values:
        name, equals, number = text.partition("=")
        one_of = others.get(name)
        if one_of is None or not equals:
            names = _names_or_none(others)
            raise ConfigError(f"--param {text}: expected NAME=N; the session's numbers and folders are {names}")
        try:
            given[one_of.name] = os.path.abspath(number) if one_of.is_folder else type(one_of.value)(number)
        except ValueError:
            raise ConfigError(f"--param {text}: {number!r} is no {type(one_of.value).__name__}") from None
    for parameter in parameters:
        if parameter.name not in given:
            file = parameter.value if isinstance(parameter.value, str) and parameter.brought else ""
            given[parameter.name] = _earlier_file(brought, file) if file else parameter.value
    return given


def _earlier_file(brought: SafeFolder | None, name: str) -> Path:
    """Return the path of a file that a session had; in its folder it must be no link, which code could have made.

    Raises:
        ConfigError: it is gone.
    """
    with contextlib.suppress(OSError):
        if os.path.isabs(name):
            if (path := find_file(name).path) is not None:
                return path
        elif brought is not None and brought.has_file(name):
            return brought.path / name
    raise ConfigError(f"{name}: this file of the session is gone; name one: --file {name}=PATH")


def _names_or_none(names: Any) -> str:
    return ", ".join(names) or "none"


def _assignment_code(chosen: Mapping[str, Path | str | int | float], placed: Sequence[str]) -> str:
    """Return code that gives the parameters their values; files have their names of the new session's folder."""
    names = iter(placed)
    values = {name: next(names) if isinstance(one, Path) else one for name, one in chosen.items()}
    return "\n".join(f"{name} = {value!r}" for name, value in values.items())


def _run_and_compare(session: Session, program: Program, events: list[Event]) -> Exit:
    """Run the cells, and print of each what differs from before; stop at one that fails."""
    same = differing = 0
    for number, cell in enumerate(program.cells, 1):
        before = len(events)
        session.run_code(cell.source)
        ran = next((event for event in events[before:] if isinstance(event, CellRan)), None)
        if ran is None or not ran.ok:
            refused = next((event.findings for event in events[before:] if isinstance(event, CodeChecked)), [])
            error = _renumber_cells(ran.error, ran.cell - number) if ran else ""
            why = error.strip() if ran else f"not run: {'; '.join(map(str, refused))}"
            click.echo(f"cell {number}: failed\n{_indented(why.splitlines())}")
            click.echo(f"{number - 1} of {pluralize(len(program.cells), 'cell')} ran", err=True)
            return Exit.failed
        old, new = _output_lines(cell.ran), _output_lines(ran)
        if cell.ran is None or old == new:
            same += 1
            click.echo(f"cell {number}: same")
            continue
        differing += 1
        lines = _differing_lines(old, new)
        more = f"\n  … {len(lines) - _MAX_LINES} more lines" * (len(lines) > _MAX_LINES)
        click.echo(f"cell {number}: differs\n{_indented(lines[:_MAX_LINES])}{more}")
    cells = pluralize(same + differing, "cell")
    click.echo(f"{cells} ran: {same} with the same result, {differing} with another one", err=True)
    return Exit.done


def _differing_lines(old: list[str], new: list[str]) -> list[str]:
    """Return the lines that differ, as of a diff; of long outputs from the first one on, place by place, after some.

    Args:
        old: Lines as they were.
        new: Lines as they are.
    """
    same = len(os.path.commonprefix([old, new]))
    until = same + _MAX_COMPARED
    found = difflib.unified_diff(old[same:until], new[same:until], n=0, lineterm="")
    lines = [f"{line[0]} {line[1:]}" for line in itertools.islice(found, 2, None) if line[:1] in "+-"]
    for before, after in itertools.zip_longest(old[until:], new[until:]):
        if before != after:
            lines += [f"{sign} {line}" for sign, line in (("-", before), ("+", after)) if line is not None]
    return lines


def _renumber_cells(error: str, before: int) -> str:
    """Return a traceback whose cells are counted as those of the program.

    Args:
        error: In it, a line of a cell is `cell 3, line 1`.
        before: How many cells ran before the program's first.

    Example:
        >>> _renumber_cells("  cell 3, line 1", 2)
        '  cell 1, line 1'
    """
    return _PLACE.sub(lambda match: f"{match[1]}{max(1, int(match[2]) - before)}{match[3]}", error)


def _output_lines(ran: CellRan | None) -> list[str]:
    if ran is None:
        return []
    parts = (ran.stdout, ran.result or "", *(f"file {artifact.get('name')}" for artifact in ran.artifacts))
    return [_ADDRESS.sub("0x…", line) for part in parts for line in part.splitlines()]


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(f"  {visible(clean(line))}" for line in lines)
