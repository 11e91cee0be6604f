"""`tw-autogen sessions`: list the sessions of a workspace, show, export, copy and remove them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tw_autogen.cli.options import Options
from tw_autogen.cli.terminal import clean
from tw_autogen.cli.user_path import UserPath
from tw_autogen.cli.workspace_choice import workspace_of
from tw_autogen.events import CellRan
from tw_autogen.kernel import KernelSettings, size_words
from tw_autogen.plural import pluralize
from tw_autogen.session import (
    FORMATS,
    USER,
    PastSession,
    SessionSettings,
    export_session,
    fork_session,
    past_sessions,
    prune_refusal_reason,
    prune_sessions,
    read_events,
    read_settings,
    remove_session,
    rounds_of,
    session_folder,
)
from tw_autogen.text_escaping import visible, visible_line
from tw_autogen.text_truncation import shortened

_QUESTION_CHARS = 60
_READ_CHARS = 4000
_PLACE = (
    click.Option(["-C", "--project"], type=UserPath(exists=True, file_okay=False, path_type=Path), metavar="DIR",
                 help="The folder whose settings say where sessions are; default: here."),
    click.Option(["--workspace"], type=UserPath(file_okay=False, path_type=Path), metavar="DIR",
                 help="Where the sessions are; default: .tw/sessions."),
)  # fmt: skip


@click.group("sessions")
def command() -> None:
    """List the sessions of a workspace; show, export, copy and remove them."""


@command.command("list")
def list_command(**place: Any) -> None:
    """List the sessions: name, age, size, first question."""
    workspace = _workspace(**place)
    sessions = past_sessions(workspace)
    for session in sessions:
        click.echo(session_line(session))
    if not sessions:
        click.echo(f"no sessions in {visible_line(str(workspace))}", err=True)


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
    workspace = _workspace(**place)
    gone, problems = prune_sessions(workspace, days, dry_run=dry_run)
    for one in gone:
        click.echo(session_line(one) if dry_run else f"removed {visible_line(str(one.folder))}")
    for problem in problems:
        click.echo(f"tw-autogen: not removed: {visible_line(problem)}", err=True)
    if not gone and not problems:
        click.echo(f"nothing older than {days:g} days in {visible_line(str(workspace))}", err=True)
    ctx.exit(1 if problems else 0)


@command.command("show")
@click.argument("session_id", metavar="ID")
def show_command(session_id: str, **place: Any) -> None:
    """Show what was asked and answered in a session; ID is its name, or how that begins."""
    folder = session_folder(session_id, _workspace(**place))
    events = read_events(folder)
    for one in rounds_of(events):
        click.echo(f"> {_visible_text(one.user_query)}")
        last = one.posts[-1] if one.posts else None
        if last is not None and last.send_to == USER:
            click.echo(_visible_text(last.message))
        else:
            click.echo(f"({_visible_text(one.error) or 'it was cut off'})")
        click.echo()
    cells = [event for event in events if isinstance(event, CellRan)]
    left = [visible_line(line) for line in cells[-1].variables] if cells else []
    click.echo(f"{pluralize(len(cells), 'cell')}, {sum(not cell.ok for cell in cells)} of them failed", err=True)
    for line in left:
        click.echo(f"variable {line}", err=True)
    click.echo(f"files {visible_line(str(folder / 'files'))}", err=True)


@command.command("export")
@click.argument("session_id", metavar="ID")
@click.argument("file", type=UserPath(dir_okay=False, path_type=Path), required=False)
@click.option("--to", type=click.Choice(FORMATS), help="The format, where no FILE is named; default: ipynb.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def export_command(session_id: str, file: Path | None, to: str | None, force: bool, **place: Any) -> None:
    """Write a session to FILE: .ipynb, .py (a program that runs on new data), .md or .html."""
    folder = session_folder(session_id, _workspace(**place))
    if file is not None and to is not None and file.suffix != f".{to}":
        raise click.UsageError(f"--to {to}, but the file is {file}; say one of them")
    click.echo(export_session(folder, file or Path(f"{folder.name}.{to or FORMATS[0]}"), replace=force))


@command.command("fork")
@click.argument("session_id", metavar="ID")
@click.option("--trust", is_flag=True, help="Also a session that you did not make in this folder.")
def fork_command(session_id: str, trust: bool, **place: Any) -> None:
    """Copy a session, to resume the copy; the first one stays as it is."""
    limit_mb = read_settings(project=place["project"]).read("kernel", KernelSettings).disk_mb
    made = fork_session(session_folder(session_id, _workspace(**place)), trust=trust, limit_mb=limit_mb)
    click.echo(made.name)
    click.echo(f"resume it: tw-autogen --resume {made.name}", err=True)


@command.command("rm")
@click.argument("session_ids", metavar="ID...", nargs=-1, required=True)
def rm_command(session_ids: tuple[str, ...], **place: Any) -> None:
    """Remove sessions with all their files."""
    workspace = _workspace(**place)
    for folder in dict.fromkeys(session_folder(one, workspace) for one in session_ids):
        remove_session(folder)
        click.echo(f"removed {visible_line(str(folder))}")


for _one in (list_command, show_command, export_command, fork_command, rm_command, prune_command):
    _one.params.extend(_PLACE)


def _workspace(project: Path | None, workspace: Path | None) -> Path:
    options, settings = Options(project=project, workspace=workspace), read_settings(project=project)
    for one in settings.left_out if workspace is None else ():
        if one.key == "session.workspace":
            where = visible_line(one.setting.origin)
            click.echo(f"left out session.workspace of {where}, which is not trusted; --workspace names it", err=True)
    return workspace_of(options, settings).absolute()


def session_line(one: PastSession) -> str:
    """Return one session in a line: name, age, size, first question."""
    age = f"{one.days:.0f} days" if one.days >= 1 else f"{one.days * 24:.1f} h"
    question = shortened(visible_line(" ".join(clean(one.question[:_READ_CHARS]).split())), _QUESTION_CHARS)
    return (
        f"{one.id}  {age:>8}  {size_words(one.size_bytes, brief=True):>9}  {'(open) ' * one.is_open}{question}".rstrip()
    )


def _visible_text(text: str) -> str:
    return visible(clean(text))
