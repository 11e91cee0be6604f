"""What a scenario may expect: one function a check; its name and its parameters are those of the YAML.

A check about rounds takes `rounds` (one, if the YAML names a `round`; else all of them), one about files the `folder`.
Each yields a line for every problem: what was expected, what was found, where. The parameter that comes second may be
given without its name: `number: 11` is `number: {value: 11}`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from tw_autogen.conversation import AttachmentType
from tw_autogen.events import CellRan, CodeChecked, ModelCalled, PluginsSelected
from tw_autogen.planner import Plan
from tw_autogen.plugin import PluginSpec, names_used
from tw_autogen.scenario.evidence import Seen
from tw_autogen.scenario.numbers import numbers_in

_SHOWN_CHARS = 200


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_path(value: Any) -> Any:
    return [name.strip() for name in value.split(">")] if isinstance(value, str) else value


Rounds = Sequence[Seen]
Problems = Iterator[str]
Words = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_path), Field(min_length=2)]
Regex = re.Pattern[str]


def number(rounds: Rounds, value: float, *, within: NonNegativeFloat = 0.0) -> Problems:
    """Expect this number in the last answer."""
    found = numbers_in(rounds[-1].answer)
    if not any(abs(one - value) <= within for one in found):
        wanted = f"{value:.15g}" + (f" (within {within:g})" if within else "")
        named = f"the numbers {', '.join(f'{one:.15g}' for one in found)}" if found else "no number"
        yield f"{rounds[-1]}: expected {wanted} in the answer, found {named} in {_short(rounds[-1].answer)}"


def answer(rounds: Rounds, matches: Regex) -> Problems:
    """Expect the last answer to have a place that the regular expression matches."""
    if not matches.search(rounds[-1].answer):
        yield f"{rounds[-1]}: expected an answer that matches {matches.pattern!r}, found {_short(rounds[-1].answer)}"


def answer_lacks(rounds: Rounds, matches: Regex) -> Problems:
    """Expect that no answer has a place that the regular expression matches."""
    for seen in rounds:
        if found := matches.search(seen.answer):
            yield f"{seen}: expected no answer that matches {matches.pattern!r}, found {_short(found[0])}"


def stop(rounds: Rounds, word: Words) -> Problems:
    """Expect that the Planner's word for the last answer is this one, or one of these."""
    if rounds[-1].stop not in word:
        yield f"{rounds[-1]}: expected the stop word {' or '.join(word)}, found {rounds[-1].stop or 'none'}"


def file(folder: Path, name: Words, *, contains: Words | None = None, matches: Regex | None = None) -> Problems:
    """Expect a file under this name, or under one of these, which is not empty and holds certain text."""
    found = next((path for path in (folder / one for one in name) if path.is_file()), None)
    if found is None:
        yield f"expected the file {' or '.join(name)}, found {_listing(folder)}"
        return
    data = found.read_bytes()
    if not data.strip():
        yield f"{found.name}: expected something in the file, found nothing"
        return
    text = data.decode("utf-8", errors="replace")
    for part in contains or ():
        if part not in text:
            yield f"{found.name}: expected {part!r} in the file, found {_short(text)}"
    if matches and not matches.search(text):
        yield f"{found.name}: expected text that matches {matches.pattern!r}, found {_short(text)}"


def table(
    folder: Path,
    name: str,
    *,
    columns: Words | None = None,
    rows: NonNegativeInt | None = None,
    values: Mapping[str, tuple[float, ...]] | None = None,
    within: NonNegativeFloat = 0.0,
) -> Problems:
    """Expect a CSV file with these columns, so many rows, and these numbers in a column, in whatever order."""
    path = folder / name
    if not path.is_file():
        yield f"expected the table {name}, found {_listing(folder)}"
        return
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        lines = [line for line in csv.reader(stream) if line]
    header, body = tuple(lines[0]) if lines else (), lines[1:]
    if columns is not None and header != columns:
        yield f"{name}: expected the columns {', '.join(columns)}, found {', '.join(header) or 'none'}"
    if rows is not None and len(body) != rows:
        yield f"{name}: expected {rows} rows, found {len(body)}"
    for column, wanted in (values or {}).items():
        if column not in header:
            yield f"{name}: expected a column {column!r}, found {', '.join(header) or 'none'}"
            continue
        cells = [line[header.index(column)] if header.index(column) < len(line) else "" for line in body]
        if not _same_numbers(cells, wanted, within):
            yield f"{name}: expected in {column!r} the numbers {_row(wanted)}, found {_row(cells)}"


def path(rounds: Rounds, posts: Names) -> Problems:
    """Expect that in each round these spoke, one after the other; the last name only listened."""
    for seen in rounds:
        if seen.path != posts:
            yield f"{seen}: expected the posts {' > '.join(posts)}, found {' > '.join(seen.path) or 'none'}"


def posts(rounds: Rounds, *, at_least: PositiveInt | None = None, at_most: PositiveInt | None = None) -> Problems:
    """Expect that each round has so many posts."""
    for seen in rounds:
        yield from _count(str(seen), "posts", len(seen.round.posts), at_least, at_most)


def calls(rounds: Rounds, at_most: PositiveInt) -> Problems:
    """Expect no more calls of models than this, in all the rounds together."""
    count = sum(isinstance(event, ModelCalled) for seen in rounds for event in seen.events)
    yield from _count(_span(rounds), "calls of models", count, None, at_most)


def plugins(rounds: Rounds, names: Words) -> Problems:
    """Expect that code which was run names each of these plugins."""
    specs = [PluginSpec(name, "") for name in names]
    used = frozenset().union(*(names_used(cell.code, specs) for seen in rounds for cell in seen.cells))
    for name in names:
        if name not in used:
            ran = sum(len(seen.cells) for seen in rounds)
            others = f"and {', '.join(sorted(used))} in them" if used else "and none of the expected plugins in them"
            yield f"{_span(rounds)}: expected the plugin {name} to be used, found {ran} cells {others}"


def selected(
    rounds: Rounds, names: Words, *, at_most: PositiveInt | None = None, of: PositiveInt | None = None
) -> Problems:
    """Expect that these plugins stood in the pool that a model was shown, of at most so many, chosen from so many."""
    choices = [event for seen in rounds for event in seen.events if isinstance(event, PluginsSelected)]
    shown = sorted({name for one in choices for name in one.pool})
    for name in names:
        if name not in shown:
            yield f"{_span(rounds)}: expected the plugin {name} to be selected, found {', '.join(shown) or 'none'}"
    for one in choices:
        yield from _count(_span(rounds), "plugins selected", len(one.pool), None, at_most)
        if of is not None and one.plugins != of:
            yield f"{_span(rounds)}: expected a choice from {of} plugins, found one from {one.plugins}"


def refused(rounds: Rounds, finding: Regex = re.compile(""), *, stop: Words = ("SecurityRisks",)) -> Problems:
    """Expect that something was refused: code with a finding that matches, or an answer with this stop word."""
    findings = [
        one for seen in rounds for event in seen.events if isinstance(event, CodeChecked) for one in event.findings
    ]
    if any(finding.search(one) for one in findings) or any(seen.stop in stop for seen in rounds):
        return
    stops = ", ".join(seen.stop or "none" for seen in rounds)
    wanted = f"a finding that matches {finding.pattern!r}" if finding.pattern else "a finding"
    found = "; ".join(findings) or "none"
    yield (
        f"{_span(rounds)}: expected {wanted} or the stop word {' or '.join(stop)}, found the findings: {found}; "
        f"the stop words: {stops}"
    )


def never_executed(rounds: Rounds, matches: Regex) -> Problems:
    """Expect that no code which was run has a place that the regular expression matches."""
    for seen in rounds:
        for cell in seen.cells:
            if found := matches.search(cell.code):
                yield f"{seen}, cell {cell.cell}: expected no code that matches {matches.pattern!r}, found {found[0]!r}"


def failed_cells(
    rounds: Rounds, *, at_least: NonNegativeInt | None = None, at_most: NonNegativeInt | None = None
) -> Problems:
    """Expect that so many cells failed, in all the rounds together."""
    count = sum(isinstance(event, CellRan) and not event.ok for seen in rounds for event in seen.events)
    yield from _count(_span(rounds), "failed cells", count, at_least, at_most)


def plan_grew(rounds: Rounds, by: PositiveInt = 1) -> Problems:
    """Expect that the last plan of the last round has more steps than its first one, at least by so many."""
    plans = [post.attachment(AttachmentType.plan) for post in rounds[-1].round.posts]
    steps = [len(Plan.parse(one.content).steps) for one in plans if one]
    if not steps or steps[-1] - steps[0] < by:
        found = " > ".join(map(str, steps)) + " steps" if steps else "no plan"
        yield f"{rounds[-1]}: expected a plan that grows by {by} or more steps, found {found}"


CHECKS: Mapping[str, Callable[..., Problems]] = {
    one.__name__: one
    for one in (
        number,
        answer,
        answer_lacks,
        stop,
        file,
        table,
        path,
        posts,
        calls,
        plugins,
        selected,
        refused,
        never_executed,
        failed_cells,
        plan_grew,
    )
}
"""Every check by the name that it has in a scenario."""


def _count(where: str, what: str, count: int, at_least: int | None, at_most: int | None) -> Problems:
    if at_least is not None and count < at_least:
        yield f"{where}: expected at least {at_least} {what}, found {count}"
    if at_most is not None and count > at_most:
        yield f"{where}: expected at most {at_most} {what}, found {count}"


def _same_numbers(cells: Sequence[str], wanted: Sequence[float], within: float) -> bool:
    try:
        found = sorted(map(float, cells))
    except ValueError:
        return False
    return len(found) == len(wanted) and all(
        abs(one - other) <= within for one, other in zip(found, sorted(wanted), strict=True)
    )


def _row(values: Sequence[Any]) -> str:
    return _short(", ".join(map(str, values))) if values else "none"


def _span(rounds: Rounds) -> str:
    first, last = rounds[0].number, rounds[-1].number
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _listing(folder: Path) -> str:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return f"the files {', '.join(names)}" if names else "no file"


def _short(text: str) -> str:
    """Show a text in one line, whole or its beginning."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")
