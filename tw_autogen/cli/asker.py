"""Asks the person at the terminal, from the thread of a host call, while a round runs."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tw_autogen.cli.show import Show
from tw_autogen.cli.terminal import clean

_LOOK_SECONDS = 0.2


class Asker:
    """Asks whether packages may be installed, or a command run.

    Without a terminal, or when the round is stopped, the answer is no.

    Args:
        console: Where the question goes.
        show: What is shown meanwhile; it makes room.
    """

    def __init__(self, console: Console, show: Show) -> None:
        self._console = console
        self._show = show
        self._stopped = threading.Event()

    @property
    def somebody(self) -> bool:
        """Tell whether a person can be asked."""
        return sys.stdin.isatty() and self._console.file.isatty()

    def begin(self) -> None:
        """A round begins; what the one before still asks stays stopped."""
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Wait for no answer any more."""
        self._stopped.set()

    def approve(self, names: Sequence[str]) -> bool:
        """Ask for one line: y or yes allows it."""
        stopped = self._stopped
        self._show.stop()
        wanted = clean(", ".join(names))
        wants = (
            f"A role wants to run: {wanted[2:]}\n"
            if wanted.startswith("$ ")
            else f"Code wants to install {wanted} for this session. "
        )
        question = f"{wants}Allow it? [y/N] "
        self._console.print(Text(question, style="bold"), end="", soft_wrap=True)
        return self._line(stopped).strip().lower() in ("y", "yes")

    def _line(self, stopped: threading.Event) -> str:
        if os.name != "posix":
            return sys.stdin.readline()
        while not stopped.is_set():
            if select.select([sys.stdin], [], [], _LOOK_SECONDS)[0] and not stopped.is_set():
                return sys.stdin.readline()
        self._console.print()
        return ""
