"""What the host calls of one cell leave behind, kept apart from those of all other cells."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from dataclasses import dataclass, field

from tw_autogen.code_interpreter.host_call_budget import CallBudget, Taken
from tw_autogen.events import HostCalled
from tw_autogen.kernel import Artifact, Log
from tw_autogen.plugin import PluginSpec
from tw_autogen.role import Turn


@dataclass(eq=False)
class HostCall:
    """One call that began in a cell."""

    name: str
    taken: Taken


@dataclass(eq=False)
class RunningCell:
    """A cell that runs; from any thread.

    Args:
        turn: Takes its events; None for code that runs outside of any round.
        over: Set when the cell has ended: what a call brings that is still on its way then comes too late.
    """

    turn: Turn | None
    over: threading.Event = field(default_factory=threading.Event)
    _artifacts: list[Artifact] = field(default_factory=list)
    _logs: list[Log] = field(default_factory=list)
    _calls: list[HostCall] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, spec: PluginSpec, budget: CallBudget, *, seconds: float) -> HostCall:
        """Note a call that is about to be made.

        Args:
            spec: The plugin that is called.
            budget: What calls of this cell may take together.
            seconds: How long this one may take.

        Raises:
            CallBudgetError: it must not be made.
            InterruptedError: the cell has ended meanwhile.
        """
        round_id = self.turn.round.id if self.turn else ""
        with self._lock:
            if self.over.is_set():
                raise InterruptedError("the cell that made this call is over")
            call = HostCall(spec.name, budget.take(round_id, spec.name, most=spec.calls, seconds=seconds))
            self._calls.append(call)
            return call

    def finish(self, call: HostCall, failure: str) -> None:
        """Note that a call has ended; one that comes too late has been told of already.

        Args:
            call: The one that `begin` returned.
            failure: What went wrong, in words; empty: nothing.
        """
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
                self.tell(call.name, failure, call.taken.end())

    def tell(self, name: str, failure: str, seconds: float) -> None:
        """Emit what came of a call.

        Args:
            name: The plugin's name.
            failure: What went wrong, in words; empty: nothing.
            seconds: How long the call took.
        """
        if self.turn is not None:
            self.turn.emit(HostCalled(name, not failure, failure, seconds))

    def keep_artifact(self, one: Artifact) -> None:
        """Take a file that a call has made, unless it comes too late."""
        with self._lock:
            if not self.over.is_set():
                self._artifacts.append(one)

    def keep_log(self, one: Log) -> None:
        """Take a line that a call has logged, unless it comes too late."""
        with self._lock:
            if not self.over.is_set():
                self._logs.append(one)

    def end(self) -> tuple[list[Artifact], list[Log]]:
        """Return what its calls have made; calls that are still on their way are given up."""
        with self._lock:
            self.over.set()
            for call in self._calls:
                seconds = call.taken.end()
                self.tell(call.name, f"given up after {seconds:.3g} s: the cell no longer waited for it", seconds)
            self._calls.clear()
            return self._artifacts, self._logs


CURRENT: ContextVar[RunningCell | None] = ContextVar("cell", default=None)
"""The cell from which this thread was called: served functions see the context of the thread that runs the cell."""
