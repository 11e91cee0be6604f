"""`tw-autogen example from SESSION`: an example for later prompts, out of a session that was lived."""

from __future__ import annotations

from pathlib import Path

import click

from tw_autogen.cli.options import Options
from tw_autogen.cli.trust_prompt import HOW
from tw_autogen.cli.user_path import UserPath
from tw_autogen.cli.workspace_choice import workspace_of
from tw_autogen.errors import ConfigError
from tw_autogen.recall import keep_example
from tw_autogen.session import read_events, read_settings, rounds_of, session_folder, trust_lines


@click.group("example")
def command() -> None:
    """Make examples that show a role how to answer."""


@command.command("from")
@click.argument("session")
@click.option(
    "--role", default="Planner", show_default=True, help="Whose prompt it is for: Planner or CodeInterpreter."
)
@click.option("--out", "out_path", type=UserPath(path_type=Path), help="The file; default: <session>-<role>.yaml here.")
def from_session(session: str, role: str, out_path: Path | None) -> None:
    """Write a cleaned example from SESSION: its name, how that begins, or its folder.

    What the role read and wrote is kept; ids, failed rounds, places on this machine and secrets are not. Read it before
    you use it, and put it into the folder that `recall.planner_examples` or `recall.code_examples` names.
    """
    folder = _find_session_folder(session)
    path = out_path or Path(f"{folder.name}-{role.lower()}.yaml")
    rounds = rounds_of(read_events(folder))
    click.echo(keep_example(rounds, path, role, private=[str(folder / "files"), str(folder)]))


def _find_session_folder(session: str) -> Path:
    """Find a session's folder; an error is preceded by what a folder that is not trusted wanted, as a workspace."""
    settings = read_settings()
    try:
        return session_folder(session, workspace_of(Options(), settings).absolute())
    except ConfigError:
        for line in trust_lines(settings, HOW):
            click.echo(line, err=True)
        raise
