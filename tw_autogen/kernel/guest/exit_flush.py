"""Lets a process that ends itself first send what it has printed; it would be lost with its sockets."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from typing import Any

_SECONDS = 1.0
"""How long an end may take for that."""


def speak_before_exit(publisher: Any, crash_output: Callable[[], object]) -> None:
    """Stand before `os._exit` and `os.abort` in this process; forked ones, which have no sockets, end at once.

    A crash, or a signal that the process sends itself, leaves no time: what was flushed is kept by `CrashOutput`,
    what was not may be lost.

    Args:
        publisher: ipykernel's thread that sends output.
        crash_output: Writes to the streams what was not written yet.
    """
    process = os.getpid()

    def stand_before(end: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(end)
        def spoken(*args: Any, **kwargs: Any) -> Any:
            if os.getpid() == process:
                with contextlib.suppress(BaseException):  # the code may have broken anything, and wants to end
                    crash_output()
                    _send_all(publisher)
            return end(*args, **kwargs)

        return spoken

    os._exit, os.abort = stand_before(os._exit), stand_before(os.abort)


def _send_all(publisher: Any) -> None:
    """Close the socket of the thread that publishes, and wait until zmq has written what is still under way."""
    import zmq  # deferred: the host imports this package too, and its tests hold that it needs nothing for that

    socket = publisher.socket
    gone = socket.get_monitor_socket(zmq.EVENT_MONITOR_STOPPED)
    closed = threading.Event()

    def close() -> None:
        socket.close(linger=int(_SECONDS * 1000))
        closed.set()

    publisher.schedule(close)
    if closed.wait(_SECONDS):
        gone.poll(_SECONDS * 1000)
