"""Scenarios and their runs, printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tw_autogen.cli.round_summary import short
from tw_autogen.cli.terminal import clean, marks
from tw_autogen.model import Message, prompt_hash
from tw_autogen.scenario import Outcome, Runs, Scenario
from tw_autogen.text_escaping import visible, visible_line


def print_runs(console: Console, done: Sequence[Runs]) -> None:
    """Print a table of what came of the runs, then what was not as expected.

    Args:
        console: Where to; its encoding decides between signs and letters.
        done: One entry a scenario, with all its runs.
    """
    signs = marks(console)
    judged = any(one.judged for one in done)
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("scenario", overflow="fold")
    for name in ("passed", "calls", "in", "cached", "out", "seconds", *(["judge"] if judged else [])):
        made.add_column(name, justify="right", no_wrap=True)
    for one in done:
        name = visible_line(one.scenario.name)
        if one.skipped:
            made.add_row(Text(f"- {name}", style="dim"), Text("skipped", style="dim"))
            continue
        sign, style = (signs.done, "green") if one.ok else (signs.failed, "red")
        stale = f" ({one.stale} stale)" if one.stale else ""
        made.add_row(
            Text.assemble((f"{sign} ", style), name, (stale, "yellow")),
            Text(f"{one.passed} of {len(one.outcomes)}", style=style),
            f"{one.mean(lambda usage: usage.calls):.1f}".removesuffix(".0"),
            *_mean_tokens(one),
            f"{one.seconds:.1f}",
            *([f"{sum(each.holds is True for each in one.judged)} of {len(one.judged)}"] if one.judged else []),
        )
    console.print(made)
    for one in done:
        name = visible_line(one.scenario.name)
        if one.skipped:
            console.print(Text(f"- {name}: {visible_line(one.skipped)}", style="dim"), soft_wrap=True)
        for number, outcome in enumerate(one.outcomes, start=1):
            where = f"{name}, run {number}" if len(one.outcomes) > 1 else name
            for problem in outcome.problems:
                console.print(Text(f"{signs.failed} {where}: {visible(clean(problem))}", style="red"), soft_wrap=True)
            for word, changed in (("stale", outcome.stale), ("in another order", outcome.moved)):
                if changed:  # the first says enough: what changed there stands in the later prompts too
                    more = f" (and {len(changed) - 1} more)" if changed[1:] else ""
                    headline = f"! {where}: {word}{more}: {visible(clean(changed[0]))}"
                    console.print(Text(headline, style="yellow"), soft_wrap=True)
        for judgement in one.judged:
            if not judgement.holds:
                headline = f"! {name}: the judge says {'no' if judgement.holds is False else 'nothing'}"
                console.print(Text(f"{headline}: {visible(clean(judgement.reason))}", style="yellow"), soft_wrap=True)


def _mean_tokens(runs: Runs) -> tuple[str, str, str]:
    """Return mean tokens, or dashes where no server reported any."""
    spent = [
        round(runs.mean(lambda usage: usage.prompt_tokens)),
        round(runs.mean(lambda usage: usage.cached_tokens)),
        round(runs.mean(lambda usage: usage.completion_tokens)),
    ]
    first, second, third = map(short, spent) if spent[0] or spent[2] else ("-", "-", "-")
    return first, second, third


def print_scenario(console: Console, scenario: Scenario) -> None:
    """Print what a scenario asks and expects, and whether it can be replayed here.

    Args:
        console: Where to.
        scenario: One that was read; it is not run.
    """
    name, about = visible_line(scenario.name), visible_line(scenario.about.strip())
    console.print(Text(name, style="bold"), Text(f"  {about}"), soft_wrap=True)
    recorded = "recorded" if scenario.replies.exists() else "not recorded yet"
    console.print(
        Text(f"  {recorded}; {visible_line(scenario.hindrance) or 'can run here'}", style="dim"), soft_wrap=True
    )
    for number, request in enumerate(scenario.ask, start=1):
        console.print(Text(f"  ask {number}: {visible(clean(request.strip()))}"), soft_wrap=True)
    for rule in scenario.when_asked:
        where = f" about {visible_line(repr(rule.matches.pattern))}" if rule.matches.pattern else ""
        console.print(Text(f"  when asked{where}: {visible(clean(rule.say.strip()))}"), soft_wrap=True)
    for one in scenario.expect:
        given = ", ".join(f"{key}={getattr(value, 'pattern', value)}" for key, value in one.arguments.items())
        which = f" (round {one.round})" if one.round else ""
        console.print(Text(f"  expect {one.check}: {visible(clean(given))}{which}"), soft_wrap=True)
    console.print()


def print_prompts(console: Console, outcome: Outcome) -> None:
    """Print every prompt; of a conversation that goes on only what is new.

    Args:
        console: Where to; control characters in prompts are made visible.
        outcome: A run whose calls of models were kept.
    """
    seen_messages: dict[str, tuple[Message, ...]] = {}
    for number, call in enumerate(outcome.calls, start=1):
        seen = seen_messages.get(call.role, ())
        known = len(seen) if call.messages[: len(seen)] == seen else 0
        chars = sum(len(str(one.get("content") or "")) for one in call.messages)
        who = visible_line(f", {call.role}" if call.role else "")
        head = f"{visible_line(outcome.name)}, call {number}{who}: {len(call.messages)} messages, {chars} characters"
        above = f", {known} of them shown above" if known else ""
        console.print(Text(f"== {head}{above}", style="bold"), soft_wrap=True)
        for message in call.messages[known:]:
            console.print(Text(f"-- {message.get('role')}", style="cyan"))
            console.print(Text(visible(clean(str(message.get("content") or "")))), soft_wrap=True)
        seen_messages[call.role] = call.messages


def prompt_dicts(outcome: Outcome, *, hide: Sequence[str]) -> list[dict[str, Any]]:
    """Return every prompt with its hash, as a recording would keep it.

    Args:
        outcome: A run whose calls of models were kept.
        hide: Texts that are replaced before hashing, as of `prompt_hash`: what differs from run to run.
    """
    return [
        {"hash": prompt_hash(call.messages, hide=hide), "messages": [dict(message) for message in call.messages]}
        for call in outcome.calls
    ]
