"""Trust of the folder on the command line: what does not count is said, and at a terminal the user is asked once."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.text import Text

from tw_autogen.cli.approval_prompt import forget_typed
from tw_autogen.cli.options import Options
from tw_autogen.session import Review, read_settings, review_folder, trust_lines
from tw_autogen.settings import Settings
from tw_autogen.text_escaping import visible, visible_line

HOW = "--trust"


def read_settings_and_warn(options: Options, *, how: str = HOW) -> Settings:
    """Read the settings for what opens no session; say on standard error what of an untrusted folder does not count.

    Args:
        options: What the shared options said.
        how: How the folder is trusted.

    Raises:
        SettingsError: as `read_settings`.
    """
    settings = read_settings(options.keywords, project=options.project, trust=options.trust)
    for line in trust_lines(settings, how, prompts=False):
        click.echo(line, err=True)
    return settings


def ask_for_trust(options: Options, console: Console) -> None:
    """Ask at a terminal whether the folder is trusted, if it wants what needs trust and was not trusted as it is now.

    A yes is remembered until a file that matters changes, where it can't be written until the program ends at the
    latest; a no holds for this session.

    Args:
        options: What the shared options said.
        console: Where the question is shown.

    Raises:
        SettingsError: as `read_settings`.
    """
    if options.trust or not (sys.stdin.isatty() and console.file.isatty()):
        return
    review = review_folder(options.keywords, project=options.project)
    if not review.wants or review.files_if_trusted():
        return
    if reason := review.cannot_ask_reason():
        console.print(Text(reason, style="yellow"), soft_wrap=True)
        return
    asked_about = review.sha256()
    if not asked_about:
        message = f"{review.title()} can't be compared later, so you are not asked about it: {review.no_hash_reason()}"
        console.print(Text(f"{message}; look at its files before you use --trust", style="yellow"), soft_wrap=True)
        return
    _print_review(review, console)
    forget_typed()
    console.print(Text("Trust this folder, and let it have all of this? [y/N] ", style="bold"), end="", soft_wrap=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        console.print(Text("Not trusted: none of this is used in this session.", style="dim"), soft_wrap=True)
        return
    again = review_folder(options.keywords, project=options.project)
    if (again.sha256(), again.wants) != (asked_about, review.wants):
        console.print(Text("Not trusted: its files changed while you were asked.", style="red"), soft_wrap=True)
        return
    problem = review.remember(asked_about)
    kept = problem or f"Remembered until one of its files changes; to take it back, remove {review.record()}"
    console.print(Text(visible_line(kept), style="dim"), soft_wrap=True)


def _print_review(review: Review, console: Console) -> None:
    def line(text: str, style: str = "") -> None:
        console.print(Text(visible(text), style=style), soft_wrap=True)

    line(f"{review.title()} has files that want more than a folder may have unasked:", "bold")
    if review.prompt_sources:
        line(f"Text of it becomes part of prompts in any case: {review.prompts_line()}", "dim")
    for notice in review.settings.shortened:
        line(notice, "yellow")
    if problem := review.problem():
        line(problem, "yellow")
    for want in review.wants:
        line(f"  {want.name:<28} {want.does}")
    if starting := sum(want.starts for want in review.wants):
        line(
            f"{len(review.wants)} in all; the last {starting} start programs, load Python or lift the sandbox.", "bold"
        )
