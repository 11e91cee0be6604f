"""`Wire`: what carries requests to a kernel and its messages back, such as sockets on this machine or a websocket."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

Channel = Literal["iopub", "shell", "stdin"]
CHANNELS: tuple[Channel, ...] = ("iopub", "shell", "stdin")


class Wire(Protocol):
    """The way to one kernel; used by one thread at a time."""

    @property
    def sources(self) -> Mapping[Any, Sequence[Channel]]:
        """Return what a `zmq.Poller` waits on, and the channels on which messages may be while it is readable."""
        ...

    def request(self, code: str, *, expressions: Mapping[str, str] | None = None, silent: bool = False) -> str:
        """Ask the kernel to run a cell, or silently to evaluate expressions; give the request's id."""
        ...

    def ask_for_life(self) -> None:
        """Send what any kernel answers at once, on shell and iopub."""
        ...

    def await_output(self) -> bool:
        """Wait a moment for a message on iopub; tell whether one is there."""
        ...

    def answer_input(self, text: str) -> None:
        """Answer an `input_request`."""
        ...

    def receive(self, channel: Channel) -> dict[str, Any] | None:
        """Return the next message that is there; None if there is none."""
        ...

    def close(self) -> None:
        """Close the sockets and remove the files of the wire."""
        ...


def await_life(wire: Wire, alive: Callable[[], bool], seconds: float) -> bool:
    """Wait until messages come on iopub, whose subscription may arrive later than the first request; tell whether.

    Args:
        wire: The way to the kernel.
        alive: Tells whether there is still somebody to wait for.
        seconds: How long to wait.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        wire.ask_for_life()
        if wire.await_output():
            return True
    return False


def execute_content(
    code: str, expressions: Mapping[str, str] | None, *, silent: bool, counted: bool = True
) -> dict[str, Any]:
    """Return the content of an `execute_request`."""
    return {
        "code": code.encode("utf-8", "backslashreplace").decode("utf-8"),  # half a surrogate pair can't be sent
        "silent": silent,
        "store_history": counted and not silent,
        "user_expressions": dict(expressions or {}),
        "allow_stdin": True,
        "stop_on_error": False,  # or the next request behind an error may be aborted unread
    }
