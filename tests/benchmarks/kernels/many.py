"""Many sessions at once: what those take that wait for somebody."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from host import Worker, WorkerFailed
from statistic import number, shown, table

_IDLE_SECONDS = 10.0


def many_sessions(rows: Sequence[str], *, idle: int, say: Callable[[str], None]) -> str:
    """Measure; give a table.

    Args:
        rows: Which peers.
        idle: How many sessions have run nothing but `1+1`.
        say: Told what runs now.
    """
    waiting, said = [], []
    for row in rows:
        say(f"many: {row}")
        try:
            with Worker(row) as worker:
                worker.ask("first", code="1+1", result="2")
                waiting.append([row, *_idle(worker, idle)])
        except WorkerFailed as error:
            said.append(f"{row}: {error}")
    head = [f"{idle} idle sessions", "MB each", "GB all", "GB left", "start ms", "processors in use", "answer then ms"]
    return "\n".join([table(head, waiting), *said])


def _idle(worker: Worker, sessions: int) -> list[str]:
    told = worker.ask("idle", sessions=sessions, seconds=_IDLE_SECONDS, patience=900)
    return [
        number(told["mb"]),
        number(told["mb"] * sessions / 1024),
        number(told["free_gb"]),
        shown(told["start"], scale=1000),
        number(told["busy"]),
        f"{shown(told['answer'], scale=1000)}, all of {len(told['answer'])}",
    ]
