"""`tw-autogen` without a command, and `tw-autogen chat`: one question with `-p` or from a pipe, else a chat."""

from __future__ import annotations

import difflib
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tw_autogen.cli.chat import Chat
from tw_autogen.cli.exits import Exit
from tw_autogen.cli.once import answer_once
from tw_autogen.cli.options import ASK_OPTIONS, Options, with_options
from tw_autogen.cli.piped import checked_question, read_data, read_question
from tw_autogen.taskweaver_config import TASKWEAVER_FILE

_STDIN = "-"


@with_options(ASK_OPTIONS)
@click.command("chat")
@click.argument("files", nargs=-1)
@click.pass_context
def command(
    ctx: click.Context, /, files: tuple[str, ...], prompt: str | None, output_format: str, quiet: bool, **shared: Any
) -> None:
    """Ask about FILES: one question with -p, or as many as you like in a chat; '-' among FILES is standard input."""
    options = Options(**shared)
    if prompt is not None:
        checked_question(prompt)
    if prompt is not None and Path(prompt, TASKWEAVER_FILE).is_file():
        click.echo(f"tw-autogen: -p is the question here; the project folder is -C {prompt}, and is taken so", err=True)
        options, prompt = replace(options, project=Path(prompt)), None
    paths = [_existing(name) for name in files if name != _STDIN]
    with tempfile.TemporaryDirectory(prefix="tw-stdin-") as folder:
        if prompt is None and _STDIN not in files and sys.stdin.isatty():
            ctx.exit(_chat(options, paths, output_format, quiet))
        if prompt in (None, _STDIN):
            prompt = read_question()
        elif (data := read_data(Path(folder), wait=_STDIN in files)) is not None:
            paths.append(data)
        ctx.exit(answer_once(str(prompt), paths, options, as_json=output_format == "json", quiet=quiet))


def _chat(options: Options, paths: list[Path], output_format: str, quiet: bool) -> Exit:
    if output_format != "text" or quiet:
        raise click.UsageError("--output-format and --quiet belong to one question: give it with -p")
    return Chat(options, paths).run()


def _existing(name: str) -> Path:
    path = Path(name)
    context = click.get_current_context().find_root()
    known = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
    if name in known and not path.is_file():
        raise click.UsageError(f"{name!r} is a command, and commands come first: tw-autogen {name} … (see its --help)")
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise click.UsageError(
            f"{name!r} {problem}; {_meant(name, known)}FILES are data for the question, commands come first"
        )
    return path


def _meant(name: str, known: Sequence[str]) -> str:
    """Name the command that was probably meant, if one is near enough."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"did you mean the command {close[0]!r}? " if close else ""
