"""The journal: every event of a session, a line of JSON each, only ever appended to; and its other listeners."""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

from tw_autogen import bounded_json
from tw_autogen.closing import Closing
from tw_autogen.conversation import Round, RoundState
from tw_autogen.errors import ConfigError, JournalError, SessionBusyError
from tw_autogen.events import (
    BoardWritten,
    Event,
    EventLines,
    Handler,
    ModelCalled,
    PostClosed,
    PostGrew,
    RoundClosed,
    RoundOpened,
    SessionClosed,
    SessionOpened,
    deliver,
    event_from_dict,
    is_event_of_ours,
)
from tw_autogen.owner_marks import LineSeals
from tw_autogen.private_files import open_private
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session.budget import Spent

if sys.platform != "win32":
    import fcntl

_PURPOSE = "journal"
LARGEST_BYTES = 256 << 20
_MAX_HELD_BYTES = 1 << 30
"""What the events of a journal may take in memory, by estimate: anybody may have written it."""

_FREE_BYTES: dict[type[Event], int] = {RoundOpened: 32 << 20, RoundClosed: 0, SessionOpened: 0, SessionClosed: 0}
_OTHERS_FREE_BYTES = 1 << 20
"""How many of `LARGEST_BYTES` an event leaves free, of those with a type of their own and of others: a round that opens
leaves room for its end, and what happens in it leaves room for the lines that close round and session."""
_FULL = (
    f"it has nearly as much as is read again ({LARGEST_BYTES >> 20} MB, or {_MAX_HELD_BYTES >> 30} GB in memory). "
    "Begin another session; in a chat /clear, in Python fork_session(…, words=False), begins one with these files and "
    "variables"
)

_LOOKS, _LOOK_SECONDS = 20, 0.01
"""How often a session is tried to be marked as open, and how long after one another."""


class Journal(Closing):
    """Writes events to a file, and hands them to handlers; a handler that fails is logged and does no harm.

    Args:
        path: The file; made, or appended to, without a last line that was cut off. Only its owner can read it from then
            on.
        handlers: Called with each event, in order, in the thread in which it happened.
        goes_on: Go on with the journal of a session that has ended.

    Raises:
        OSError: the file can't be opened or made.
        SessionBusyError: `goes_on`, and a process has the session open.

    `PostGrew` goes to handlers only: the whole post follows in `PostClosed`; so do events of other modules, which
    another process could not read. Secrets are masked in the file. Lines are sealed with the user's key, as long as
    those are that it goes on with.
    """

    def __init__(self, path: Path, handlers: Sequence[Handler] = (), *, goes_on: bool = False) -> None:
        self.path = path
        self._handlers = list(handlers)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._file = open_private(path)
        try:
            alone = _mark_open(self._file.fileno(), alone=True)
            if goes_on and not alone:
                raise SessionBusyError(f"{path.parent.name} is open in another process; close it there first")
            with SafeFolder(path.parent) as folder, folder.open_file(path.name) as before:
                seals = LineSeals(folder, _PURPOSE)
                self._lines = _WholeLines(self._file, seals)
                count = sum(map(self._lines.count, _each_whole_line(before, seals)))
            if alone and os.fstat(self._file.fileno()).st_size > self._lines.whole_bytes:  # else its time stays
                self._file.truncate(self._lines.whole_bytes)
            if not goes_on:
                _mark_open(self._file.fileno())
            self._write_line = EventLines(self._lines, first=count, seal=seals.seal)
        except BaseException:
            self._file.close()
            raise

    def subscribe(self, handler: Handler) -> None:
        """Hand every event from now on to one more handler.

        Raises:
            ConfigError: it can't be called.
        """
        if not callable(handler):
            raise ConfigError(f"subscribe: expected a function that takes an event, got {handler!r}")
        self._handlers.append(handler)

    def unsubscribe(self, handler: Handler) -> None:
        """Leave a handler in peace; nothing happens if it was not subscribed."""
        if handler in self._handlers:
            self._handlers.remove(handler)

    def write(self, event: Event) -> None:
        """Take an event; never raises because of a handler.

        Raises:
            JournalError: the file can't be written, as on a full disk, or would be larger than what is read again;
                nothing of the event is there then.
        """
        if is_event_of_ours(event) and not isinstance(event, PostGrew):
            self._append(event)
        deliver(event, list(self._handlers))

    @property
    def full(self) -> bool:
        """Whether no round can be opened any more, because what is written would not be read again."""
        with self._lock:
            return self._lines.used_bytes > LARGEST_BYTES - _FREE_BYTES[RoundOpened]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _append(self, event: Event) -> None:
        with self._lock:
            # It comes late, such as from an abandoned model call, or from a fork of the process.
            if self._file.closed or os.getpid() != self._process:
                return
            try:
                self._lines.max_bytes = LARGEST_BYTES - _FREE_BYTES.get(type(event), _OTHERS_FREE_BYTES)
                self._write_line(event)
                if isinstance(event, RoundClosed):
                    os.fsync(self._file.fileno())
            except OSError as error:
                raise JournalError(
                    f"{self.path}: can't be written: {error.strerror or error}", path=self.path
                ) from error


class _WholeLines:
    """Appends lines to a journal, each whole or not at all, and goes on behind it with the seals.

    Args:
        file: Open for appending; its buffer stays unused.
        seals: Of its lines.
    """

    def __init__(self, file: TextIO, seals: LineSeals) -> None:
        self._file = file
        self._seals = seals
        self.whole_bytes = self._held_bytes = 0
        self.max_bytes = LARGEST_BYTES
        """How large the file may become by the next line, and by memory the same part of `_MAX_HELD_BYTES`."""

    @property
    def used_bytes(self) -> int:
        """How many of `LARGEST_BYTES` are used up, by the file's size or by the memory that its events take."""
        return max(self.whole_bytes, self._held_bytes * LARGEST_BYTES // _MAX_HELD_BYTES)

    def count(self, line: bytes) -> int:
        """Count a line that the file has; return 1."""
        self.whole_bytes += len(line)
        self._held_bytes += _held_bytes(line)
        return 1

    def write(self, line: str, /) -> None:
        number, data = self._file.fileno(), line.encode("utf-8", "backslashreplace")
        whole_bytes = os.fstat(number).st_size
        more = max(len(data), _held_bytes(data) * LARGEST_BYTES // _MAX_HELD_BYTES)
        if max(self.used_bytes, whole_bytes) + more > self.max_bytes:
            raise OSError(errno.EFBIG, _FULL)
        try:
            left = memoryview(data)
            while left:  # a disk that becomes full takes a part first
                left = left[os.write(number, left) :]
        except BaseException:
            os.ftruncate(number, whole_bytes)
            raise
        self._seals.take(data)
        self.count(data)

    def flush(self) -> None:
        """Nothing is kept back."""


def read_journal(path: Path | str) -> Iterator[Event]:
    """Yield the events of a journal, oldest first; a last line that was cut off by a crash is passed over.

    Raises:
        OSError: there is no such file, or it is no regular one, or it is larger than 256 MB.
        ValueError: a line before the last one is no event, or the events until there take more than about 1 GB of
            memory; names its number.
    """
    with SafeFolder(Path(path).parent) as folder:  # a folder that code may write to: no link, no FIFO
        data = folder.read_file(Path(path).name, limit_bytes=LARGEST_BYTES)
    yield from events_in(data)


def events_in(data: bytes) -> Iterator[Event]:
    """Yield the events of a journal's bytes; as `read_journal`, which reads them.

    Raises:
        ValueError: as in `read_journal`.
    """
    held, last = 0, data.count(b"\n") + (not data.endswith(b"\n"))
    for number, line in enumerate(io.BytesIO(data), 1):
        held += _held_bytes(line)
        if held > _MAX_HELD_BYTES:
            raise ValueError(f"line {number}: it and those before it would take more than 1 GB of memory")
        try:
            event = event_from_dict(bounded_json.loads(line.decode("utf-8"), max_bytes=sys.maxsize))  # see above
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if number == last:
                return
            raise ValueError(f"line {number}: {error}") from error
        yield event


def is_sealed(folder: SafeFolder, data: bytes) -> bool:
    """Return whether this user has written all whole lines of a journal, in this folder and this order.

    Code may be allowed to write where a session's folder lies: what it writes into the journal has no seal.

    Args:
        folder: The session's.
        data: Whole lines of its journal.
    """
    seals = LineSeals(folder, _PURPOSE)
    for _ in _each_whole_line(io.BytesIO(data), seals):
        pass
    return seals.holds


def whole_lines(data: bytes) -> bytes:
    """Return a journal's bytes without a last line that was cut off."""
    return data[: data.rfind(b"\n") + 1]


def rounds_of(events: Iterable[Event]) -> list[Round]:
    """Return the rounds of a journal, oldest first, each with what was spent until the next; one cut off stays open.

    Args:
        events: As `read_journal` gives them.
    """
    rounds: list[Round] = []
    for event in events:
        if isinstance(event, RoundOpened):
            rounds.append(Round(event.user_query, event.round_id))
        elif not rounds:
            continue
        elif isinstance(event, PostClosed):
            rounds[-1].posts.append(event.post)
        elif isinstance(event, BoardWritten):
            rounds[-1].write_board(event.role, event.bulletin)
        elif isinstance(event, RoundClosed):
            rounds[-1].state, rounds[-1].error = RoundState(event.state), event.error
            rounds[-1].spent = event.spent or rounds[-1].spent
        elif isinstance(event, ModelCalled):  # also of a summary or lesson after the round
            rounds[-1].spent = (Spent.of_round(rounds[-1]) + Spent.of_call(event)).to_dict()
    return rounds


def seal_lines(folder: SafeFolder, lines: Iterable[bytes]) -> bytes:
    """Return the text of a journal that this user vouches for in a folder.

    Args:
        folder: The session's.
        lines: Without their ends and seals.
    """
    return LineSeals(folder, _PURPOSE).seal_all(lines)


def _each_whole_line(file: BinaryIO, seals: LineSeals) -> Iterator[bytes]:
    """Yield the lines of a file that are whole; `seals` goes on behind them."""
    for line in file:
        if line.endswith(b"\n"):
            seals.take(line)
            yield line


def _held_bytes(line: bytes) -> int:
    """Return what the event of a line takes in memory, by estimate."""
    return (1 if line.isascii() else 4) * len(line) + 2 * bounded_json.estimate_line_bytes(line)


def _mark_open(file: int, *, alone: bool = False) -> bool:
    """Mark a session as open for as long as the descriptor of its journal is; not on Windows.

    Args:
        file: The descriptor.
        alone: No other descriptor may mark it.

    Returns:
        False if it was to be marked by this one alone, and is marked already.
    """
    if sys.platform != "win32":
        for left in reversed(range(_LOOKS)):  # who looks whether it is open holds it for a moment
            try:
                fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if left:
                    time.sleep(_LOOK_SECONDS)
            except OSError:  # a file system without locks
                return True
        return not alone
    return True


def is_marked_open(file: int) -> bool:
    """Return whether a session is open, by a descriptor of its journal; always False on Windows."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks: its age alone says
        return False
    fcntl.flock(file, fcntl.LOCK_UN)
    return False
