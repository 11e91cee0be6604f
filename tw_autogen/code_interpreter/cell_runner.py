"""Cells: checked code goes into the kernel, with its plugins, and every step of it becomes an event.

What a cell leaves behind belongs to that cell alone: the files that it made, and what its host calls bring.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tw_autogen.approval import PersonTime, noting_person_time
from tw_autogen.code_interpreter.plugin_selection import names_used
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.errors import HostCallBudgetError, PluginLoadError
from tw_autogen.events import ArtifactSaved, CellOutput, CellRan, CellStarted, HostCalled
from tw_autogen.kernel import Artifact, Execution, Kernel, Log, size_words
from tw_autogen.lazy_module import wait_for_imports
from tw_autogen.model import ChatModel, call_model
from tw_autogen.plugin import HostPlugin, PluginSpec
from tw_autogen.role import Turn
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.text_escaping import is_unicode, visible_line
from tw_autogen.text_truncation import shortened

_log = logging.getLogger(__name__)
_KINDS: Mapping[str, str] = {
    ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".svg": "svg",
    ".csv": "df", ".tsv": "df", ".parquet": "df", ".feather": "df", ".xlsx": "df",
    ".html": "html", ".json": "json", ".txt": "txt", ".md": "txt", ".log": "txt",
}  # fmt: skip
_MAX_FILES = 2000
_MAX_ENTRIES = 20_000
_MAX_CHARS = 16_000_000  # in names together: those of folders in one another may be long
_LONGEST_NAME, _MAX_NAMES_CHARS = 1000, 50_000
"""Characters of the name of an artifact, and of those of one cell together."""
_FAILURE_CHARS = 2000


class FolderSnapshot(dict[Path, tuple[int, int]]):
    """When each file below a folder was last written, and its size, in the order in which a walk finds them."""

    end: Path | None = None
    """Where the walk was ended, because there are too many files; None: all of them are here."""

    def knows(self, path: Path) -> bool:
        """Return whether a file would be here if it had been there."""
        return self.end is None or path in self or _walk_order(path) < _walk_order(self.end)


def _walk_order(path: Path) -> list[tuple[bool, str]]:
    """Return what orders paths as `SafeFolder.walk` does: what lies in a folder comes before what lies deeper."""
    return [*((True, part) for part in path.parts[:-1]), (False, path.name)]


@dataclass(eq=False)
class HostCall:
    """One call that was allowed, and began in a cell.

    Args:
        name: The plugin's name.
        max_seconds: After so long nobody waits for it any more.
        person: How long a person was waited for, which does not count.
        seconds: How long it took, once it has ended.
    """

    name: str
    max_seconds: float
    person: PersonTime = field(default_factory=PersonTime)
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    def finish(self) -> float:
        """Mark the call as ended, or abandoned; return how long it took, in seconds."""
        self.seconds = self.spent()
        return self.seconds

    def spent(self) -> float:
        """Return how long it has taken until now."""
        if self.seconds is not None:
            return self.seconds
        return min(time.monotonic() - self.began - self.person.seconds, self.max_seconds)


class CallBudget:
    """Counts the host calls of one round; the next round begins at nothing. From any thread.

    Args:
        calls: How many, of all functions together.
        seconds: How long, of all together; looked at before each call, so that the last one may go beyond it.
    """

    def __init__(self, calls: int, seconds: float) -> None:
        self._max_calls = calls
        self._max_seconds = seconds
        self._taken: dict[str, list[HostCall]] = {}
        self._lock = threading.Lock()

    def take(self, round_id: str, name: str, *, most: int | None, seconds: float) -> HostCall:
        """Count one call that is about to be made.

        Args:
            round_id: Of the current round; empty outside of any, which is counted beside it.
            name: The function.
            most: How often it may be called in a round; None: as often as all together.
            seconds: How long it may take.

        Raises:
            HostCallBudgetError: it must not be made.
        """
        with self._lock:
            if round_id not in self._taken:
                self._taken = {**({} if round_id else self._taken), round_id: []}
            taken = self._taken[round_id]
            if most is not None and sum(call.name == name for call in taken) >= most:
                raise HostCallBudgetError(f"{name} may be called {most} times for one request, and was", name=name)
            if len(taken) >= self._max_calls:
                raise HostCallBudgetError(
                    f"{name}: the {self._max_calls} calls to the host for one request "
                    "(`code_interpreter.host_calls`) are used up",
                    name=name,
                )
            if sum(call.spent() for call in taken) >= self._max_seconds:
                raise HostCallBudgetError(
                    f"{name}: the {self._max_seconds:g} seconds of calls to the host for one request "
                    "(`code_interpreter.host_seconds`) are used up",
                    name=name,
                )
            call = HostCall(name, seconds)
            taken.append(call)
            return call


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
            HostCallBudgetError: it must not be made.
            InterruptedError: the cell has ended meanwhile.
        """
        round_id = self.turn.round.id if self.turn else ""
        with self._lock:
            if self.over.is_set():
                raise InterruptedError("the cell that made this call is over")
            call = budget.take(round_id, spec.name, most=spec.calls, seconds=seconds)
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
                self.tell(call.name, failure, call.finish())

    def tell(self, name: str, failure: str, seconds: float) -> None:
        """Emit what came of a call.

        Args:
            name: The plugin's name.
            failure: What went wrong, in words; empty: nothing.
            seconds: How long the call took.
        """
        if self.turn is not None:
            self.turn.emit(HostCalled(name, not failure, shortened(failure, _FAILURE_CHARS), seconds))

    def keep_artifact(self, artifact: Artifact) -> None:
        """Take a file that a call has made, unless it comes too late."""
        with self._lock:
            if not self.over.is_set():
                self._artifacts.append(artifact)

    def keep_log(self, log: Log) -> None:
        """Take a line that a call has logged, unless it comes too late."""
        with self._lock:
            if not self.over.is_set():
                self._logs.append(log)

    def collect(self) -> tuple[list[Artifact], list[Log]]:
        """Return what its calls have made; calls that are still on their way are given up."""
        with self._lock:
            self.over.set()
            for call in self._calls:
                seconds = call.finish()
                self.tell(call.name, f"given up after {seconds:.3g} s: the cell no longer waited for it", seconds)
            self._calls.clear()
            return self._artifacts, self._logs


CURRENT: ContextVar[RunningCell | None] = ContextVar("cell", default=None)
"""The cell from which this thread was called: served functions see the context of the thread that runs the cell."""


def snapshot(folder: Path) -> FolderSnapshot:
    """Return when each file below the folder was last written, and its size.

    Hidden ones, links, and names that are no UTF-8 are left out.
    """
    found = FolderSnapshot()
    gone_or_closed = contextlib.suppress(FileNotFoundError, PermissionError)  # by code
    with gone_or_closed, SafeFolder(folder) as opened:
        entries = opened.walk(enter=lambda name: not name.startswith((".", "__")))
        chars = 0
        for number, entry in enumerate(entries):
            chars += len(entry.name)
            if number == _MAX_ENTRIES or chars > _MAX_CHARS or len(found) > _MAX_FILES:  # no cell waits for more
                found.end = folder / entry.name
                break
            if entry.is_file and not entry.name.rpartition("/")[2].startswith(".") and is_unicode(entry.name):
                found[folder / entry.name] = (entry.info.st_mtime_ns, entry.info.st_size)
    return found


def new_files(before: FolderSnapshot, after: FolderSnapshot, known: Collection[Path]) -> tuple[Artifact, ...]:
    """Return the files that are new or changed, as artifacts, in order of their names.

    Of too many files, those are left out of which it is not known whether they were there before.

    Args:
        before: Taken before the cell.
        after: Taken after it.
        known: Files that are artifacts already.
    """
    changed = [
        path for path, stamp in after.items() if before.get(path) != stamp and before.knows(path) and path not in known
    ]
    return tuple(
        Artifact(path.name, _KINDS.get(path.suffix.lower(), "file"), path, size_words(after[path][1]))
        for path in changed
    )


def with_short_names(artifacts: Iterable[Artifact], folder: Path) -> tuple[Artifact, ...]:
    """Return the first of some artifacts, whose names as paths have 50 000 characters together; none has over 1 000.

    Each name stands in prompts, answers and the journal.

    Args:
        artifacts: In order.
        folder: Where they lie; it is no part of their names.
    """
    kept, left = list[Artifact](), _MAX_NAMES_CHARS
    for artifact in artifacts:
        chars = len(os.path.relpath(artifact.path, folder))
        left -= chars if chars <= _LONGEST_NAME else 0
        if left < 0:
            break
        if chars <= _LONGEST_NAME:
            kept.append(artifact)
    return tuple(kept)


class CellRunner:
    """The kernel of one CodeInterpreter, with its plugins in it.

    Args:
        kernel: Where cells run.
        plugins: Put into the kernel, or served from the host, as each declares.
        model: What host-run plugins may ask.
        settings: How often and how long host-run plugins may be called.
        later: Load each plugin before the first cell that names it, and not now: there are many.
        distrusted: As of `PluginContext`, for host-run plugins.

    Raises:
        PluginLoadError: a plugin that is not `optional` doesn't load; names file and line.
    """

    def __init__(
        self,
        kernel: Kernel,
        plugins: Sequence[PluginSpec],
        model: ChatModel,
        settings: CodeInterpreterSettings,
        *,
        later: bool = False,
        distrusted: Callable[[], Sequence[Path]] | None = None,
    ) -> None:
        self.kernel = kernel
        self._seconds = settings.host_seconds
        self._budget = CallBudget(settings.host_calls, settings.host_seconds)
        self._model = model
        self._distrusted = distrusted
        self._asking = threading.Lock()  # a model is asked by one thread at a time, and calls run side by side
        self._count = 0
        self._running: RunningCell | None = None
        self._failed_in = ""  # the round whose last cell failed
        self._variables: dict[str, Any] = {}
        self._host_plugins: list[HostPlugin] = []
        self._waiting = {spec.name: spec for spec in plugins} if later else {}
        try:
            self.plugins = tuple(spec for spec in plugins if later or self._load(spec))
        except BaseException:
            with contextlib.suppress(Exception):  # by foreign code, and what did not load is to be reported
                self.close()
            raise

    def run(self, code: str, *, turn: Turn, seconds: float, undo: bool = False) -> Execution:
        """Run one cell.

        Args:
            code: Python, verified already.
            turn: Takes events, and says when the round must be over.
            seconds: How long the cell may run.
            undo: It is a check: restore the variables as they were before it.

        Raises:
            PluginLoadError: a plugin that the code names, and that is not `optional`, doesn't load.

        Returns:
            What came of it; its artifacts are those of the kernel, of host-run plugins, and every other new file in the
            kernel's folder.
        """
        wait_for_imports()
        self._count += 1
        cell = self._count
        self._put_given(turn)
        for name in sorted(names_used(code, list(self._waiting.values()))):
            self._load(self._waiting[name])
            del self._waiting[name]  # what fails is tried again by the next cell that names it
        for plugin in self._host_plugins:
            plugin.begin_cell(second_try=self._failed_in == turn.round.id)
        self._failed_in = turn.round.id  # until it is known that it did not
        before = snapshot(self.kernel.folder)
        turn.emit(CellStarted(cell, code, check=undo))
        calls = RunningCell(turn)
        outer, self._running = CURRENT.set(calls), calls
        over = threading.Timer(turn.seconds_left(threading.TIMEOUT_MAX), self.kernel.interrupt)
        over.daemon = True
        over.start()  # the time of host calls is not the cell's, but the round's
        try:
            execution = self.kernel.execute(
                code,
                seconds=seconds,
                on_output=lambda stream, text: turn.emit(CellOutput(cell, stream, text)),
                cancelled=turn.cancelled,
                **({"undo": True} if undo else {}),
            )
        finally:
            over.cancel()
            CURRENT.reset(outer)
            self._running = None
            made, logged = calls.collect()
        if execution.ok:
            self._failed_in = ""
        known = [*execution.artifacts, *made]
        more = new_files(before, snapshot(self.kernel.folder), {artifact.path for artifact in known})
        artifacts = with_short_names([*known, *more], self.kernel.folder)
        if left := len(known) + len(more) - len(artifacts):
            logged.append(Log("warning", "files", f"{left} more files were made; their names are too long to be told"))
        execution = replace(execution, artifacts=artifacts, logs=(*execution.logs, *logged))
        for artifact in execution.artifacts:
            turn.emit(ArtifactSaved(artifact.name, artifact.kind, str(artifact.path), artifact.preview))
        turn.emit(_cell_ran_event(cell, execution))
        return execution

    def close(self) -> None:
        """Close the host-run plugins, whether one of them fails or not; the kernel belongs to whoever made it."""
        with contextlib.ExitStack() as stack:
            for plugin in reversed(self._host_plugins):
                stack.callback(plugin.close)

    def _load(self, spec: PluginSpec) -> bool:
        """Load a plugin; say whether it is there."""
        try:
            if spec.runs_in == "host":
                self._register_host_plugin(spec)
            else:
                self.kernel.load(spec.loadable())
        except PluginLoadError as error:
            if not spec.optional:
                raise
            remedy = "take @plugin off it" if spec.declared_in_python else "say `enabled: false`"
            _log.warning("left out: the plugin %s: %s; correct it, or %s", spec.name, visible_line(str(error)), remedy)
            return False
        return True

    def put(self, name: str, value: Any) -> None:
        """Make a variable in the kernel, and a session variable for host-run plugins.

        Args:
            name: An identifier.
            value: Its value.
        """
        self.kernel.put(name, value)
        self._variables[name] = value

    def _put_given(self, turn: Turn) -> None:
        """Make the variables that requests have given, once each: from then on they are the code's."""
        self._variables.update(turn.variables)
        for name, value in turn.variables.items():
            holders = turn.held_by.setdefault(name, [])
            if not any(holder is self.kernel for holder in holders):
                self.kernel.put(name, value)
                holders.append(self.kernel)

    def _register_host_plugin(self, spec: PluginSpec) -> None:
        plugin = HostPlugin(
            spec,
            folder=self.kernel.folder,
            session_variables=self._variables,
            call_model=lambda messages: self._ask_model(spec, messages),
            distrusted=self._distrusted,
            on_artifact=lambda artifact: self._current_cell().keep_artifact(artifact),
            on_log=lambda line: self._current_cell().keep_log(line),
        )
        self._host_plugins.append(plugin)
        self.kernel.serve(spec.name, self._wrap_host_call(spec, plugin), seconds=spec.seconds or self._seconds)

    def _wrap_host_call(self, spec: PluginSpec, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            cell, failure = self._current_cell(), ""
            try:
                begun = cell.begin(spec, self._budget, seconds=spec.seconds or self._seconds)
            except HostCallBudgetError as error:
                cell.tell(spec.name, f"{type(error).__name__}: {error}", 0.0)
                raise
            try:
                with noting_person_time(begun.person):
                    return function(*args, **kwargs)
            except BaseException as error:
                failure = f"{type(error).__name__}: {error}"
                raise
            finally:
                cell.finish(begun, failure)

        return call

    def _ask_model(self, spec: PluginSpec, messages: list[dict[str, Any]]) -> str:
        cell = self._current_cell()
        turn, most = cell.turn, spec.seconds or self._seconds
        if not self._asking.acquire(timeout=turn.seconds_left(most) if turn else 0.0):  # one may never come back
            raise TimeoutError(f"{spec.name}: another call has kept the model busy for too long")
        try:
            if turn is None or cell.over.is_set():
                raise RuntimeError(f"{spec.name} asked the model although its cell is not running")
            request = turn.request(messages, caller=spec.name, seconds=most)  # other calls wait for this one
            return call_model(self._model, replace(request, cancelled=cell.over)).words
        finally:
            self._asking.release()

    def _current_cell(self) -> RunningCell:
        """Return the cell that this call comes from: for a plugin's own threads the running one, outside none."""
        return CURRENT.get() or self._running or RunningCell(None)


def _cell_ran_event(cell: int, execution: Execution) -> CellRan:
    return CellRan(
        cell,
        execution.ok,
        execution.result,
        execution.stdout,
        execution.stderr,
        execution.error,
        [artifact.to_dict() for artifact in execution.artifacts],
        [str(variable) for variable in execution.variables],
        execution.state_lost,
        execution.seconds,
        execution.undone,
    )
