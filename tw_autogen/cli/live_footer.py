"""What moves at the foot of the terminal while a round runs: the words that grow, and who is at it for how long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tw_autogen.cli.terminal import clean, marks
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    from rich import live, spinner
else:
    live = LazyModule("rich.live")  # only a terminal has a foot
    spinner = LazyModule("rich.spinner")

_LINES = 6


class LiveFooter:
    """The lines below all that is printed for good; on anything but a terminal there are none.

    Printed text scrolls above them and is never painted again; they vanish with `stop`.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._marks = marks(console)
        self._spinner: spinner.Spinner | None = None
        self._live: live.Live | None = None
        self._since = time.monotonic()
        self._doing = ""
        self._growing = ""

    def start(self) -> None:
        """Appear."""
        if self._console.file.isatty() and not self._console.is_dumb_terminal and self._live is None:
            self._live = live.Live(self, console=self._console, transient=True, refresh_per_second=8)
            self._live.start()

    def stop(self) -> None:
        """Vanish; a second time nothing happens."""
        if self._live is not None:
            shown, self._live = self._live, None
            shown.stop()

    def doing(self, words: str) -> None:
        """Show who does what; the clock restarts when the words change."""
        if words != self._doing:
            self._doing, self._since = words, time.monotonic()
        self._growing = ""

    def grow(self, text: str) -> None:
        """Show the end of this text, which is still growing."""
        self._growing = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw: at most six lines of growing text, then the spinner with the seconds."""
        for line in clean(self._growing[-4000:]).rstrip().splitlines()[-_LINES:]:
            yield Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")
        if self._doing:
            seconds = f"{time.monotonic() - self._since:.1f} s"
            self._spinner = self._spinner or spinner.Spinner(self._marks.spinner)
            self._spinner.update(text=Text(f"{self._doing} {self._marks.dot} {seconds}", style="dim", no_wrap=True))
            yield self._spinner
