"""Makes an `Execution` of what came of a cell, with the words for a failed one; a report may be anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any

from tw_autogen.kernel.guest.output_capture import MARK_CHARS, clip
from tw_autogen.kernel.kernel import Artifact, Execution, Log, Variable
from tw_autogen.kernel.pending_request import ANSWER_LOST, RawResult
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.safe_folder import SafeFolder

LOST = "All variables are lost; the next cell gets a fresh kernel with plugins loaded."
COMES_BACK = (
    "All variables are lost; the next cell gets a fresh kernel with plugins loaded, and the variables that the last "
    "checkpoint and the journal of cells bring back, which its log names."
)
ROLLBACK = "rollback"
"""In a report: what could not be undone, where a cell was; also the tag of the log lines that say so."""


_MAX_CHARS, _VALUE_CHARS, _ROW_CHARS = 1 << 20, 10_000, 50
"""What all rows of one kind in a report may hold, and one value; what a row counts besides. A kernel sends less."""
_ERROR_CHARS = 100_000
_MAX_PRINTS, _NAME_CHARS = 1000, 60


def went_well(outcome: RawResult) -> bool:
    """Return whether a cell ran to its end."""
    return (outcome.reply or {}).get("status") == "ok" and not outcome.stopped and not outcome.died


def error_text(outcome: RawResult, *, lost: str = LOST) -> str:
    """Return why a cell did not run to its end.

    Args:
        outcome: What came of the cell.
        lost: What is said of the variables if the process has ended.
    """
    reply = outcome.reply or {}
    trace = str(outcome.report.get("error") or "") or (
        f"{reply['ename']}: {reply.get('evalue', '')}" if reply.get("ename") else ""
    )
    trace = clip(trace, _ERROR_CHARS)
    if outcome.killed:
        return f"Stopped {outcome.stopped}: the code did not react to an interrupt, so the kernel was killed. {lost}"
    if outcome.died:
        return f"The kernel died while this cell ran: {outcome.died}. {lost}"
    undone = _undone_note(outcome.report)
    kept = "" if undone else "; variables are kept"
    if outcome.stopped:
        head = f"Stopped {outcome.stopped}, by an interrupt{kept}."
        return f"{head}\n{trace}".strip() + undone
    none = f"This cell was run, but {ANSWER_LOST}" if outcome.answer_lost else "The kernel gave no answer to this cell"
    return (trace or f"{none}{kept}.") + undone


def not_undone(report: dict[str, Any]) -> Iterator[Log]:
    """Yield a line for each variable that a failed cell may have changed for good."""
    for name, why in rows(report, ROLLBACK, 2):
        reason = f": {why}" if why else ""
        yield Log("warning", ROLLBACK, f"{name} may still be changed by the failed cell{reason}")


def _lost_output(outcome: RawResult) -> list[Log]:
    text = "output of this cell was lost: it, or one before it, sent more than 64 MB at once. Print or show less"
    return [Log("warning", "output", text)] if outcome.output_lost else []


def rows(report: dict[str, Any], key: str, width: int) -> list[list[str]]:
    """Return a report's rows as texts, bounded together; what is no row, because code wrote it, is left out.

    Args:
        report: As the kernel wrote it.
        key: Where the rows stand.
        width: How many values each row has.
    """
    found = report.get(key)
    kept: list[list[str]] = []
    left = _MAX_CHARS
    for one in found if isinstance(found, list) else []:
        if isinstance(one, list) and len(one) == width:
            row = [_clip_value(value) for value in one]
            left -= _ROW_CHARS + sum(map(len, row))
            if left < 0:
                break
            kept.append(row)
    return kept


def _clip_value(value: Any) -> str:
    """Return a value of a report as text, cut: code may have written it."""
    if isinstance(value, (dict, list)):
        return ""
    return clip(str(value), _VALUE_CHARS) if value is not None else ""


def _undone_note(report: dict[str, Any]) -> str:
    if not isinstance(report.get(ROLLBACK), list):
        return ""
    names = ", ".join(str(name) for name, _ in rows(report, ROLLBACK, 2))
    left = f", except that these may still be changed: {names}" if names else ""
    return f"\nThe cell was undone: variables are as they were before it{left}. Files and other effects stay."


def execution_of(
    outcome: RawResult,
    logs: Iterable[Log],
    variables: tuple[Variable, ...],
    folder: Path,
    settings: KernelSettings,
    *,
    lost: str,
) -> Execution:
    """Return the execution of a cell.

    Args:
        outcome: What came.
        logs: What the host has to say besides.
        variables: Those that are there now.
        folder: The kernel's; no artifact lies elsewhere.
        settings: Limits.
        lost: Says what the end of the process means for the variables.
    """
    report, ok = outcome.report, went_well(outcome)
    result = report.get("result")
    return Execution(
        ok=ok,
        result=None if result is None else clip(str(result), settings.result_chars + MARK_CHARS),
        stdout=outcome.stdout.text(),
        stderr=outcome.stderr.text(),
        logs=(*(Log(*row) for row in rows(report, "logs", 3)), *logs, *_lost_output(outcome), *not_undone(report)),
        artifacts=tuple(_readable_artifacts(report, folder, settings.max_artifacts)),
        variables=variables,
        error="" if ok else error_text(outcome, lost=lost),
        state_lost=bool(outcome.died),
        seconds=max(0.0, outcome.seconds - outcome.host_seconds),
        print_ends=_print_ends(report),
        undone=isinstance(report.get(ROLLBACK), list) and not outcome.died,
        kept_as=kept if str.isidentifier(kept := str(report.get("kept_as") or "")[:_NAME_CHARS]) else "",
    )


def _print_ends(report: dict[str, Any]) -> tuple[int, ...]:
    """Return where prints ended; empty where that is no ascending list of numbers, because code wrote it."""
    found = report.get("print_ends")
    ends = found[:_MAX_PRINTS] if isinstance(found, list) else []
    sane = all(type(end) is int for end in ends) and ends == sorted(ends)
    return tuple(ends) if sane else ()


def _readable_artifacts(report: dict[str, Any], folder: Path, most: int) -> Iterator[Artifact]:
    found = rows(report, "artifacts", 4)[:most]
    if not found:
        return
    with SafeFolder(folder) as opened:
        for name, kind, relative, preview in found:
            if any(part.startswith(".") for part in PurePath(relative).parts):
                continue  # hidden, as what the host keeps there
            with contextlib.suppress(OSError):
                opened.open_file(relative).close()
                yield Artifact(name, kind, folder / relative, preview)
