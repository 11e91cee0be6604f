"""`tw-autogen example from SESSION`: an example for later prompts, out of a session that was lived."""

from __future__ import annotations

from pathlib import Path

import click

from tw_autogen.cli.trust_prompt import HOW
from tw_autogen.errors import ConfigError
from tw_autogen.recall import keep_example
from tw_autogen.session import SessionSettings, read_journal, read_settings, rounds_of, trust_lines

_JOURNAL = "events.jsonl"


@click.group("example")
def command() -> None:
    """Make examples that show a role how to answer."""


@command.command("from")
@click.argument("session")
@click.option(
    "--role", default="Planner", show_default=True, help="Whose prompt it is for: Planner or CodeInterpreter."
)
@click.option(
    "--out", "out_path", type=click.Path(path_type=Path), help="The file; default: <session>-<role>.yaml here."
)
def from_session(session: str, role: str, out_path: Path | None) -> None:
    """Write a cleaned example from SESSION: its folder, or its name in the workspace.

    What the role read and wrote is kept; ids, failed rounds, places on this machine and secrets are not. Read it before
    you use it, and put it into the folder that `recall.planner_examples` or `recall.code_examples` names.
    """
    folder = _folder(session)
    path = out_path or Path(f"{folder.name}-{role.lower()}.yaml")
    rounds = rounds_of(read_journal(folder / _JOURNAL))
    click.echo(keep_example(rounds, path, role, private=[str(folder / "files"), str(folder)]))


def _folder(session: str) -> Path:
    """Find a session's folder."""
    settings = read_settings()
    workspace = Path(settings.read("session", SessionSettings).workspace)
    given = Path(session)
    for folder in (given.parent if given.name == _JOURNAL else given, workspace / session):
        if (folder / _JOURNAL).is_file():
            return folder.resolve()
    known = sorted(one.parent.name for one in workspace.glob(f"*/{_JOURNAL}"))
    for line in trust_lines(settings, HOW):
        click.echo(line, err=True)
    there = f"; in {workspace}: {', '.join(known[-5:])}" if known else f"; {workspace} holds none"
    raise ConfigError(f"{session}: neither a session's folder nor the name of one{there}")
