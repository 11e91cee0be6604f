"""Many sessions at once: memory of those that have imported much, and what those that wait for somebody take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from host import Worker, WorkerFailed
from statistic import number, shown, table

_IDLE_SECONDS = 10.0


def many_sessions(rows: Sequence[str], *, full: int, idle: int, say: Callable[[str], None]) -> str:
    """Measure; give two tables.

    Args:
        rows: Which peers.
        full: How many sessions have pandas, numpy and matplotlib imported.
        idle: How many have run nothing but `1+1`.
        say: Told what runs now.
    """
    lines, waiting, said = [], [], []
    for row in rows:
        say(f"many: {row}")
        try:
            with Worker(row) as worker:
                worker.ask("first", code="1+1", result="2")
                lines.append([row, number(worker.ask("memory", sessions=full, patience=900)["mb"][0])])
            with Worker(row) as worker:
                worker.ask("first", code="1+1", result="2")
                waiting.append([row, *_idle(worker, idle)])
        except WorkerFailed as error:
            said.append(f"{row}: {error}")
    head = [f"{idle} idle sessions", "MB each", "GB all", "GB left", "start ms", "processors in use", "answer then ms"]
    return "\n\n".join(
        [table([f"{full} sessions with pandas and pyplot", "MB each"], lines), table(head, waiting), *said]
    )


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
