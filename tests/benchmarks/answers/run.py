"""Asks the questions of a benchmark, each in a fresh session, several at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Lock

from tests.benchmarks.answers.results import Result, Results
from tests.benchmarks.answers.task import Task
from tw_autogen.errors import ModelError, ModelUnreadable, RoundError
from tw_autogen.session import Session

_MAX_IN_VAIN = 3


def run_bench(
    tasks: Sequence[Task],
    open_one: Callable[[], Session],
    results: Results,
    *,
    jobs: int = 1,
    on_result: Callable[[Result], None] | None = None,
) -> None:
    """Ask every question that has no result yet.

    Args:
        tasks: What to ask.
        open_one: Opens a fresh session; called once for each question, from several threads.
        results: Where results are kept, and where those of an earlier run are.
        jobs: How many questions are worked on at once.
        on_result: Called with each new result, from several threads.

    Raises:
        ModelError: three questions one after the other could not be asked at all; what is known by then is kept.
        KeyboardInterrupt: the user's; rounds are stopped, what is known by then is kept.
        ConfigError: a session can't be opened.
    """
    left = [task for task in tasks if results.get(task.id) is None]
    work = _Work(open_one, results, on_result)
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="bench") as pool:
        futures = [pool.submit(work.do, one) for one in left]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            work.stop()
            for future in futures:
                future.cancel()
            raise


class _Work:
    """What the threads share."""

    def __init__(
        self, open_one: Callable[[], Session], results: Results, on_result: Callable[[Result], None] | None
    ) -> None:
        self._open_one = open_one
        self._results = results
        self._on_result = on_result
        self._lock = Lock()
        self._open: set[Session] = set()
        self._stopped = False
        self._in_vain = 0

    def stop(self) -> None:
        """End the rounds that are running, and begin no other."""
        with self._lock:
            self._stopped = True
            running = list(self._open)
        for session in running:
            session.interrupt()

    def do(self, task: Task) -> None:
        """Ask one question and keep its result; nothing once the work was stopped."""
        if self._stopped:
            return
        try:
            with self._open_one() as session:
                if self._stopped:
                    return
                result, failure = self._ask(task, session)
        except BaseException:
            self.stop()  # at once: the next question would begin before anybody else could say so
            raise
        with self._lock:
            if self._stopped:  # a round that was stopped is no result
                return
            self._in_vain = 0 if failure is None else self._in_vain + 1
            tired = self._in_vain >= _MAX_IN_VAIN
        self._results.add(result)
        if self._on_result:
            self._on_result(result)
        if failure and tired:
            self.stop()
            raise failure

    def _ask(self, task: Task, session: Session) -> tuple[Result, ModelError | None]:
        with self._lock:
            self._open.add(session)
        try:
            return _ask(task, session)
        finally:
            with self._lock:
                self._open.discard(session)


def _ask(task: Task, session: Session) -> tuple[Result, ModelError | None]:
    """Ask one question; and give the reason why the model could not be asked, if that is so."""
    started = time.monotonic()
    text, stop, error, failure = "", "", "", None
    try:
        answer = session.ask(task.request, task.files)
        text, stop = answer.text, answer.stop
    except RoundError as round_error:
        error, cause = str(round_error), round_error.__cause__
        failure = cause if isinstance(cause, ModelError) and not isinstance(cause, ModelUnreadable) else None
    seconds = round(time.monotonic() - started, 3)
    usage = session.usage.to_dict()
    return Result(task.id, text, dict(task.grade(text)), stop, error, failure is None, seconds, usage), failure
