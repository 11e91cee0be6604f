"""Keeps what a cell has flushed where a crash does not reach it: in files that the host reads behind a death.

Sent messages lie with zmq for a moment, whose threads end with the process. Lost with a crash is what was not flushed,
what passed the limit of a cell, and what C code and commands wrote to a descriptor in that moment.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .exchange_folder import FOLDER, make_folder


def file_name(stream: str, token: str) -> str:
    """Return the name of a stream's file in the exchange; its first line is the request that the rest belongs to.

    Args:
        stream: `stdout` or `stderr`.
        token: As of `InsideExchange`.
    """
    return f"crash-output-{token}-{stream}"


class CrashOutput:
    """Writes down one stream's text, cell by cell.

    Args:
        stream: `stdout` or `stderr`.
        request: Gives the id of the request that is being answered.
    """

    def __init__(self, stream: str, request: Callable[[], str]) -> None:
        self._stream = stream
        self._token = ""
        self._request = request
        self._folder: Path | None = None
        self._process = os.getpid()
        self._begins = True
        self._file: int | None = None
        self._known: os.stat_result | None = None

    def begin_session(self, folder: Path | None, token: str) -> None:
        """Begin a session.

        Args:
            folder: Where it works; None: the host doesn't see it.
            token: As of `InsideExchange`.
        """
        if self._file is not None and self._is_ours(self._file):
            os.close(self._file)
        self._folder, self._token, self._file, self._begins = folder, token, None, True

    def begin_cell(self) -> None:
        """Forget the cell before."""
        self._begins = True

    def add(self, text: str) -> None:
        """Write down what was flushed."""
        if self._folder is None or os.getpid() != self._process:  # forked ones print as well
            return
        with contextlib.suppress(Exception):  # a disk that is full, a folder that is gone: the stream has it anyway
            file, head = self._file, self._begins
            if file is None or not self._is_ours(file):
                file = self._file = self._open(self._folder / FOLDER)
                head = head or not os.fstat(file).st_size
            if self._begins:
                os.ftruncate(file, 0)
            os.write(file, (f"{self._request()}\n{text}" if head else text).encode("utf-8", "replace"))
            self._begins = False

    def _open(self, folder: Path) -> int:
        """Open the file, to stay open: ext4 waits for the disk where one closes that was emptied."""
        make_folder(folder)
        file = os.open(folder / file_name(self._stream, self._token), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._known = os.fstat(file)
        return file

    def _is_ours(self, file: int) -> bool:
        """Return whether code has left the file open, put no other in its place, and not removed it."""
        try:
            found = os.fstat(file)
        except OSError:
            return False
        return self._known is not None and os.path.samestat(found, self._known) and found.st_nlink > 0


_SECONDS = 1.0
"""How long an end may take for that."""


def flush_before_exit(publisher: Any, crash_output: Callable[[], object]) -> None:
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
