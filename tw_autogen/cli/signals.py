"""What Ctrl-C, SIGTERM and SIGHUP do: while a request runs, and at any other time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

from tw_autogen.errors import ENDED_BY_SIGNAL

_TERMINATING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Windows has no SIGHUP."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come (`timeout`, `docker stop`, systemd, Slurm), or SIGHUP (a closed terminal): end as at Ctrl-C.

    Args:
        number: The signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(_signal_reason(number))


@contextlib.contextmanager
def terminating_signals_raise() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM and SIGHUP while this is entered, as Python raises `KeyboardInterrupt` at SIGINT.

    A signal that this program was started to ignore (`nohup`) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = _set_handlers(_TERMINATING, _raise)
    try:
        yield
    finally:
        _restore(before)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated(number)


def _signal_reason(number: int) -> str:
    return f"{ENDED_BY_SIGNAL} ({signal.Signals(number).name})"


def _set_handlers(numbers: Sequence[int], handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Set a handler for each signal that is not ignored; return those before."""
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in handled}


def _restore(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


class StopSignals:
    """While this is entered, the first Ctrl-C, SIGTERM or SIGHUP stops what is running gently, a later one raises.

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
        self.terminated = 0
        """The number of the last signal that was SIGTERM or SIGHUP; 0 if none was."""
        self._stop = stop
        self._harder = harder
        self._can_harder = can_harder

    def __enter__(self) -> StopSignals:
        self._before = _set_handlers((signal.SIGINT, *_TERMINATING), self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _restore(self._before)

    @property
    def reason(self) -> str:
        """Why the round ends, as a clause; empty where the user has stopped it."""
        return _signal_reason(self.terminated) if self.terminated else ""

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.pressed += 1
        if number in _TERMINATING:
            self.terminated = number
        call: Callable[[], None] = self._stop
        if self.pressed > 1:
            if self.pressed > 2 or self._harder is None or not self._can_harder():
                raise Terminated(self.terminated) if self.terminated else KeyboardInterrupt
            call = self._harder
        threading.Thread(target=call, name="stop-signal", daemon=True).start()
