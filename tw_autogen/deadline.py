"""`finish_within`: work that reads from a server ends in time, also where a byte comes now and then."""

from __future__ import annotations

import contextlib
import contextvars
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

Result = TypeVar("Result")


def finish_within(seconds: float, work: Callable[[], Result], sockets: Callable[[], Sequence[socket.socket]]) -> Result:
    """Return what work returns that reads from a server, which may send a byte now and then and never end.

    Args:
        seconds: How long all of it may take.
        work: Done on a thread of its own, in a copy of this thread's context variables.
        sockets: Returns those that it reads from so far; they are shut down when the time is over, which ends it.

    Raises:
        TimeoutError: the time is over.

    Example:
        >>> finish_within(10, lambda: 6 * 7, lambda: [])
        42
    """
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="server call", daemon=True).start()
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
