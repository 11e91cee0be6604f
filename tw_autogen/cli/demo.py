"""`tw-autogen demo`: one whole task with recorded replies of a model, and everything else real."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from tw_autogen.cli.event_printer import EventPrinter
from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.terminal import link, marks, stdout_console
from tw_autogen.cli.user_path import UserPath
from tw_autogen.errors import ConfigError
from tw_autogen.events import Event
from tw_autogen.model import Recording, ReplayModel
from tw_autogen.safe_folder import SafeFolder, open_or_make_folder, private_folder
from tw_autogen.scenario import Outcome, Scenario, read_scenario, run_scenario
from tw_autogen.session import write_notebook
from tw_autogen.shipped_folders import shipped_folder

_SCENARIO = "anomaly_detection"
_FILES = ("chart.png", "chart.svg", "anomalies.csv", "plant.db")
"""What stays: the last one is the data, with which the notebook can be run again."""
_FOLDER = Path("tw-demo")
_NOTEBOOK = "session.ipynb"
_TRIAL = ".tw-demo"
_READING_SECONDS = 3.0
_PIECE_CHARS = 24
_OWN = (
    'Your own question:  OPENAI_API_KEY=sk-... tw-autogen -p "Plot revenue by month" sales.csv'
    "   (a local model needs no key: --base-url http://localhost:11434/v1 --model qwen3)"
)


@click.command("demo")
@click.option(
    "--folder",
    type=UserPath(file_okay=False, path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Where chart, table and notebook go.",
)
@click.option("--no-color", is_flag=True, help="Plain text; same as NO_COLOR in the environment.")
@click.pass_context
def command(ctx: click.Context, folder: Path, no_color: bool) -> None:
    """Watch a whole task: find anomalies in a database, chart and report them.

    A model's replies are recorded; the plan, the checks, the kernel, the plugins, the data and the files are real.
    """
    console = stdout_console(color=not no_color)
    scenario = read_scenario(shipped_folder("scenarios") / _SCENARIO)
    started = time.monotonic()
    with _errors_of(folder):
        target = open_or_make_folder(folder)
    with target, private_folder("tw-demo-") as workspace:
        with _errors_of(folder):
            target.write_file(_TRIAL, b"")
            target.remove(_TRIAL)
        outcome, events = _replay(scenario, console, workspace)
        with _errors_of(folder):
            made = [folder / name for name in _keep_made_files(outcome.session_folder, target)]
            made.append(write_notebook(events, folder / _NOTEBOOK))
    console.print()
    for path in made:
        console.print(Text.assemble("  ", link(path)), soft_wrap=True)
    names = ", ".join(path.name for path in made)
    shown = folder if folder.is_absolute() else f"./{folder}"
    seconds = time.monotonic() - started
    spent = f"{seconds:.1f} s, recorded replies: no tokens spent"
    console.print(f"{len(made)} files in {shown} ({names}), {spent}", soft_wrap=True)
    console.print(_OWN, soft_wrap=True)
    for problem in outcome.problems:
        console.print(Text(f"{marks(console).failed} {problem}", style="red"), soft_wrap=True)
    ctx.exit(Exit.done if outcome.ok else Exit.failed)


def _replay(scenario: Scenario, console: Console, workspace: Path) -> tuple[Outcome, list[Event]]:
    """Run it; at a terminal the replies come no faster than a person can see them grow."""
    recording = Recording.read(scenario.replies)
    pieces = sum(len(reply.completion.text) // _PIECE_CHARS + 1 for reply in recording.replies)
    delay = min(0.02, _READING_SECONDS / max(1, pieces)) if console.file.isatty() else 0.0
    show = EventPrinter(console, question=True, files=False)
    events: list[Event] = []
    try:
        model = ReplayModel(recording, delay=delay)
        return run_scenario(scenario, model, workspace=workspace, handlers=[events.append, show]), events
    finally:
        show.stop()


@contextlib.contextmanager
def _errors_of(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}; say where files go with --folder") from error


def _keep_made_files(session_folder: Path, target: SafeFolder) -> list[str]:
    """Bring what was made to where it stays, in place of what an earlier demo left there; return the names."""
    kept = []
    with SafeFolder(session_folder) as made:
        for name in _FILES:
            with contextlib.suppress(FileNotFoundError):
                target.remove(name)
            if made.has_file(name):
                with made.open_file(name) as source:
                    target.copy_in(source, name)
                kept.append(name)
    return kept
