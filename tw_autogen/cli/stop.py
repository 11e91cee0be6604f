"""What Ctrl-C does while a request runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType


class CtrlC:
    """While this is entered, the first Ctrl-C stops what is running gently, the second one raises `KeyboardInterrupt`.

    Args:
        stop: Called once, on a thread of its own: the main thread may hold any lock when the signal comes.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.pressed = 0
        self._stop = stop

    def __enter__(self) -> CtrlC:
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.pressed += 1
        if self.pressed > 1:
            raise KeyboardInterrupt
        threading.Thread(target=self._stop, name="ctrl-c", daemon=True).start()
