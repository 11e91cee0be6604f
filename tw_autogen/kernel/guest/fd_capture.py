"""File descriptors 0 to 2: what commands and C code write is the cell's output; what code closes is opened again."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import threading
from collections.abc import Mapping
from typing import Any

_PIECE = 1 << 16
_MOST_PIECES = 16
"""How much is read behind a cell: a child that goes on writing must not keep the cell from ending."""


class _Pipe:
    """Stands for one descriptor; what is written to it goes to a stream."""

    def __init__(self, number: int, stream: Any) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.source, write = os.pipe()
        os.set_blocking(self.source, False)
        os.dup2(write, number)
        os.close(write)

    def read(self) -> bool:
        """Take what is there, up to a limit; tell whether there may be more."""
        try:
            piece = os.read(self.source, _PIECE)
        except BlockingIOError:
            return False
        if text := self._decode(piece):
            self._stream.write(text)
        return bool(piece)


class FdCapture:
    """Takes the place of ipykernel's threads that read descriptors 1 and 2.

    Those lose what is still under way when a cell ends, go on for ever copying all of it to a log, and end for good
    when code closes a descriptor or a copy fails.

    Args:
        streams: Number of a descriptor, and ipykernel's stream for it.
    """

    def __init__(self, streams: Mapping[int, Any]) -> None:
        watched = {number: one for number, one in streams.items() if getattr(one, "_should_watch", False)}
        self.numbers = tuple(watched)
        """Those that are read; others lead where they led before."""
        self._lock = threading.Lock()
        for number, stream in watched.items():
            _end_watching(number, stream)
        self._pipes = [_Pipe(number, stream) for number, stream in watched.items()]
        self._spare = {number: os.dup(number) for number in (0, *watched)} if watched else {}
        if watched:
            threading.Thread(target=self._read, name="tw-descriptors", daemon=True).start()

    def restore(self) -> None:
        """Open again what code has closed or led elsewhere."""
        for number, spare in self._spare.items():
            with contextlib.suppress(OSError):  # the code closed the spare one too
                if not _same(number, spare):
                    os.dup2(spare, number)

    def drain(self) -> None:
        """Take what was written before this moment."""
        with self._lock:
            for pipe in self._pipes:
                for _ in range(_MOST_PIECES):
                    if not pipe.read():
                        break

    def _read(self) -> None:
        poller = select.poll()
        for pipe in self._pipes:
            poller.register(pipe.source, select.POLLIN)
        with contextlib.suppress(OSError):  # the code closed them
            while all(not event & ~select.POLLIN for _, event in poller.poll()):
                with self._lock:
                    for pipe in self._pipes:
                        pipe.read()


def _end_watching(number: int, stream: Any) -> None:
    """End ipykernel's own thread, as its stream's `close` does."""
    stream._should_watch = False
    os.write(number, b"\0")
    stream.watch_fd_thread.join()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream._original_stdstream_copy)
    os.close(null)
    stream.fileno = lambda: number  # what code leads there is output as well


def _same(number: int, spare: int) -> bool:
    wanted = os.fstat(spare)
    try:
        return os.path.samestat(os.fstat(number), wanted)
    except OSError:
        return False
