"""What came of code, in words: for the model that wrote it, for the Planner, and for the user."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tw_autogen.code_interpreter.deliberate_errors import FRAME
from tw_autogen.code_interpreter.rules import Finding
from tw_autogen.conversation import RequestedFormat, names_in_text
from tw_autogen.kernel import Artifact, Execution
from tw_autogen.python_source import parsed_cell
from tw_autogen.text_escaping import visible_line
from tw_autogen.text_truncation import first_of, shortened, trimmed, without_middle

_PREVIEW_CHARS = 80
_KEPT = "(Cut to fit; {} is in the variable `{}`. Print the part of it that is needed and left out here.)"
_CHECK_CHARS = 400
RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b")
_LOST = re.compile(r"^\[\.\.\. (\d+) characters left out \.\.\.\]$", re.M)
"""The mark that a kernel leaves where a cell has printed more than it keeps."""
_PADDING = re.compile(r"(?<=\S) {3,}(?=\S)|^ {3,}(?=\S)", re.M)
_BLANKS = re.compile(r"(?<! ) {2,}")
_COLUMNS = re.compile(r"\S {2,}\S")
_TABLE_CHARS = 4000
"""How much of one table is shown where the output doesn't fit."""
_TAIL_PERCENT = 30
_FILES_CHARS = 4000


def files_line(artifacts: Sequence[Artifact], folder: Path | None = None) -> str:
    """Name the files that were made, with a preview where there is one; empty if there are none. Many are counted.

    Args:
        artifacts: The files.
        folder: Where code runs: names are paths from there, as code opens them. None: names without folders.
    """
    named = [
        f"{visible_line(_path_of(file, folder))}{f' ({preview})' if (preview := _first_line(file.preview)) else ''}"
        for file in artifacts
    ]
    return f"Files: {', '.join(first_of(named, _FILES_CHARS))}" if named else ""


def unnamed_files_line(
    text: str, artifacts: Sequence[Artifact], folder: Path | None, form: RequestedFormat | None
) -> str:
    """Name the files that an answer doesn't name; what is JSON, or has the form that was asked for, stays alone.

    Args:
        text: The answer.
        artifacts: The files.
        folder: As of `files_line`.
        form: The form that the request asks for; None: no particular one.
    """
    alone = (form or RequestedFormat()).is_alone(text)
    named = names_in_text((artifact.path.name for artifact in artifacts), text)
    return "" if alone else files_line([artifact for artifact in artifacts if artifact.path.name not in named], folder)


def _path_of(artifact: Artifact, folder: Path | None) -> str:
    if folder is not None and artifact.path.is_relative_to(folder):
        return artifact.path.relative_to(folder).as_posix()
    return artifact.path.name


def output_text(
    execution: Execution,
    artifacts: Sequence[Artifact],
    limit_chars: int,
    *,
    form: RequestedFormat | None = None,
    folder: Path | None = None,
) -> str:
    """Return what was printed, the result and the files that it doesn't name, as a user may read it.

    What is JSON, or has the form that the request asks for, stays alone.

    Args:
        execution: What came of the cell.
        artifacts: Files that it made.
        limit_chars: How long the text may be; longer output keeps head and tail.
        form: The form that the request asks for; None: no particular one.
        folder: As of `files_line`.
    """
    printed = fit(execution.stdout, limit_chars, execution.print_ends)
    parts = [trimmed(printed), trimmed(fit(execution.result or "", limit_chars))]
    text = "\n".join(part for part in parts if part)
    return "\n".join(part for part in (text, unnamed_files_line(text, artifacts, folder, form)) if part)


def execution_report(
    execution: Execution,
    artifacts: Sequence[Artifact],
    limit_chars: int,
    *,
    code: str = "",
    folder: Path | None = None,
) -> str:
    """Return how a cell ended, with result, printed text, warnings, error and files, each cut to the limit.

    Args:
        execution: The cell's.
        artifacts: Files that it made.
        limit_chars: How long each part may be.
        code: The cell's code: where it shows nothing, the variable that it assigns last is shown.
        folder: As of `files_line`.
    """
    if execution.ok:
        head = "The code ran."
    elif execution.state_lost:
        head = (
            "The code failed, and the kernel with it: the next cell starts a fresh one, without the variables, unless "
            "the error says that they come back."
        )
    else:
        head = "The code failed."
    lost = lost_output(execution)
    logs = "\n".join(f"[{log.level}] {log.tag}: {log.message}" for log in execution.logs)
    parts = {
        "Printed": fit(execution.stdout, limit_chars, execution.print_ends),
        "Not complete": lost,
        "Result": fit(execution.result or "", limit_chars),
        "Standard error": without_middle(execution.stderr, limit_chars),
        "Log": without_middle(logs, limit_chars),
        "Error": without_middle(execution.error, limit_chars),
    }
    shown = [f"{name}:\n{trimmed(text)}" for name, text in parts.items() if text.strip()]
    kept = full_output_variable(execution, limit_chars)
    shown += [_KEPT.format("what is not lost" if lost else "the whole output", kept)] if kept else []
    if execution.ok and not shown and not artifacts:
        last = _last_assigned(code)
        shown = ["It printed nothing and has no result."]
        shown += [
            f"The variable assigned last is {variable}" for variable in execution.variables if variable.name == last
        ]
    return "\n".join(part for part in [head, *shown, files_line(artifacts, folder)] if part)


def full_output_variable(execution: Execution, limit_chars: int) -> str:
    """Return the variable that holds all output that was kept, where a report has a part only; empty if it has all.

    Args:
        execution: The cell's.
        limit_chars: How long each part of a report may be.
    """
    cut = max(len(execution.stdout), len(execution.result or "")) > limit_chars
    return execution.kept_as if cut else ""


def findings_report(findings: Sequence[Finding]) -> str:
    """Return why code was not run."""
    head = "The code was not run, because it breaks rules:"
    if all(finding.kind == "approval" for finding in findings):
        head = "The code was not run:"
    told = (f"- {finding}\n  {finding.remedy}" if finding.remedy else f"- {finding}" for finding in findings)
    return "\n".join([head, *told])


def check_outcome(execution: Execution) -> tuple[bool | None, str]:
    """Return whether a check has passed (None: it could not be carried out), and its last words.

    Args:
        execution: The check's: a failed assertion fails it, any other error leaves it undecided.
    """
    if execution.ok:
        kept = (log.message for log in execution.logs if log.tag == "rollback")
        return True, without_middle("; ".join([trimmed(execution.stdout), *kept]).strip("; "), _CHECK_CHARS)
    *_, after = [0, *(frame.end() for frame in FRAME.finditer(execution.error))]
    lines = execution.error[after:].splitlines()
    first = next((number for number, line in enumerate(lines) if RAISED.match(line)), None)
    raised, more = (execution.error, "") if first is None else (lines[first], "\n".join(lines[first + 1 :]))
    asserted = raised.startswith("AssertionError")
    message = raised.removeprefix("AssertionError").lstrip(": ") or more.strip() or "the assertion does not hold"
    return False if asserted else None, without_middle(message.strip(), _CHECK_CHARS)


def lost_output(execution: Execution) -> str:
    """Return a sentence about output that the kernel did not keep; empty if it kept all."""
    for text, what in ((execution.stdout, "what was printed"), (execution.result or "", "the result")):
        if lost := _LOST.search(text):
            return f"{lost[1]} characters of {what} are lost; what is long has to be written to a file"
    return ""


def review_reasons(execution: Execution) -> list[str]:
    """Return what speaks against passing a result on unread; empty if nothing does."""
    found = []
    if execution.stderr.strip():
        found.append("standard error is not empty")
    if execution.state_lost:
        found.append("the kernel was lost")
    if not execution.stdout.strip() and len((execution.result or "").strip().splitlines()) > 1:
        found.append("a last expression of several lines, and nothing was printed")
    if lost := lost_output(execution):
        found.append(lost)
    return found + [log.message for log in execution.logs if log.tag == "display"]


def empty_arrays(execution: Execution, made: Sequence[str]) -> list[str]:
    """Return a sentence for each new array or column that holds nothing but missing values: a count of it is no count.

    Args:
        execution: The cell's.
        made: Names of the variables that are new or changed.
    """
    kinds, new = ("Series", "ndarray"), set(made)
    found = [variable for variable in execution.variables if variable.name in new and variable.type in kinds]
    return [f"{one.name} holds nothing but nan" for one in found if re.search(r"\(all (?:nan|missing)\)", one.summary)]


def _last_assigned(code: str) -> str:
    """Return the name that the last statement assigns; empty if it assigns none, or the code can't be parsed."""
    tree = parsed_cell(code)
    last = tree.body[-1] if tree and tree.body else None
    target = last.targets[0] if isinstance(last, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


def _first_line(text: str) -> str:
    return shortened(next(iter(text.strip().splitlines()), ""), _PREVIEW_CHARS)


def fit(text: str, limit_chars: int, print_ends: Sequence[int] = ()) -> str:
    r"""Return a text within a limit; one that fits stays as it is.

    Tables whose rows have all their cells lose their padding first. What still doesn't fit is cut print by print: short
    prints stay whole, and of each long one the first and the last lines stay, with a mark between them.

    Args:
        text: Any length.
        limit_chars: How long the text may be, without the marks.
        print_ends: Where prints end in it, in characters, ascending; without them the text counts as one print.

    Example:
        >>> fit("total 12\n" + "row\n" * 9 + "mean 3\n", 30, print_ends=[9, 45, 52])
        'total 12\nrow\nrow\n… 6 of 9 lines (24 characters) left out …\nrow\nmean 3'
    """
    if len(text) <= limit_chars:
        return text
    prints = [_without_padding(one) for one in _split_prints(text, print_ends)]
    if sum(map(len, prints)) > limit_chars:
        wanted = [min(len(one), _TABLE_CHARS) if _is_table(one) else len(one) for one in prints]
        shares = _share_room(wanted, limit_chars)
        prints = [_cut(one, share) for one, share in zip(prints, shares, strict=True)]
    return "".join(prints).rstrip("\n")


def _split_prints(text: str, print_ends: Sequence[int]) -> list[str]:
    """Split a text into its prints; neighbours of one line each stay together."""
    ends = sorted({0, *(end for end in print_ends if 0 < end < len(text)), len(text)})
    prints: list[str] = []
    lines_apart = True
    for start, end in pairwise(ends):
        one = text[start:end]
        several = one.count("\n") > 1
        if prints and not several and not lines_apart:
            prints[-1] += one
        else:
            prints.append(one)
        lines_apart = several
    return prints


def _is_table(text: str) -> bool:
    """Return whether most lines of a text are aligned in columns."""
    lines = text.splitlines()
    return len(lines) > 2 and sum(1 for line in lines if _COLUMNS.search(line)) * 2 > len(lines)


def _without_padding(text: str) -> str:
    """Return a table with less blanks between its columns; one in which a cell may be empty stays as it is."""
    if not _is_table(text):
        return text
    rows = (line.rstrip() for line in text.splitlines())
    fields = {len(_BLANKS.split(row)) for row in rows if "  " in row}
    return _PADDING.sub("  ", text) if len(fields) == 1 else text


def _share_room(wanted: Sequence[int], room: int) -> list[int]:
    """Share room: who wants little gets it all, and the others get equal parts of the rest."""
    shares = [0] * len(wanted)
    for left, place in zip(range(len(wanted), 0, -1), sorted(range(len(wanted)), key=wanted.__getitem__), strict=True):
        shares[place] = min(wanted[place], max(0, room) // left)
        room -= shares[place]
    return shares


def _cut(text: str, room: int) -> str:
    """Return the first and last lines of a print that has more characters than there is room for."""
    if len(text) <= room:
        return text
    lines = text.splitlines(keepends=True)
    tail_room = room * _TAIL_PERCENT // 100
    tail = _lines_within(lines[::-1], tail_room)
    head = _lines_within(lines[: len(lines) - tail], room - sum(map(len, lines[len(lines) - tail :])))
    if not head or not tail:  # lines longer than the room are cut inside
        return without_middle(text, room, tail_percent=_TAIL_PERCENT)
    left_out = lines[head : len(lines) - tail]
    lost = _LOST.search("".join(left_out))
    of = "" if _LOST.search(text) else f" of {len(lines)}"
    more = f", and {lost[1]} characters were not kept" if lost else ""
    mark = f"… {len(left_out)}{of} lines ({sum(map(len, left_out))} characters) left out{more} …\n"
    return "".join([*lines[:head], mark, *lines[len(lines) - tail :]])


def _lines_within(lines: Sequence[str], room: int) -> int:
    """Return how many of the first lines fit."""
    for count, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return count
    return len(lines)
