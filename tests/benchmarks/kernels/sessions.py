"""Measures one peer in its worker: the first result, the first table, cells, memory, many sessions at once."""

import functools
import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DATA = """import pandas as pd
import numpy
import matplotlib.pyplot
frame = pd.DataFrame({"a": range(10), "b": range(10)})
int(frame.sum().sum())"""


def requests(peer):
    """Give what a worker answers, by name."""
    asked = (first, cells, memory, at_once)
    return {one.__name__: functools.partial(one, peer) for one in asked}


def first(peer, code, result):
    """Time a session from its construction to a cell's result; its end is not timed, nor what went before it."""
    peer.prepare()
    began = time.perf_counter()
    session = started(peer)
    try:
        said = session.run(DATA if code == "data" else code)
        seconds = time.perf_counter() - began
    finally:
        session.close()
    assert said.strip() == result, f"{result} was expected, {said!r} came"
    return {"seconds": [seconds]}


def cells(peer, seconds, most):
    """Time cells that do nothing, for some seconds, behind five that are not counted."""
    session = started(peer)
    times = []
    try:
        for _ in range(5):
            session.run("x = 1")
        end = time.perf_counter() + seconds
        while len(times) < most and (time.perf_counter() < end or len(times) < 3):
            began = time.perf_counter()
            session.run("x = 1")
            times.append(time.perf_counter() - began)
    finally:
        session.close()
    return {"seconds": times}


def memory(peer, sessions):
    """Give MB of PSS for each of many live sessions: theirs, what serves them, and what this process grew by."""
    gc.collect()
    before = pss_mb(os.getpid())
    live = []
    try:
        for _ in range(sessions):
            live.append(started(peer))
            live[-1].run(DATA)
        theirs = sum(map(pss_mb, peer.pids()))
        grown = pss_mb(os.getpid()) - before
    finally:
        for one in live:
            one.close()
    return {"mb": [(theirs + grown) / sessions]}


def at_once(peer, at_once, sessions, cells, seconds):
    """Start, use and close many sessions on some threads; give how many went well within the time."""
    done, failures = [], []
    peer.prepare()
    began = time.perf_counter()
    lock = threading.Lock()

    def use():
        try:
            session = started(peer)
            try:
                for number in range(cells):
                    assert session.run(f"{number} + 1").strip() == str(number + 1)
            finally:
                session.close()
            with lock:
                done.append(time.perf_counter() - began)
        except Exception as error:  # noqa: BLE001 - a peer may raise anything; it is counted and shown
            with lock:
                failures.append(f"{type(error).__name__}: {error}"[:200])

    with_threads = ThreadPoolExecutor(at_once)
    for _ in range(sessions):
        with_threads.submit(use)
    while len(done) + len(failures) < sessions and time.perf_counter() - began < seconds:
        time.sleep(0.005)
    with_threads.shutdown(wait=False, cancel_futures=True)
    with lock:
        return {
            "per_second": len(done) / max(done) if done else 0.0,
            "failed": list(failures),
            "hung": sessions - len(done) - len(failures),
        }


def started(peer):
    """Start a session."""
    session = peer()
    session.start()
    return session


def pss_mb(pid):
    """Give a process's share of memory: pages that others have too are counted in part."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"the system tells no PSS of process {pid}")
