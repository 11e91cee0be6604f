"""`History`: lines typed before, on the arrow keys, where Python has readline."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType

try:
    import readline
except ImportError:  # Python for Windows has none; lines can be typed all the same
    readline = None  # type: ignore[assignment]  # the usual form of an optional module

_MOST_LINES = 1000


class History:
    """Reads lines; those of earlier chats are there again.

    They are kept in `$XDG_STATE_HOME/tw-autogen/history` (`~/.local/state/…`), readable by the user alone. A home
    that can't be written to is no reason to fail.
    """

    def __init__(self) -> None:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._path = Path(state, "tw-autogen", "history")

    def read(self, prompt: str) -> str:
        """Read one line.

        Raises:
            EOFError: there is no more.
        """
        return input(prompt)

    def __enter__(self) -> History:
        if readline is not None:
            with contextlib.suppress(OSError):
                readline.read_history_file(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if readline is not None:
            readline.set_history_length(_MOST_LINES)
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.touch(mode=0o600)
                readline.write_history_file(self._path)
