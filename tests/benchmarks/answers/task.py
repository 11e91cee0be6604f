"""`Task`: one question of a benchmark, with the grader that its authors published; and reading their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tw_autogen.errors import ScenarioError

Grade = Mapping[str, bool]
"""For each sub-answer that is wanted, whether it is right."""


@dataclass(frozen=True)
class Task:
    """One question.

    Args:
        id: Unique in its benchmark.
        request: What the user says.
        grade: Grades an answer's text; an empty one has no right sub-answer.
        files: What goes with it. What is right lies elsewhere, where code can't read it.
        groups: What results are told apart by: `{"level": ("easy",), "concept": ("Correlation Analysis",)}`.
    """

    id: str
    request: str
    grade: Callable[[str], Grade]
    files: tuple[Path, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def lines_of(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the objects of a JSONL file with the numbers of their lines.

    Raises:
        ScenarioError: there is no such file, or a line of it is no JSON object.
    """
    if not path.is_file():
        raise ScenarioError("there is no such file", path=path)
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, as_object(line, path, number)


def as_object(text: str, path: Path, line: int | None = None) -> Mapping[str, Any]:
    """Read one JSON object of a file.

    Raises:
        ScenarioError: it is none.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise ScenarioError(f"not JSON: {error}", path=path, line=line) from error
    if not isinstance(plain, Mapping):
        raise ScenarioError(f"expected a JSON object, found {type(plain).__name__}", path=path, line=line)
    return plain


def wanted(plain: Mapping[str, Any], key: str, path: Path, line: int | None = None) -> Any:
    """Give the value of a key that must be there.

    Raises:
        ScenarioError: it isn't.
    """
    if key not in plain:
        raise ScenarioError(f"missing key {key!r}; found {', '.join(map(repr, plain))}", path=path, line=line)
    return plain[key]
