"""Sessions at work for a long time, with faults at random; `python tests/benchmarks/soak --help` tells more."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import json
import os
import platform
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
RESULTS = HERE.parent / "results"
sys.path.insert(1, str(HERE.parent / "kernels"))

from statistic import number, table  # noqa: E402 - lies beside, in the other benchmark's folder

SILENCE_SECONDS = 240.0
"""How long the host may say nothing until it counts as hung; each of its cells ends sooner."""
GROWTH_MB = 50
"""By how much the host's memory may grow between the second and the last fifth of the time."""
_SUBREAPER = 36


class Host:
    """The process whose sessions are at work, seen from outside.

    What it starts and leaves becomes a child of this process, so that nothing can get away unseen.
    """

    def __init__(self, wanted: argparse.Namespace, folder: Path) -> None:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self.folder = folder / "t"
        self.folder.mkdir()
        self.log = folder / "log"
        environment = {**os.environ, "TMPDIR": str(self.folder), "PYTHONPATH": str(REPOSITORY)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        chosen = [f"--{one}={getattr(wanted, one)}" for one in ("sessions", "minutes", "cells", "seed", "margin")]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "at_work.py"), *chosen],
                stdout=subprocess.PIPE, stderr=log, cwd=folder, env=environment,
            )  # fmt: skip
        self._seen = psutil.Process(self._process.pid)
        self._unread = b""

    def said(self) -> dict:
        """Give the next line that it says.

        Raises:
            TimeoutError: it says nothing; where its threads are stands in the log.
            EOFError: it has ended.
        """
        end = time.monotonic() + SILENCE_SECONDS
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                self._process.send_signal(signal.SIGUSR1)
                time.sleep(2)
                raise TimeoutError(f"the host says nothing:\n{self.tail()}")
            if not (read := os.read(pipe, 1 << 16)):
                raise EOFError(f"the host has ended:\n{self.tail()}")
            self._unread += read
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def memory_mb(self) -> float:
        """Give the memory of the host alone."""
        return self._seen.memory_info().rss / (1 << 20)

    def tail(self) -> str:
        """Give the end of what it wrote."""
        return self.log.read_text(errors="replace")[-8000:]

    def strays(self) -> list[str]:
        """Give the processes that outlived who had started them; those that have ended are laid to rest."""
        found = []
        for child in psutil.Process().children():
            if child.pid != self._process.pid:
                with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
                    if child.status() == psutil.STATUS_ZOMBIE:
                        os.waitpid(child.pid, os.WNOHANG)
                    else:
                        found.append(f"{child.pid}: {' '.join(child.cmdline())[:100] or child.name()}")
        return found

    def kill(self) -> int:
        """Kill it; give how many processes it had."""
        many = len(self._seen.children(recursive=True)) if self._process.poll() is None else 0
        self._process.kill()
        self._process.wait()
        return many


def soak(wanted: argparse.Namespace, folder: Path) -> tuple[str, list[str]]:
    """Let the host work; give the table and what was wrong."""
    host = Host(wanted, folder)
    wrong: list[str] = []
    memory: list[tuple[float, float]] = []
    told: dict[str, dict] = {}
    try:
        while "kill me" not in told:
            said = host.said()
            told[said["event"]] = said
            strays = host.strays()
            if said["event"] == "closed":
                wrong += [f"outlived its owner: {stray}" for stray in strays]
            if said["event"] == "at work":
                memory.append((said["seconds"], host.memory_mb()))
                if len(memory) % 15 == 1:
                    say(
                        f"{said['seconds']:.0f} s: {said['cells']} cells, {said['opened']} sessions opened, "
                        f"{said['deaths']} deaths, {said['violations']} violations, host {memory[-1][1]:.0f} MB"
                    )
    except (TimeoutError, EOFError) as error:
        wrong.append(str(error))
    finally:
        left = host.kill()
    outlived = gone(host)
    wrong += [f"outlived a host that was killed: {one}" for one in outlived]
    if "closed" not in told:
        return "", wrong
    wrong += judged(told, memory)
    return text(wanted, told, memory, killed=left, outlived=outlived), wrong


def gone(host: Host, seconds: float = 20.0) -> list[str]:
    """Wait until nothing is left of a host that was killed; give what is."""
    end = time.monotonic() + seconds
    while (left := host.strays()) and time.monotonic() < end:
        time.sleep(0.2)
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    return left


def fifths(memory: list[tuple[float, float]]) -> list[float]:
    """Give the median of the host's memory in each fifth of the time."""
    last = memory[-1][0]
    parts = [[mb for at, mb in memory if last * part / 5 <= at <= last * (part + 1) / 5] for part in range(5)]
    return [statistics.median(one) if one else float("nan") for one in parts]


def judged(told: dict[str, dict], memory: list[tuple[float, float]]) -> list[str]:
    """Give what is wrong with what the host has said, and with its memory."""
    done, closed = told["done"], told["closed"]
    wrong = [f"{name}: {violation[:2000]}" for name, kind in done["kinds"].items() for violation in kind["violations"]]
    for what in ("descriptors", "threads", "processes", "files"):
        if done["after"][what] > done["before"][what]:
            wrong.append(f"leaked {what}: {done['before'][what]} before, {done['after'][what]} behind")
    if closed["processes"] or closed["left"]:
        wrong.append(f"behind the end of the pool: {closed['processes']} processes, files {closed['left']}")
    parts = fifths(memory)
    if not parts[4] - parts[1] <= GROWTH_MB:
        wrong.append(f"the host's memory grew from {parts[1]:.0f} to {parts[4]:.0f} MB")
    return wrong


def text(
    wanted: argparse.Namespace, told: dict[str, dict], memory: list[tuple[float, float]], *, killed: int, outlived: list
) -> str:
    """Write the tables."""
    done, worked = told["done"], told["at work"]["seconds"]
    kinds = sorted(done["kinds"].items(), key=lambda item: -item[1]["cells"])
    lines = [
        [
            name,
            str(one["cells"]),
            number(one["median"]),
            number(one["longest"]),
            number(one["beyond"]) if one["beyond"] > 0 else "within",
            str(len(one["violations"])),
        ]
        for name, one in kinds
    ]
    before, after, closed = done["before"], done["after"], told["closed"]
    counted = [
        [what, str(before[what]), str(after[what]), str(closed[what])]
        for what in ("descriptors", "threads", "processes", "files", "mb")
    ]
    parts = ", ".join(f"{fifth:.0f}" for fifth in fifths(memory))
    mixed = sum("MIXED" in text for kind in done["kinds"].values() for text in kind["violations"])
    return "\n\n".join(
        [
            f"{wanted.sessions} sessions at once, seed {wanted.seed}, {worked / 60:.1f} minutes, {done['cells']} cells "
            f"({done['cells'] / worked:.1f} a second); {done['opened']} sessions opened, {done['deaths']} deaths of "
            f"kernels, all told; {told['began']['sandbox']}",
            f"cells with output of others: {mixed}; a cell's bound: its time limit + 2 s for an interrupt + "
            f"{wanted.margin:g} s for a busy machine",
            table(
                [
                    "cells and calls of this kind, and those that look after them",
                    "cells",
                    "median s",
                    "longest s",
                    "most beyond its limit s",
                    "violations",
                ],
                lines,
            ),  # fmt: skip
            table(["the host has", "before, warm", "behind, all sessions closed", "pool closed"], counted),
            f"the host's memory, medians of fifths of the time: {parts} MB",
            f"kill -9 of the host with 4 sessions: {killed} processes were below it, {len(outlived)} outlived it",
        ]
    )


def machine() -> str:
    """Say what all this ran on."""
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    return (
        f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, {user}, "
        f"load before {os.getloadavg()[0]:.1f}, {datetime.datetime.now():%Y-%m-%d %H:%M}"
    )


def say(words: str) -> None:
    """Tell on standard error how it goes; the tables alone go to standard output."""
    print(words, file=sys.stderr, flush=True)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=64, help="at work at once (%(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="at most (%(default)s)")
    parser.add_argument("--cells", type=int, default=20_000, help="at most (%(default)s)")
    parser.add_argument("--seed", default=str(datetime.date.today()), help="of the faults (%(default)s)")
    parser.add_argument(
        "--margin", type=float, default=15, help="seconds that a busy machine adds to a bound (%(default)s)"
    )
    parser.add_argument("--machine", default=f"{platform.system()}-{platform.machine()}-{os.cpu_count()}-cores".lower())
    parser.add_argument("--keep", action="store_true", help="write results/soak-<date>-<machine>.md")
    parser.add_argument("--note", default="", help="what else is to be known about this run; kept with it")
    return parser.parse_args()


def main() -> int:
    """Work, print, keep; 1 if anything was wrong."""
    wanted = options()
    on = machine()
    with tempfile.TemporaryDirectory(prefix="tws", ignore_cleanup_errors=True) as folder:
        table, wrong = soak(wanted, Path(folder))
    said = [f"{on}{chr(10) if wanted.note else ''}{wanted.note}", table, f"wrong: {len(wrong)}", *wrong]
    words = "\n\n".join(one for one in said if one)
    print(words)
    if wanted.keep:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"soak-{datetime.date.today()}-{wanted.machine}.md"
        path.write_text(f"# Sessions at work with faults, {datetime.date.today()}\n\n```text\n{words}\n```\n")
        say(f"kept as {path}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
