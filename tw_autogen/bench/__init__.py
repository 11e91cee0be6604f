"""Benchmarks from outside: read from a folder of yours, asked one by one, graded as their authors published it."""

from tw_autogen.bench.dabench import read_dabench
from tw_autogen.bench.mathematics import read_math
from tw_autogen.bench.results import Result, Results
from tw_autogen.bench.run import run_bench
from tw_autogen.bench.summary import Score, Summary, summarize
from tw_autogen.bench.task import Task

__all__ = [
    "Result",
    "Results",
    "Score",
    "Summary",
    "Task",
    "read_dabench",
    "read_math",
    "run_bench",
    "summarize",
]
