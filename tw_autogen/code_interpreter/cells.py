"""Cells: checked code goes into the kernel, with its plugins, and every step of it becomes an event."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tw_autogen.code_interpreter.budget import CallBudget
from tw_autogen.code_interpreter.folder import new_files, snapshot
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.events import ArtifactSaved, CellOutput, CellRan, CellStarted, Event, HostCalled
from tw_autogen.kernel import Artifact, Execution, Kernel, Log
from tw_autogen.model import ChatModel
from tw_autogen.plugin import HostPlugin, PluginSpec
from tw_autogen.role import Turn, report_call


class Cells:
    """The kernel of one CodeInterpreter, with its plugins in it.

    Args:
        kernel: Where cells run.
        plugins: Put into the kernel, or served from the host, as each declares.
        model: What host-run plugins may ask.
        settings: How often and how long host-run plugins may be called.

    Raises:
        PluginLoadError: a plugin doesn't load; names file and line.
    """

    def __init__(
        self, kernel: Kernel, plugins: Sequence[PluginSpec], model: ChatModel, settings: CodeInterpreterSettings
    ) -> None:
        self.kernel = kernel
        self._seconds = settings.host_seconds
        self._budget = CallBudget(settings.host_calls, settings.host_seconds)
        self._model = model
        self._turn: Turn | None = None
        self._count = 0
        self._made: list[Artifact] = []
        self._logged: list[Log] = []
        self._variables: dict[str, Any] = {}
        self._host_plugins: list[HostPlugin] = []
        for spec in plugins:
            if spec.runs_in == "host":
                self._serve(spec)
            else:
                kernel.load(spec.loadable())

    def run(self, code: str, *, turn: Turn, seconds: float) -> Execution:
        """Run one cell.

        Returns:
            What came of it; its artifacts are those of the kernel, of host-run plugins, and every other new file in the
            kernel's folder.
        """
        self._turn, self._count, self._made = turn, self._count + 1, []
        self._logged = []
        cell = self._count
        self._put(turn.variables)
        before = snapshot(self.kernel.folder)
        turn.emit(CellStarted(cell, code))
        execution = self.kernel.execute(
            code,
            seconds=seconds,
            on_output=lambda stream, text: turn.emit(CellOutput(cell, stream, text)),
            cancelled=turn.cancelled,
        )
        known = [*execution.artifacts, *self._made]
        more = new_files(before, snapshot(self.kernel.folder), {one.path for one in known})
        execution = replace(execution, artifacts=(*known, *more), logs=(*execution.logs, *self._logged))
        for one in execution.artifacts:
            turn.emit(ArtifactSaved(one.name, one.kind, str(one.path), one.preview))
        turn.emit(_ran(cell, execution))
        return execution

    def close(self) -> None:
        """Close the host-run plugins; the kernel belongs to whoever made it."""
        for plugin in self._host_plugins:
            plugin.close()

    def _put(self, variables: Mapping[str, Any]) -> None:
        for name, value in variables.items():
            if name not in self._variables or self._variables[name] is not value:
                self.kernel.put(name, value)
                self._variables[name] = value

    def _serve(self, spec: PluginSpec) -> None:
        plugin = HostPlugin(
            spec,
            folder=self.kernel.folder,
            session_variables=self._variables,
            call_model=lambda messages: self._ask(spec.name, messages),
            on_artifact=lambda one: self._made.append(one),
            on_log=lambda line: self._logged.append(line),
        )
        self._host_plugins.append(plugin)
        self.kernel.serve(spec.name, self._watched(spec, plugin), seconds=spec.seconds or self._seconds)

    def _watched(self, spec: PluginSpec, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            started, failure = time.monotonic(), ""
            try:
                self._budget.take(self._turn.round.id if self._turn else "", spec.name, spec.calls)
                return function(*args, **kwargs)
            except BaseException as error:
                failure = f"{type(error).__name__}: {error}"
                raise
            finally:
                spent = time.monotonic() - started
                self._budget.spend(spent)
                self._emit(HostCalled(spec.name, not failure, failure, spent))

        return call

    def _ask(self, name: str, messages: list[dict[str, Any]]) -> str:
        turn = self._turn or _no_turn()
        started = time.monotonic()
        completion = self._model.complete(
            messages, seconds=turn.seconds_left(float("inf")) or None, cancelled=turn.cancelled
        )
        report_call(turn, name, completion, time.monotonic() - started)
        return completion.text

    def _emit(self, event: Event) -> None:
        if self._turn is not None:
            self._turn.emit(event)


def _no_turn() -> Turn:
    raise RuntimeError("a host-run plugin asked the model although no cell is running")


def _ran(cell: int, execution: Execution) -> CellRan:
    return CellRan(
        cell,
        execution.ok,
        execution.result,
        execution.stdout,
        execution.stderr,
        execution.error,
        [one.to_dict() for one in execution.artifacts],
        [str(one) for one in execution.variables],
        execution.state_lost,
        execution.seconds,
    )
