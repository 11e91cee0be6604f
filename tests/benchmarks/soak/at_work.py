"""The host whose sessions are at work; a process of its own, which is looked at from outside. Tells JSON lines."""

import argparse
import faulthandler
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import psutil
from faults import FAULTS, drawn
from watched import SETTINGS, Tally, Unexpected, Watched

from tw_autogen.kernel import LocalKernel
from tw_autogen.kernel.pool import default_pool

_SETTLE_SECONDS = 60.0


def main():
    """Warm up, work, end; and wait with sessions open to be killed."""
    wanted = options()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    faulthandler.register(signal.SIGUSR1, all_threads=True)

    def tell(event, **fields):
        answers.write(json.dumps({"event": event, **fields}) + "\n")

    with LocalKernel(settings=SETTINGS) as kernel:
        kernel.execute("1", seconds=60)
        tell("began", sandbox=kernel.where.partition("pid ")[2].partition(", ")[2])
    work(wanted, Tally(), lambda *_, **__: None, sessions=min(8, wanted.sessions), minutes=5.0, cells=40 * 8)
    before = settled({})
    tell("warm", **before)
    tally = Tally()
    work(wanted, tally, tell, sessions=wanted.sessions, minutes=wanted.minutes, cells=wanted.cells)
    tell("done", **summary(tally), before=before, after=settled(before))
    default_pool().close()
    tell("closed", left=sorted(os.listdir(tempfile.gettempdir())), **census())
    to_be_killed(tell)


def work(wanted, tally, tell, *, sessions, minutes, cells):
    """Have sessions work on a thread each until time or cells are used up."""
    end, over = time.monotonic() + 60 * minutes, threading.Event()
    threads = [
        threading.Thread(target=sit, args=(Watched(number, seed=wanted.seed, tally=tally, margin=wanted.margin), over))
        for number in range(sessions)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(2.0)
        if time.monotonic() > end or tally.cells >= cells:
            over.set()
        wrong = sum(len(kind.violations) for kind in tally.kinds.values())
        tell("at work", seconds=time.monotonic() - began, cells=tally.cells, opened=tally.opened,
             deaths=tally.deaths, violations=wrong, kernels=sum(thread.is_alive() for thread in threads))  # fmt: skip


def sit(one, over):
    """Let one session work; one with which something was wrong is opened anew."""
    while not over.is_set():
        try:
            if one.kernel is None:
                one.kind = "opening"
                one.open()
            one.kind = drawn(one.random)
            FAULTS[one.kind][1](one)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted and shown
            said = str(error) if isinstance(error, Unexpected) else traceback.format_exc()
            one.tally.violation(one.kind, f"{one.name}: {said}")
            end(one)
    end(one)


def end(one):
    """Close a session."""
    one.kind = "close"
    try:
        one.close()
    except Exception as error:  # noqa: BLE001 - as above
        one.tally.violation(one.kind, f"{one.name}: {error!r}")


def settled(before):
    """Count what this process has, once no more of it goes away; no longer than a minute."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    default_pool().wait(SETTINGS)
    time.sleep(1.0)
    found = census()
    while time.monotonic() < deadline and any(found[what] > before.get(what, 0) for what in found if what != "mb"):
        time.sleep(0.5)
        newer = census()
        if not before and newer == found:
            break
        found = newer
    return found


def census():
    """Count what this process has: descriptors, threads, processes below it, entries of its temporary folder."""
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": psutil.Process().num_threads(),
        "processes": len(psutil.Process().children(recursive=True)),
        "files": len(os.listdir(tempfile.gettempdir())),
        "mb": psutil.Process().memory_info().rss >> 20,
    }


def summary(tally):
    """Give what cells came to, by kind."""
    return {
        "cells": tally.cells,
        "opened": tally.opened,
        "deaths": tally.deaths,
        "kinds": {
            name: {
                "cells": len(kind.seconds),
                "median": statistics.median(kind.seconds) if kind.seconds else 0.0,
                "longest": max(kind.seconds, default=0.0),
                "beyond": max(kind.beyond, default=0.0),
                "violations": kind.violations,
            }
            for name, kind in tally.kinds.items()
        },
    }


def to_be_killed(tell):
    """Open sessions with a process left behind in each, in folders that stay, and wait."""
    folder = Path(tempfile.mkdtemp(prefix="killed-"))
    kernels = [LocalKernel(folder / str(number), settings=SETTINGS) for number in range(4)]
    for kernel in kernels:
        kernel.execute(
            "import subprocess\nleft = subprocess.Popen(['sleep', '98765'], start_new_session=True)", seconds=60
        )
    tell("kill me", **census())
    threading.Event().wait()


def options():
    """Read what the one outside has chosen."""
    parser = argparse.ArgumentParser()
    for name, kind in (("sessions", int), ("minutes", float), ("cells", int), ("seed", str), ("margin", float)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
