"""Our kernel beside its peers: each round takes all rows and measurements in a random order, each in a fresh worker.

Memory is measured in the first round only.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable

from host import Worker, WorkerFailed
from session import COLD, FORKED, OURS, PLAIN, ROWS
from statistic import ratio_shown, shown, table

HOST, RESULT, TABLE, CELL, MEMORY, RATE = "host", "result", "table", "cell", "memory", "rate"

AIMS = {
    (OURS, RESULT): 0.023,
    (OURS, TABLE): 0.015,
    (OURS, CELL): 0.59,
    (OURS, MEMORY): 0.38,
    (OURS, RATE): 5.0,
    (FORKED, RESULT): 0.105,
    (COLD, RESULT): 0.35,
}
"""What is wanted, as parts of what plain Jupyter takes; less is better but for the rate."""


class Comparison:
    """What was measured so far.

    Args:
        options: `rows`, `rounds`, `sessions`, `live`, `at_once`, `patience`, as on the command line.
        say: Told what runs now.
    """

    def __init__(self, options: argparse.Namespace, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        self._measured: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._medians: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        self._round = 0
        self._asked: Counter[str] = Counter()
        self._hung: Counter[str] = Counter()
        self._failures: dict[str, Counter[str]] = defaultdict(Counter)

    def run(self) -> None:
        """Measure everything."""
        for number in range(1, self._options.rounds + 1):
            self._round = number
            kinds = (self._times, self._at_once, *([self._memory] if number == 1 else []))  # it hardly changes
            jobs = list(itertools.product(self._options.rows, kinds))
            random.shuffle(jobs)
            for row, job in jobs:
                self._say(f"round {number} of {self._options.rounds}: {row}, {job.__name__.strip('_')}")
                try:
                    with Worker(row) as worker:
                        job(row, worker)
                except WorkerFailed as error:
                    self._failures[row][f"{job.__name__.strip('_')}: {error}".replace("\n", " ")] += 1

    def text(self) -> str:
        """Write the table and what is to be known about it."""
        many = self._options
        head = [
            "peer; median [p10-p90], ratio to ours",
            "new host: import, `1+1` ms",
            "first result `1+1` ms",
            "first pandas result ms",
            "cell `x = 1` ms",
            f"MB a session with pandas, of {many.live}",
            f"sessions/s, {many.at_once} at once",
        ]
        lines = [table(head, [self._row(row) for row in many.rows])]
        if PLAIN in many.rows:
            what = f"parts of what {PLAIN} takes; median of rounds [least-most]"
            ratios = [[row, *self._ratios(row)] for row in many.rows if row != PLAIN]
            lines += ["", table([what, *(one.partition(" ms")[0] for one in head[2:])], ratios), ""]
        lines += [f"{row}: {ROWS[row].note}" for row in many.rows if ROWS[row].note]
        for row, failures in self._failures.items():
            lines += [f"{row}: {count} x {why}" for why, count in failures.most_common(5)]
        return "\n".join(lines)

    def _row(self, row: str) -> list[str]:
        said = [row]
        for kind in (HOST, RESULT, TABLE, CELL, MEMORY, RATE):
            scale = 1.0 if kind in (MEMORY, RATE) else 1000.0
            said.append(shown(self._measured[row, kind], base=self._measured[OURS, kind], scale=scale))
        lost = sum(count for why, count in self._failures[row].items() if why.startswith("session"))
        if lost or self._hung[row]:
            said[-1] += f"; of {self._asked[row]}: {lost} failed, {self._hung[row]} hung"
        return said

    def _ratios(self, row: str) -> list[str]:
        kinds = (RESULT, TABLE, CELL, MEMORY, RATE)
        return [
            ratio_shown(self._medians[row, kind], self._medians[PLAIN, kind], aim=AIMS.get((row, kind)))
            for kind in kinds
        ]

    def _take(self, row: str, kind: str, values: list[float]) -> None:
        self._measured[row, kind] += values
        self._medians[row, kind][self._round] = statistics.median(values)

    def _times(self, row: str, worker: Worker) -> None:
        first_of_all = worker.ask("first", code="1+1", result="2")["seconds"][0]
        self._take(row, HOST, [worker.import_seconds + first_of_all])
        first: dict[str, list[float]] = {RESULT: [], TABLE: []}
        for _ in range(self._options.sessions):
            first[RESULT] += worker.ask("first", code="1+1", result="2")["seconds"]
            first[TABLE] += worker.ask("first", code="data", result="90")["seconds"]
        for kind, seconds in first.items():
            self._take(row, kind, seconds)
        self._take(row, CELL, worker.ask("cells", seconds=2, most=200)["seconds"])

    def _memory(self, row: str, worker: Worker) -> None:
        worker.ask("first", code="1+1", result="2")
        self._take(row, MEMORY, worker.ask("memory", sessions=self._options.live, patience=900)["mb"])

    def _at_once(self, row: str, worker: Worker) -> None:
        many = self._options
        worker.ask("first", code="1+1", result="2")
        sessions = 2 * many.at_once
        answer = worker.ask(
            "at_once",
            at_once=many.at_once,
            sessions=sessions,
            cells=5,
            seconds=many.patience,
            patience=many.patience + 30,
        )
        self._take(row, RATE, [answer["per_second"]])
        self._asked[row] += sessions
        self._hung[row] += answer["hung"]
        self._failures[row].update(f"session: {why}" for why in answer["failed"])


def rows(text: str) -> list[str]:
    """Read which rows are wanted; ours is always there, since the others are compared with it."""
    wanted = [row for row in ROWS if any(part.strip().lower() in row.lower() for part in text.split(","))]
    return [OURS, *(row for row in wanted if row != OURS)]
