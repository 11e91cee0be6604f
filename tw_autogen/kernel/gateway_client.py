"""A Jupyter gateway: kernels started, interrupted and ended by REST, their messages over a websocket."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import ssl
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tw_autogen import bounded_json
from tw_autogen.deadline import TracedSockets, finish_within, shut_down_socket
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.transport import CHANNELS, Channel, WakeupSocket, execute_content, message_header, plain_header
from tw_autogen.kernel.zmtp import ZmtpSocket
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    import httpx
else:
    httpx = LazyModule("httpx")

_MAX_ANSWER_BYTES = 4 << 20
"""How long an answer may be."""

_PATIENCE_SECONDS = 5.0
"""How long a gateway may take to answer what it can do at once."""

_END_SECONDS = 20.0
"""How long it may take to end a kernel: it asks, waits, and kills."""

INSTALL = "pip install 'tw-autogen[gateway]'"


_QUICKACK: int = getattr(socket, "TCP_QUICKACK", 0)
_MOMENT_SECONDS = 0.25
_LOOK_SECONDS = 10.0
"""How often an idle line is tried; after three tries without a sound it counts as broken."""
_SOCKET_SECONDS = 10.0
"""How long half a message may be under way, or a line that broke take to open anew."""
_OPEN_SECONDS = 30.0
"""How long the first line may take to open: a gateway that is just starting kernels answers late."""
_RECONNECT_SECONDS = 5.0
"""How long a gateway may be away before its kernel counts as lost."""
_MAX_CUTS, _SHORT_SECONDS, _LONGEST_REST_SECONDS = 12, 5.0, 2.0
"""How often in a row a line may break soon after it was opened, what soon is, and the longest wait for the next one."""
_LARGEST_MESSAGE = 64 << 20
"""The bytes of one message, in whatever frames; a line that brings more is cut, and the kernel given up."""
_MESSAGE_BYTES = 4096
"""How much a message takes beside its text."""
_MAX_WAITING_BYTES = 64 << 20
"""How much is taken in before somebody reads it; what is more stays in the gateway."""
RESTARTED = "it was restarted"
_MAX_SENT_BYTES = 9_500_000
"""A gateway closes the line at a message of 10 MiB."""
_GONE = {
    "restarting": "the process ended, and the gateway started another one without your variables",
    "autorestarting": "the process ended, and the gateway started another one without your variables",
    "dead": "the process ended",
}


@dataclass(frozen=True)
class Gateway:
    """A server that speaks Jupyter's REST and websocket protocols.

    Args:
        url: Such as `http://127.0.0.1:8888`, or `https://hub.example/user/ada`.
        token: Sent as `Authorization: token …`; empty: none.
        tls: For `https`, where the system's certificates don't do.
        folder: The host's; errors carry it.
    """

    url: str
    token: str = field(repr=False)
    tls: ssl.SSLContext | None
    folder: Path

    def start(self, kernel_name: str, environment: Mapping[str, str], seconds: float) -> str:
        """Start a kernel; give its id.

        Args:
            kernel_name: The kernelspec's name.
            environment: Variables for the kernel.
            seconds: How long the gateway may take.

        Raises:
            KernelStartError: nobody answers, the token is refused, there is no such kernelspec, or it does not start.
        """
        known = self._kernelspec_names(seconds)
        if known is not None and kernel_name not in known:
            raise self._start_error(
                f"knows no kernelspec {kernel_name!r}; it has: {', '.join(sorted(known)) or 'none'}. "
                "Pass one of these as kernel_name, or install it there with `python -m ipykernel install`"
            )
        body = {"name": kernel_name, **({"env": dict(environment)} if environment else {})}
        answer = self._call_checked("POST", "api/kernels", seconds, body)
        kernel = answer.get("id") if isinstance(answer, dict) else None
        if not isinstance(kernel, str):
            raise self._start_error("answers, but not as a Jupyter server does; check gateway_url")
        return kernel

    def call(self, method: str, path: str, *, seconds: float, body: Any = None) -> tuple[int, Any]:
        """Send one request; give the status and what the answer's JSON holds, None if it is none.

        Args:
            method: `GET`, `POST` or `DELETE`.
            path: Below the gateway's address, without a slash in front.
            seconds: How long the answer may take.
            body: Sent as JSON; None: nothing.

        Raises:
            OSError: nobody answered in time, or the answer is too long.
        """
        sockets = TracedSockets()

        def ask() -> tuple[int, bytes]:
            verify = self.url.startswith("https:") if self.tls is None else self.tls  # certificates take time to read
            with httpx.Client(timeout=httpx.Timeout(seconds, connect=_PATIENCE_SECONDS), verify=verify) as client:
                headers = {**self.headers(), "Accept-Encoding": "identity"}
                data = bytearray()
                with client.stream(
                    method, f"{self.url}/{path}", headers=headers, json=body, extensions={"trace": sockets}
                ) as answer:
                    for piece in answer.iter_raw():
                        data += piece
                        if len(data) > _MAX_ANSWER_BYTES:
                            raise OSError(f"its answer does not end, after {len(data)} bytes")
                return answer.status_code, bytes(data)

        try:
            status, data = finish_within(seconds + _PATIENCE_SECONDS, ask, sockets.end)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OSError(str(error) or type(error).__name__) from error
        try:
            return status, bounded_json.loads(data)
        except ValueError:
            return status, None

    def headers(self) -> dict[str, str]:
        """Return what lets a request in.

        Raises:
            KernelStartError: the token can't be sent.
        """
        token = self.token.strip()  # a file's text ends with a line end
        if not (token.isascii() and token.isprintable()):
            raise self._start_error("can't be sent this token: it holds line ends, or characters that are not ASCII")
        return {"Authorization": f"token {token}"} if token else {}

    def channels(self, kernel: str, session: str) -> str:
        """Return the address of a kernel's websocket.

        Args:
            kernel: The kernel's id.
            session: The id of this client's session.
        """
        return f"ws{self.url[4:]}/api/kernels/{quote(kernel)}/channels?session_id={session}"

    def _kernelspec_names(self, seconds: float) -> list[str] | None:
        """Return the names of the kernelspecs; None if this gateway doesn't say."""
        answer = self._call_checked("GET", "api/kernelspecs", min(seconds, _END_SECONDS), may_refuse=True)
        specs = answer.get("kernelspecs") if isinstance(answer, dict) else None
        return [str(spec) for spec in specs] if isinstance(specs, dict) else None

    def _call_checked(
        self, method: str, path: str, seconds: float, body: Any = None, *, may_refuse: bool = False
    ) -> Any:
        if not self.url.startswith(("http://", "https://")):
            raise self._start_error("is no address of a gateway; it begins with http:// or https://")
        try:
            status, answer = self.call(method, path, seconds=seconds, body=body)
        except OSError as error:
            raise self._start_error(
                f"does not answer ({error}). Start it (`jupyter kernelgateway`), or check gateway_url"
            ) from error
        said = _error_words(answer)
        unknown = not said or "forbidden" in said.lower() or "_xsrf" in said  # as a Jupyter Server says it
        if status == 401 or (status == 403 and unknown and not may_refuse):
            given = "the token" if self.token else "requests without a token"
            raise self._start_error(f"refuses {given} (HTTP {status}). Pass the one that it was started with as token")
        if status >= 400 and not (may_refuse and status in (403, 404, 405)):
            raise self._start_error(
                f"starts no kernel: HTTP {status}{f', {said}' if said else ''}. Look into the gateway's log"
            )
        return answer

    def _start_error(self, what: str) -> KernelStartError:
        return KernelStartError(f"gateway {self.url} {what}", folder=self.folder)


class GatewayProcess:
    """A kernel that a gateway started.

    Args:
        gateway: Where it runs.
        kernel: Its id there.
    """

    def __init__(self, gateway: Gateway, kernel: str) -> None:
        self._gateway = gateway
        self._path = f"api/kernels/{quote(kernel)}"
        self._lock = threading.Lock()
        self._wakeup = WakeupSocket()
        self._lost = ""
        self._ended = ""
        self.pid = 0  # another machine's: nothing here can be done with it
        self.death: int | None = self._wakeup.fileno()

    def alive(self) -> bool:
        """Return whether it runs, as far as its gateway has said."""
        return not (self._lost or self._ended)

    def lose(self, how: str) -> None:
        """Take down that it ended, or can't be reached any more; from any thread."""
        if self.alive():
            self._lost = how
            self._wakeup.wake()

    def forget(self) -> None:
        """Stop waiting for its death."""
        self._wakeup.close()

    def dead(self) -> bool:
        """Ask the gateway whether its process has ended for good; False where no answer says so."""
        with contextlib.suppress(OSError):
            status, answer = self._gateway.call("GET", self._path, seconds=_PATIENCE_SECONDS)
            return status == 404 or (isinstance(answer, dict) and answer.get("execution_state") == "dead")
        return False

    def interrupt(self) -> None:
        """Ask the gateway to interrupt it, as Ctrl-C does."""
        with contextlib.suppress(OSError):  # the time limit, and then the end, come anyway
            self._gateway.call("POST", f"{self._path}/interrupt", seconds=_PATIENCE_SECONDS, body={})

    def end(self) -> str:
        """End it through the gateway; return how it ended."""
        with self._lock:
            if self._ended:
                return self._ended
            with contextlib.suppress(OSError):  # a gateway that is gone took its kernels with it
                self._delete()
            self._ended = self._lost or "killed"
            self._wakeup.wake()
            return self._ended

    def _delete(self) -> None:
        """Ask until it is gone: a gateway that is just restarting a kernel takes the first request for nothing."""
        deadline = time.monotonic() + _END_SECONDS
        pause = threading.Event()
        while time.monotonic() < deadline:
            self._gateway.call("DELETE", self._path, seconds=max(deadline - time.monotonic(), 1.0))
            patience = min(_PATIENCE_SECONDS, max(deadline - time.monotonic(), 1.0))
            if self._gateway.call("GET", self._path, seconds=patience)[0] == 404:
                return
            pause.wait(0.1)


def _error_words(answer: Any) -> str:
    """Return what an error's JSON says in words."""
    if not isinstance(answer, dict):
        return ""
    return " ".join(str(answer.get(one) or "").strip() for one in ("reason", "message")).strip()[:500]


class WebsocketWire:
    """The `Wire` to a kernel behind a gateway.

    The thread that serves the socket also answers pings, notices the kernel's death, and takes a line that broke up
    again: the gateway keeps what the kernel says meanwhile, and a request of which nothing was heard is sent again.

    Args:
        gateway: Where the kernel runs.
        kernel: Its id there.
        process: Told when it is lost.
        open_seconds: How long the line may take to open.
        attached: The kernel is one that the user has open: a request is never sent twice, since it would run twice, and
            a start of another process is the end of this one.

    Raises:
        KernelStartError: the line can't be opened; caused by a `TimeoutError` where the time was over.
    """

    def __init__(
        self,
        gateway: Gateway,
        kernel: str,
        process: GatewayProcess,
        *,
        open_seconds: float = _OPEN_SECONDS,
        attached: bool = False,
    ) -> None:
        try:
            import websocket  # deferred: only a gateway needs it
        except ImportError as error:
            raise KernelStartError(f"a gateway needs websocket-client: {INSTALL}", folder=gateway.folder) from error
        self._websocket = websocket
        self._gateway = gateway
        self._process = process
        self._attached = attached
        self._answered = False
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
        self._rest = threading.Event()
        self._asked: dict[str, Any] = {}
        self._unheard: tuple[str, dict[str, Any]] = ("", {})
        self._unanswered = ""
        try:
            self._line = self._connect(open_seconds)
        except BaseException as error:
            self._release()
            if not isinstance(error, OSError | websocket.WebSocketException):
                raise
            raise KernelStartError(
                f"{'the Jupyter server' if attached else 'gateway'} {gateway.url} "
                f"{'has the' if attached else 'starts a'} kernel, but opens no websocket to it ({error}). "
                + (
                    "The kernel's process has ended; look into the server's log"
                    if process.dead()
                    else "Let proxies between here and there pass websockets"
                ),
                folder=gateway.folder,
            ) from error
        self._thread = threading.Thread(target=self._serve, name="gateway", daemon=True)
        self._thread.start()

    @property
    def sources(self) -> Mapping[ZmtpSocket | int, Sequence[Channel]]:
        """Return a descriptor that is readable while messages are there."""
        return {self._news.fileno(): CHANNELS}

    def request(self, code: str, *, expressions: Mapping[str, str] | None = None, silent: bool = False) -> str:
        """Ask the kernel to run a cell, or silently to evaluate expressions; give the request's id.

        Args:
            code: The cell; empty where only expressions are wanted.
            expressions: Expressions by name.
            silent: Leave no trace in history and counter.
        """
        return self._send("shell", "execute_request", execute_content(code, expressions, silent=silent))

    def request_kernel_info(self) -> str:
        """Send what any kernel answers at once, on shell and iopub; return the request's id."""
        return self._send("shell", "kernel_info_request", {})

    def await_output(self) -> bool:
        """Wait a moment for a message on iopub; tell whether one is there."""
        with self._lock:
            return self._lock.wait_for(lambda: bool(self._inbox["iopub"]), _MOMENT_SECONDS)

    def reconnect_output(self) -> None:
        """Do nothing: all channels are one line, which is lost as a whole."""

    def reconnect_cut(self) -> tuple[Channel, ...]:
        """Return nothing, for the same reason."""
        return ()

    def answer_input(self, text: str) -> None:
        """Answer an `input_request`."""
        self._send("stdin", "input_reply", {"value": text}, parent=self._asked)

    def flush(self, seconds: float) -> None:
        """Do nothing: a thread sends."""

    def receive(self, channel: Channel) -> dict[str, Any] | None:
        """Return the next message that is there; None if there is none."""
        with self._lock:
            size, message = self._inbox[channel].popleft() if self._inbox[channel] else (0, None)
            self._waiting_bytes -= size
            self._lock.notify_all()
            if not any(self._inbox.values()):
                self._news.drain()
        if message is not None and message["msg_type"] == "input_request":
            self._asked = message["header"]
        return message

    def close(self) -> None:
        """Close the line."""
        self._closed = True
        self._rest.set()
        self._orders.wake()
        self._thread.join(_SOCKET_SECONDS)
        if self._thread.is_alive() and (line := self._line.sock):  # half a message is under way, byte for byte
            shut_down_socket(line)
        self._release()

    def _release(self) -> None:
        self._orders.close()
        self._news.close()
        self._process.forget()

    def _send(self, channel: str, kind: str, content: dict[str, Any], parent: Mapping[str, Any] | None = None) -> str:
        header = message_header(kind, self._session)
        number = header["msg_id"]
        message = {"channel": channel, "header": header, "parent_header": dict(parent or {}), "metadata": {}}
        text = json.dumps({**message, "content": content, "buffers": []})
        if len(text) > _MAX_SENT_BYTES:  # ASCII: one character, one byte
            self._process.lose(f"a message of {len(text)} bytes is more than its gateway takes")
            return number
        if kind == "execute_request":
            self._unheard = (number, {**message, "content": content, "buffers": []})
            self._unanswered = number
        self._outbox.append(text)
        self._orders.wake()
        return number

    # On the thread that serves the socket.

    def _connect(self, seconds: float = _SOCKET_SECONDS) -> Any:
        line = self._websocket.WebSocket(
            skip_utf8_validation=True,  # half a second for each megabyte; `json` finds what is wrong
            sslopt={"context": self._gateway.tls} if self._gateway.tls else None,
        )

        def connect() -> None:
            line.connect(
                self._address,
                timeout=seconds + 1,  # behind the time limit below, whose error says more
                header=[f"{name}: {value}" for name, value in self._gateway.headers().items()],
                suppress_origin=True,
                redirect_limit=0,  # the token is for this gateway alone
            )

        finish_within(seconds, connect, lambda: shut_down_socket(line.sock) if line.sock else None)
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
        cuts = 0
        try:
            while not self._closed:
                began = time.monotonic()
                try:
                    self._serve_line()
                except broken as error:
                    why = str(error) or type(error).__name__
                    cuts = cuts + 1 if time.monotonic() - began < _SHORT_SECONDS else 1
                    if cuts > _MAX_CUTS:
                        self._process.lose(f"gateway {self._gateway.url} cuts the line again and again ({why})")
                        return
                    self._rest.wait(min(_LONGEST_REST_SECONDS, 0.01 * 2**cuts))
                    if not self._closed and not self._reconnect(why, broken):
                        return
        finally:
            if not self._closed:  # also by an error that nobody expects: nobody else would notice
                self._process.lose("the line to it was left")
            self._disconnect(broken)

    def _disconnect(self, broken: tuple[type[BaseException], ...]) -> None:
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
                self._orders.drain()
                if self._waiting_bytes > _MAX_WAITING_BYTES:
                    with self._lock:
                        self._lock.wait_for(lambda: self._waiting_bytes <= _MAX_WAITING_BYTES, _MOMENT_SECONDS)
                elif waiting or self._line.sock in ready:
                    self._message_bytes = 0
                    self._receive_frame(*self._line.recv_data(control_frame=True))
                    if _QUICKACK:  # or each message waits up to 40 ms for the other side's next one
                        self._line.sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
                    quiet = 0
                elif not ready:
                    quiet += 1
                    if quiet > 2 or self._unanswered and self._process.dead():  # then the line may stay open
                        raise TimeoutError("no sound from the gateway")
                    self._line.ping()
                while self._outbox:  # behind the reading, which notices a line that is closed
                    self._line.send(self._outbox[0])
                    self._outbox.popleft()

    def _receive_frame(self, kind: int, data: Any) -> None:
        abnf = self._websocket.ABNF
        if kind == abnf.OPCODE_CLOSE:
            raise ConnectionResetError("the gateway closed the websocket")
        if kind != abnf.OPCODE_TEXT:
            return  # a ping, a pong, or a message with buffers, which is none of ours
        message = _parse_message(data)
        if message is None or message["channel"] not in self._inbox:
            return
        if message["parent_header"].get("msg_id") == self._unheard[0]:
            self._unheard = ("", {})
        if message["channel"] == "shell" and message["parent_header"].get("msg_id") == self._unanswered:
            self._unanswered = ""
        self._answered = self._answered or message["parent_header"].get("session") == self._session
        state = str(message["content"].get("execution_state")) if message["msg_type"] == "status" else ""
        size = len(data) + bounded_json.estimate_bytes(data) + _MESSAGE_BYTES
        with self._lock:
            self._inbox[message["channel"]].append((size, message))
            self._waiting_bytes += size
            self._news.wake()
            self._lock.notify_all()
        if state in _GONE:
            self._process.lose(_GONE[state])
        elif state == "starting" and self._attached and self._answered:  # otherwise its start is awaited
            self._process.lose(RESTARTED)

    def _reconnect(self, why: str, broken: tuple[type[BaseException], ...]) -> bool:
        """Open a line that broke anew; tell whether that was possible."""
        self._disconnect(broken)
        deadline = time.monotonic() + _RECONNECT_SECONDS
        pause = threading.Event()
        while not self._closed and self._process.alive():
            try:
                if self._process.dead():
                    self._process.lose("its gateway no longer knows it")
                    return False
                self._line = self._connect()
                self._resend()
                return True
            except broken as error:
                why = str(error) or why
            if time.monotonic() > deadline:
                self._process.lose(f"the way to gateway {self._gateway.url} is lost ({why})")
                return False
            pause.wait(0.2)
        return False

    def _resend(self) -> None:
        """Repeat a request of which nothing was heard; a kernel in which it ran says so, and doesn't run it again."""
        number, message = self._unheard
        if self._attached:
            if number:
                self._process.lose("the line to its server broke, and what became of the last request is not known")
        elif number and not any(number in one for one in self._outbox):
            # The very same message would be dropped without a word.
            self._outbox.append(json.dumps({**message, "metadata": {"again": time.monotonic()}}))
            self._orders.wake()


def _parse_message(data: bytes) -> dict[str, Any] | None:
    """Read a message; None if it is nothing that a kernel says."""
    message = bounded_json.load_object(data)
    if message is None or not isinstance(message.get("channel"), str):
        return None
    header, parent_header, content = (message.get(one) for one in ("header", "parent_header", "content"))
    if not (isinstance(header, dict) and isinstance(parent_header, dict) and isinstance(content, dict)):
        return None
    return {
        "channel": message["channel"],
        "header": plain_header(header),
        "msg_type": str(header.get("msg_type", "")),
        "parent_header": plain_header(parent_header),
        "content": content,
    }
