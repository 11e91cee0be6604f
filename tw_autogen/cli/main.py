"""The commands of `tw-autogen`; each is loaded when it is called, so that `--help` is there at once."""

from __future__ import annotations

import importlib
import itertools
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tw_autogen.cli.exit_codes import Exit, exit_of_error
from tw_autogen.cli.options import ASK_OPTIONS
from tw_autogen.cli.signals import Terminated, terminating_signals_raise
from tw_autogen.cli.standard_streams import (
    drop_unwritten,
    escape_what_libraries_say,
    prepare_streams,
    words_of_os_error,
)
from tw_autogen.errors import ConfigError, TwAutogenError
from tw_autogen.lazy_module import LazyModule, without_collector
from tw_autogen.text_escaping import visible

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = LazyModule("importlib.metadata")  # takes a quarter of the time of `--help`

_CHAT = "chat"
_ONCE = "tw_autogen.cli.one_shot"
_EARLY = "tw_autogen.cli.early_kernel"
_TYPED = "tw_autogen.typed"
_COMMANDS = {
    _CHAT: ("tw_autogen.cli.ask", "Answer one question, or open a chat; the default."),
    "index": ("tw_autogen.cli.index", "Make an index of a folder of texts, for the role document_retriever."),
    "demo": ("tw_autogen.cli.demo", "Watch one whole task: no key, no network, real code."),
    "example": ("tw_autogen.cli.example", "Make an example for later prompts out of a session."),
    "plugins": ("tw_autogen.cli.plugins", "List plugins, check them, write one from a function."),
    "scenario": ("tw_autogen.cli.scenario", "Run whole tasks with recorded replies or a live model; record your own."),
    "sessions": ("tw_autogen.cli.sessions", "List the sessions kept in this folder; show, export, copy, remove them."),
    "rerun": ("tw_autogen.cli.rerun", "Run the code of a session again on other files, and compare."),
    "mcp": ("tw_autogen.cli.mcp", "Serve the agent to other programs over MCP."),
    "doctor": ("tw_autogen.cli.doctor", "Check packages, kernel and model, and say what to do."),
}
_ABOUT_ITSELF = ("--help", "-h", "--version")


class ErrorReportingGroup(click.Group):
    """A group whose errors end the program with a line on standard error and the exit code of `Exit`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run as click does; what the system refuses, also of help and completion, is told in one line.

        Args:
            args: As click takes them.
            kwargs: Likewise.
        """
        try:
            return super().main(*args, **kwargs)  # where who reads the output has left, it ends quietly
        except OSError as error:
            drop_unwritten()
            click.echo(f"tw-autogen: {visible(words_of_os_error(error))}", err=True)
            sys.exit(Exit.failed)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error that the user can fix is one block without a traceback, Ctrl-C ends with 130."""
        try:
            prepare_streams()
            escape_what_libraries_say()
            _require_current_folder()
            _refuse_file_names(ctx.meta.get(_TYPED, []))
            with terminating_signals_raise():
                try:
                    return super().invoke(ctx)
                finally:
                    sys.stdout.flush()  # what can't be written is an error of this program's, not of Python's end
        except click.UsageError as error:
            typed = ctx.meta.get(_TYPED, [])
            if typed[:1] != [_CHAT] and error.ctx and error.ctx.info_name == _CHAT:
                error.ctx = ctx  # the usage of what was typed
            _print_failure_as_json("UsageError", error.format_message(), typed)
            raise
        except TwAutogenError as error:
            click.echo(f"tw-autogen: {visible(str(error))}", err=True)  # it may quote a file of anybody's
            _print_failure_as_json(type(error).__name__, str(error), ctx.meta.get(_TYPED, []))
            ctx.exit(exit_of_error(error))
        except Terminated:
            click.echo("tw-autogen: terminated", err=True)
            ctx.exit(Exit.terminated)
        except KeyboardInterrupt:
            click.echo("tw-autogen: stopped", err=True)
            ctx.exit(Exit.interrupted)


def _require_current_folder() -> None:
    """Refuse to start where relative paths mean nothing.

    Raises:
        ConfigError: the current folder was removed, or can't be looked up.
    """
    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(
            f"the current folder is gone ({error.strerror}); change to one that is there: cd DIR"
        ) from None


def _refuse_file_names(typed: Sequence[str]) -> None:
    """Refuse what may be an option or the name of a file, which a pattern (`*`) has put among the arguments.

    Raises:
        click.UsageError: an argument before `--`, or that itself, begins with a dash, and such a file is there.
    """
    before = list(itertools.takewhile(lambda one: one != "--", typed))
    for one in typed[: len(before) + 1]:
        if one.startswith("-") and len(one) > 1 and os.path.lexists(one):
            shown, typed_as = visible(one), visible(shlex.quote(f"./{one}"))
            raise click.UsageError(
                f"{shown!r} may be an option, or the file of that name that lies here: write {typed_as} for the file, "
                "or put -- before the files (a pattern: ./*)"
            )


class Commands(ErrorReportingGroup):
    """A group that loads a command's module when the command is called.

    Source: click's documentation, "Lazily Loading Subcommands". Differs: help texts stand in the table, so that
    help loads nothing, and what is no command's name goes to `chat`, as `tw-autogen -p "…" sales.csv` does.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command.

        Args:
            ctx: Its `meta` keeps the arguments; a shell that completes them gets no kernel.
            cmd_name: A subcommand's name; None comes back for one that does not exist.
        """
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name == _CHAT and not ctx.resilient_parsing:
            typed = ctx.meta.get(_TYPED, [])
            importlib.import_module(_EARLY).start_fork_server_early(typed[1:] if typed[:1] == [_CHAT] else typed)
        with without_collector():
            command: click.Command = importlib.import_module(_COMMANDS[cmd_name][0]).command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the command; without one it is `chat`.

        Args:
            ctx: Its `meta` keeps the arguments as they were typed.
            args: What stands after `tw-autogen`, without the program's name.
        """
        ctx.meta[_TYPED] = args = list(args)
        if not args or args[0] not in (*_COMMANDS, *_ABOUT_ITSELF):
            args = [_CHAT, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of `chat`, which are those without a command, then the commands.

        Args:
            ctx: Resolves what options show as their defaults.
            formatter: What is written to.
        """
        records = (option.get_help_record(ctx) for option in (*ASK_OPTIONS, *self.get_params(ctx)))
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record])
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in _COMMANDS.items()])


def _print_failure_as_json(kind: str, message: str, typed: Sequence[str]) -> None:
    """Print a failure, if the arguments are those of one question whose answer is wanted as JSON."""
    asks = not typed or typed[0] == _CHAT or typed[0] not in _COMMANDS
    pairs = [*typed, *(f"{one}={two}" for one, two in zip(typed, typed[1:], strict=False))]
    if asks and any(f"--output-format={one}" in pairs for one in ("json", "stream-json")):
        in_line = any(one.endswith("stream-json") for one in typed)
        importlib.import_module(_ONCE).print_failure(kind, message, in_line=in_line)


def _show_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        try:
            version = metadata.version("tw-autogen")
        except metadata.PackageNotFoundError:
            version = "from a source folder, not installed"
        click.echo(f"tw-autogen {version}")
        ctx.exit()


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="[OPTIONS] [QUESTION] [FILES]...",
    subcommand_metavar="| COMMAND [ARGS]...",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show it.")
def main() -> None:
    """Ask questions about your data: they are planned, turned into code, checked, run and answered.

    With a question in quotes, or after -p, the program prints the answer to standard output and ends; without one it
    opens a chat, or reads the question from a pipe. Code runs in a sandbox: it reads the current folder (or that of
    -C), unless it is your home, and writes in the session's own.
    """
