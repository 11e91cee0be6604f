"""Captures what a cell prints, and what commands and C code write to descriptors 1 and 2, within limits."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .crash_output import CrashOutput

MARK_CHARS = 60
"""How much longer than its limit a text may get by the mark; who clips it again leaves room for that."""

_FLUSH_SECONDS, _FLUSH_SHARE = 0.05, 0.1
"""How much of a cell's time may go into flushing: so much at once, and this part of the rest."""
_MAX_PRINTS = 1000
"""Of how many prints in one cell it is noted where they end."""


class ClippedBuffer:
    r"""Text that grows without taking more room than its limit.

    Args:
        limit: How many characters are kept; two thirds of them from the head.

    Example:
        >>> text = ClippedBuffer(6)
        >>> for piece in ("abc", "defgh", "ij"):
        ...     _ = text.add(piece)
        >>> text.text()
        'abcd\n[... 4 characters left out ...]\nij'
    """

    def __init__(self, limit: int) -> None:
        self._head_room = limit * 2 // 3
        self._tail_room = limit - self._head_room
        self._head: list[str] = []
        self._tail: list[str] = []
        self._held = 0
        self._lost = 0

    def add(self, text: str) -> str:
        """Take more text; give the part of it that went into the head."""
        first = ""
        if self._head_room:
            first, text = text[: self._head_room], text[self._head_room :]
            self._head.append(first)
            self._head_room -= len(first)
        if text:
            self._tail.append(text)
            self._held += len(text)
            if self._held > 2 * self._tail_room:  # not each time: it takes as long as the tail is
                self._trim()
        return first

    def _trim(self) -> None:
        tail = "".join(self._tail)
        over = max(0, len(tail) - self._tail_room)
        self._tail, self._held = [tail[over:]], len(tail) - over
        self._lost += over

    def tail(self) -> str:
        """Return what follows the head: the mark, where something is missing, and the tail."""
        self._trim()
        return f"\n[... {self._lost} characters left out ...]\n{self._tail[0]}" if self._lost else self._tail[0]

    def text(self) -> str:
        """Return all that was kept."""
        return "".join(self._head) + self.tail()


def clip(text: str, limit: int) -> str:
    """Cut one text to a limit.

    Args:
        text: Any text.
        limit: How many characters may stay.
    """
    kept = ClippedBuffer(limit)
    kept.add(text)
    return kept.text()


class LimitedStream:
    """Stands before a stream's `write`: one cell's head passes at once, the tail when the cell ends.

    So 100 MB of prints neither cross the wire nor fill anybody's memory. What threads write between two cells waits for
    the next one.

    Args:
        stream: The stream.
        crash_output: Keeps what is flushed for the case of a crash.
    """

    def __init__(self, stream: Any, crash_output: CrashOutput) -> None:
        self._stream = stream
        self._crash_output = crash_output
        self._unsaid: list[str] = []
        self._write: Callable[[str], int | None] = stream.write
        self._flush: Callable[[], None] = stream.flush
        self._dirty = False
        self.spoke = False
        """Whether something was sent since the cell began."""
        self.print_ends: list[int] = []
        """Where prints have ended since the cell began, in characters: `print` writes its line break for itself."""
        self._written = 0
        self._flushed = self._began = 0.0
        self._limit = 0
        self._descriptor: int | None = None
        self._kept = ClippedBuffer(0)
        self._between = True
        self._mute = 0
        self._lock = threading.RLock()  # a signal handler that prints may come in between
        self._install()

    def begin_session(self, limit: int) -> None:
        """Begin a session, whose cells may write so much each; what was written before is dropped."""
        with self._lock:
            self._limit, self._kept = limit, ClippedBuffer(limit)

    def redirect_to(self, descriptor: int) -> None:
        """Go on in a process that was just forked: what it says goes line by line to its parent, which reads there.

        ipykernel would send it on a way of its own, on which it comes when it comes, behind the cell's reply too.
        """
        self._lock = threading.RLock()  # a thread that is not here any more may hold the other one
        self._descriptor, self._unsaid = descriptor, []

    def _write_to_descriptor(self) -> None:
        said, self._unsaid = "".join(self._unsaid).encode(), []
        with contextlib.suppress(OSError):  # the process has closed it: nobody is to hear
            while said and self._descriptor is not None:
                said = said[os.write(self._descriptor, said) :]

    def _install(self) -> None:
        self._stream.write = self.write
        self._stream.flush = self.flush
        self._stream.close = lambda: None  # the next cell prints too

    def write(self, text: str) -> int:
        """Take text as a stream does; give its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._mute == threading.get_ident():
            return len(text)
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair can't be sent
        with self._lock:
            if self._descriptor is not None:
                self._unsaid.append(text)
                if "\n" in text:
                    self._write_to_descriptor()
                return len(text)
            self._written += len(text)
            if text == "\n" and len(self.print_ends) < _MAX_PRINTS:
                self.print_ends.append(self._written)
            head = self._kept.add(text)
            if head and not self._between:
                self._dirty = self.spoke = True
                self._unsaid.append(head)
                self._write(head)
        return len(text)

    def flush(self) -> None:
        """Send what was written, if anything was and flushing has not taken long already.

        The stream's own flush waits for another thread each time; what is not flushed goes out by itself soon after.
        """
        with self._lock:
            if self._descriptor is not None:
                self._write_to_descriptor()
                return
            said, self._unsaid = "".join(self._unsaid), []
            if said:
                self._crash_output.add(said)
        now = time.monotonic()
        if self._dirty and self._flushed <= _FLUSH_SECONDS + _FLUSH_SHARE * (now - self._began):
            self._dirty = False
            self._flush()
            self._flushed += time.monotonic() - now

    def begin_cell(self) -> None:
        """Start a cell, with what was written since the one before."""
        self._install()
        with self._lock:
            late, self._kept = self._kept.text(), ClippedBuffer(self._limit)
            self._between = self.spoke = False
            self._unsaid, self.print_ends, self._written = [], [], 0
            self._crash_output.begin_cell()
            self._began, self._flushed = time.monotonic(), 0.0
            if late:
                self.write(late)

    def text(self) -> str:
        """Return what was kept of the running cell's output."""
        with self._lock:
            return self._kept.text()

    def end_cell(self) -> None:
        """Write the tail; the next flush is one, whatever went before."""
        self._install()
        with self._lock:
            tail, self._kept = self._kept.tail(), ClippedBuffer(self._limit)
            self._between = True
            self._began, self._flushed = time.monotonic(), 0.0
            if tail:
                self._dirty = self.spoke = True
                self._write(tail)

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Drop what this thread writes meanwhile."""
        self._mute = threading.get_ident()
        try:
            yield
        finally:
            self._mute = 0


_PIECE = 1 << 16
_MAX_PIECES = 16
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

    def repair(self) -> None:
        """Open again what code has closed or led elsewhere."""
        for number, spare in self._spare.items():
            with contextlib.suppress(OSError):  # the code closed the spare one too
                if not _is_same_file(number, spare):
                    os.dup2(spare, number)

    def drain(self) -> None:
        """Take what was written before this moment."""
        with self._lock:
            for pipe in self._pipes:
                for _ in range(_MAX_PIECES):
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


def _is_same_file(number: int, spare: int) -> bool:
    wanted = os.fstat(spare)
    try:
        return os.path.samestat(os.fstat(number), wanted)
    except OSError:
        return False
