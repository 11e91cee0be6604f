"""What a thread that uses a kernel waits on: messages, the process's end, and other threads."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Container
from dataclasses import dataclass

import zmq

from tw_autogen.kernel.process import Process
from tw_autogen.kernel.wire import Channel, Wire


class WakeupSocket:
    """Wakes a waiting thread from another one."""

    def __init__(self) -> None:
        self._outside, self._inside = socket.socketpair()
        self._outside.setblocking(False)
        self._inside.setblocking(False)

    def fileno(self) -> int:
        """Return what to wait on."""
        return self._inside.fileno()

    def ring(self) -> None:
        """Wake whoever waits, now or as soon as it does."""
        with contextlib.suppress(BlockingIOError, OSError):  # it rings already, or the kernel is closed
            self._outside.send(b"!")

    def answer(self) -> None:
        """Stop ringing."""
        with contextlib.suppress(BlockingIOError, OSError):
            while self._inside.recv(64):
                pass

    def close(self) -> None:
        """Take it off the wall."""
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
        bell: Rings when another thread wants the running request stopped.
    """

    def __init__(self, wire: Wire, process: Process, bell: WakeupSocket) -> None:
        self._process = process
        self._bell = bell
        self._sources = wire.sources
        self._death = process.death
        self.answers = WakeupSocket()
        """Rings when a host call may have its answer."""
        self._poller = zmq.Poller()
        for one in (*self._sources, bell.fileno(), self.answers.fileno(), self._death):
            if one is not None:
                self._poller.register(one, zmq.POLLIN)

    def wait(self, milliseconds: int | None) -> PollResult:
        """Wait until something comes, or the time is over."""
        events = dict(self._poller.poll(milliseconds))
        rung = self._bell.fileno() in events
        if rung:
            self._bell.answer()
        if self.answers.fileno() in events:
            self.answers.answer()
        channels = [channel for source in self._sources if source in events for channel in self._sources[source]]
        # Where nothing tells of the end, or another thread has ended it meanwhile, each wake looks.
        ended = self._death is None or self._death in events or self._process.death is None
        return PollResult(channels, rung, ended)

    def close(self) -> None:
        """Wait no more."""
        self.answers.close()
