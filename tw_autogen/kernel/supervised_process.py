"""The host's side of a steward: a kernel's process on Linux, whether forked from a server or started for itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tw_autogen.errors import KernelError, SandboxError
from tw_autogen.kernel.process import readable

_PACKET = 1 << 16
_CREDENTIALS = struct.Struct("3i")
_END_SECONDS = 2.0


class SandboxFailed(SandboxError):
    """The wall of one level can't stand here."""


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """Make the socket between host and steward: ours, which tells who sends, and theirs."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return ours, theirs


class SupervisedProcess:
    """A kernel's process that a steward looks after.

    Args:
        channel: To the steward.
        bury: Waits for what this process itself has started, once all has ended.
    """

    def __init__(self, channel: socket.socket, bury: Callable[[], object] = lambda: None) -> None:
        self._channel = channel
        self._channel.setblocking(False)
        self._bury = bury
        self._lock = threading.Lock()
        self._steward = -1
        self._assigned = False
        self._ended = ""
        self._down = ""
        self.pid = 0
        self.death: int | None = channel.fileno()

    def assign(self, assignment: Mapping[str, Any], seconds: float) -> None:
        """Show the kernel its session's folders.

        Args:
            assignment: `folder`, and the `read` and `write` that belong to it.
            seconds: How long that may take.

        Raises:
            KernelError: the process has ended.
            WallDown: its wall can't stand.
        """
        self._send(op="assign", **assignment)
        self.await_assignment(seconds)

    def await_assignment(self, seconds: float) -> None:
        """Wait until the kernel sees its session's folders; raises as `assign` does."""
        deadline = time.monotonic() + seconds
        while self.alive() and not self._assigned:
            if not readable(self._channel, max(0.0, deadline - time.monotonic())):
                raise KernelError(f"the kernel's process was not ready within {seconds:g} s")
        if self._ended:
            raise self.why_ended()

    def why_ended(self) -> KernelError:
        """Return the reason of the end as an exception."""
        return SandboxFailed(self._down) if self._down else KernelError(f"the kernel's process ended: {self._ended}")

    def alive(self) -> bool:
        """Return whether it still runs; takes what the steward has said meanwhile."""
        while not self._ended:
            try:
                packet, extra, _, _ = self._channel.recvmsg(_PACKET, socket.CMSG_SPACE(_CREDENTIALS.size))
            except BlockingIOError:
                return True
            except ConnectionResetError:  # it ended with something of ours unread; what it said before can be read now
                continue
            except OSError:
                packet, extra = b"", []
            if packet:
                self._hear(json.loads(packet), extra)
            else:
                self._ended = "killed with its steward"
        return False

    @property
    def ended(self) -> str:
        """Return how it ended; empty as long as nobody has seen that it did."""
        return self._ended

    def watch(self) -> None:
        """Watch it closely: a cell begins."""
        self._send(op="cell")

    def interrupt(self) -> None:
        """Send SIGINT to it and to its group; it has been sent when this returns."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just ended
                os.killpg(self.pid, signal.SIGINT)
        else:  # it has not yet said its number
            self._send(op="signal", number=int(signal.SIGINT))

    def end(self) -> str:
        """End it with all that it started; give how it ended."""
        with self._lock:  # a thread that closes the kernel meets the one that waits for a cell
            if self.death is None:
                return self._ended
            if self.alive():
                self._send(op="end")
                self._await_end()
                self._ended = "killed"
            else:
                self._await_end()
            self._channel.close()
            self.death = None
            if self._steward >= 0:
                os.close(self._steward)
                self._steward = -1
            self._bury()
            return self._ended

    def _await_end(self) -> None:
        """Wait until the steward has ended, and with it all below; a steward that doesn't is killed."""
        if self._steward < 0:
            self._channel.shutdown(socket.SHUT_RDWR)
            return
        if not readable(self._steward, _END_SECONDS):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._steward, signal.SIGKILL)
            readable(self._steward, _END_SECONDS)

    def _hear(self, message: Mapping[str, Any], extra: list[Any]) -> None:
        kind = message.get("kind")
        if kind == "steward":
            with contextlib.suppress(OSError):  # it has ended already
                self._steward = os.pidfd_open(_sender(extra))
        elif kind == "kernel":
            self.pid = _sender(extra)
        elif kind == "assigned":
            self._assigned = True
        elif kind == "failed":
            self._ended = str(message["why"])
            self._down = self._ended if message.get("wall") else ""
        elif kind == "ended":
            self._ended = str(message["how"])

    def _send(self, **message: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended; `alive` tells
            self._channel.send(json.dumps(message).encode())


def _sender(extra: list[Any]) -> int:
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0])
    return 0
