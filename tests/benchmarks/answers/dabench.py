"""InfiAgent-DABench: questions about tables with one right answer each, as `@name[value]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.benchmarks.answers.task import Grade, Task, lines_of, wanted
from tw_autogen.errors import ScenarioError, nearest

QUESTIONS, LABELS, TABLES = "da-dev-questions.jsonl", "da-dev-labels.jsonl", "da-dev-tables"
TOLERANCE = 1e-6

_ANSWER = re.compile(r"@(\w+)\[(.*?)\]")
_REQUEST = """\
{question}

The data are in {file_name}.

Constraints: {constraints}

End your answer with the values in exactly this form:
{format}"""


def read_dabench(folder: Path | str) -> tuple[Task, ...]:
    """Read the three parts of the benchmark: questions, labels, and the folder of tables.

    Args:
        folder: Holds `da-dev-questions.jsonl` (id, question, concepts, constraints, format, file_name, level),
            `da-dev-labels.jsonl` (id, common_answers: pairs of name and value) and `da-dev-tables/`.

    Returns:
        Tasks in the order of the questions.

    Raises:
        ScenarioError: a part is missing or wrong; names file and line.

    Source:
        InfiAgent-DABench (Hu et al., 2024), `examples/DA-Agent/data` of its repository. The wording of the request is
        ours; it holds all that a question has.
    """
    folder = Path(folder)
    labels = _labels(folder / LABELS)
    tables = {path.name: path for path in (folder / TABLES).glob("*") if path.is_file()}
    tasks, source = [], folder / QUESTIONS
    for line, plain in lines_of(source):
        id, name = str(wanted(plain, "id", source, line)), str(wanted(plain, "file_name", source, line))
        if id not in labels:
            raise ScenarioError(f"question {id}: {LABELS} has no answer to it", path=source, line=line)
        if name not in tables:
            raise ScenarioError(f"question {id}: no table {name!r}{nearest(name, tables)}", path=source, line=line)
        parts = {key: wanted(plain, key, source, line) for key in ("question", "constraints", "format")}
        groups = {
            "level": (str(wanted(plain, "level", source, line)),),
            "concept": tuple(map(str, wanted(plain, "concepts", source, line))),
        }
        request = _REQUEST.format(file_name=name, **parts)
        tasks.append(Task(id, request, partial(grade, labels[id]), (tables[name],), groups))
    return tuple(tasks)


def grade(label: Mapping[str, str], answer: str) -> Grade:
    """Say which of the values that are wanted an answer holds.

    Args:
        label: The right value of each name.
        answer: Text with `@name[value]` in it; of several with the same name the last one counts.

    Example:
        >>> grade({"mean": "34.65", "kind": "linear"}, "So @mean[34.650] and @kind[Linear].")
        {'mean': True, 'kind': False}

    Source:
        `eval_closed_form.py` of InfiAgent: equal as strings, or as numbers that differ by less than 1e-6.
    """
    found = dict(_ANSWER.findall(answer))
    return {name: name in found and _equal(found[name], value) for name, value in label.items()}


def _equal(found: str, right: str) -> bool:
    if found == right:
        return True
    try:
        return abs(float(found) - float(right)) < TOLERANCE
    except ValueError:
        return False


def _labels(path: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line, plain in lines_of(path):
        pairs = wanted(plain, "common_answers", path, line)
        try:
            found[str(wanted(plain, "id", path, line))] = {str(name): str(value) for name, value in pairs}
        except (TypeError, ValueError):
            raise ScenarioError(
                f"common_answers: expected pairs of name and value, found {pairs!r}", path=path, line=line
            ) from None
    return found
