"""`tw-autogen scenario`: run whole tasks with recorded replies or a live model, record them, see their prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.options import COMMON_OPTIONS, Options, with_options
from tw_autogen.cli.scenario_costs import costs_table, put_table
from tw_autogen.cli.scenario_show import print_prompts, print_runs, print_scenario, prompt_dicts
from tw_autogen.cli.signals import Terminated
from tw_autogen.cli.terminal import stderr_console, stdout_console
from tw_autogen.cli.trust_prompt import read_settings_and_warn
from tw_autogen.cli.user_path import UserPath
from tw_autogen.errors import ScenarioError, TwAutogenError
from tw_autogen.model import ModelSettings, OpenAIModel, resolve_model
from tw_autogen.safe_folder import open_or_make_folder, private_folder
from tw_autogen.scenario import (
    PATIENCE,
    Outcome,
    Runs,
    Scenario,
    check_report,
    find_named,
    judge,
    record_scenario,
    replay_scenario,
    run_live,
    run_scenario,
    write_report,
)
from tw_autogen.text_escaping import visible, visible_line

_NAMES = click.argument("names", nargs=-1, metavar="[NAME|FOLDER]...")
_WORKSPACE = click.option(
    "--workspace",
    type=UserPath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep all files here.",
)
_SECONDS = click.option(
    "--seconds",
    type=click.FloatRange(min=0, max=1e6, min_open=True),
    default=PATIENCE,
    show_default=True,
    metavar="S",
    help="How long a live reply, and a round, may take.",
)
_FILE = UserPath(dir_okay=False, path_type=Path)
_MAX_README_BYTES = 4 << 20
_TRUST = click.Option(
    ["--trust"], is_flag=True, help="Let each scenario set all that it wants; says nothing of the folder (here, or -C)."
)
_COMMON_OPTIONS = tuple(_TRUST if option.name == "trust" else option for option in COMMON_OPTIONS)


@click.group("scenario")
def command() -> None:
    """Run whole tasks: data, requests, and checks of what comes of them.

    NAME is one of the shipped scenarios, FOLDER one of your own, or a folder that holds several.
    """


@with_options(_COMMON_OPTIONS)
@command.command("run")
@_NAMES
@click.option("--replay/--live", default=True, show_default=True, help="Recorded replies, or a live model.")
@click.option(
    "--times", default=1, show_default=True, type=click.IntRange(min=1), metavar="N", help="Run each N times."
)
@click.option("--strict", is_flag=True, help="With --replay: fail where a prompt has changed since it was recorded.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write the whole conversation of each run into an HTML file.")
@click.option("--no-judge", is_flag=True, help="With --live: don't ask the model about the scenarios' `judge` lines.")
@_WORKSPACE
@_SECONDS
@click.pass_context
def run(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    replay: bool,
    times: int,
    strict: bool,
    as_json: bool,
    html: Path | None,
    no_judge: bool,
    workspace: Path | None,
    seconds: float,
    **shared: Any,
) -> None:
    """Run the named scenarios, or all, and list what is not as expected.

    Everything but the model is real in a replay too: kernel, data, plugins, files.
    """
    options = Options(**shared)
    if strict and not replay:
        raise click.UsageError("--strict is about recorded replies; leave it out with --live")
    if html:
        check_report()
    scenarios = find_named(names, trust=options.trust)
    model = None if replay else _configured_model(options, seconds)
    console = stderr_console(color=not options.no_color)
    done: list[Runs] = []
    stopped: BaseException | None = None
    with _workspace(workspace) as folder:
        try:
            for scenario in scenarios:
                done.append(Runs(scenario, skipped=scenario.hindrance or _unrecorded_reason(scenario, replay, names)))
                for number in range(1, 1 if done[-1].skipped else times + 1):
                    if model is None:
                        done[-1] = done[-1].plus(replay_scenario(scenario, workspace=folder, strict=strict))
                        continue
                    head = f"{visible_line(scenario.name)}: run {number} of {times}"
                    console.print(f"{head} ...", soft_wrap=True)
                    outcome = run_live(scenario, model, workspace=folder, seconds=seconds)
                    console.print(f"{head}: {visible_line(outcome.summary)}", soft_wrap=True)
                    asks = scenario.judge and not no_judge
                    done[-1] = done[-1].plus(
                        outcome, judge(scenario, outcome, model, seconds=seconds) if asks else None
                    )
        except (KeyboardInterrupt, TwAutogenError) as error:
            stopped, done = error, [one for one in done if one.outcomes or one.skipped]
            if not done and isinstance(error, TwAutogenError):
                raise
            console.print("stopped; what was run until then:", soft_wrap=True)
        if html:
            title = "Scenarios, replayed" if model is None else f"Scenarios, {model.name} at {model.base_url}"
            console.print(f"the whole conversation is in {write_report(done, html, title=title)}", soft_wrap=True)
    if as_json:
        plain = {
            "schema_version": 1,
            "mode": "replay" if model is None else "live",
            "model": model.name if model else None,
            "ok": all(one.ok for one in done) and not stopped,
            "scenarios": [one.to_dict() for one in done],
        }
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))
    else:
        print_runs(stdout_console(color=not options.no_color), done)
    if isinstance(stopped, TwAutogenError):
        raise stopped
    ended = Exit.done if all(one.ok for one in done) else Exit.failed
    ctx.exit(Exit.terminated if isinstance(stopped, Terminated) else Exit.interrupted if stopped else ended)


@with_options(_COMMON_OPTIONS)
@command.command("record")
@_NAMES
@click.option(
    "--resume",
    is_flag=True,
    help=f"Don't ask again what an earlier try has left in {Scenario.FAILED_REPLIES}, where the prompts are the same.",
)
@_WORKSPACE
@_SECONDS
@click.pass_context
def record(
    ctx: click.Context, /, names: tuple[str, ...], resume: bool, workspace: Path | None, seconds: float, **shared: Any
) -> None:
    """Run the named scenarios live, and keep the replies in their folders.

    Replies that did not lead to what is expected are kept apart, and an earlier recording stays.
    """
    options = Options(**shared)
    if not names:
        raise click.UsageError("name the scenarios that are to be recorded")
    scenarios = find_named(names, trust=options.trust)
    for scenario in scenarios:
        if not scenario.lessons:  # these may be taught by one that is recorded before
            _refuse_hindered(scenario)
    model, console, done = _configured_model(options, seconds), stderr_console(color=not options.no_color), []
    with _workspace(workspace) as folder:
        for scenario in scenarios:
            _refuse_hindered(scenario)
            name = visible_line(scenario.name)
            console.print(f"{name}: recording ...", soft_wrap=True)
            outcome = record_scenario(scenario, model, workspace=folder, seconds=seconds, resume=resume)
            kept = scenario.replies.name if outcome.ok else scenario.FAILED_REPLIES
            where = visible_line(f"{outcome.summary}; the replies are in {scenario.folder / kept}")
            console.print(f"{name}: {where}", soft_wrap=True)
            done.append(Runs(scenario, (outcome,)))
    print_runs(stdout_console(color=not options.no_color), done)
    ctx.exit(Exit.done if all(one.ok for one in done) else Exit.failed)


@command.command("show")
@_NAMES
@click.option("--prompts", is_flag=True, help="Every prompt of a replay; the first one where nothing is recorded.")
@click.option("--json", "as_json", is_flag=True, help="With --prompts: one JSON object, with the hash of each prompt.")
@click.option("--trust", is_flag=True, help="With --prompts: let each scenario set all that it wants.")
def show(names: tuple[str, ...], prompts: bool, as_json: bool, trust: bool) -> None:
    """Print what the named scenarios, or all, ask and expect; or what the model gets to read."""
    if as_json and not prompts:
        raise click.UsageError("--json goes with --prompts")
    scenarios, console, plain = find_named(names, trust=trust or not prompts), stdout_console(), {}
    for scenario in scenarios:
        if not prompts:
            print_scenario(console, scenario)
            continue
        with _workspace(None) as folder:
            outcome = _run_or_replay(scenario, folder)
            if as_json:
                plain[scenario.name] = prompt_dicts(outcome, hide=(str(folder), str(folder.resolve())))
            else:
                print_prompts(console, outcome)
    if as_json:
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))


@command.command("table")
@_NAMES
@click.option("--write", type=_FILE, metavar="FILE", help="Put the table between its marks in this README.")
@click.option("--check", type=_FILE, metavar="FILE", help="Fail where the table in this README is another one.")
@click.pass_context
def table(ctx: click.Context, names: tuple[str, ...], write: Path | None, check: Path | None) -> None:
    """Print calls and tokens of each recording as a Markdown table."""
    made = costs_table(find_named(names, trust=True))
    if write:
        _rewrite_file(write, put_table(write, _text_of(write), made))
    elif check:
        text = _text_of(check)
        if put_table(check, text, made) != text:
            click.echo(f"{check}: the table is not that of the recordings; --write {check} mends it", err=True)
            ctx.exit(Exit.failed)
    else:
        click.echo(visible(made))


def _text_of(file: Path) -> str:
    """Read a file, over no link.

    Raises:
        ScenarioError: it is none, a link, or can't be read.
    """
    if not file.parent.is_dir():  # which would be made
        raise ScenarioError("there is no such file", path=file)
    try:
        with open_or_make_folder(file.parent) as folder:
            if folder.has_entry(file.name) and not folder.has_file(file.name):
                raise ScenarioError("no plain file; name the file that it leads to if it is a link", path=file)
            return folder.read_file(file.name, limit_bytes=_MAX_README_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"it can't be read: {getattr(error, 'strerror', None) or error}", path=file) from error


def _rewrite_file(file: Path, text: str) -> None:
    """Write a file anew, over no link.

    Raises:
        ScenarioError: it can't be written.
    """
    try:
        with open_or_make_folder(file.parent) as folder:
            folder.write_file(file.name, text.encode())
    except OSError as error:
        raise ScenarioError(f"not written: {error.strerror or error}", path=file) from error


def _configured_model(options: Options, seconds: float) -> OpenAIModel:
    settings = read_settings_and_warn(replace(options, trust=False), how="a chat there, which asks")
    return resolve_model(replace(settings.read("model", ModelSettings), seconds=seconds))


def _run_or_replay(scenario: Scenario, folder: Path) -> Outcome:
    if scenario.replies.exists() and not scenario.hindrance:
        return replay_scenario(scenario, workspace=folder)
    return run_scenario(scenario, None, workspace=folder)


def _workspace(wanted: Path | None) -> AbstractContextManager[Path]:
    """Return the folder for the sessions: the one that was named, or one that is gone afterwards."""
    return nullcontext(wanted) if wanted else private_folder("tw-scenario-")


def _unrecorded_reason(scenario: Scenario, replay: bool, names: Sequence[str]) -> str:
    """Return a line that there is nothing to replay; one asked for by its own name or folder fails instead."""
    asked_for = scenario.name in names or any(Path(name).resolve() == scenario.folder for name in names)
    return "" if asked_for or not replay or scenario.replies.exists() else "not recorded yet"


def _refuse_hindered(scenario: Scenario) -> None:
    """Refuse one that can't run here.

    Raises:
        ScenarioError: says why.
    """
    if scenario.hindrance:
        raise ScenarioError(f"can't be recorded: it {scenario.hindrance}", path=scenario.folder)
