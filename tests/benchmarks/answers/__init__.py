"""Benchmarks from outside: read from a folder of yours, asked one by one, graded as their authors published it."""

from tests.benchmarks.answers.dabench import read_dabench
from tests.benchmarks.answers.mathematics import read_math
from tests.benchmarks.answers.results import Result, Results
from tests.benchmarks.answers.run import run_bench
from tests.benchmarks.answers.summary import Score, Summary, summarize
from tests.benchmarks.answers.task import Task

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
