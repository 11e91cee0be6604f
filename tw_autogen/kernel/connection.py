"""The sockets of one kernel: signed requests out; messages in, checked before they are read."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import socket
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tw_autogen import bounded_json
from tw_autogen.kernel.guest.json_size import LARGEST_PART, MAX_BYTES, estimate_parsed_bytes
from tw_autogen.kernel.transport import CHANNELS, Channel, execute_content, message_header, plain_header
from tw_autogen.kernel.zmtp import Address, ZmtpSocket, wait_for_messages
from tw_autogen.safe_folder import SafeFolder, remove_folder, temporary_folder

_DELIMITER = b"<IDS|MSG>"
_MAX_DIGESTS = 1 << 16
_UNREAD = frozenset({"execute_input"})
"""What a host that sent the cell itself has no use for."""


class Sender:
    """Sends messages that are signed with one key.

    Args:
        key: Known to the kernel's process and to this one.

    Source:
        `Session.send` of jupyter_client, which takes 0.1 s to import. Differs: what is no ASCII is escaped.
    """

    def __init__(self, key: bytes) -> None:
        self._signer = hmac.HMAC(key, digestmod=hashlib.sha256)
        self._session = uuid.uuid4().hex

    @property
    def identity(self) -> bytes:
        """By which the kernel finds the stdin of who asked."""
        return self._session.encode()

    def send(self, socket: ZmtpSocket, kind: str, content: Mapping[str, Any]) -> str:
        """Send a message, on a line that is connected again if it was cut; return the message's id.

        A line that is cut behind it loses it: whoever waits for an answer asks `reconnect_cut`.

        Args:
            socket: Of the channel.
            kind: Such as `execute_request`.
            content: Plain values.
        """
        header = message_header(kind, self._session)
        parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
        signer = self._signer.copy()
        for part in parts:
            signer.update(part)
        if socket.cut:
            socket.reconnect()
        socket.send([_DELIMITER, signer.hexdigest().encode(), *parts])
        return header["msg_id"]


class MessageDecoder:
    """Reads messages that were signed with one key.

    Args:
        key: Known to the kernel's process and to this one.
    """

    def __init__(self, key: bytes) -> None:
        self._signer = hmac.HMAC(key, digestmod=hashlib.sha256)
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def read(self, parts: Sequence[bytes]) -> dict[str, Any] | None:
        """Return a message's `header`, `parent_header`, `content` and `msg_type`.

        Args:
            parts: As they came: whom it was for, a delimiter, signature, header, parent, metadata, content, buffers.

        Returns:
            None for what nobody waits for: of another signer, seen before, of another form, or of no use. A content
            that would take too much memory is left out: empty, so that whoever waits for the message goes on.
        """
        try:
            index = parts.index(_DELIMITER) + 1
            signature, header, parent, metadata, content = parts[index : index + 5]
        except ValueError:
            return None
        signer = self._signer.copy()
        for part in (header, parent, metadata, content):
            signer.update(part)
        digest = signer.hexdigest().encode()
        if not hmac.compare_digest(digest, signature) or digest in self._seen:
            return None
        self._seen[digest] = None
        if len(self._seen) > _MAX_DIGESTS:
            self._seen.popitem(last=False)
        return _parse_message(header, parent, content)


def _parse_message(header: bytes, parent: bytes, content: bytes) -> dict[str, Any] | None:
    if max(len(header), len(parent)) > _LARGEST_HEADER:
        return None
    read = _parse_object(header)
    if read is None or not isinstance(read.get("msg_type"), str) or read["msg_type"] in _UNREAD:
        return None
    parent_header = _parse_object(parent)
    body = _parse_object(content) if estimate_parsed_bytes(content) <= MAX_BYTES else {}
    if parent_header is None or body is None:
        return None
    return {
        "header": plain_header(read),
        "msg_type": read["msg_type"],
        "parent_header": plain_header(parent_header),
        "content": body,
    }


def _parse_object(part: bytes) -> dict[str, Any] | None:
    return bounded_json.load_object(part.decode("utf-8", "replace"))


_LONGEST_PATH = 94
"""Bytes that a socket's path may have in the runtime folder (107 on Linux, 103 on macOS, in the folder of a start)."""

_SOCKET = "k"
_MOMENT_SECONDS = 0.02

_LOOK_SECONDS = 0.01
_LARGEST_HEADER = 64 << 10

_PASS_OVER_SECONDS = 0.05
_SAID_CHARS = 2000
_PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
_BACKLOG = 100
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def _runtime_folder() -> Path:
    """Make the runtime folder of a kernel, where the path of a socket in it is short enough if there is such a place.

    Code may write nowhere near (`path_policy`).
    """
    first = temporary_folder()
    if _fits_socket_path(first):
        return first
    for place in ("/tmp", "/var/tmp"):  # TMPDIR lies too deep
        with contextlib.suppress(OSError):
            made = temporary_folder(place=place)
            if _fits_socket_path(made):
                first.rmdir()
                return made
            made.rmdir()
    return first


def _write_new(path: Path, data: bytes) -> None:
    file = os.open(path, _NEW, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def _free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens to now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [int(bound_sock.getsockname()[1]) for bound_sock in sockets]


def _fits_socket_path(folder: Path) -> bool:
    return len(os.fsencode(folder / _SOCKET)) <= _LONGEST_PATH


@dataclass(frozen=True)
class Start:
    """What one process of a kernel is started with, new for each process.

    Args:
        folder: The process's own folder, which its code may write to; no code has run there yet.
        connection_file: Names the sockets to ipykernel; a copy in `folder`, which the host does not read.
        log: Descriptor of an empty file in the runtime folder; takes what the process writes before its streams are
            led to the host.
        sockets: Descriptors of the listening sockets, by the numbers in the connection file; empty where the process
            binds them itself.
    """

    folder: Path
    connection_file: Path
    log: int
    sockets: Mapping[int, int]


class Connection:
    """The `Wire` to a kernel on this machine: its runtime folder and sockets, made before its process, closed after it.

    The host alone writes to the runtime folder: to the connection file, the log and the sockets, which are bound there
    and given to the process as descriptors. They keep their paths when the kernel is restarted. Each process gets a
    folder of its own below it (`begin`), and code may write to nothing else of it.

    Args:
        opens: Connect; otherwise another client does, as `info` says.
        binds: Bind the sockets in the host; otherwise the process does, in its own folder, and `join` connects to them:
            for processes that get no descriptors, such as containers. There can be one such process only.
    """

    def __init__(self, *, opens: bool = True, binds: bool = True) -> None:
        self.runtime = _runtime_folder()
        by_file = os.name == "posix" and _fits_socket_path(self.runtime)
        self.log = self.runtime / "log"
        self._starts = 0
        self._binds = binds and by_file
        key = secrets.token_hex(16)
        where = str((self.runtime if binds else self.own) / _SOCKET)
        self.file = self.runtime / "connection.json"
        self.info: dict[str, Any] = {
            **dict(zip(_PORTS, range(1, 1 + len(_PORTS)) if by_file else _free_ports(len(_PORTS)), strict=True)),
            "ip": where if by_file else "127.0.0.1",
            "key": key,
            "transport": "ipc" if by_file else "tcp",
            "signature_scheme": "hmac-sha256",
            "kernel_name": "",
        }
        _write_new(self.file, json.dumps(self.info).encode())
        self._sender = Sender(key.encode())
        self._opens = opens
        self._held: tuple[int, ...] = ()
        self._channels: dict[Channel, ZmtpSocket] = {}
        self._reader = MessageDecoder(key.encode())

    @property
    def own(self) -> Path:
        """Return the folder of the current process, or of the first one before it is started."""
        return self.runtime / str(max(1, self._starts))

    @contextlib.contextmanager
    def begin(self) -> Iterator[Start]:
        """Make what the next process is started with; the host's copies of the descriptors are closed at the end.

        Raises:
            OSError: the runtime folder is gone or full, or no descriptor is left.
        """
        if self._starts:
            self.remove_own_folder()
            self.log.unlink(missing_ok=True)
        self._starts += 1
        own = self.own
        own.mkdir(mode=0o700)
        file = own / self.file.name
        _write_new(file, self.file.read_bytes())
        with contextlib.ExitStack() as held:
            log = os.open(self.log, _NEW, 0o600)
            held.callback(os.close, log)
            bound = {number: held.enter_context(self._bind_socket(number)) for number in self._port_numbers()}
            yield Start(own, file, log, {number: sock.fileno() for number, sock in bound.items()})
            if self._opens and not self._channels and (self._binds or self.info["transport"] != "ipc"):
                self._connect()  # while the process starts; the sockets are bound, so that it does not fail

    def remove_own_folder(self) -> None:
        """Remove the folder of the process that has ended."""
        remove_folder(self.own)

    def _port_numbers(self) -> list[int]:
        return [int(self.info[port]) for port in _PORTS] if self._binds else []

    def _bind_socket(self, number: int) -> socket.socket:
        """Return a new listening socket at the path of an earlier one, which nothing that code has kept listens to."""
        path = f"{self.info['ip']}-{number}"
        if self._starts > 1:
            Path(path).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(path)
            os.chmod(path, 0o600)
            listening.listen(_BACKLOG)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        return listening

    def join(self, alive: Callable[[], bool], seconds: float) -> None:
        """Connect to sockets that the process binds itself, once they are there; to those and to nothing else.

        Code can write to their folder. So each is opened by descriptor, checked, and connected to by that descriptor: a
        link that takes its place, before or after, leads nowhere. Other systems than Linux can only check the name.
        Where none comes in time, a path is connected to at which nobody listens.

        Args:
            alive: Return whether the process still runs.
            seconds: How long to wait.
        """
        if self._channels:
            return
        deadline = time.monotonic() + seconds
        while not (there := self._hold_sockets()) and alive() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)  # nothing tells when another process has made a socket
        ports = {port: f"{self.runtime}/none" for port in _PORTS}
        for number, descriptor in there.items():
            by_name = f"{self.info['ip']}-{self.info[number]}"
            ports[number] = f"/proc/self/fd/{descriptor}" if descriptor >= 0 else by_name
        self._connect(ports)

    def _hold_sockets(self) -> dict[str, int]:
        """Return descriptors of the sockets that we connect to; nothing as long as one is missing, or is no socket."""
        found: dict[str, int] = {}
        try:
            with SafeFolder(self.own) as folder:
                for channel in CHANNELS:
                    port = f"{channel}_port"
                    found[port] = folder.hold_socket(f"{_SOCKET}-{self.info[port]}")
        except OSError:
            _close(found.values())
            return {}
        self._held = tuple(found.values())
        return found

    def _connect(self, places: Mapping[str, str] | None = None) -> None:
        """Connect.

        Args:
            places: Paths of the sockets, by the names of their ports; None: as `info` says.
        """
        for channel in CHANNELS:
            self._channels[channel] = self._open_channel(channel, places)

    @property
    def shell(self) -> ZmtpSocket:
        """Return the line of requests."""
        return self._channels["shell"]

    @property
    def stdin(self) -> ZmtpSocket:
        """Return the line on which code asks for input."""
        return self._channels["stdin"]

    @property
    def iopub(self) -> ZmtpSocket:
        """Return the line of output."""
        return self._channels["iopub"]

    @property
    def sources(self) -> Mapping[ZmtpSocket | int, Sequence[Channel]]:
        """Return the sockets."""
        return {socket: (channel,) for channel, socket in self._channels.items()}

    def request(
        self, code: str, *, expressions: Mapping[str, str] | None = None, silent: bool = False, counted: bool = True
    ) -> str:
        """Ask the kernel to run a cell, or silently to evaluate expressions; give the request's id.

        Args:
            code: The cell.
            expressions: By any name.
            silent: It is no cell of the user's.
            counted: The cell gets a number.
        """
        content = execute_content(code, expressions, silent=silent, counted=counted)
        return self._sender.send(self.shell, "execute_request", content)

    def request_kernel_info(self) -> str:
        """Send what any kernel answers at once, on shell and iopub; return the request's id."""
        return self._sender.send(self.shell, "kernel_info_request", {})

    def said(self) -> str:
        """Return the end of what the process wrote before its streams were led to the host."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            most = min(4 * _SAID_CHARS, log.seek(0, os.SEEK_END))  # code can make it as long as it likes
            log.seek(-most, os.SEEK_END)
            return log.read(most).decode("utf-8", "replace").strip()[-_SAID_CHARS:]
        return ""

    def await_output(self) -> bool:
        """Wait a moment for a message on iopub; tell whether one is there."""
        return bool(wait_for_messages((self.iopub,), _MOMENT_SECONDS, sending=(self.shell, self.stdin)))

    def reconnect_output(self) -> None:
        """Connect iopub again, where a message over the limit of one part has cut the line."""
        self.iopub.reconnect()

    def reconnect_cut(self) -> tuple[Channel, ...]:
        """Connect shell and stdin again where such a message has cut them; return which were.

        What was under way on them is lost, in both directions.
        """
        cut: list[Channel] = [channel for channel in ("shell", "stdin") if self._channels[channel].cut]
        for name in cut:
            self._channels[name].reconnect()
        return tuple(cut)

    def await_reply(self, request: str, alive: Callable[[], bool], seconds: float) -> dict[str, Any] | None:
        """Return the content of the reply to a request; None if the process ends, or none comes in time.

        Args:
            request: Its id.
            alive: Return whether the process still runs.
            seconds: How long to wait.
        """
        deadline = time.monotonic() + seconds
        while alive() and time.monotonic() < deadline:
            wait_for_messages((self.shell,), _MOMENT_SECONDS, sending=(self.iopub, self.stdin))
            while (message := self.receive("shell")) is not None and time.monotonic() < deadline:
                if message["parent_header"].get("msg_id") == request:
                    return dict(message["content"])
        return None

    def answer_input(self, text: str) -> None:
        """Answer an `input_request`."""
        self._sender.send(self.stdin, "input_reply", {"value": text})

    def flush(self, seconds: float) -> None:
        """Wait until everything is sent."""
        until = time.monotonic() + seconds
        for channel in self._channels.values():
            channel.flush(until - time.monotonic())

    def receive(self, channel: Channel) -> dict[str, Any] | None:
        """Return the next message that is there; None if there is none.

        What can't be read is passed over, for a moment: who gets None asks again as soon as something is there.
        """
        until = time.monotonic() + _PASS_OVER_SECONDS
        while True:
            parts = self._channels[channel].receive(until)
            if parts is None:
                return None
            message = self._reader.read(parts)
            if message is not None or time.monotonic() > until:
                return message

    def close(self) -> None:
        """Close the sockets and remove the runtime folder."""
        for channel in self._channels.values():
            channel.close()
        held, self._held = self._held, ()
        _close(held)
        remove_folder(self.runtime)

    def _open_channel(
        self, channel: Channel | Literal["control"], places: Mapping[str, str] | None = None
    ) -> ZmtpSocket:
        ip, port = self.info["ip"], self.info[f"{channel}_port"]
        kind: Literal["DEALER", "SUB"] = "SUB" if channel == "iopub" else "DEALER"
        if places is not None:
            address: Address = places[f"{channel}_port"]
        else:
            address = f"{ip}-{port}" if self.info["transport"] == "ipc" else (ip, port)
        return ZmtpSocket(address, kind, identity=self._sender.identity, largest_part=LARGEST_PART)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)
