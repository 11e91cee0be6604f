"""Compares `LocalKernel` with what else runs a model's code; `python tests/benchmarks/kernels --help` tells more."""

from __future__ import annotations

import argparse
import compileall
import datetime
import itertools
import os
import platform
import random
import re
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from compare import Comparison, rows
from host import REPOSITORY, Worker, WorkerFailed
from many import many_sessions
from sandboxes import sandboxes
from session import OURS
from statistic import number, shown, table

RESULTS = Path(__file__).parents[1] / "results"
PACKAGES = ("autogen", "autogen-ext", "smolagents", "jupyter_client", "ipykernel", "pandas", "numpy")
PARTS = ("peers", "sandboxes", "many", "tables", "cell")
LEVELS = "off,landlock,namespaces,bubblewrap"


def say(text: str) -> None:
    """Tell on standard error what runs; the table alone goes to standard output."""
    print(text, file=sys.stderr, flush=True)


def compile_all(pythons: list[str]) -> None:
    """See to it that compiled files exist; without them starts take two to four times as long."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for python in pythons:
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        libraries = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(
            [python, "-m", "compileall", "-qq", libraries], env=environment, check=False
        )  # some are Python 2
    compileall.compile_dir(REPOSITORY / "tw_autogen", quiet=2)


def machine() -> str:
    """Say what all this was measured on."""
    cpu = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists() and (name := re.search(r"model name\s*: (.*)", info.read_text())):
        cpu = name[1]
    installed = []
    for package in PACKAGES:
        try:
            installed.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            installed.append(f"no {package}")
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    when = f"{datetime.datetime.now():%Y-%m-%d %H:%M}, load {os.getloadavg()[0]:.1f}"
    return f"{when}\n{cpu}, {os.cpu_count()} cores, {system}\n{', '.join(installed)}"


def tables(pythons: list[str], times: int) -> str:
    """Measure tables that cross, with and without pyarrow."""
    taken: dict[tuple[str, str], dict[str, list[float]]] = {}
    said = []
    for _ in range(times):
        jobs = list(itertools.product(pythons, ("numeric", "mixed", "objects")))
        random.shuffle(jobs)
        for python, kind in jobs:
            say(f"tables: {kind}, {python}")
            try:
                with Worker("", python) as worker:
                    with_arrow = "pyarrow" if worker.ask("about")["arrow"] else "no pyarrow"
                    answer = worker.ask("cross", kind=kind, times=1, patience=300)
            except WorkerFailed as error:
                said.append(f"{python}, {kind}: {error}")
                continue
            size = f"{kind}, {answer.pop('mb'):.0f} MB"
            kept = taken.setdefault((size, with_arrow), {"copy": [], "put": [], "get": []})
            for way, seconds in answer.items():
                kept[way] += seconds
    lines = [
        [
            *where,
            shown(one["copy"], scale=1000),
            *(shown(one[way], base=one["copy"], scale=1000) for way in ("put", "get")),
        ]
        for where, one in sorted(taken.items())
    ]
    head = ["table of 1e6 x 5", "with", "copy in memory ms", "put: host to kernel ms", "get: kernel to host ms"]
    return "\n".join([table(head, lines), *said])


def cell(times: int) -> str:
    """Measure where a trivial cell's time goes."""
    say("cell")
    with Worker("") as worker:
        runs = [worker.ask("cell", times=times, patience=300) for _ in range(3)]
    middle = {key: statistics.median(run[key] for run in runs) * 1000 for key in ("clock", "host", "kernel")}
    rows = [
        [function[0], number(function[1]), *(f"{part * 1e6:.0f}" for part in function[2:])]
        for function in runs[-1]["functions"][:25]
    ]
    return (
        f"a cell `x = 1`: {middle['clock']:.2f} ms by the clock; work of the host {middle['host']:.2f}, "
        f"of the kernel {middle['kernel']:.2f} ms. The host under cProfile, which slows it:\n"
        + table(["function", "calls a cell", "own us", "with what it calls us"], rows)
    )


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="of %(default)s")
    parser.add_argument("--rows", type=rows, default=rows(""), help="parts of the names of peers, with commas")
    parser.add_argument("--rounds", type=int, default=5, help="each in a random order (%(default)s)")
    parser.add_argument("--sessions", type=int, default=3, help="timed in a round (%(default)s)")
    parser.add_argument("--live", type=int, default=50, help="whose memory is measured, once (%(default)s)")
    parser.add_argument("--many-rows", type=rows, default=[OURS], help="of which idle sessions are measured")
    parser.add_argument("--idle", type=int, default=200, help="sessions that do nothing, of these (%(default)s)")
    parser.add_argument("--at-once", type=int, default=16, help="on as many threads (%(default)s)")
    parser.add_argument(
        "--levels",
        type=lambda text: text.split(","),
        default=LEVELS.split(","),
        help=f"sandboxes to compare ({LEVELS})",
    )
    parser.add_argument("--patience", type=float, default=90, help="seconds until those at once count as hung")
    parser.add_argument("--arrow", type=Path, help="another Python, which has pyarrow")
    kind = f"{platform.system()}-{platform.machine()}-{os.cpu_count()}-cores".lower()
    parser.add_argument("--machine", default=kind, help="its name in the kept file's (%(default)s)")
    parser.add_argument(
        "--keep", action="store_true", help=f"write {RESULTS.relative_to(REPOSITORY)}/<date>-<machine>.md"
    )
    return parser.parse_args()


def main() -> None:
    """Measure, print, keep."""
    wanted = options()
    pythons = [sys.executable, *([str(wanted.arrow.absolute())] if wanted.arrow else [])]
    compile_all(pythons)
    said = [machine()]
    if "peers" in wanted.parts:
        comparison = Comparison(wanted, say)
        comparison.run()
        many = f"rounds: {wanted.rounds}; in each: {wanted.sessions} sessions timed, {2 * wanted.at_once} used at once"
        said.append(f"{many}\n{comparison.text()}")
    if "sandboxes" in wanted.parts:
        said.append(sandboxes(wanted.levels, rounds=wanted.rounds, times=wanted.sessions, say=say))
    if "many" in wanted.parts:
        said.append(many_sessions(wanted.many_rows, idle=wanted.idle, say=say))
    if "tables" in wanted.parts:
        said.append(tables(pythons, wanted.rounds))
    if "cell" in wanted.parts:
        said.append(cell(300))
    said.append(f"load at the end: {' '.join(f'{one:.1f}' for one in os.getloadavg())}")
    text = "\n\n".join(said)
    print(text)
    if wanted.keep:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{datetime.date.today()}-{wanted.machine}.md"
        path.write_text(f"# Kernels compared, {datetime.date.today()}\n\n```text\n{text}\n```\n")
        say(f"kept as {path}")


if __name__ == "__main__":
    main()
