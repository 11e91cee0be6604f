"""What each sandbox adds to a start."""

from __future__ import annotations

import itertools
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence

from host import Worker, WorkerFailed
from statistic import number, shown, table

UNFORKED = "bubblewrap"
"""Kernels in this sandbox are never forked."""


def sandboxes(levels: Sequence[str], *, rounds: int, times: int, say: Callable[[str], None]) -> str:
    """Measure; give a table.

    Args:
        levels: As `KernelSettings.sandbox` has them; the others are compared with the first.
        rounds: Each in a random order.
        times: How many starts of each in a round.
        say: Told what runs now.
    """
    taken: dict[tuple[str, bool], list[float]] = defaultdict(list)
    said = []
    for number_of_round in range(1, rounds + 1):
        jobs = [(one, fork) for one, fork in itertools.product(levels, (True, False)) if not (fork and one == UNFORKED)]
        random.shuffle(jobs)
        for level, fork in jobs:
            say(f"sandboxes, round {number_of_round} of {rounds}: {level}, {'forked' if fork else 'cold'}")
            try:
                with Worker("") as worker:
                    taken[level, fork] += worker.ask("start", sandbox=level, fork=fork, times=times)["seconds"]
            except WorkerFailed as error:
                said.append(f"{level}: {error}".replace("\n", " "))
    ways = ("forked", "cold")
    head = [f"sandbox, compared with {levels[0]!r}", *(one for way in ways for one in (f"{way}: `1+1` ms", "adds ms"))]
    lines = []
    for level in levels:
        line = [level]
        for fork in (True, False):
            mine, base = taken[level, fork], taken[levels[0], fork]
            more = number((statistics.median(mine) - statistics.median(base)) * 1000, 2) if mine and base else "-"
            line += [shown(mine, scale=1000), more]
        lines.append(line)
    return "\n".join([table(head, lines), *dict.fromkeys(said)])
