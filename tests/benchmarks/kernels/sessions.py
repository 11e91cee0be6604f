"""Measures one peer in its worker: the first result, the first table, cells, memory, many sessions at once."""

import functools
import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

DATA = """import pandas as pd
import numpy
import matplotlib.pyplot
frame = pd.DataFrame({"a": range(10), "b": range(10)})
int(frame.sum().sum())"""


def requests(peer):
    """Give what a worker answers, by name."""
    asked = (first, cells, memory, idle, at_once)
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


def idle(peer, sessions, seconds):
    """Have many sessions that do nothing behind `1+1`; give what they take, and how fast each answers afterwards.

    Returns:
        `mb` of PSS each, `start` and `answer` in seconds, each session's; `busy`, the seconds of processor time that
        all take in one second; `free_gb`, what the machine has left.
    """
    gc.collect()
    before = pss_mb(os.getpid())
    live, start, answer = [], [], []
    try:
        for _ in range(sessions):
            began = time.perf_counter()
            live.append(started(peer))
            live[-1].run("1+1")
            start.append(time.perf_counter() - began)
        pids = peer.pids()
        theirs, grown = sum(map(pss_mb, pids)), pss_mb(os.getpid()) - before
        free_gb = psutil.virtual_memory().available / 2**30
        used = sum(map(processor_seconds, pids))
        time.sleep(seconds)
        used = sum(map(processor_seconds, pids)) - used
        for one in live:
            began = time.perf_counter()
            assert one.run("1+1").strip() == "2"
            answer.append(time.perf_counter() - began)
    finally:
        for one in live:
            one.close()
    mb = (theirs + grown) / sessions
    return {"mb": mb, "start": start, "answer": answer, "busy": used / seconds, "free_gb": free_gb}


def processor_seconds(pid):
    """Give how long a process has computed; 0 if it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


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
    """Give a process's share of memory: pages that others have too are counted in part; 0 if it has just ended."""
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (ProcessLookupError, FileNotFoundError):
        return 0.0
    for line in rows:
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"the system tells no PSS of process {pid}")
