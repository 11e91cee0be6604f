"""Lets a kernel that is kept ready do once what takes long the first time, before anybody waits for it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tw_autogen.errors import KernelError
from tw_autogen.kernel.bundle import call_expression
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.plain import PlainKernel
from tw_autogen.kernel.starting import StartedKernel
from tw_autogen.kernel.wire import await_life

_CELL = """\
if "pandas" in __import__("sys").modules:
    __import__("pandas").DataFrame({"a": range(3)}).sum().sum()
1 + 1"""
"""It makes no variable."""


def warm_up(started: StartedKernel | PlainKernel, seconds: float, *, modules: Sequence[str] = ()) -> None:
    """Make the bridge in a kernel that has no session yet, and run a cell there; both are over when this returns.

    A kernel that was still busy with it would keep its first session waiting.

    Args:
        started: The kernel.
        seconds: How long that may take.
        modules: What it is to import first; what is not installed is left out.

    Raises:
        KernelError: the kernel has ended, or did not answer in time.
    """
    wire, deadline = started.connection, time.monotonic() + seconds
    wire.request("", expressions={"a": call_expression("warm_up", ",".join(modules))}, silent=True)
    if not await_life(wire, started.process.alive, seconds):
        raise KernelError("a kernel to be kept ready did not start")
    request = wire.request(_CELL, counted=False)
    while not _replied(wire, request):
        if not started.process.alive() or time.monotonic() > deadline:
            raise KernelError("a kernel to be kept ready did not answer")
        wire.await_reply()
    while wire.receive("iopub") is not None:
        pass


def _replied(wire: Connection, request: str) -> bool:
    while (message := wire.receive("shell")) is not None:
        if message["parent_header"].get("msg_id") == request:
            return True
    return False
