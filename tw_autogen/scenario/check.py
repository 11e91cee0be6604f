"""What a scenario may expect: one function a check; its name and its parameters are those of the YAML.

A check about rounds takes `rounds` (those of one request, if the YAML names a `round`; else all of them), one about
files the `folder`, one about what the session teaches the `lesson`. Each yields a line for every problem: what was
expected, what was found, where. The parameter that comes second may be given without its name: `number: 11` is
`number: {value: 11}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tw_autogen.scenario.check_answer import answer, answer_lacks, asked_back, json, number, numbers, stop
from tw_autogen.scenario.check_code import cells, executed, failed_cells, never_executed, plugins, refused, selected
from tw_autogen.scenario.check_files import file, same_content, table
from tw_autogen.scenario.check_parameters import Problems
from tw_autogen.scenario.check_talk import (
    calls,
    lesson,
    nowhere,
    path,
    plan,
    plan_grew,
    posts,
    recalled,
    said,
    summaries,
)

CHECKS: Mapping[str, Callable[..., Problems]] = {
    one.__name__: one
    for one in (
        number,
        numbers,
        answer,
        answer_lacks,
        json,
        asked_back,
        stop,
        file,
        same_content,
        table,
        path,
        posts,
        calls,
        summaries,
        lesson,
        recalled,
        plan,
        plan_grew,
        said,
        nowhere,
        plugins,
        selected,
        refused,
        executed,
        never_executed,
        cells,
        failed_cells,
    )
}
"""Every check by the name that it has in a scenario."""
