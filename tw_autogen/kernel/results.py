"""Makes an `Execution` of what came of a cell; what the kernel says in its report may be anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tw_autogen.kernel.execution import Artifact, Execution, Log, Variable
from tw_autogen.kernel.failure import error_text, not_undone, rows, went_well
from tw_autogen.kernel.guest.output import MARK_CHARS, clip
from tw_autogen.kernel.request import RawResult
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.safe_folder import SafeFolder


def execution_of(
    outcome: RawResult,
    said: Iterable[Log],
    variables: tuple[Variable, ...],
    folder: Path,
    settings: KernelSettings,
    *,
    lost: str,
) -> Execution:
    """Return the execution of a cell.

    Args:
        outcome: What came.
        said: What the host has to say besides.
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
        logs=(*(Log(*map(str, one)) for one in rows(report, "logs", 3)), *said, *not_undone(report)),
        artifacts=tuple(_artifacts(report, folder)),
        variables=variables,
        error="" if ok else error_text(outcome, lost=lost),
        state_lost=bool(outcome.died),
        seconds=max(0.0, outcome.seconds - outcome.host_seconds),
    )


def _artifacts(report: dict[str, Any], folder: Path) -> Iterator[Artifact]:
    found = rows(report, "artifacts", 4)
    if not found:
        return
    with SafeFolder(folder) as opened:
        for name, kind, relative, preview in found:
            with contextlib.suppress(OSError):
                opened.open_file(str(relative)).close()
                yield Artifact(str(name), str(kind), folder / str(relative), str(preview))
