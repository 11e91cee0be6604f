"""`UnresponsiveCell`: Ctrl-C in a running cell; if it does not react, the user is asked before its kernel ends."""

from __future__ import annotations

import threading

from tw_autogen.cli.approval_prompt import ApprovalPrompt
from tw_autogen.events import CellRan, CellStarted, Event, RoundClosed
from tw_autogen.session import Session


class UnresponsiveCell:
    """Stops the round of a session; a handler of its events, which say when a cell runs.

    It belongs with `kernel.end_unresponsive` set to False: otherwise the kernel ends the cell's process by itself.

    Args:
        asker: Asks the user.
        patience_seconds: How long an interrupted cell may take to end before the question.
        comes_back: Variables come back into the next kernel.
    """

    def __init__(self, asker: ApprovalPrompt, *, patience_seconds: float, comes_back: bool) -> None:
        self._asker = asker
        self._patience = patience_seconds
        self._comes_back = comes_back
        self._cell = 0
        self._over = threading.Event()
        self._over.set()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, CellStarted):
            self._cell, self._over = event.cell, threading.Event()
        elif isinstance(event, CellRan | RoundClosed):
            self._over.set()

    @property
    def running(self) -> bool:
        """Whether a cell is running."""
        return not self._over.is_set()

    def stop(self, session: Session, *, asks: bool = True, reason: str = "") -> None:
        """Interrupt the round; if a cell does not react, end its kernel once the user agrees.

        Args:
            session: Whose round is running.
            asks: Ask; otherwise the kernel is ended without.
            reason: As in `Session.interrupt`.
        """
        cell, over = self._cell, self._over
        session.interrupt(reason=reason)
        if over.wait(self._patience):
            return
        after = "Variables come back from the last checkpoint." if self._comes_back else "All variables are lost."
        question = f"cell {cell} does not react to the interrupt. End the kernel? {after} [y/N] "
        if not asks or self._asker.confirm(question, over):
            session.interrupt(kill=True, reason=reason)
        elif not over.is_set():
            self._asker.say(f"cell {cell} goes on; Ctrl-C ends the kernel at once")

    def kill(self, session: Session) -> None:
        """End the kernel of the running cell at once."""
        self._over.set()
        session.interrupt(kill=True)
