"""Work on a thread of its own: `threaded` starts it; `finish_within` ends it in time where it reads from a server.

`OpenedSockets` knows the sockets of such work where httpx does it.
"""

from __future__ import annotations

import contextlib
import contextvars
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

Result = TypeVar("Result")


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


def finish_within(seconds: float, work: Callable[[], Result], sockets: Callable[[], Sequence[socket.socket]]) -> Result:
    """Return what work returns that reads from a server, which may send a byte now and then and never end.

    Args:
        seconds: How long all of it may take.
        work: Done as by `threaded`.
        sockets: Returns those that it reads from so far; they are shut down when the time is over, which ends it.

    Raises:
        TimeoutError: the time is over.

    Example:
        >>> finish_within(10, lambda: 6 * 7, lambda: [])
        42
    """
    done = threaded(work, name="server call")
    try:
        return done.result(seconds)
    except FutureTimeout:
        if done.done():  # the work's own error
            raise
        raise TimeoutError(f"no whole answer within {seconds:g} s") from None
    finally:
        if not done.done():
            for one in sockets():
                with contextlib.suppress(OSError):  # closed meanwhile
                    one.shutdown(socket.SHUT_RDWR)


class OpenedSockets:
    """The sockets that a request of httpx opens.

    Duplicates are kept, since for TLS a socket is replaced by another one on the same connection.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._closed = False

    def trace(self, event: str, of_event: Mapping[str, Any]) -> None:
        """Take an event of httpcore; the request's extension `trace`.

        Args:
            event: Its name.
            of_event: What it says; of a connection that was opened, `return_value` is the stream.
        """
        if event == "connection.connect_tcp.complete":
            opened = of_event["return_value"].get_extra_info("socket")
            if self._closed:  # nobody waits any more
                opened.shutdown(socket.SHUT_RDWR)
            else:
                self._sockets.append(opened.dup())

    def all(self) -> Sequence[socket.socket]:
        """Return those that were opened so far; shutting one down ends its connection."""
        return tuple(self._sockets)

    def close(self) -> None:
        """Close the duplicates; the connections stay open."""
        self._closed = True
        for one in self._sockets:
            one.close()
