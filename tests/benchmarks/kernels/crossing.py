"""Measures, in a worker of its own, tables that cross between host and kernel, and where a cell's time goes."""

import cProfile
import importlib.util
import pstats
import time
from pathlib import Path

import numpy as np
import pandas as pd

from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.pool import default_pool

ROWS = 1_000_000


def requests():
    """Give what a worker answers, by name."""
    return {"cross": cross, "about": about, "cell": cell, "start": start}


def about():
    """Tell what is installed."""
    return {"arrow": importlib.util.find_spec("pyarrow") is not None, "pandas": pd.__version__}


def frame(kind):
    """Make a table of 1e6 x 5: five columns of floats, or two of floats, one of integers and two of strings.

    Strings are of the dtype that pandas gives them, in `objects` they are Python objects, as up to pandas 2.
    """
    numbers = np.random.default_rng(7)
    if kind == "numeric":
        return pd.DataFrame(numbers.normal(size=(ROWS, 5)), columns=list("abcde"))
    words = np.array([f"word-{one}" for one in range(1000)], dtype=object)
    mixed = pd.DataFrame(
        {
            "a": numbers.normal(size=ROWS),
            "b": numbers.normal(size=ROWS),
            "c": numbers.integers(0, 1 << 40, size=ROWS),
            "d": words[numbers.integers(0, 1000, size=ROWS)],
            "e": words[numbers.integers(0, 1000, size=ROWS)],
        }
    )
    return mixed.astype({"d": object, "e": object}) if kind == "objects" else mixed


def cross(kind, times):
    """Time a memory copy of a table's bytes, `put` and `get`; a table that comes back otherwise is an error."""
    table = frame(kind)
    content = sum(_content_bytes(table[name]) for name in table)
    source, target = np.ones(content, np.uint8), np.ones(content, np.uint8)  # zeros would not be in memory yet
    taken = {"copy": [], "put": [], "get": []}
    with LocalKernel() as kernel:
        kernel.put("small", table.head(10))  # pandas is imported on both sides now
        for _ in range(times):
            began = time.perf_counter()
            np.copyto(target, source)
            copied = time.perf_counter()
            kernel.put("table", table)
            there = time.perf_counter()
            back = kernel.get("table")
            here = time.perf_counter()
            taken["copy"].append(copied - began)
            taken["put"].append(there - copied)
            taken["get"].append(here - there)
    pd.testing.assert_frame_equal(back, table, check_dtype=False)
    return {**taken, "mb": content / 1e6}


def _content_bytes(column):
    """Count the bytes of numbers, or of text as UTF-8."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy().nbytes
    return int(column.str.encode("utf-8").str.len().sum())


def start(sandbox, fork, times):
    """Time first results in one sandbox, of kernels that are forked or started cold; the first one isn't counted."""
    settings = KernelSettings(sandbox=sandbox, fork=fork, warm=0)
    if fork:
        assert default_pool().wait(settings, 60), "no fork server"
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        with LocalKernel(settings=settings) as kernel:
            assert kernel.execute("1+1", seconds=60).result == "2"
            taken.append(time.perf_counter() - began)
    return {"seconds": taken[1:]}


def cell(times):
    """Time cells that do nothing: the clock, this process's work, the kernel's, and our functions by their own time."""
    with LocalKernel() as kernel:

        def run(many):
            for _ in range(many):
                kernel.execute("x = 1", seconds=60)

        run(20)
        kernel.execute("import time as _time", seconds=60)
        kernel.execute("_began = _time.process_time()", seconds=60)
        began, ours = time.perf_counter(), time.process_time()
        run(times)
        clock, ours = time.perf_counter() - began, time.process_time() - ours
        theirs = float(kernel.execute("_time.process_time() - _began", seconds=60).result)
        profile = cProfile.Profile()
        profile.runcall(run, times)
    rows = [
        [f"{_place(where)}:{where[2]}", calls / times, own / times, total / times]
        for where, (_, calls, own, total, _) in pstats.Stats(profile).stats.items()
    ]
    rows.sort(key=lambda row: -row[2])
    return {"clock": clock / times, "host": ours / times, "kernel": theirs / times, "functions": rows}


def _place(where):
    path = Path(where[0])
    return where[0] if len(path.parts) < 2 else "/".join(path.parts[-2:])
