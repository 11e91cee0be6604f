"""`WebsocketWire`: one kernel's channels over a gateway's websocket, which one thread serves."""

from __future__ import annotations

import contextlib
import datetime
import json
import selectors
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.gateway_process import INSTALL, Gateway, GatewayProcess
from tw_autogen.kernel.poller import WakeupSocket
from tw_autogen.kernel.wire import CHANNELS, Channel, execute_content

_QUICKACK: int = getattr(socket, "TCP_QUICKACK", 0)

_MOMENT_SECONDS = 0.25
_LOOK_SECONDS = 10.0
"""How often an idle line is tried; after three tries without a sound it counts as broken."""

_SOCKET_SECONDS = 10.0
"""How long half a message may be under way."""

_RECONNECT_SECONDS = 5.0
"""How long a gateway may be away before its kernel counts as lost."""

_LARGEST_MESSAGE = 64 << 20
"""The bytes of one message, in whatever frames; a line that brings more is cut, and the kernel given up."""
_MESSAGE_BYTES = 4096
"""How much a message takes beside its text."""
_MOST_WAITING_BYTES = 64 << 20
"""How much is taken in before somebody reads it; what is more stays in the gateway."""
_MOST_BYTES = 9_500_000
"""A gateway closes the line at a message of 10 MiB."""

_GONE = {
    "restarting": "the process ended, and the gateway started another one without your variables",
    "autorestarting": "the process ended, and the gateway started another one without your variables",
    "dead": "the process ended",
}


class WebsocketWire:
    """The `Wire` to a kernel behind a gateway.

    The thread that serves the socket also answers pings, notices the kernel's death, and takes a line that broke up
    again: the gateway keeps what the kernel says meanwhile, and a request of which nothing was heard is sent again.

    Args:
        gateway: Where the kernel runs.
        kernel: Its id there.
        process: Told when it is lost.

    Raises:
        KernelStartError: the line can't be opened.
    """

    def __init__(self, gateway: Gateway, kernel: str, process: GatewayProcess) -> None:
        try:
            import websocket  # deferred: only a gateway needs it
        except ImportError as error:
            raise KernelStartError(f"a gateway needs websocket-client: {INSTALL}", folder=gateway.folder) from error
        self._websocket = websocket
        self._gateway = gateway
        self._process = process
        self._session = uuid.uuid4().hex
        self._address = gateway.channels(kernel, self._session)
        self._lock = threading.Condition()
        self._inbox: dict[str, deque[tuple[int, dict[str, Any]]]] = {
            "iopub": deque(),
            "shell": deque(),
            "stdin": deque(),
        }
        self._waiting_bytes = 0
        self._message_bytes = 0
        self._outbox: deque[str] = deque()
        self._news, self._orders = WakeupSocket(), WakeupSocket()
        self._closed = False
        self._asked: dict[str, Any] = {}
        self._unheard: tuple[str, dict[str, Any]] = ("", {})
        try:
            self._line = self._connect()
        except (OSError, websocket.WebSocketException) as error:
            raise KernelStartError(
                f"gateway {gateway.url} starts a kernel, but opens no websocket to it ({error}). "
                "Let proxies between here and there pass websockets",
                folder=gateway.folder,
            ) from error
        self._thread = threading.Thread(target=self._serve, name="gateway", daemon=True)
        self._thread.start()

    @property
    def sources(self) -> Mapping[Any, Sequence[Channel]]:
        """Return a descriptor that is readable while messages are there."""
        return {self._news.fileno(): CHANNELS}

    def request(self, code: str, *, expressions: Mapping[str, str] | None = None, silent: bool = False) -> str:
        """Ask the kernel to run a cell, or silently to evaluate expressions; give the request's id."""
        return self._send("shell", "execute_request", execute_content(code, expressions, silent=silent))

    def ask_for_life(self) -> None:
        """Send what any kernel answers at once, on shell and iopub."""
        self._send("shell", "kernel_info_request", {})

    def await_output(self) -> bool:
        """Wait a moment for a message on iopub; tell whether one is there."""
        with self._lock:
            return self._lock.wait_for(lambda: bool(self._inbox["iopub"]), _MOMENT_SECONDS)

    def answer_input(self, text: str) -> None:
        """Answer an `input_request`."""
        self._send("stdin", "input_reply", {"value": text}, parent=self._asked)

    def receive(self, channel: Channel) -> dict[str, Any] | None:
        """Return the next message that is there; None if there is none."""
        with self._lock:
            size, message = self._inbox[channel].popleft() if self._inbox[channel] else (0, None)
            self._waiting_bytes -= size
            self._lock.notify_all()
            if not any(self._inbox.values()):
                self._news.answer()
        if message is not None and message["msg_type"] == "input_request":
            self._asked = message["header"]
        return message

    def close(self) -> None:
        """Close the line."""
        self._closed = True
        self._orders.ring()
        self._thread.join(_SOCKET_SECONDS)
        self._orders.close()
        self._news.close()
        self._process.forget()

    def _send(self, channel: str, kind: str, content: dict[str, Any], parent: Mapping[str, Any] | None = None) -> str:
        number = uuid.uuid4().hex
        header = {
            "msg_id": number,
            "msg_type": kind,
            "session": self._session,
            "username": "tw",
            "version": "5.3",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        }
        message = {"channel": channel, "header": header, "parent_header": dict(parent or {}), "metadata": {}}
        text = json.dumps({**message, "content": content, "buffers": []})
        if len(text) > _MOST_BYTES:  # ASCII: one character, one byte
            self._process.lose(f"a message of {len(text)} bytes is more than its gateway takes")
            return number
        if kind == "execute_request":
            self._unheard = (number, {**message, "content": content, "buffers": []})
        self._outbox.append(text)
        self._orders.ring()
        return number

    # On the thread that serves the socket.

    def _connect(self) -> Any:
        line = self._websocket.create_connection(
            self._address,
            timeout=_SOCKET_SECONDS,
            header=[f"{name}: {value}" for name, value in self._gateway.headers().items()],
            suppress_origin=True,
            skip_utf8_validation=True,  # half a second for each megabyte; `json` finds what is wrong
            sslopt={"context": self._gateway.tls} if self._gateway.tls else None,
        )
        line.settimeout(_SOCKET_SECONDS)
        frames = line.frame_buffer
        receive, self._message_bytes = frames.recv, 0

        def counted(size: int) -> bytes:
            data: bytes = receive(size)
            self._message_bytes += len(data)
            if self._message_bytes > _LARGEST_MESSAGE:
                why = f"its gateway sent a message of more than {_LARGEST_MESSAGE} bytes"
                self._process.lose(why)
                raise self._websocket.WebSocketException(why)
            return data

        frames.recv = counted
        return line

    def _serve(self) -> None:
        broken = (OSError, ValueError, self._websocket.WebSocketException)
        try:
            while not self._closed:
                try:
                    self._serve_line()
                except broken as error:
                    if not self._closed and not self._take_up_again(str(error) or type(error).__name__, broken):
                        return
        finally:
            self._hang_up(broken)

    def _hang_up(self, broken: tuple[type[BaseException], ...]) -> None:
        with contextlib.suppress(*broken):
            self._line.send_close()
        with contextlib.suppress(*broken):
            self._line.shutdown()

    def _serve_line(self) -> None:
        """Carry messages both ways until the line is closed or breaks."""
        quiet = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._orders, selectors.EVENT_READ)
            selector.register(self._line.sock, selectors.EVENT_READ)
            while not self._closed:
                waiting = getattr(self._line.sock, "pending", int)()  # what TLS has read ahead
                ready = {key.fileobj for key, _ in selector.select(0 if waiting else _LOOK_SECONDS)}
                self._orders.answer()
                if self._waiting_bytes > _MOST_WAITING_BYTES:
                    with self._lock:
                        self._lock.wait_for(lambda: self._waiting_bytes <= _MOST_WAITING_BYTES, _MOMENT_SECONDS)
                elif waiting or self._line.sock in ready:
                    self._message_bytes = 0
                    self._take(*self._line.recv_data(control_frame=True))
                    if _QUICKACK:  # or each message waits up to 40 ms for the other side's next one
                        self._line.sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
                    quiet = 0
                elif not ready:
                    quiet += 1
                    if quiet > 2:
                        raise TimeoutError("no sound from the gateway")
                    self._line.ping()
                while self._outbox:  # behind the reading, which notices a line that is closed
                    self._line.send(self._outbox[0])
                    self._outbox.popleft()

    def _take(self, kind: int, data: Any) -> None:
        abnf = self._websocket.ABNF
        if kind == abnf.OPCODE_CLOSE:
            raise ConnectionResetError("the gateway closed the websocket")
        if kind != abnf.OPCODE_TEXT:
            return  # a ping, a pong, or a message with buffers, which is none of ours
        message = _message(data)
        if message is None or message["channel"] not in self._inbox:
            return
        if message["parent_header"].get("msg_id") == self._unheard[0]:
            self._unheard = ("", {})
        state = message["content"].get("execution_state") if message["msg_type"] == "status" else None
        with self._lock:
            self._inbox[message["channel"]].append((len(data) + _MESSAGE_BYTES, message))
            self._waiting_bytes += len(data) + _MESSAGE_BYTES
            self._news.ring()
            self._lock.notify_all()
        if state in _GONE:
            self._process.lose(_GONE[state])

    def _take_up_again(self, why: str, broken: tuple[type[BaseException], ...]) -> bool:
        """Open a line that broke anew; tell whether that was possible."""
        self._hang_up(broken)
        deadline = time.monotonic() + _RECONNECT_SECONDS
        pause = threading.Event()
        while not self._closed and self._process.alive():
            try:
                if not self._process.exists():
                    self._process.lose("its gateway no longer knows it")
                    return False
                self._line = self._connect()
                self._send_again()
                return True
            except broken as error:
                why = str(error) or why
            if time.monotonic() > deadline:
                self._process.lose(f"the way to gateway {self._gateway.url} is lost ({why})")
                return False
            pause.wait(0.2)
        return False

    def _send_again(self) -> None:
        """Repeat a request of which nothing was heard; a kernel in which it ran says so, and doesn't run it again."""
        number, message = self._unheard
        if number and not any(number in one for one in self._outbox):
            # The very same message would be dropped without a word.
            self._outbox.append(json.dumps({**message, "metadata": {"again": time.monotonic()}}))
            self._orders.ring()


def _message(data: bytes) -> dict[str, Any] | None:
    """Read a message; None if it is nothing that a kernel says."""
    try:
        message = bounded_json.loads(data)
    except ValueError:
        return None
    if not isinstance(message, dict) or not isinstance(message.get("channel"), str):
        return None
    parts = [message.get(one) for one in ("header", "parent_header", "content")]
    if not all(isinstance(one, dict) for one in parts):
        return None
    return {**message, "msg_type": str(message["header"].get("msg_type", ""))}
