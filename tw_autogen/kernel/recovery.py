"""`Recovery`: what a kernel takes down of its cells, so that a later one gets their variables back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError
from tw_autogen.kernel.client import KernelClient
from tw_autogen.kernel.execution import Log
from tw_autogen.kernel.journal import CellJournal
from tw_autogen.kernel.request import RawResult
from tw_autogen.kernel.results import COMES_BACK, LOST, went_well
from tw_autogen.kernel.resume import TAG, entry_of, resume


class Recovery:
    """Keeps a journal of cells, has checkpoints written, and brings variables back from both.

    Args:
        folder: Where journal and checkpoint lie; None: nothing is kept.
        resumes: Bring back what an earlier kernel left there; otherwise that is removed.
        checkpoints: Have copies of the variables written.
    """

    def __init__(self, folder: Path | None = None, *, resumes: bool = False, checkpoints: bool = False) -> None:
        self._journal = None if folder is None else CellJournal(folder)
        self._checkpoints = checkpoints
        self._due = resumes
        self._said: list[Log] = []
        if self._journal and not resumes:
            self._journal.clear()

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        return self._journal is not None

    @property
    def due(self) -> bool:
        """Whether variables are to be brought back into the next kernel."""
        return self._due

    @property
    def kept(self) -> bool:
        """Whether there is something that a fresh kernel would get back."""
        return self._journal is not None and self._journal.position > 0

    @property
    def lost(self) -> str:
        """Return what the end of a process means for the variables."""
        return COMES_BACK if self._journal else LOST

    def begin(self, live: KernelClient) -> None:
        """Look what there is for a process that has just been started."""
        if self._journal:
            self._due = bool(self._journal.open(live.uid))

    def forget(self) -> None:
        """Remove all that was kept: the next process begins afresh."""
        self._due = False
        if self._journal:
            self._journal.clear()

    def take_said(self) -> list[Log]:
        """Return, once, what there is to say about what came back."""
        said, self._said = self._said, []
        return said

    def bring_back(
        self, live: KernelClient, told: Callable[[dict[str, Any]], None], renew: Callable[[], KernelClient]
    ) -> KernelClient:
        """Bring variables back that an earlier process had, if that is due.

        Args:
            live: A fresh kernel with plugins, served functions and put variables.
            told: Given the answer that names the variables that are there.
            renew: Ends the kernel, and gives another one like it.

        Returns:
            The kernel; another one if this one ended over it.
        """
        if not self._due or self._journal is None:
            return live
        self._due = False
        for rerun in (True, False):
            try:
                self._said += resume(live, self._journal.open(live.uid), rerun=rerun)
                told(live.ask("hello"))
                self._checkpoint(live, urgent=False)
                return live
            except KernelError as error:
                self._said.append(Log("warning", TAG, f"bringing variables back ended the kernel: {error}"))
                live = renew()
                self._due = False
        self._journal.set_aside()
        return live

    def note_put(self, name: str, packed: Any, *, is_table: bool) -> None:
        """Take down a variable that the host has put in; a table would be too much."""
        if self._journal:
            self._journal.append({"put": name, **({} if is_table else {"value": packed})})

    def note_cell(self, live: KernelClient, code: str, outcome: RawResult, variables: Sequence[str]) -> None:
        """Take down a cell, and have a copy of the variables written if that is due.

        Args:
            live: The kernel.
            code: The cell.
            outcome: What came of it.
            variables: Names of those that are there after it.
        """
        if self._journal is None or outcome.died:
            return
        called = outcome.host_seconds > 0
        if went_well(outcome):
            self._journal.append(entry_of(code, seconds=outcome.seconds, called=called, variables=variables))
        self._checkpoint(live, urgent=called)

    def _checkpoint(self, live: KernelClient, *, urgent: bool) -> None:
        if self._journal and self._checkpoints:
            live.tell("checkpoint", position=self._journal.position, urgent=urgent)
