"""Asks the person at the terminal, also from the thread of a host call, while a round runs."""

from __future__ import annotations

import os
import select
import sys
import threading

import click
from rich.console import Console, RenderableType
from rich.text import Text

from tw_autogen.approval import Decision, Proposal, read_decision
from tw_autogen.cli.event_printer import EventPrinter
from tw_autogen.cli.terminal import code_block
from tw_autogen.text_escaping import visible

if sys.platform != "win32":
    import termios

_LOOK_SECONDS = 0.2
_LANGUAGES = {"cell": "python", "command": "bash", "rerun": "python"}
_EDIT_HINT = "[y/N/e to edit, or say why not]"
_CELL_HINT = "[y/N/always/e to edit, or say why not]"
_SUFFIXES = {"cell": ".py", "plan": ".txt", "command": ".sh"}


class ApprovalPrompt:
    """Asks whether something may happen; without a terminal, or when the round is stopped, the answer is no.

    Args:
        console: Where the question goes.
        show: What is shown meanwhile; it makes room.
    """

    def __init__(self, console: Console, show: EventPrinter) -> None:
        self._console = console
        self._show = show
        self._stopped = threading.Event()
        self._always: set[str] = set()

    @property
    def somebody(self) -> bool:
        """Return whether a person can be asked."""
        return sys.stdin.isatty() and self._console.file.isatty()

    def begin(self) -> None:
        """A round begins; what the one before still asks stays stopped."""
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Wait for no answer any more."""
        self._stopped.set()

    def approve(self, proposal: Proposal) -> Decision:
        """Ask for one line: yes, no, `always`, `e` to change it in an editor, or in other words why not.

        `always` holds for cells without findings until the session ends. What was typed at the terminal before the
        question stood there is no answer to it, and is lost.
        """
        if proposal.kind in self._always and not proposal.findings:
            return Decision(True)
        self._show.stop()
        try:
            return self._ask_for_decision(proposal)
        finally:
            self._show.resume()

    def confirm(self, question: str, withdrawn: threading.Event) -> bool:
        """Ask a question about what is running; return whether the answer was yes.

        Args:
            question: The line that is shown.
            withdrawn: Set when there is nothing left to ask about.
        """
        self._show.stop()
        try:
            forget_typed()
            self._console.print(Text(question, style="bold"), end="", soft_wrap=True)
            return self._read_line(withdrawn).strip().lower() in ("y", "yes")
        finally:
            if not withdrawn.is_set():
                self._show.resume()

    def say(self, message: str) -> None:
        """Print a line."""
        self._console.print(Text(message, style="dim"), soft_wrap=True)

    def forget(self) -> None:
        """Ask about everything again: a new session begins."""
        self._always.clear()

    def _ask_for_decision(self, proposal: Proposal) -> Decision:
        stopped = self._stopped
        in_question = proposal.kind in ("packages", "write")
        if not in_question and proposal.text != self._show.shown_code:
            self._console.print(_render_proposal(proposal))
        for finding in proposal.findings:
            self._console.print(Text(f"! {visible(finding)}", style="yellow"), soft_wrap=True)
        can_be_always = proposal.kind == "cell" and not proposal.findings
        hint = _CELL_HINT if can_be_always else _EDIT_HINT if proposal.editable else proposal.hint
        while True:
            question = f"{proposal.question} {hint} "
            forget_typed()
            self._console.print(Text(question, style="bold"), end="", soft_wrap=True)
            answer = self._read_line(stopped).strip()
            if can_be_always and answer.lower() in ("a", "always"):
                self._always.add(proposal.kind)
                return Decision(True)
            if not proposal.editable or answer.lower() not in ("e", "edit"):
                return read_decision(answer, proposal)
            if (changed := self._edit_code(proposal)) is not None:
                return Decision(True, changed) if changed.strip() else Decision(False)

    def _edit_code(self, proposal: Proposal) -> str | None:
        """Open the code in the person's editor; return None if they changed nothing, or there is no editor."""
        try:
            return click.edit(proposal.text, extension=_SUFFIXES[proposal.kind])
        except click.ClickException as error:
            self._console.print(Text(f"no editor could be started ({error.message}); set EDITOR", style="red"))
            return None

    def _read_line(self, stopped: threading.Event) -> str:
        if os.name != "posix":
            return sys.stdin.readline()
        while not stopped.is_set():
            if select.select([sys.stdin], [], [], _LOOK_SECONDS)[0] and not stopped.is_set():
                return sys.stdin.readline()
        self._console.print()
        return ""


def forget_typed() -> None:
    """Drop what waits to be read at a terminal; what comes through a pipe stays."""
    if sys.platform != "win32" and sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _render_proposal(proposal: Proposal) -> RenderableType:
    if proposal.kind not in _LANGUAGES:
        return Text(proposal.shown)
    return code_block(proposal.shown, _LANGUAGES[proposal.kind])
