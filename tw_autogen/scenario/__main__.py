"""`python -m tw_autogen.scenario`: record a scenario with a live model, replay recorded ones."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from tw_autogen.errors import TwAutogenError
from tw_autogen.model import ModelSettings, resolve_model
from tw_autogen.scenario.run import FAILED_REPLIES, Outcome, record_scenario, replay_scenario
from tw_autogen.scenario.scenario import REPLIES, Scenario, find_scenarios, read_scenario
from tw_autogen.session import read_settings
from tw_autogen.shipped import shipped_folder


@click.group()
def main() -> None:
    """Record scenarios with a live model, and replay recorded ones."""


@main.command()
@click.argument("name")
@click.option("--base-url", help="The server, such as http://127.0.0.1:8765/v1.")
@click.option("--model", help="The model's name on that server.")
@click.option("--seconds", default=3600.0, show_default=True, help="How long a reply, and a round, may take.")
@click.option("--workspace", type=click.Path(path_type=Path), help="Keep the session's files here.")
def record(name: str, base_url: str | None, model: str | None, seconds: float, workspace: Path | None) -> None:
    """Run the scenario NAME (or the folder of that path) live, and keep the replies in its folder."""
    given = {"model.base_url": base_url, "model.name": model}
    settings = read_settings({key: value for key, value in given.items() if value})
    asked = replace(settings.read("model", ModelSettings), seconds=seconds)
    with ExitStack() as stack:
        folder = workspace or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tw-scenario-")))
        outcome = record_scenario(_find(name), resolve_model(asked), workspace=folder, seconds=seconds)
    _show(outcome)
    click.echo(f"  the replies are in {REPLIES if outcome.ok else FAILED_REPLIES} of its folder")
    sys.exit(0 if outcome.ok else 1)


@main.command()
@click.argument("names", nargs=-1)
@click.option("--workspace", type=click.Path(path_type=Path), help="Keep the sessions' files here.")
def replay(names: tuple[str, ...], workspace: Path | None) -> None:
    """Replay the scenarios NAMES, or all, with their recorded replies."""
    scenarios = [_find(name) for name in names] or find_scenarios(shipped_folder("scenarios"))
    failed = 0
    with ExitStack() as stack:
        folder = workspace or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tw-scenario-")))
        for scenario in scenarios:
            outcome = replay_scenario(scenario, workspace=folder)
            _show(outcome)
            failed += not outcome.ok
    sys.exit(1 if failed else 0)


def _find(name: str) -> Scenario:
    """Read one of the shipped scenarios by its name, any other one by the path of its folder."""
    path = Path(name)
    return read_scenario(path if path.is_dir() or "/" in name else shipped_folder("scenarios") / name)


def _show(outcome: Outcome) -> None:
    usage = outcome.usage
    tokens = f", {usage.prompt_tokens} + {usage.completion_tokens} tokens" if usage.prompt_tokens else ""
    stale = f", {len(outcome.stale)} stale (prompts changed since they were recorded)" if outcome.stale else ""
    said = "ok" if outcome.ok else f"{len(outcome.problems)} problem{'s' * (len(outcome.problems) > 1)}"
    click.echo(f"{outcome.name}: {said}, {usage.calls} calls{tokens}, {outcome.seconds:.1f} s{stale}")
    for problem in outcome.problems:
        click.echo(f"  {problem}")


if __name__ == "__main__":
    try:
        main()
    except TwAutogenError as error:  # the user's to mend, so without a traceback
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(1)
