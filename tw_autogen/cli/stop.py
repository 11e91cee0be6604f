"""What Ctrl-C and SIGTERM do: while a request runs, and at any other time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
TERMINATED = "it was ended by a signal (SIGTERM)"


class Terminated(KeyboardInterrupt):
    """SIGTERM has come (`timeout`, `docker stop`, systemd, Slurm): end as at Ctrl-C, with everything closed."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


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
    """While this is entered, the first Ctrl-C or SIGTERM stops what is running gently, a later one raises.

    Args:
        stop: Called once, on a thread of its own: the main thread may hold any lock when the signal comes.
        harder: Called at the second signal, on a thread of its own, in place of raising, if `can_harder` returns True.
        can_harder: Whether something is running that `harder` stops; called in the signal's handler.
    """

    def __init__(
        self,
        stop: Callable[[], None],
        *,
        harder: Callable[[], None] | None = None,
        can_harder: Callable[[], bool] = lambda: True,
    ) -> None:
        self.pressed = 0
        self.terminated = False
        """Whether one of the signals was SIGTERM."""
        self._stop = stop
        self._harder = harder
        self._can_harder = can_harder

    def __enter__(self) -> StopSignals:
        self._before = [(number, signal.signal(number, self._press)) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before:
            signal.signal(number, before)

    @property
    def reason(self) -> str:
        """Why the round ends, as a clause; empty where the user has stopped it."""
        return TERMINATED if self.terminated else ""

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.pressed += 1
        self.terminated = self.terminated or number == signal.SIGTERM
        call: Callable[[], None] = self._stop
        if self.pressed > 1:
            if self.pressed > 2 or self._harder is None or not self._can_harder():
                raise Terminated if self.terminated else KeyboardInterrupt
            call = self._harder
        threading.Thread(target=call, name="stop-signal", daemon=True).start()
