"""Functions of this process that code in a kernel calls: each on a thread, none waited for without an end."""

from __future__ import annotations

import contextvars
import functools
import inspect
import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.guest.bounds import UNBOUNDED, Bounds, MemoryBudget, check_fields
from tw_autogen.kernel.guest.codec import TAG, Codec
from tw_autogen.kernel.guest.hash_time import check_hash_values
from tw_autogen.kernel.guest.json_size import MAX_BYTES, check_call_size, estimate_parsed_bytes
from tw_autogen.kernel.guest.remote_files import FILES, PIECE

_MAX_ERROR_CHARS = 20_000
_CALL = {"id": (int,), "name": (str,), "args": (list,), "kwargs": (dict,), "beside": (bool, type(None))}
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "call": _CALL,
    "submit": _CALL,
    "result": {"id": (int,), "ticket": (int,), "beside": (bool, type(None))},
    "done": {"id": (int,), "ticket": (int,)},
    FILES: {"id": (int,)},
}
"""What can be asked, with the fields of each and their types."""


class HostFunctions:
    """The functions that code in a kernel may call; no others can be reached.

    Args:
        max_bytes: How much memory the arguments of all calls at work may take together, tables included.
    """

    def __init__(self, max_bytes: int = UNBOUNDED) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._seconds: dict[str, float] = {}
        self._unnamed: set[str] = set()
        self._fixed: dict[str, Any] = {}
        self._arguments = MemoryBudget(max_bytes, "what host calls at work hold, with an argument")
        self._unpacking = threading.Lock()
        self.work = WorkAlive()

    def add(self, name: str, function: Callable[..., Any], seconds: float | None = None) -> None:
        """Serve a function under a name, each call for so long at most; a second one of that name takes its place.

        Args:
            name: The name in the kernel.
            function: Called in this process.
            seconds: How long one call may take; None: no limit.
        """
        self._functions[name] = function
        self._seconds[name] = float("inf") if seconds is None else seconds

    def add_unnamed(self, name: str, function: Callable[..., Any], seconds: float, *, refusal: Any = None) -> None:
        """Serve a function to our end of the bridge only; code in the kernel has no name for it.

        Args:
            name: The name for our end of the bridge.
            function: Called in this process.
            seconds: How long one call may take.
            refusal: What every call gets in place of the function's value, before its arguments are unpacked.
        """
        self.add(name, function, seconds)
        self._unnamed.add(name)
        if refusal is not None:
            self._fixed[name] = refusal

    def docs(self) -> dict[str, str]:
        """Return each name, and the docstring that code in the kernel sees."""
        named = {name: one for name, one in self._functions.items() if name not in self._unnamed}
        return {name: getattr(function, "__doc__", None) or "" for name, function in named.items()}

    def seconds(self, name: str) -> float:
        """Return how long a call of this function may take."""
        return self._seconds.get(name, float("inf"))

    def answer(self, asked: dict[str, Any], codec: Codec) -> str:
        """Call what a request names; return the answer, or what went wrong, as JSON.

        Args:
            asked: `id`, `name`, `args`, `kwargs`, whose types were checked; the arguments are taken out of it.
            codec: Unpacks the arguments and packs the result.
        """
        number, name = asked["id"], asked["name"]
        bounds = Bounds(codec.max_bytes, within=self._arguments)
        try:
            if name not in self._functions:
                raise LookupError(f"the host serves no function {name[:80]!r}")
            if name in self._fixed:
                return json.dumps({"id": number, "value": codec.pack(self._fixed[name])})
            function = self._functions[name]
            is_pairs = TAG in asked["kwargs"]  # else one of the names is that mark
            if not is_pairs:
                _check_arity(function, asked["args"], asked["kwargs"])  # before any of them is unpacked
            with self._unpacking:  # what is taken for a while only is taken by one call at a time
                args, kwargs = codec.unpack([asked.pop("args"), asked.pop("kwargs")], bounds)
                check_hash_values([args, kwargs])  # the function may make sets and dicts of them
            if is_pairs:
                _check_arity(function, args, kwargs)
            value = codec.pack(function(*args, **kwargs))
            return json.dumps({"id": number, "value": value})
        except BaseException as error:  # noqa: BLE001 - foreign code, and arguments that may be anything: the cell is told
            return failure(number, error)
        finally:
            bounds.memory.free_all()


def _check_arity(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    """Check that a function takes so many arguments of these names.

    Args:
        function: Is going to be called.
        args: A list of values, packed or not.
        kwargs: Values by name.

    Raises:
        TypeError: it doesn't.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions in C have none
        return
    signature.bind(*args, **kwargs)


def _checked_op(asked: Any) -> str:
    """Return what a request asks, whose fields have the types of that.

    Raises:
        ValueError: they don't, or nothing like it can be asked.
    """
    op = asked.get("op", "call") if isinstance(asked, dict) else None
    if not isinstance(op, str) or op not in _FIELDS:
        raise ValueError("a request to the host asks for a call, or for what became of one")
    check_fields(asked, _FIELDS[op], f"a request to {op!r}")
    return op


def failure(number: Any, error: BaseException) -> str:
    """Return the answer to a request that failed.

    Args:
        number: The request's number.
        error: What was raised.
    """
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - foreign classes may fail at this
        text = type(error).__name__
    return json.dumps({"id": number, "error": text[:_MAX_ERROR_CHARS]})


_OVER = "the cell that made this call was stopped or is over"
_MAX_SUBMITTED = 10_000


class WorkAlive:
    """What the calls of one kernel hold in this process until their threads end, whichever cell made them.

    A call that was given up goes on until its function returns, so it counts as long.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        self._requests = MemoryBudget(MAX_BYTES)

    def accept(self, size: int) -> None:
        """Count a request of so many bytes, once it is parsed.

        Raises:
            ValueError: with those of other calls it is too much.
        """
        try:
            self._requests.claim(size)
        except ValueError:
            raise ValueError(
                "too many calls are not done: with this one their arguments would take more than "
                f"{MAX_BYTES >> 20} MB of the host's memory; wait for results first, or pass less"
            ) from None

    def drop(self, size: int) -> None:
        """Count a request no longer."""
        self._requests.free(size)

    def begin(self, most: int) -> None:
        """Count a call whose thread begins.

        Args:
            most: How many may be alive at once.

        Raises:
            RuntimeError: so many are.
        """
        with self._lock:
            if self._threads >= most:
                raise RuntimeError(
                    f"{self._threads} earlier calls are still at work in the host, also those that no cell waits for "
                    "any more; no further one begins until one of them ends"
                )
            self._threads += 1

    def end(self) -> None:
        """Count a call no longer: its function returned."""
        with self._lock:
            self._threads -= 1

    def is_full(self, most: int) -> bool:
        """Return whether so many calls are alive."""
        return self._threads >= most


@dataclass
class _Job:
    """A call on its way.

    Args:
        number: The request's.
        name: The function.
        asked: The request.
        size: How many bytes it takes about.
        seconds: How long it may take once it has begun.
        aside: It was submitted: it runs beside the cell, and takes one of the turns.
        deadline: When it has taken too long, on the clock of `time.monotonic`; it begins to count when the call begins.
        came: JSON that its thread has left.
        answer: JSON for the cell: what came, or that it took too long, whichever was first.
    """

    number: int
    name: str
    asked: dict[str, Any]
    size: int
    seconds: float
    aside: bool
    deadline: float = float("inf")
    came: str | None = None
    answer: str | None = None


@dataclass
class _Waiting:
    """What the cell waits for: the answer to this request comes from this job; `beside` if it asked from a thread."""

    number: Any
    job: _Job
    beside: bool
    began: float = field(default_factory=time.monotonic)


class HostCalls:
    """The host calls of one running cell; but for `wake`, all of it happens in the thread that waits for the cell.

    Args:
        served: The functions.
        codec: Unpacks arguments and packs results.
        wake: Called from any thread when an answer may have come.
        threads: How many submitted calls run at once; the others wait their turn, which does not count as their time.

    The functions see the context variables of the thread that made this, each call its own copy. A call that the cell
    no longer waits for, because it was interrupted or took too long, goes on until it ends by itself; what it gives is
    dropped. It holds up no other, unless twice as many calls are alive as one cell can run: then a further one fails.
    """

    def __init__(
        self,
        served: HostFunctions,
        codec: Codec,
        wake: Callable[[], None],
        *,
        threads: int = 8,
        files: FileTransfer | None = None,
    ) -> None:
        self._served = served
        self._codec = codec
        self._wake = wake
        self._threads = threads
        self._max_alive = 2 * (threads + 1)
        self._files = files
        self._context = contextvars.copy_context()
        self._submitted: dict[Any, _Job] = {}
        self._queued: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._line: queue.SimpleQueue[Callable[[], None] | None] | None = None
        self._waiting: _Waiting | None = None
        self._unanswered: Any = None
        self._over = False
        self.begun = False
        self.spent_seconds = 0.0

    @property
    def waiting(self) -> bool:
        """Whether the cell waits for the host now."""
        return self._waiting is not None

    @property
    def waiting_beside(self) -> bool:
        """Whether another thread than the cell's own waits for the host now."""
        return self._waiting is not None and self._waiting.beside

    @property
    def deadline(self) -> float:
        """When `take` is to be asked at the latest, on the clock of `time.monotonic`."""
        return min((job.deadline for job in self._running), default=float("inf"))

    def ask(self, request: str) -> str | None:
        """Take a request of the cell's.

        Args:
            request: JSON with `id`, and `op`: `call` and `submit` with `name`, `args`, `kwargs`; `result` and `done`
                with `ticket`; all with `beside`, whether another thread than the cell's own asks.

        Returns:
            The answer, if there is one at once; else `take` gives it later.
        """
        number: Any = None
        try:
            check_call_size(request)
            asked = json.loads(request)
            number = asked["id"] if isinstance(asked, dict) and type(asked.get("id")) is int else None
            op = _checked_op(asked)
            self._abandon_waiting()
            if op == FILES and self._files is not None:
                return json.dumps({"id": number, "value": self._files.answer(asked)})
            if self._over:
                return failure(number, InterruptedError(_OVER))
            if op in ("call", "submit"):
                job = self._begin_job(asked, estimate_parsed_bytes(request), aside=op == "submit")
                if op == "submit":
                    return json.dumps({"id": number, "value": number})
            else:
                job = self._submitted[asked["ticket"]]
                if op == "done":
                    self._advance_jobs()
                    return json.dumps({"id": number, "value": job.answer is not None})
            self._waiting = _Waiting(number, job, bool(asked.get("beside")))
            return self.take()
        except KeyError as error:
            return failure(number, LookupError(f"this cell has submitted no call {error}; a ticket ends with its cell"))
        except Exception as error:  # noqa: BLE001 - the request is foreign and may be anything: the cell is told
            return failure(number, error)

    def take(self) -> str | None:
        """Return the answer that the cell waits for, if there is one or its time is over; start the next calls."""
        self._advance_jobs()
        waiting = self._waiting
        if waiting is None or waiting.job.answer is None:
            return None
        self._stop_waiting()
        text = waiting.job.answer
        if waiting.number != waiting.job.number:
            text = json.dumps({**json.loads(text), "id": waiting.number})
        if self._files is None or len(text) <= PIECE:
            return text
        return json.dumps({"id": waiting.number, "file": self._codec.leave(text)})

    def abandon(self) -> None:
        """Wait for nothing any more, and take nothing more; calls that have not begun don't begin."""
        self._over = True
        if self._waiting is not None:
            self._unanswered = self._waiting.number if self._waiting.beside else None
            self._stop_waiting()
        for job in self._queued:
            self._served.work.drop(job.size)
        self._queued.clear()
        self._running.clear()
        self._end_line()

    def refuse(self) -> str | None:
        """Return an answer, once, for a thread beside the cell whose call was abandoned.

        The cell's own thread is interrupted; another one would wait for ever, and all later calls behind it.
        """
        number, self._unanswered = self._unanswered, None
        return None if number is None else failure(number, InterruptedError(_OVER))

    def _abandon_waiting(self) -> None:
        """Stop waiting: the cell asks for one thing at a time, so with the next it has left the one before."""
        if self._waiting is not None and not self._waiting.job.aside:
            self._end_line()  # its thread is held up
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self.spent_seconds += time.monotonic() - self._waiting.began
            self._waiting = None

    def _begin_job(self, asked: dict[str, Any], size: int, *, aside: bool) -> _Job:
        job = _Job(asked["id"], asked["name"], asked, size, self._served.seconds(asked["name"]), aside)
        if aside and (len(self._submitted) >= _MAX_SUBMITTED or job.number in self._submitted):
            raise ValueError("too many calls were submitted; submit less in one cell")
        self._served.work.accept(size)
        self.begun = True
        if aside:
            self._submitted[job.number] = job
            self._queued.append(job)
            self._advance_jobs()
        else:
            self._start(job)
        return job

    def _advance_jobs(self) -> None:
        """Take what has come, give up what is late, and start what waits for a turn."""
        now = time.monotonic()
        for job in [one for one in self._running if one.came is not None or now >= one.deadline]:
            self._running.remove(job)
            late = TimeoutError(f"no answer within {job.seconds:g} s; ask for less, or split the work")
            job.answer = failure(job.number, late) if job.came is None else job.came
            if job.came is None and not job.aside:
                self._end_line()  # its thread is held up; the next call gets another one
        while self._queued and (begun := sum(one.aside for one in self._running)) < self._threads:
            if begun and self._served.work.is_full(self._max_alive):
                break  # one of those that have begun ends, or is late
            self._start(self._queued.popleft())

    def _start(self, job: _Job) -> None:
        """Begin a call: on a thread of its own if it runs beside the cell, else on the one that all others share."""
        try:
            self._served.work.begin(self._max_alive)
        except RuntimeError as error:
            self._served.work.drop(job.size)
            job.answer = failure(job.number, error)
            return
        job.deadline = time.monotonic() + job.seconds
        self._running.append(job)
        work = functools.partial(self._context.copy().run, self._run_job, job)
        try:
            if job.aside:
                threading.Thread(target=work, name=f"host call {job.name}", daemon=True).start()
            else:
                self._put_in_line(work)
        except RuntimeError as error:  # no further thread can be started
            self._end_work(job)
            self._running.remove(job)
            job.answer = failure(job.number, error)

    def _put_in_line(self, work: Callable[[], None]) -> None:
        if self._line is None:
            line: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
            threading.Thread(target=_one_by_one, args=(line,), name="host calls one by one", daemon=True).start()
            self._line = line
        self._line.put(work)

    def _run_job(self, job: _Job) -> None:
        came = None if self._over else self._served.answer(job.asked, self._codec)
        self._end_work(job)
        if came is not None:
            job.came = came
            self._wake()

    def _end_work(self, job: _Job) -> None:
        self._served.work.drop(job.size)
        self._served.work.end()

    def _end_line(self) -> None:
        """End the thread of ordinary calls after what it is doing."""
        if self._line is not None:
            self._line.put(None)
            self._line = None


def _one_by_one(line: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (work := line.get()) is not None:
        work()
