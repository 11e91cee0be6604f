"""The sockets of one kernel, through jupyter_client: requests out, messages in."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

from tw_autogen.kernel.messages import Reader
from tw_autogen.kernel.wire import Channel, execute_content

_LONGEST_PATH = 100
"""Bytes that a socket's path may have (107 on Linux, 103 on macOS, with the number that is appended)."""

_PREFIX = "tw-"
_SOCKET = "k"
_MOMENT_MS = 20

_RECONNECT_MS = 5
"""How soon a socket looks again whether the starting kernel listens by now."""

_LARGEST_PART = 64 << 20
"""The bytes of one part of a message; a connection that brings more is cut."""

_MOST_WAITING = 4
"""How many messages are taken in before somebody reads them; further ones stay in the kernel's process."""
_SAID_CHARS = 2000


def _runtime_folder() -> Path:
    """Make a kernel's own folder, where the path of a socket in it is short enough if there is such a place."""
    own = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    if _short(own):
        return own
    for place in ("/tmp", "/var/tmp"):  # TMPDIR lies too deep
        with contextlib.suppress(OSError):
            made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)).resolve()
            if _short(made):
                own.rmdir()
                return made
            made.rmdir()
    return own


def _short(folder: Path) -> bool:
    return len(os.fsencode(folder / _SOCKET)) <= _LONGEST_PATH


class Connection:
    """The `Wire` to a kernel on this machine: a connection file and sockets, made before its process, closed behind it.

    The sockets connect at once and find the kernel as soon as it listens, so that nobody waits for a fixed time.

    Args:
        opens: Connect; otherwise somebody else does, as `info` says.
    """

    def __init__(self, *, opens: bool = True) -> None:
        self.runtime = _runtime_folder()
        by_file = os.name == "posix" and zmq.has("ipc") and _short(self.runtime)
        self.log = self.runtime / "log"
        key = secrets.token_hex(16).encode()
        where = str(self.runtime / _SOCKET)
        self.file = self.runtime / "connection.json"
        _, self.info = write_connection_file(
            str(self.file), key=key, transport="ipc" if by_file else "tcp", ip=where if by_file else "127.0.0.1"
        )
        self.session = Session(key=key, signature_scheme="hmac-sha256", username="tw")
        self._channels: dict[Channel, zmq.Socket[bytes]] = {}
        self._reader = Reader(key)
        if opens:
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
            self.shell = self._open(context, zmq.DEALER, self.info, "shell")
            self.stdin = self._open(context, zmq.DEALER, self.info, "stdin")
            self.iopub = self._open(context, zmq.SUB, self.info, "iopub")
            self._channels = {"shell": self.shell, "stdin": self.stdin, "iopub": self.iopub}

    @property
    def sources(self) -> Mapping[Any, Sequence[Channel]]:
        """Give the sockets."""
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
        return str(self.session.send(self.shell, "execute_request", content)["header"]["msg_id"])

    def ask_for_life(self) -> None:
        """Send what any kernel answers at once, on shell and iopub."""
        self.session.send(self.shell, "kernel_info_request", {})

    def said(self) -> str:
        """Give the end of what the process wrote before its streams were led to the host."""
        with contextlib.suppress(OSError):
            return self.log.read_text(encoding="utf-8", errors="replace").strip()[-_SAID_CHARS:]
        return ""

    def await_output(self) -> bool:
        """Wait a moment for a message on iopub; tell whether one is there."""
        return bool(self.iopub.poll(_MOMENT_MS, zmq.POLLIN))

    def await_reply(self) -> None:
        """Wait a moment for a message on shell."""
        self.shell.poll(_MOMENT_MS, zmq.POLLIN)

    def answer_input(self, text: str) -> None:
        """Answer an `input_request`."""
        self.session.send(self.stdin, "input_reply", {"value": text})

    def receive(self, channel: Channel) -> dict[str, Any] | None:
        """Give the next message that is there; None if there is none. What can't be read is passed over."""
        while True:
            try:
                parts = self._channels[channel].recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            message = self._reader.read(parts)
            if message is not None:
                return message

    def close(self) -> None:
        """Close the sockets and remove their files."""
        for socket in self.sources:
            socket.close(linger=0)
        shutil.rmtree(self.runtime, ignore_errors=True)

    def _open(self, context: zmq.Context[Any], kind: int, info: Any, channel: str) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        # The kernel's end queues without a limit (`inside.boot`), so that a flood drops no message, `idle` among them.
        socket.setsockopt(zmq.RCVHWM, _MOST_WAITING)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, _LARGEST_PART)
        socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        if kind == zmq.SUB:
            socket.setsockopt(zmq.SUBSCRIBE, b"")
        else:
            socket.setsockopt(zmq.IDENTITY, self.session.bsession)  # by it the kernel finds the stdin of who asked
        separator = "-" if info["transport"] == "ipc" else ":"
        socket.connect(f"{info['transport']}://{info['ip']}{separator}{info[channel + '_port']}")
        return socket
