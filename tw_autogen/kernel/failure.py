"""Words for a cell that did not run to its end: why, and what became of the variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tw_autogen.kernel.execution import Log
from tw_autogen.kernel.request import RawResult

LOST = "All variables are lost; the next cell gets a fresh kernel with plugins loaded."
COMES_BACK = (
    "All variables are lost; the next cell gets a fresh kernel with plugins loaded, and the variables that the last "
    "checkpoint and the journal of cells bring back, which its log names."
)
ROLLBACK = "rollback"
"""In a report: what could not be undone, where a cell was; also the tag of the log lines that say so."""


def went_well(outcome: RawResult) -> bool:
    """Return whether a cell ran to its end."""
    return (outcome.reply or {}).get("status") == "ok" and not outcome.stopped and not outcome.died


def error_text(outcome: RawResult, *, lost: str = LOST) -> str:
    """Return why a cell did not run to its end."""
    reply = outcome.reply or {}
    trace = str(outcome.report.get("error") or "") or (
        f"{reply['ename']}: {reply.get('evalue', '')}" if reply.get("ename") else ""
    )
    if outcome.killed:
        return f"Stopped {outcome.stopped}: the code did not react to an interrupt, so the kernel was killed. {lost}"
    if outcome.died:
        return f"The kernel died while this cell ran: {outcome.died}. {lost}"
    undone = _undone(outcome.report)
    kept = "" if undone else "; variables are kept"
    if outcome.stopped:
        head = f"Stopped {outcome.stopped}, by an interrupt{kept}."
        return f"{head}\n{trace}".strip() + undone
    return (trace or f"The kernel gave no answer to this cell{kept}.") + undone


def not_undone(report: dict[str, Any]) -> Iterator[Log]:
    """Yield a line for each variable that a failed cell may have changed for good."""
    for name, why in rows(report, ROLLBACK, 2):
        reason = f": {why}" if why else ""
        yield Log("warning", ROLLBACK, f"{name} may still be changed by the failed cell{reason}")


def rows(report: dict[str, Any], key: str, width: int) -> list[list[Any]]:
    """Return a report's rows; what is not one, because code wrote it, is left out."""
    found = report.get(key)
    return [one for one in found if isinstance(one, list) and len(one) == width] if isinstance(found, list) else []


def _undone(report: dict[str, Any]) -> str:
    if not isinstance(report.get(ROLLBACK), list):
        return ""
    names = ", ".join(str(name) for name, _ in rows(report, ROLLBACK, 2))
    left = f", except that these may still be changed: {names}" if names else ""
    return f"\nThe cell was undone: variables are as they were before it{left}. Files and other effects stay."
