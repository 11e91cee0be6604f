"""Calls from code in a kernel to functions of this process: each on a thread, none waited for without an end."""

from __future__ import annotations

import contextvars
import functools
import json
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tw_autogen.kernel.file_desk import FileDesk
from tw_autogen.kernel.inside.codec import Codec
from tw_autogen.kernel.inside.remote import FILES, PIECE
from tw_autogen.kernel.served import Served, failure


@dataclass
class _Job:
    """A call on its way: `answer` is JSON once it is done, `deadline` on the clock of `time.monotonic`."""

    name: str
    seconds: float
    deadline: float
    answer: str | None = None


@dataclass
class _Waiting:
    """What the cell waits for: the answer to this request comes from this job."""

    number: Any
    job: _Job
    began: float = field(default_factory=time.monotonic)


class HostCalls:
    """The host calls of one running cell.

    Args:
        served: The functions.
        codec: Unpacks arguments and packs results.
        wake: Called from any thread when an answer may have come.
        threads: How many submitted calls run at once; the others wait their turn.
        files: Answers what is asked about files of the host's folder, where the kernel sees another one.

    The functions see the context variables of the thread that made this. A call that the cell no longer waits for,
    because it was interrupted or took too long, goes on until it ends by itself; what it gives is dropped.
    """

    def __init__(
        self,
        served: Served,
        codec: Codec,
        wake: Callable[[], None],
        *,
        threads: int = 8,
        files: FileDesk | None = None,
    ) -> None:
        self._served = served
        self._codec = codec
        self._wake = wake
        self._files = files
        self._turns = threading.Semaphore(threads)
        self._context = contextvars.copy_context()
        self._jobs: dict[int, _Job] = {}
        self._line: queue.SimpleQueue[Callable[[], None] | None] | None = None
        self._waiting: _Waiting | None = None
        self._over = threading.Event()
        self.spent_seconds = 0.0

    @property
    def waiting(self) -> bool:
        """Whether the cell waits for the host now."""
        return self._waiting is not None

    @property
    def deadline(self) -> float:
        """When the cell's waiting ends at the latest, on the clock of `time.monotonic`."""
        return self._waiting.job.deadline if self._waiting else float("inf")

    def ask(self, request: str) -> str | None:
        """Take a request of the cell's.

        Args:
            request: JSON with `id`, and `op`: `call` and `submit` with `name`, `args`, `kwargs`; `result` and `done`
                with `ticket`.

        Returns:
            The answer, if there is one at once; else `take` gives it later.
        """
        number: Any = None
        try:
            asked = json.loads(request)
            number, op = asked["id"], asked.get("op", "call")
            if op == FILES and self._files is not None:
                return json.dumps({"id": number, "value": self._files.answer(asked)})
            if op in ("call", "submit"):
                job = self._start(str(asked["name"]), request, aside=op == "submit")
                if op == "submit":
                    self._jobs[number] = job
                    return json.dumps({"id": number, "value": number})
            else:
                job = self._jobs[asked["ticket"]]
                if op == "done":
                    return json.dumps({"id": number, "value": job.answer is not None})
            self._waiting = _Waiting(number, job)
            return self.take()
        except KeyError as error:
            return failure(number, LookupError(f"this cell has submitted no call {error}; a ticket ends with its cell"))
        except Exception as error:  # noqa: BLE001 - the request is foreign and may be anything: the cell is told
            return failure(number, error)

    def take(self) -> str | None:
        """Give the answer that the cell waits for, if it has come or its time is over."""
        waiting = self._waiting
        if waiting is None:
            return None
        job = waiting.job
        answer = job.answer
        if answer is None and time.monotonic() < job.deadline:
            return None
        self._waiting = None
        self.spent_seconds += time.monotonic() - waiting.began
        if answer is None:
            self._end_line()  # its thread is held up; the next call gets another one
            late = TimeoutError(f"no answer within {job.seconds:g} s; ask for less, or split the work")
            return failure(waiting.number, late)
        text = json.dumps({**json.loads(answer), "id": waiting.number})
        if self._files is None or len(text) <= PIECE:
            return text
        return json.dumps({"id": waiting.number, "file": self._codec.leave(text)})

    def abandon(self) -> None:
        """Wait for nothing any more; calls that have not begun don't begin."""
        self._over.set()
        self._waiting = None
        self._end_line()

    def _end_line(self) -> None:
        """Let the thread of ordinary calls end behind what it is doing."""
        if self._line is not None:
            self._line.put(None)
            self._line = None

    def _start(self, name: str, request: str, *, aside: bool) -> _Job:
        """Begin a call: on a thread of its own if it runs beside the cell, else on the one that all others share."""
        seconds = self._served.seconds(name)
        job = _Job(name, seconds, time.monotonic() + seconds)

        def work() -> None:
            with self._turns:
                if not self._over.is_set():
                    job.answer = self._served.answer(request, self._codec)
            self._wake()

        if aside:
            self._thread(name, work)
        else:
            if self._line is None:
                line = self._line = queue.SimpleQueue()
                self._thread("one by one", functools.partial(_one_by_one, line))
            self._line.put(work)
        return job

    def _thread(self, name: str, work: Callable[[], None]) -> None:
        run = self._context.copy().run
        threading.Thread(target=run, args=(work,), name=f"host call {name}", daemon=True).start()


def _one_by_one(line: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (work := line.get()) is not None:
        work()
