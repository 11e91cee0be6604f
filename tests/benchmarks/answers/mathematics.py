"""MATH: problems of competitions whose answers stand in a box."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.answers.task import Grade, Task, as_object, lines_of, wanted
from tw_autogen.errors import ScenarioError

_REQUEST = """\
{problem}

Compute what you are not sure of with code. End your answer with the result in a LaTeX box: \\boxed{{...}}"""
_WHOLE = re.compile(r"-?\d+")


def read_math(folder: Path | str) -> tuple[Task, ...]:
    """Read the problems.

    Args:
        folder: As published: `test/<subject>/<number>.json`, each with problem, level, type and solution; or JSONL
            files with those keys on each line (`subject` for type, `answer` or a solution). Where there is a folder
            `test` it is taken alone.

    Returns:
        Tasks in the order of their paths.

    Raises:
        ScenarioError: there is none, or one is wrong; names the file.

    Source:
        MATH (Hendrycks et al., 2021). The wording of the request is ours.
    """
    folder = Path(folder)
    root = folder / "test" if (folder / "test").is_dir() else folder
    tasks = [_task(*found) for found in _problems(root)]
    if not tasks:
        raise ScenarioError("expected problems in .json or .jsonl files, found none", path=root)
    return tuple(tasks)


def grade(right: str, answer: str) -> Grade:
    r"""Say whether the last box of an answer holds what is right.

    Example:
        >>> grade(r"\frac{1}{2}", r"That is \boxed{0.5}.")
        {'answer': True}
    """
    found = boxed(answer)
    return {"answer": found is not None and equivalent(found, right)}


def boxed(text: str) -> str | None:
    r"""Give what stands in the last box of a text, `\boxed{…}`, else `\fbox{…}`; None if there is none that closes.

    Example:
        >>> boxed(r"first \boxed{1}, then \boxed{\frac{2}{3}}")
        '\\frac{2}{3}'
    """
    begin = text.rfind(r"\boxed")
    begin = begin if begin >= 0 else text.rfind(r"\fbox")
    if begin < 0:
        return None
    rest = text[begin:].removeprefix(r"\boxed").removeprefix(r"\fbox")
    if not rest.startswith("{"):
        bare = re.match(r" ([^$\s]+)", rest)  # `\boxed 5$`
        return bare[1] if bare else None
    depth = 0
    for at, char in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if depth == 0:
            return rest[1:at]
    return None


def equivalent(one: str, other: str) -> bool:
    """Say whether two answers are written alike, once the ways of writing that don't matter are evened out.

    Source:
        `math_equivalence.py` of the MATH repository, rule by rule; where it fails on an answer it compares the bare
        strings, and so does this.
    """
    try:
        return _evened(one) == _evened(other)
    except ValueError:
        return one == other


def _evened(text: str) -> str:
    for old, new in (
        ("\n", ""),
        (r"\!", ""),
        ("\\\\", "\\"),
        ("tfrac", "frac"),
        ("dfrac", "frac"),
        (r"\left", ""),
        (r"\right", ""),
        (r"^{\circ}", ""),
        (r"^\circ", ""),
        (r"\$", ""),
    ):
        text = text.replace(old, new)
    text, unit, more = text.partition(r"\text{ ")  # what is set off so is a unit
    if r"\text{ " in more:
        raise ValueError("two units")
    text = text.replace(r"\%", "").replace("%", "").replace(" .", " 0.").replace("{.", "{0.")
    if not text:
        return text
    text = "0" + text if text.startswith(".") else text
    left, equals, right = text.partition("=")
    if equals and "=" not in right and len(left) <= 2:
        text = right  # `x = 5`
    text = _roots(text).replace(" ", "")
    text = _fractions(text)
    return _slash(r"\frac{1}{2}" if text == "0.5" else text)


def _roots(text: str) -> str:
    r"""Put braces around what stands under a root without them: `\sqrt3`."""
    first, *rest = text.split(r"\sqrt")
    if not all(rest):
        raise ValueError("a root of nothing")
    return first + "".join(r"\sqrt" + (one if one.startswith("{") else f"{{{one[0]}}}{one[1:]}") for one in rest)


def _fractions(text: str) -> str:
    r"""Put braces around numerator and denominator: `\frac12`, `\frac1{72}`."""
    made, *rest = text.split(r"\frac")
    for one in rest:
        if not one:
            raise ValueError("a fraction of nothing")
        if one.startswith("{"):
            made += r"\frac" + one
        elif len(one) < 2:
            return text
        else:
            below = one[1:] if one[1] == "{" else f"{{{one[1]}}}{one[2:]}"
            made += rf"\frac{{{one[0]}}}{below}"
    return made


def _slash(text: str) -> str:
    above, slash, below = text.partition("/")
    if not slash or not _WHOLE.fullmatch(above) or not _WHOLE.fullmatch(below):
        return text
    return rf"\frac{{{above}}}{{{below}}}" if f"{int(above)}/{int(below)}" == text else text


def _problems(root: Path) -> Iterator[tuple[str, Mapping[str, Any], Path, int | None]]:
    """Give each problem with its name, its file and its line."""
    for path in sorted(root.rglob("*.json")):
        name = path.relative_to(root).with_suffix("").as_posix()
        yield name, as_object(path.read_text(encoding="utf-8"), path), path, None
    for path in sorted(root.rglob("*.jsonl")):
        for line, plain in lines_of(path):
            yield str(plain.get("unique_id") or f"{path.stem}/{line}"), plain, path, line


def _task(name: str, plain: Mapping[str, Any], path: Path, line: int | None) -> Task:
    right = plain.get("answer") or boxed(str(wanted(plain, "solution", path, line)))
    if not right:
        raise ScenarioError("solution: expected a box with the answer, found none", path=path, line=line)
    subject = plain.get("type") or wanted(plain, "subject", path, line)
    level = str(wanted(plain, "level", path, line)).removeprefix("Level ")
    request = _REQUEST.format(problem=wanted(plain, "problem", path, line))
    return Task(name, request, partial(grade, str(right)), (), {"level": (level,), "subject": (str(subject),)})
