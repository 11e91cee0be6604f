"""`Wire`: carries requests to a kernel and its messages back; `Poller`: waits for them, the process, other threads."""

from __future__ import annotations

import contextlib
import datetime
import socket
import time
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tw_autogen.kernel.kernel_process import Process
from tw_autogen.kernel.zmtp import ZmtpSocket, wait_for_messages

Channel = Literal["iopub", "shell", "stdin"]
CHANNELS: tuple[Channel, ...] = ("iopub", "shell", "stdin")

_MAX_WAIT_SECONDS = 1.0


class Wire(Protocol):
    """The way to one kernel; used by one thread at a time."""

    @property
    def sources(self) -> Mapping[ZmtpSocket | int, Sequence[Channel]]:
        """Return sockets or descriptors, and the channels on which messages may be while they are readable."""
        ...

    def request(self, code: str, *, expressions: Mapping[str, str] | None = None, silent: bool = False) -> str:
        """Ask the kernel to run a cell, or silently to evaluate expressions; give the request's id.

        Args:
            code: The cell; empty where only expressions are wanted.
            expressions: Expressions by name.
            silent: Leave no trace in history and counter.
        """
        ...

    def request_kernel_info(self) -> str:
        """Send what any kernel answers at once, on shell and iopub; return the request's id."""
        ...

    def await_output(self) -> bool:
        """Wait a moment for a message on iopub; tell whether one is there."""
        ...

    def reconnect_output(self) -> None:
        """Connect iopub again after it was cut."""
        ...

    def reconnect_cut(self) -> Sequence[Channel]:
        """Connect shell and stdin again where they were cut; return which were: what was under way there is lost."""
        ...

    def answer_input(self, text: str) -> None:
        """Answer an `input_request`."""
        ...

    def flush(self, seconds: float) -> None:
        """Wait until everything is sent, which goes on otherwise only while somebody waits for messages.

        Args:
            seconds: How long at most.
        """
        ...

    def receive(self, channel: Channel) -> dict[str, Any] | None:
        """Return the next message that is there; None if there is none."""
        ...

    def close(self) -> None:
        """Close the sockets and remove the files of the wire."""
        ...


def await_kernel_info(wire: Wire, alive: Callable[[], bool], seconds: float) -> bool:
    """Wait until messages come on iopub, whose subscription may arrive later than the first request; tell whether.

    Args:
        wire: The way to the kernel.
        alive: Tells whether there is still somebody to wait for.
        seconds: How long to wait.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        wire.request_kernel_info()
        if wire.await_output():
            return True
    return False


def message_header(kind: str, session: str) -> dict[str, str]:
    """Return the header of a new message, as Jupyter's protocol has it.

    Args:
        kind: Such as `execute_request`.
        session: The id of the client's session.
    """
    return {
        "msg_id": uuid.uuid4().hex,
        "msg_type": kind,
        "session": session,
        "username": "tw",
        "version": "5.3",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
    }


def plain_header(header: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a message's header that are texts, as all of Jupyter's are; whoever sent it may be hostile.

    Args:
        header: The message's own, or its parent's.
    """
    return {name: value for name, value in header.items() if isinstance(value, str)}


def execute_content(
    code: str, expressions: Mapping[str, str] | None, *, silent: bool, counted: bool = True
) -> dict[str, Any]:
    """Return the content of an `execute_request`.

    Args:
        code: The cell.
        expressions: Expressions by name.
        silent: Leave no trace in history and counter.
        counted: Whether the cell is stored in the history.
    """
    return {
        "code": code.encode("utf-8", "backslashreplace").decode("utf-8"),  # half a surrogate pair can't be sent
        "silent": silent,
        "store_history": counted and not silent,
        "user_expressions": dict(expressions or {}),
        "allow_stdin": True,
        "stop_on_error": False,  # or the next request behind an error may be aborted unread
    }


class WakeupSocket:
    """Wakes a waiting thread from another one."""

    def __init__(self) -> None:
        self._outside, self._inside = socket.socketpair()
        self._outside.setblocking(False)
        self._inside.setblocking(False)

    def fileno(self) -> int:
        """Return what to wait on."""
        return self._inside.fileno()

    def wake(self) -> None:
        """Wake whoever waits, now or as soon as it does."""
        with contextlib.suppress(OSError):  # it is awake already, or the kernel is closed
            self._outside.send(b"!")

    def drain(self) -> None:
        """Take all wake-ups until now."""
        with contextlib.suppress(OSError):
            while self._inside.recv(64):
                pass

    def close(self) -> None:
        """Close both ends."""
        self._outside.close()
        self._inside.close()


@dataclass(frozen=True)
class PollResult:
    """Why a wait is over.

    Args:
        channels: Where messages may be.
        rung: Another thread wants it stopped.
        ended: The process may have ended.
    """

    channels: Container[Channel]
    rung: bool
    ended: bool


class Poller:
    """Waits on all of it at once, one request after the other.

    Args:
        wire: Where messages come from.
        process: The kernel's.
        wakeup: Rung when another thread wants the running request stopped.
    """

    def __init__(self, wire: Wire, process: Process, wakeup: WakeupSocket) -> None:
        self._process = process
        self._wakeup = wakeup
        self._sources = wire.sources
        self._death = process.death
        self.answers = WakeupSocket()
        """Rings when a host call may have its answer."""
        self._sockets = [source for source in self._sources if isinstance(source, ZmtpSocket)]
        others = [source for source in self._sources if isinstance(source, int)]
        self._descriptors = [*others, wakeup.fileno(), self.answers.fileno()]
        if self._death is not None:
            self._descriptors.append(self._death)

    def wait(self, milliseconds: int | None) -> PollResult:
        """Wait until something comes, or the time is over; for a second at most.

        Python runs its handler of a signal between two of its own steps: one that came just before the wait, such as
        Ctrl-C, would be handled only after it.
        """
        seconds = _MAX_WAIT_SECONDS if milliseconds is None else min(milliseconds / 1000, _MAX_WAIT_SECONDS)
        events = wait_for_messages(self._sockets, seconds, descriptors=self._descriptors)
        rung = self._wakeup.fileno() in events
        if rung:
            self._wakeup.drain()
        if self.answers.fileno() in events:
            self.answers.drain()
        channels = [channel for source in self._sources if source in events for channel in self._sources[source]]
        # Where nothing tells of the end, or another thread has ended it meanwhile, each wake looks.
        ended = self._death is None or self._death in events or self._process.death is None
        return PollResult(channels, rung, ended)

    def close(self) -> None:
        """Wait no more."""
        self.answers.close()
