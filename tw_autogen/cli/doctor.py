"""`tw-autogen doctor`: what is installed, whether code can run and a model answers, and what to do where not."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tw_autogen.cli.doctor_checks import (
    DoctorCheck,
    check_folder_trust,
    check_hosts,
    check_kernel,
    check_model,
    check_packages,
    check_project,
    check_python,
)
from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.options import COMMON_OPTIONS, Options, with_options
from tw_autogen.cli.terminal import clean, marks, stdout_console
from tw_autogen.text_escaping import visible


@with_options(COMMON_OPTIONS)
@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **shared: Any) -> None:
    """Check packages, kernel and model, and say what to do where something is wrong.

    With a model configured it is asked three tiny requests, to see whether it keeps the Planner's format.
    """
    options = Options(**shared)
    console = stdout_console(color=not options.no_color)
    done = []
    checks = (check_python(), check_packages(), check_hosts())
    slow = (check_folder_trust(options), check_project(options), check_kernel(options), check_model(options))
    for check in itertools.chain(*checks, *slow):  # each is made when those before it have been printed
        done.append(check)
        if not as_json:
            _print(console, check)
    failed = [check.name for check in done if check.state == "fail"]
    if as_json:
        plain = {"schema_version": 1, "ok": not failed, "checks": [dataclasses.asdict(check) for check in done]}
        click.echo(json.dumps(plain, indent=2))
    ctx.exit(Exit.failed if failed else Exit.done)


def _print(console: Console, check: DoctorCheck) -> None:
    signs = marks(console)
    mark, style = {
        "ok": (signs.done, "green"),
        "warn": ("!", "yellow"),
        "fail": (signs.failed, "red"),
    }[check.state]
    line = Text.assemble((f"{mark} {check.state:<5}", style), f"{check.name:<16} {visible(clean(check.found))}")
    console.print(line, soft_wrap=True)
    for words in visible(clean(check.remedy)).splitlines():
        console.print(Text(f"{'':<24}{words}", style="dim"), soft_wrap=True)
