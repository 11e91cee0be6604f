"""What Ctrl-C and SIGTERM do: while a request runs, and at any other time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM has come (`timeout`, `docker stop`, systemd, Slurm): end as at Ctrl-C, with everything closed."""


@contextlib.contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM while this is entered, as Python raises `KeyboardInterrupt` at SIGINT."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated


class StopSignals:
    """While this is entered, the first Ctrl-C or SIGTERM stops what is running gently, the second one raises.

    Args:
        stop: Called once, on a thread of its own: the main thread may hold any lock when the signal comes.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.pressed = 0
        self.terminated = False
        """Whether one of the signals was SIGTERM."""
        self._stop = stop

    def __enter__(self) -> StopSignals:
        self._before = [(number, signal.signal(number, self._press)) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before:
            signal.signal(number, before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.pressed += 1
        self.terminated = self.terminated or number == signal.SIGTERM
        if self.pressed > 1:
            raise Terminated if self.terminated else KeyboardInterrupt
        threading.Thread(target=self._stop, name="stop-signal", daemon=True).start()
