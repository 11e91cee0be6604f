"""`ZmtpSocket`: a client of ZeroMQ whose other end may be hostile; `wait_for_messages`: waits for several of them.

Code can take over its kernel's sockets. libzmq answers the commands that it sends there, in 4.3.5 with bytes of other
messages, and collects the parts of a message without a limit; it has no option against either. A client of kernels
needs no commands, and no threads: whoever waits sends and receives.

Source:
    ZMTP 3.0, https://rfc.zeromq.org/spec/23/, with the mechanism NULL.
"""

from __future__ import annotations

import contextlib
import errno
import select
import selectors
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Collection, Sequence
from typing import Literal

Address = str | tuple[str, int]
"""The path of a Unix socket, or host and port."""

_GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_MECHANISM = slice(12, 32)
_AWAITS_GREETING, _AWAITS_READY, _OPEN = range(3)
"""What is awaited of the other end: its greeting, the command that ends the handshake, messages."""
_MORE, _LONG, _COMMAND = 1, 2, 4
_LARGEST_SHORT = 255
_READY = b"\x05READY"
_LARGEST_READY = 8 << 10
_SUBSCRIPTION = b"\x00\x01\x01"
"""A message that subscribes to all that is published."""

_MAX_PARTS = 8
"""A topic, a delimiter, signature, header, parent, metadata, content, and one more: buffers have no reader."""
_PIECE_BYTES = 128 << 10
"""How much is received at once."""
_CONSUMED_BYTES = 64 << 10
"""How many bytes that were read are kept, at most, before the rest is copied and they are dropped."""
_MESSAGE_BYTES = 1 << 10
"""What a message takes that waits to be sent, beside its bytes."""
_SLICE_SECONDS = 0.02
"""How long one line is read before the others are looked at."""
_RETRY_SECONDS = 0.005
"""How soon it is looked again whether a starting kernel listens by now."""

_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""A program in which SIGPIPE has its default meaning would end where a kernel closes a connection."""
_SO_NOSIGPIPE = 0x1022
"""The same on macOS."""
_MAX_TRIES = 2
"""How often `flush` tries to connect to an end that is not there."""
_UNDER_WAY = frozenset({errno.EINPROGRESS, errno.EWOULDBLOCK})
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)


class _ProtocolError(Exception):
    """The other end does not say what a kernel says."""


class _FrameReader:
    """Takes messages out of a stream of bytes.

    Args:
        largest_part: In bytes.
    """

    def __init__(self, largest_part: int) -> None:
        self._largest_part = largest_part
        self.data = bytearray()
        self.phase = _AWAITS_GREETING
        self._at = 0
        self._left = -1  # bytes of a frame that are missing; negative: its head is awaited
        self._flags = 0
        self._parts: tuple[bytes, ...] = ()
        self._room = 2 * largest_part

    def copy(self) -> _FrameReader:
        """Return another one that has read as far, of the same bytes."""
        made = _FrameReader.__new__(_FrameReader)
        made.__dict__.update(self.__dict__)
        return made

    def next_message(self) -> list[bytes] | None:
        """Return the next message, without the parts that are too many; None if it is not there as a whole."""
        if self.phase == _AWAITS_GREETING and self._take_greeting():
            self.phase = _AWAITS_READY
        if self.phase == _AWAITS_READY and self._take_ready():
            self.phase = _OPEN
        message = self._take_message() if self.phase == _OPEN else None
        if self._at > _CONSUMED_BYTES or self._at == len(self.data) > 0:
            self.data, self._at = self.data[self._at :], 0
        return message

    def _take_greeting(self) -> bool:
        if not _GREETING.startswith(self.data[:1]):
            raise _ProtocolError
        if len(self.data) < len(_GREETING):
            return False
        greeting = self._take_bytes(len(_GREETING))
        if greeting[9] != _GREETING[9] or greeting[10] < _GREETING[10] or greeting[_MECHANISM] != _GREETING[_MECHANISM]:
            raise _ProtocolError
        return True

    def _take_ready(self) -> bool:
        if self._left < 0 and not self._take_head():
            return False
        if self._flags & ~_LONG != _COMMAND or self._left > _LARGEST_READY:
            raise _ProtocolError
        if len(self.data) - self._at < self._left:
            return False
        if not self._take_bytes(self._left).startswith(_READY):
            raise _ProtocolError
        self._left = -1
        return True

    def _take_message(self) -> list[bytes] | None:
        while self._left >= 0 or self._take_head():
            if self._flags & ~(_MORE | _LONG):
                raise _ProtocolError
            there = len(self.data) - self._at
            if len(self._parts) == _MAX_PARTS:
                passed = min(self._left, there)
                self._at += passed
                self._left -= passed
                if self._left:
                    return None
            elif self._left > min(self._largest_part, self._room):
                raise _ProtocolError
            elif there < self._left:
                return None
            else:
                self._parts += (self._take_bytes(self._left),)
                self._room -= self._left
            self._left = -1
            if not self._flags & _MORE:
                parts, self._parts, self._room = self._parts, (), 2 * self._largest_part
                return list(parts)
        return None

    def _take_head(self) -> bool:
        data, offset = self.data, self._at
        size = 9 if offset < len(data) and data[offset] & _LONG else 2
        if len(data) - offset < size:
            return False
        self._flags = data[offset]
        self._left = data[offset + 1] if size == 2 else int.from_bytes(data[offset + 1 : offset + 9], "big")
        self._at += size
        return True

    def _take_bytes(self, size: int) -> bytes:
        with memoryview(self.data) as whole, whole[self._at : self._at + size] as part:
            taken = bytes(part)
        self._at += size
        return taken


class _SendBuffer:
    """Bytes to be sent, some of which are.

    Args:
        data: All of them.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._counts: list[int] = []
        self.cost = len(data) + _MESSAGE_BYTES

    @property
    def begun(self) -> bool:
        """Return whether some were sent."""
        return any(self._counts)

    @property
    def done(self) -> bool:
        """Return whether all were."""
        return sum(self._counts) == len(self._data)

    def send(self, sock: socket.socket) -> None:
        """Send the others.

        Raises:
            BlockingIOError: no more of them for now.
        """
        while (sent := sum(self._counts)) < len(self._data):
            self._counts[:] = [sent]
            with memoryview(self._data) as whole, whole[sent:] as rest:
                self._counts.extend(map(sock.send, (rest,), (_NO_SIGNAL,)))  # in one step, see `_ZmtpConnection`

    def begin_again(self) -> None:
        """Forget what was sent."""
        self._counts.clear()


class _ZmtpConnection:
    """One connection, from its greeting to its end.

    What a signal's handler raises, such as KeyboardInterrupt, can come between any two steps of Python. So bytes are
    sent and counted, or received and kept, in one step, and one assignment notes how far they are read: otherwise the
    next ones would be taken for what they are not.

    Args:
        sock: Connected, or being connected.
        handshake: What is sent in each phase before all else.
        largest_part: In bytes.
    """

    def __init__(self, sock: socket.socket, handshake: Sequence[bytes], largest_part: int) -> None:
        self.socket = sock
        self.connected = sock.family not in (socket.AF_INET, socket.AF_INET6)
        self.peer_reads = True
        self._errors: list[int] = []
        self._handshake = [_SendBuffer(frame) for frame in handshake]
        self._reader = _FrameReader(largest_part)

    @property
    def is_open(self) -> bool:
        """Return whether the handshake is over."""
        return self._reader.phase == _OPEN

    @property
    def has_unsent_handshake(self) -> bool:
        """Return whether something of the handshake is to be sent."""
        return not all(buffer.done for buffer in self._handshake[: self._reader.phase + 1])

    def is_connected(self) -> bool:
        """Return whether the connection is made by now.

        Raises:
            OSError: it can't be made.
        """
        if self.connected:
            return True
        self._errors.extend(map(self.socket.getsockopt, (socket.SOL_SOCKET,), (socket.SO_ERROR,)))  # told only once
        if any(self._errors):
            raise OSError("not connected")
        try:
            there = self.socket.getpeername()
        except OSError:  # it is under way
            return False
        if there == self.socket.getsockname():  # by chance, where a free port of this machine is tried again and again
            raise OSError("connected to itself")
        self.connected = True
        return True

    def send_handshake(self) -> None:
        """Send what is to be sent of the handshake."""
        for buffer in self._handshake[: self._reader.phase + 1]:
            buffer.send(self.socket)

    def check_peer(self) -> None:
        """Look whether the other end has gone away: of TCP, what is sent after that is lost without a word.

        Where the system does not tell, nothing is noticed behind what is still to be read.

        Raises:
            ConnectionResetError: it has.
        """
        if hasattr(select, "POLLRDHUP"):
            poller = select.poll()
            poller.register(self.socket, select.POLLRDHUP)
            if poller.poll(0):
                raise ConnectionResetError
        else:
            with contextlib.suppress(BlockingIOError):
                if not self.socket.recv(1, socket.MSG_PEEK):
                    raise ConnectionResetError

    def receive_piece(self) -> None:
        """Receive a piece.

        Raises:
            BlockingIOError: there is none.
            OSError: the connection has ended.
        """
        data = self._reader.data
        before = len(data)
        deque(map(data.__iadd__, map(self.socket.recv, (_PIECE_BYTES,))), 0)
        if len(data) == before:
            raise ConnectionResetError

    def next_message(self) -> list[bytes] | None:
        """Return the next message of what was received."""
        reader = self._reader.copy()
        message = reader.next_message()
        self._reader = reader
        return message


def _frame_head(size: int, flags: int) -> bytes:
    return bytes((flags, size)) if size <= _LARGEST_SHORT else struct.pack(">BQ", flags | _LONG, size)


def _ready_command(kind: str, identity: bytes) -> bytes:
    body = _READY
    for name, value in ((b"Socket-Type", kind.encode()), (b"Identity", identity)):
        body += bytes((len(name),)) + name + struct.pack(">I", len(value)) + value
    return _frame_head(len(body), _COMMAND) + body


class ZmtpSocket:
    """One line, which connects again when the other end has gone away; used by one thread at a time.

    Nothing is sent or received but within a call; what nobody asks for stays at the other end.

    Args:
        address: Where a kernel listens, or will.
        kind: DEALER sends and receives; SUB receives all that is published.
        identity: Names this end to a ROUTER.
        largest_part: In bytes; a larger part of a message cuts the line, and so do parts that are more than twice as
            large together.

    Raises:
        OSError: there can be no socket of that address.
    """

    def __init__(
        self, address: Address, kind: Literal["DEALER", "SUB"], *, identity: bytes = b"", largest_part: int
    ) -> None:
        self._address = address
        self._handshake = (_GREETING, _ready_command(kind, identity), _SUBSCRIPTION if kind == "SUB" else b"")
        self._largest_part = largest_part
        self._unsent: deque[_SendBuffer] = deque()
        self._unsent_cost = 0
        self._message: list[bytes] | None = None
        self._connection: _ZmtpConnection | None = None
        self._closed = self._cut = False
        self._retry_at = 0.0
        self._connect()

    @property
    def cut(self) -> bool:
        """Return whether the other end sent what is no message, or a too large one, or took nothing for too long.

        Nothing more is received or sent then, until `reconnect`.
        """
        return self._cut

    @property
    def has_message(self) -> bool:
        """Return whether a message was received that nobody has taken."""
        return self._message is not None

    def send(self, parts: Sequence[bytes]) -> None:
        """Send a message, now or in later calls, as the other end takes it; after `close`, nothing is sent.

        An end that takes nothing cuts the line, before what waits for it is more than four times the largest part.

        Args:
            parts: Of the message.
        """
        if self._closed:
            return
        last = len(parts) - 1
        pieces = ((_frame_head(len(part), _MORE if index < last else 0), part) for index, part in enumerate(parts))
        self._unsent.append(_SendBuffer(b"".join(piece for pair in pieces for piece in pair)))
        self._unsent_cost = self._unsent[-1].cost + (self._unsent_cost if len(self._unsent) > 1 else 0)
        self.advance(reads=False)
        if self._unsent_cost > 4 * self._largest_part and len(self._unsent) > 1:
            self._disconnect()
            self._unsent.clear()
            self._cut = True

    def receive(self, until: float) -> list[bytes] | None:
        """Return the next message, without what is behind its first parts; None if there is none.

        Args:
            until: When reading is to end, also amid a message; by `time.monotonic`.
        """
        self.read(until)
        message, self._message = self._message, None
        return message

    def read(self, until: float) -> None:
        """Read until a message is there, or nothing more comes.

        Args:
            until: As of `receive`.
        """
        while self._message is None and self.advance() and time.monotonic() < until:
            pass

    def advance(self, *, reads: bool = True) -> bool:
        """Connect, shake hands, send and read as far as nothing has to be awaited; return whether anything was read.

        Args:
            reads: Read a piece of the next message, if there is none that nobody has taken.
        """
        try:
            if self._connection is None and self.retry_seconds == 0.0:
                self._connect()
            if (connection := self._connection) is None or not connection.is_connected():
                return False
            self._flush(connection)
            if self._message is None and (reads or not connection.is_open or not connection.peer_reads):
                return self._read(connection)
            if not (reads or connection.peer_reads):
                self._disconnect()  # what is still to be read there nobody wants now
        except OSError:
            self._disconnect()
        except _ProtocolError:
            self._disconnect()
            self._cut = True
        return False

    def flush(self, seconds: float) -> None:
        """Wait until everything is sent, the line is cut, or nobody listens.

        Args:
            seconds: How long at most.
        """
        until, tries = time.monotonic() + seconds, 0
        while self._unsent and not (self._cut or self._closed) and (left := until - time.monotonic()) > 0:
            if self._connection is None:
                tries += 1
            if tries > _MAX_TRIES:
                return
            _select((), (self,), (), left)
            self.advance(reads=False)

    def reconnect(self) -> None:
        """Begin anew; what was under way is lost, in both directions."""
        self._disconnect()
        self._unsent.clear()
        self._message = None
        self._cut = False
        self.advance(reads=False)

    def close(self, linger: float = 0.0) -> None:
        """Close the line.

        Args:
            linger: How long to wait until everything is sent, in seconds.
        """
        self.flush(linger)
        self._closed = True
        self._disconnect()
        self._unsent.clear()

    def events(self, *, reads: bool) -> int:
        """Return what `selectors` is to wait for, until `advance` can do something.

        Args:
            reads: As there.
        """
        if (connection := self._connection) is None:
            return 0
        if not connection.connected:
            return selectors.EVENT_WRITE
        sends = connection.peer_reads and (connection.has_unsent_handshake or (connection.is_open and self._unsent))
        receives = self._message is None and (reads or not connection.is_open or not connection.peer_reads)
        return (selectors.EVENT_WRITE if sends else 0) | (selectors.EVENT_READ if receives else 0)

    def fileno(self) -> int:
        """Return the descriptor of the connection that is there or is made; negative if there is none."""
        return -1 if self._connection is None else self._connection.socket.fileno()

    @property
    def retry_seconds(self) -> float:
        """Return how many seconds it rests before it connects again; infinite where that is not what it waits for."""
        waits = self._connection is None and not self._cut and not self._closed
        return max(0.0, self._retry_at - time.monotonic()) if waits else float("inf")

    def _connect(self) -> None:
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        unix = isinstance(self._address, str)
        if unix and not hasattr(socket, "AF_UNIX"):
            raise OSError("this system has no Unix sockets")
        family = socket.AF_UNIX if unix else socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        with contextlib.ExitStack() as held:
            held.callback(made.close)
            made.setblocking(False)
            if not unix:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if sys.platform == "darwin":
                with contextlib.suppress(OSError):  # it is a help only
                    made.setsockopt(socket.SOL_SOCKET, _SO_NOSIGPIPE, 1)
            error = made.connect_ex(self._address)
            if not error or (error in _UNDER_WAY and not unix):  # to a Unix socket it means that too many wait there
                for buffer in self._unsent:
                    buffer.begin_again()
                self._connection = _ZmtpConnection(made, self._handshake, self._largest_part)
                held.pop_all()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.socket.close()

    def _flush(self, connection: _ZmtpConnection) -> None:
        """Send as much as goes; an end that takes nothing more may have said something before, which is read first."""
        try:
            if connection.peer_reads:
                connection.send_handshake()
            while connection.peer_reads and connection.is_open and self._unsent:
                if not self._unsent[0].begun:
                    connection.check_peer()
                self._unsent[0].send(connection.socket)
                self._unsent_cost -= self._unsent.popleft().cost
        except BlockingIOError:
            pass
        except OSError:
            connection.peer_reads = False

    def _read(self, connection: _ZmtpConnection) -> bool:
        """Take a message out of what was received, or receive a piece more; return whether there was something."""
        if connection.is_open and (message := connection.next_message()) is not None:
            self._message = message
            return True
        try:
            connection.receive_piece()
        except BlockingIOError:
            return False
        self._message = connection.next_message()
        if connection.has_unsent_handshake:
            self._flush(connection)
        return True


def wait_for_messages(
    sockets: Collection[ZmtpSocket],
    seconds: float,
    *,
    sending: Collection[ZmtpSocket] = (),
    descriptors: Collection[int] = (),
) -> set[ZmtpSocket | int]:
    """Wait until a message or something else is there, or one of the lines is cut; return what is there.

    Args:
        sockets: Lines of which messages are wanted.
        seconds: How long at most.
        sending: Lines that only send meanwhile what they have to.
        descriptors: What else is to become readable.
    """
    until = time.monotonic() + seconds
    cuts = [sock.cut for sock in sockets]
    due: Collection[ZmtpSocket | int] = sockets
    while True:
        for waiting_sock in sockets:
            if waiting_sock in due or waiting_sock.retry_seconds == 0.0:
                waiting_sock.read(time.monotonic() + _SLICE_SECONDS)
        for waiting_sock in sending:
            waiting_sock.advance(reads=False)
        ready: set[ZmtpSocket | int] = {sock for sock in sockets if sock.has_message}
        over = bool(ready) or cuts != [sock.cut for sock in sockets]
        left = 0.0 if over else max(0.0, until - time.monotonic())
        due = _select(sockets, sending, descriptors, left)
        ready.update(descriptor for descriptor in due if isinstance(descriptor, int))
        if ready or not left:
            return ready


def _select(
    sockets: Collection[ZmtpSocket], sending: Collection[ZmtpSocket], descriptors: Collection[int], seconds: float
) -> set[ZmtpSocket | int]:
    """Wait until anything can be done; return the lines and descriptors where it can."""
    lines = [*((waiting, True) for waiting in sockets), *((sender, False) for sender in sending)]
    with _Selector() as selector:
        for sock, reads in lines:
            seconds = min(seconds, sock.retry_seconds)
            if events := sock.events(reads=reads):
                selector.register(sock.fileno(), events, sock)
        taken = set(descriptors) & set(selector.get_map())  # closed by another thread, and given to a line since
        for descriptor in set(descriptors) - taken:
            selector.register(descriptor, selectors.EVENT_READ, descriptor)
        if not selector.get_map():  # which Windows does not take
            time.sleep(seconds)
            return set()
        return taken | {key.data for key, _ in selector.select(0.0 if taken else seconds)}
