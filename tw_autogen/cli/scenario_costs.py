"""The table of calls and tokens in a README, made from the recordings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from tw_autogen.errors import ScenarioError
from tw_autogen.model import Recording, Usage
from tw_autogen.scenario import Scenario

BEGIN = "<!-- calls and tokens: written by `tw-autogen scenario table --write`, not by hand -->"
END = "<!-- end of calls and tokens -->"


def costs_table(scenarios: Sequence[Scenario]) -> str:
    """Return a Markdown table: what each scenario shows, and the calls and tokens of its recording.

    What no server has reported is `-`, and so is all of a scenario that nobody has recorded.
    """
    lines = ["| scenario | what it shows | calls | prompt | cached | completion |", "|---|---|---:|---:|---:|---:|"]
    total, recorded = Usage(), 0
    for scenario in scenarios:
        if scenario.replies.exists():
            usages = (each.completion.usage for each in Recording.read(scenario.replies).replies)
            spent = reduce(Usage.__add__, usages, Usage())
            total, recorded = total + spent, recorded + 1
            lines.append(_table_row(f"`{scenario.name}`", scenario.about, spent))
        else:
            lines.append(f"| `{scenario.name}` | {scenario.about} | - | - | - | - |")
    lines.append(_table_row("all", f"{recorded} of {len(scenarios)} recorded", total))
    return "\n".join(lines)


def put_table(readme: Path, text: str, table: str) -> str:
    """Return a README's text with the table between its marks.

    Args:
        readme: The file, as an error names it.
        text: What it holds, with both marks.
        table: Lines of Markdown.

    Raises:
        ScenarioError: the marks aren't in it.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ScenarioError(f"no place for the table: write {BEGIN!r} and {END!r} where it belongs", path=readme)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _table_row(name: str, about: str, spent: Usage) -> str:
    counts = (spent.prompt_tokens, spent.cached_tokens, spent.completion_tokens)
    shown = [f"{count:,}".replace(",", " ") for count in counts] if any(counts) else ["-"] * 3
    return f"| {name} | {about} | {spent.calls} | {' | '.join(shown)} |"
