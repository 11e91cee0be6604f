"""`tw-autogen` without a command, and `tw-autogen chat`: one question with `-p` or from a pipe, else a chat."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
import tempfile
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.file_arguments import find_file, is_path
from tw_autogen.cli.options import ASK_OPTIONS, Options, with_options
from tw_autogen.cli.piped_input import checked_question, read_data, read_question
from tw_autogen.cli.terminal import marks, stdout_console
from tw_autogen.lazy_module import LazyModule, without_collector
from tw_autogen.setting_values import Setting
from tw_autogen.taskweaver_config import TASKWEAVER_FILE
from tw_autogen.text_truncation import shortened

if TYPE_CHECKING:
    from tw_autogen.cli import chat, one_shot
else:
    chat = LazyModule("tw_autogen.cli.chat")  # one question needs none
    one_shot = LazyModule("tw_autogen.cli.one_shot")  # and a chat writes its first line before it has all this

_STDIN = "-"
_SHOWN_CHARS = 80


@with_options(ASK_OPTIONS)
@click.command("chat")
@click.argument("files", nargs=-1, metavar="[QUESTION] [FILES]...")
@click.pass_context
def command(
    ctx: click.Context, /, files: tuple[str, ...], prompt: str | None, output_format: str, quiet: bool, **shared: Any
) -> None:
    """Answer one question, or open a chat.

    With a QUESTION in quotes, or after -p, the answer is printed and the program ends. FILES are data for the question;
    '-' is standard input.
    """
    options = Options(**shared)
    prompt, files = _positional_question(prompt, files, options.project)
    if prompt is not None:
        checked_question(prompt)
        if _is_taskweaver_project(prompt):
            raise click.UsageError(f"-p is the question; a project folder is named by -C: -C {shlex.quote(prompt)}")
    paths = [_existing_file(name, options.project) for name in files if name != _STDIN]
    with tempfile.TemporaryDirectory(prefix="tw-stdin-") as folder:
        if prompt is None and _STDIN not in files and sys.stdin.isatty():
            ctx.exit(_run_chat(options, paths, output_format, quiet))
        if prompt in (None, _STDIN):
            prompt = read_question()
        elif (data := read_data(Path(folder), wait=_STDIN in files)) is not None:
            paths.append(data)
        # Where kernels are forked: those that are kept ready would be for a session that does not follow.
        once = replace(options, more={"kernel.warm": Setting(0, "-p")}) if sys.platform == "linux" else options
        with without_collector():
            answer = one_shot.answer_once
        ctx.exit(answer(str(prompt), paths, once, form=output_format, quiet=quiet))


def _positional_question(
    prompt: str | None, files: Sequence[str], project: Path | None
) -> tuple[str | None, tuple[str, ...]]:
    """Separate a question among the arguments from the files.

    Args:
        prompt: What `-p` said; None: nothing.
        files: The arguments.
        project: The folder of `-C`.

    Returns:
        The question, or None, and the arguments without it.

    Raises:
        click.UsageError: there are two questions.
    """
    questions = [name for name in files if _reads_as_question(name) and _is_no_file(name, project)]
    if not questions:
        return prompt, tuple(files)
    if prompt is not None or len(questions) > 1:
        second = questions[0] if prompt is not None else questions[1]
        raise click.UsageError(
            f"{shortened(second, _SHOWN_CHARS)!r} is a second question, or a file that does not exist; ask one "
            "question at a time, in quotes or with -p"
        )
    return questions[0], tuple(name for name in files if name != questions[0])


def _reads_as_question(text: str) -> bool:
    """Return whether a text has white space, ends with a question mark, or needs no white space in its script."""
    if len(text.split()) > 1 or text.endswith(("?", "？", "؟")):
        return True
    return not Path(text).suffix and any(unicodedata.category(char) == "Lo" for char in text)


def _is_no_file(text: str, project: Path | None) -> bool:
    """Return whether a text names nothing that exists, and is not nearly the name of a file."""
    named = find_file(text, project)
    return not os.path.lexists(text) and named.path is None and not named.near


def _is_taskweaver_project(text: str) -> bool:
    """Return whether a text is the path of a TaskWeaver project, whose own command line has it after `-p`."""
    return is_path(Path(text), Path.exists) and Path(text, TASKWEAVER_FILE).is_file()


def _run_chat(options: Options, paths: list[Path], output_format: str, quiet: bool) -> Exit:
    if output_format != "text" or quiet:
        raise click.UsageError("--output-format and --quiet belong to one question: give it with -p")
    console = stdout_console(color=not options.no_color)
    hint = f"/help lists commands {marks(console).dot} Ctrl-C stops what is running"
    console.print(Text(hint, style="dim"), soft_wrap=True)  # the rest takes a moment to be imported
    with without_collector():
        kind = chat.Chat
    return kind(options, paths, console).run()


def _existing_file(name: str, project: Path | None) -> Path:
    """Return the path of an argument of FILES.

    Raises:
        click.UsageError: there is no such file; names what was probably meant.
    """
    named = find_file(name, project)
    if named.path is not None:
        return named.path
    context = click.get_current_context().find_root()
    known = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
    if name in known:
        raise click.UsageError(f"{name!r} is a command, and commands come first: tw-autogen {name} … (see its --help)")
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7) if not (named.near or named.remedy) else []
    command = [f"did you mean the command {close[0]!r}?"] if close else []
    more = (
        []
        if named.remedy
        else ["FILES are data for the question, which -p gives if it is one word; commands come first"]
    )
    raise click.UsageError("; ".join([named.problem_sentence, *command, *more]).replace("?; ", "? "))
