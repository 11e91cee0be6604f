"""Work on a thread of its own (`threaded`), and reading from a server that ends in time, however slowly bytes come.

`finish_within` is for work of any kind, `parts_within` for the parts of an answer that has begun, `unless_given_up` for
work that waits for a person.
"""

from __future__ import annotations

import contextvars
import math
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from tw_autogen.closing import value_set
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    import asyncio
    import ctypes
else:
    asyncio = LazyModule("asyncio")  # takes 10 ms, and only `awaited_thread` needs it
    ctypes = LazyModule("ctypes")  # only work that is given up needs it

Result = TypeVar("Result")

_POLL_SECONDS = 0.1
_LAST_SECONDS = 1.0
_GIVEN_UP: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("given_up", default=None)


class TracedSockets:
    """The sockets of a client of httpx that sends one request at a time; its requests take this as extension `trace`.

    A connection that is kept was opened by an earlier request, so this belongs to the client, not to one request.
    """

    def __init__(self) -> None:
        self.ended = False
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()

    def __call__(self, event: str, details: Mapping[str, Any]) -> None:
        """Take an event of a request.

        Args:
            event: Its name; with a proxy, `connection` is another word.
            details: What it is about.
        """
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):  # TLS takes over from the socket below it
            opened = details["return_value"].get_extra_info("socket")
            with self._lock:
                self._open = [*(one for one in self._open if one.fileno() >= 0), opened]
            if self.ended:
                shut_down_socket(opened)

    def end(self) -> None:
        """Shut down those that are open, which ends the request, and any that it opens later."""
        with self._lock:
            self.ended = True
        for one in self._open:
            shut_down_socket(one)


def shut_down_socket(opened: socket.socket) -> None:
    """Shut down a socket that another thread uses, also one of TLS; do nothing if it is closed.

    Example:
        >>> here, there = socket.socketpair()
        >>> shut_down_socket(here), here.recv(1)
        (None, b'')
        >>> here.close(), there.close()
        (None, None)
    """
    with suppress(OSError):  # closed meanwhile
        # That of TLS forgets its keys first: its reader would take the rest for plain bytes.
        socket.socket.shutdown(opened, socket.SHUT_RDWR)


def threaded(work: Callable[[], Result], *, name: str) -> Future[Result]:
    """Do work on a daemon thread of its own, in a copy of this thread's context variables; return its future.

    Args:
        work: What to do; whatever it raises is raised by the future.
        name: The thread's.
    """
    done: Future[Result] = Future()
    done.set_running_or_notify_cancel()  # only the work settles it

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - not swallowed: raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name=name, daemon=True).start()
    return done


def awaited_thread(work: Callable[[], Result], *, name: str) -> asyncio.Future[Result]:
    """Do work as `threaded` does; return a future of the running loop, of which cancelling ends the waiting alone.

    The loop's own pool is not used: rounds that take minutes would take all its threads, and agents that wait for
    agents would wait for ever.

    Args:
        work: As for `threaded`.
        name: The thread's.
    """

    def run() -> Result:
        try:
            return work()
        except StopIteration as error:  # a coroutine that awaits can't be given one, and would wait for ever
            raise RuntimeError(f"{name}: StopIteration was raised: {error}") from error

    return asyncio.wrap_future(threaded(run, name=name))


def until_given_up(given_up: threading.Event) -> AbstractContextManager[None]:
    """Hand `unless_given_up` in this block, also in threads and tasks that begin in it, the event that ends its work.

    Args:
        given_up: Set, from any thread, when nobody waits for the result any more.
    """
    return value_set(_GIVEN_UP, given_up)


def unless_given_up(work: Callable[[], Result], *, otherwise: Result, name: str) -> Result:
    """Return what work returns that may wait for ever; `otherwise` once the event of `until_given_up` is set.

    On the main thread the work is simply done: Ctrl-C interrupts it there. From any other thread it is done as by
    `threaded`, and interrupted in the same way, by a KeyboardInterrupt, as soon as it runs Python code again.

    Args:
        work: What to do; whatever it raises before is raised here.
        otherwise: The result of work that was given up.
        name: The thread's.

    Example:
        >>> unless_given_up(lambda: 6 * 7, otherwise=0, name="work")
        42
    """
    given_up = _GIVEN_UP.get()
    if given_up is None or threading.current_thread() is threading.main_thread():
        return work()
    idents: list[int] = []
    at_work = threading.Lock()

    def run() -> Result:
        idents.append(threading.get_ident())
        _GIVEN_UP.set(None)  # what asks in turn is done on this thread, which is interrupted
        try:
            return work()
        finally:
            with at_work:  # another thread may get this one's number as soon as it has ended
                idents.clear()

    done = threaded(run, name=name)
    while not wait([done], _POLL_SECONDS).done:
        if given_up.is_set():
            with at_work:
                for ident in idents:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt)
                    )
            wait([done], _LAST_SECONDS)
            return otherwise
    return done.result()


def finish_within(seconds: float, work: Callable[[], Result], end: Callable[[], None]) -> Result:
    """Return what work returns that reads from a server, which may send a byte now and then and never end.

    Args:
        seconds: How long all of it may take.
        work: Done as by `threaded`.
        end: Called when the time is over; ends the work, as by shutting down the sockets that it reads from.

    Raises:
        TimeoutError: the time is over.

    Example:
        >>> finish_within(10, lambda: 6 * 7, lambda: None)
        42
    """
    done = threaded(work, name="server call")
    try:
        wait([done], seconds)
    finally:
        late = not done.done()  # what comes after this is lost, and its sockets are not used again
        if late:
            end()
    if late:
        raise TimeoutError(f"no whole answer within {seconds:g} s")
    return done.result()


def parts_within(
    seconds: float,
    parts: Iterable[Result],
    end: Callable[[], None],
    *,
    each: bool = False,
    abandoned: threading.Event | None = None,
) -> Generator[Result, None, None]:
    """Yield the parts of an answer, read in this thread; close this when no more are wanted.

    Args:
        seconds: How long they may take together.
        parts: Reads the next one from a server, which may send a byte now and then that makes no whole one.
        end: Called on another thread when the time is over; ends the reading.
        each: The time is that of each part, without what is done with it.
        abandoned: Once set, the time is over.

    Raises:
        TimeoutError: the time is over; and whatever the reading raises in time.

    Example:
        >>> list(parts_within(10, ["a", "b"], lambda: None))
        ['a', 'b']
    """
    done, late = threading.Event(), threading.Event()
    due = time.monotonic() + seconds

    def watch() -> None:
        while not done.wait(_POLL_SECONDS):
            if time.monotonic() > due or (abandoned and abandoned.is_set()):
                late.set()
                end()
                return

    threaded(watch, name="server watch")
    reading, last = iter(parts), object()
    try:
        while True:
            try:
                part = next(reading, last)
            except Exception as error:  # of any client's; raised on, unless it comes of the end that was made here
                if late.is_set():
                    raise TimeoutError("its answer did not end in time") from error
                raise
            if late.is_set():  # also where the end of the connection is the end of the answer
                raise TimeoutError("its answer did not end in time")
            if part is last:
                return
            due = math.inf if each else due
            yield part  # type: ignore[misc]  # `last` is none
            due = time.monotonic() + seconds if each else due
    finally:
        done.set()
