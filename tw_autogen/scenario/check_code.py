"""Checks on the code that was run, or was not."""

from __future__ import annotations

import re

from pydantic import NonNegativeInt, PositiveInt

from tw_autogen.code_interpreter import names_used
from tw_autogen.events import CellRan, CodeChecked, PluginsSelected
from tw_autogen.plugin import PluginSpec
from tw_autogen.scenario.check_parameters import Problems, Regex, Rounds, Words, count, span


def plugins(rounds: Rounds, names: Words) -> Problems:
    """Expect that code which was run names each of these plugins.

    Args:
        rounds: The rounds, at least one, oldest first.
        names: Of the plugins.
    """
    specs = [PluginSpec(name, "") for name in names]
    used = frozenset().union(*(names_used(cell.code, specs) for seen in rounds for cell in seen.cells))
    for name in names:
        if name not in used:
            ran = sum(len(seen.cells) for seen in rounds)
            others = f"and {', '.join(sorted(used))} in them" if used else "and none of the expected plugins in them"
            yield f"{span(rounds)}: expected the plugin {name} to be used, found {ran} cells {others}"


def selected(
    rounds: Rounds, names: Words, *, at_most: PositiveInt | None = None, of: PositiveInt | None = None
) -> Problems:
    """Expect that these plugins stood in the pool that a model was shown, of at most so many, chosen from so many.

    Args:
        rounds: The rounds, at least one, oldest first.
        names: Of the plugins.
        at_most: Most that a pool may hold; None: no limit.
        of: How many there were to choose from; None: any number.
    """
    choices = [event for seen in rounds for event in seen.events if isinstance(event, PluginsSelected)]
    shown = sorted({name for choice in choices for name in choice.pool})
    for name in names:
        if name not in shown:
            yield f"{span(rounds)}: expected the plugin {name} to be selected, found {', '.join(shown) or 'none'}"
    for choice in choices:
        yield from count(span(rounds), "plugins selected", len(choice.pool), None, at_most)
        if of is not None and choice.plugins != of:
            yield f"{span(rounds)}: expected a choice from {of} plugins, found one from {choice.plugins}"


def refused(rounds: Rounds, finding: Regex = re.compile(""), *, stop: Words = ("SecurityRisks",)) -> Problems:
    """Expect that something was refused: code with a finding that matches, or an answer with this stop word.

    Args:
        rounds: The rounds, at least one, oldest first.
        finding: The regular expression; empty: any finding.
        stop: Any of these words is right.
    """
    findings = [
        one for seen in rounds for event in seen.events if isinstance(event, CodeChecked) for one in event.findings
    ]
    if any(finding.search(one) for one in findings) or any(seen.stop in stop for seen in rounds):
        return
    stops = ", ".join(seen.stop or "none" for seen in rounds)
    wanted = f"a finding that matches {finding.pattern!r}" if finding.pattern else "a finding"
    found = "; ".join(findings) or "none"
    yield (
        f"{span(rounds)}: expected {wanted} or the stop word {' or '.join(stop)}, found the findings: {found}; "
        f"the stop words: {stops}"
    )


def executed(rounds: Rounds, matches: Regex) -> Problems:
    """Expect that code which was run, well or not, has a place that the regular expression matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        matches: The regular expression.
    """
    ran = [cell.code for seen in rounds for cell in seen.cells]
    if not any(matches.search(code) for code in ran):
        yield f"{span(rounds)}: expected code that matches {matches.pattern!r}, found {len(ran)} cells without it"


def never_executed(rounds: Rounds, matches: Regex) -> Problems:
    """Expect that no code which was run has a place that the regular expression matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        matches: The regular expression.
    """
    for seen in rounds:
        for cell in seen.cells:
            if match := matches.search(cell.code):
                yield f"{seen}, cell {cell.cell}: expected no code that matches {matches.pattern!r}, found {match[0]!r}"


def cells(rounds: Rounds, *, at_least: PositiveInt | None = None, at_most: NonNegativeInt | None = None) -> Problems:
    """Expect that so many cells were run, in all the rounds together.

    Args:
        rounds: The rounds, at least one, oldest first.
        at_least: Fewest that are right; None: no limit.
        at_most: Most that are right; None: no limit.
    """
    yield from count(span(rounds), "cells", sum(len(seen.cells) for seen in rounds), at_least, at_most)


def failed_cells(
    rounds: Rounds, *, at_least: PositiveInt | None = None, at_most: NonNegativeInt | None = None
) -> Problems:
    """Expect that so many cells failed, in all the rounds together.

    Args:
        rounds: The rounds, at least one, oldest first.
        at_least: Fewest that are right; None: no limit.
        at_most: Most that are right; None: no limit.
    """
    found = sum(isinstance(event, CellRan) and not event.ok for seen in rounds for event in seen.events)
    yield from count(span(rounds), "failed cells", found, at_least, at_most)
