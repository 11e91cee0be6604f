"""`tw-autogen sessions`: list the sessions of a workspace, and remove old ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tw_autogen.cli.options import Options
from tw_autogen.cli.terminal import clean
from tw_autogen.cli.workspace_choice import workspace_of
from tw_autogen.escaped_text import visible_line
from tw_autogen.session import (
    PastSession,
    SessionSettings,
    past_sessions,
    prune_refusal_reason,
    prune_sessions,
    read_settings,
)

_QUESTION_CHARS = 60
_READ_CHARS = 4000
_PLACE = (
    click.Option(["-C", "--project"], type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
                 help="The folder whose settings say where sessions are; default: here."),
    click.Option(["--workspace"], type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                 help="Where the sessions are; default: .tw/sessions."),
)  # fmt: skip


@click.group("sessions")
def command() -> None:
    """List the sessions of a workspace, and remove old ones with all their files."""


@command.command("list")
def list_command(**place: Any) -> None:
    """List the sessions: name, age, size, first question."""
    sessions = past_sessions(_workspace(**place))
    for one in sessions:
        click.echo(_line(one))
    if not sessions:
        click.echo(f"no sessions in {_workspace(**place)}", err=True)


@command.command("prune")
@click.option("--days", type=click.FloatRange(min=0), help="Older ones are removed; default: session.keep_days, 30.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
@click.pass_context
def prune_command(ctx: click.Context, /, days: float | None, dry_run: bool, **place: Any) -> None:
    """Remove the sessions in which nothing happened for a number of days; open ones stay."""
    if days is None:
        days = read_settings(project=place["project"]).read("session", SessionSettings).keep_days
        if not days:
            raise click.UsageError("session.keep_days is 0: sessions stay for ever; say --days N")
    if not place["workspace"] and (why := prune_refusal_reason(read_settings(project=place["project"]))):
        raise click.UsageError(why)
    gone, problems = prune_sessions(_workspace(**place), days, dry_run=dry_run)
    for one in gone:
        click.echo(_line(one) if dry_run else f"removed {one.folder}")
    for problem in problems:
        click.echo(f"tw-autogen: not removed: {problem}", err=True)
    if not gone and not problems:
        click.echo(f"nothing older than {days:g} days in {_workspace(**place)}", err=True)
    ctx.exit(1 if problems else 0)


for _one in (list_command, prune_command):
    _one.params.extend(_PLACE)


def _workspace(project: Path | None, workspace: Path | None) -> Path:
    options = Options(project=project, workspace=workspace)
    return workspace_of(options, read_settings(project=project)).absolute()


def _line(one: PastSession) -> str:
    age = f"{one.days:.0f} days" if one.days >= 1 else f"{one.days * 24:.1f} h"
    size = f"{one.size_bytes / 1e6:.1f} MB" if one.size_bytes >= 100_000 else f"{one.size_bytes / 1e3:.1f} kB"
    words = visible_line(" ".join(clean(one.question[:_READ_CHARS]).split()))
    words = words if len(words) <= _QUESTION_CHARS else f"{words[:_QUESTION_CHARS]}…"
    return f"{one.id}  {age:>8}  {size:>9}  {'(open) ' * one.is_open}{words}".rstrip()
