"""`LiveKernel`: a kernel as its callers see it: one request at a time, and a fresh process after one that ended."""

from __future__ import annotations

import builtins
import contextlib
import copy
import keyword
import os
import threading
import time
import unicodedata
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.closing import Closing
from tw_autogen.code_writable_folders import note_code_folders
from tw_autogen.errors import KernelBusyError, KernelError, KernelStartError, PluginLoadError
from tw_autogen.kernel.client import KernelClient, KernelHandle, max_message_bytes
from tw_autogen.kernel.execution_results import ROLLBACK, execution_of, rows, went_well
from tw_autogen.kernel.fair_lock import FairLock, LockTimeout
from tw_autogen.kernel.guest.object_snapshot import copies_on_write
from tw_autogen.kernel.host_calls import HostFunctions
from tw_autogen.kernel.kernel import Execution, Loadable, Log, OnOutput, Variable
from tw_autogen.kernel.kernel_process import check_open_files
from tw_autogen.kernel.launcher.sandbox import OFF
from tw_autogen.kernel.mounted_names import all_names
from tw_autogen.kernel.pending_request import ON_REQUEST, PendingRequest, RawResult
from tw_autogen.kernel.pinned_paths import PinnedPaths, folder_identity, remove_same
from tw_autogen.kernel.recovery import Recovery, is_table
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.transport import WakeupSocket
from tw_autogen.named_folders import named_folder
from tw_autogen.safe_folder import KERNEL_FOLDERS, SafeFolder, real_path, temporary_folder
from tw_autogen.secret_masking import mask_summary

_PLAIN_TYPES = frozenset({"str", "int", "list", "tuple", "dict", "set", "frozenset"})
"""Types whose summary is the value; of tables it is the columns."""


class LiveKernel(Closing):
    """An IPython kernel in a process of its own, started when it is first needed.

    A process that has ended is followed by a fresh one, with plugins, served functions and the variables that the host
    has put; how it ended, and what was lost, is told once. Where the process runs is what kinds of kernels add: they
    define `_open` and `_place`, and may define what stands around a cell or before a plugin.

    Args:
        folder: Where its files lie; None: a temporary one, removed by `close`.
        settings: Limits, interpreter, environment.

    Raises:
        ConfigError: a link that code could have made leads to the folder.
    """

    def __init__(self, folder: Path | str | None = None, *, settings: KernelSettings | None = None) -> None:
        self._settings = settings or KernelSettings()
        if folder is None:
            self.folder = temporary_folder("tw-kernel-")
            self._made, self._made_by = folder_identity(self.folder), os.getpid()
            weakref.finalize(self, remove_same, self.folder, self._made, self._made_by)
        else:
            if self._settings.sandbox == OFF:
                self.folder = real_path(folder)
            else:
                self.folder = named_folder(folder, writable=self._settings.write, distrusted=())
        self._owns_folder = folder is None
        self._pinned = PinnedPaths(self.folder, self._settings)
        writable = [Path(os.path.realpath(os.path.expanduser(one))) for one in self._settings.write]
        KERNEL_FOLDERS.update(all_names((self.folder, *writable)))
        note_code_folders(all_names([*writable, *([] if folder is None else [self.folder])]))
        check_open_files(self.folder)
        self._wakeup = WakeupSocket()
        weakref.finalize(self, self._wakeup.close)
        self._started: KernelClient | None = None
        self._end_live: Callable[[], object] | None = None
        self._plugins: dict[str, Loadable] = {}
        self._served = HostFunctions(max_message_bytes(self._settings))
        self._values: dict[str, Any] = {}
        self._variables: tuple[Variable, ...] = ()
        self._loss = ""
        self._fresh = True
        self._closed = False
        self._untold = list[Log]()  # of what was done for the kernel outside of a cell
        self._recovery = Recovery()
        self._turns = FairLock(self._settings.turn_seconds)
        self._executing = False
        self._running: PendingRequest | None = None

    @property
    def _live(self) -> KernelClient | None:
        """The kernel that runs; None in a fork of the process that has started it, which leaves it alone."""
        return self._started if self._started is not None and self._started.owned else None

    @property
    def where(self) -> str:
        """Describe in one line where code runs."""
        live = self._live
        if live is None:
            return self._place("starts with the first cell")
        return self._place(f"Python {live.python}" + (f", pid {live.process.pid}" if live.process.pid else ""))

    @property
    def pid(self) -> int | None:
        """Return the number of the kernel's process, as this process sees it; None while there is none."""
        if self._live is None or not self._live.process.alive():
            return None
        return self._live.process.pid or None

    def execute(
        self,
        code: str,
        *,
        seconds: float,
        on_output: OnOutput | None = None,
        cancelled: threading.Event | None = None,
        undo: bool = False,
    ) -> Execution:
        """Run one cell; see `Kernel.execute`.

        Args:
            code: The cell.
            seconds: How long it may run.
            on_output: Called with stream and text as they come; None: nobody listens.
            cancelled: As of `Kernel.execute`.
            undo: Restore the variables as they were before it, within the limits of `kernel.rollback_mb`.
        """
        with self._alone():
            ran = self._execute(code, seconds, on_output, cancelled, undo)
        return self._explained(ran)

    def load(self, plugin: Loadable) -> None:
        """Load a plugin; see `Kernel.load`."""
        with self._alone():
            self._before_plugin(plugin)
            self._load(self._ready(), plugin)
            self._plugins[plugin.name] = plugin

    def serve(self, name: str, function: Callable[..., Any], *, seconds: float | None = None) -> None:
        """Make a function of this process callable in the kernel; see `Kernel.serve`.

        Under the name `call_llm_api` it also answers plugins that ask their context for the model.

        Args:
            name: The name in the kernel.
            function: Called in this process.
            seconds: How long one call may take; None: no limit.

        Raises:
            ValueError: the name is no Python name.
        """
        name = _normalize_identifier(name)
        with self._alone():
            self._served.add(name, function, seconds)
            if self._live is not None:
                self._serve(self._ready(), name, self._served.docs()[name])

    def put(self, name: str, value: Any) -> None:
        """Make a variable; see `Kernel.put`. JSON values are session variables too, which plugins read.

        Args:
            name: The variable's name.
            value: Its value.

        Raises:
            TypeError: the value is of a type that doesn't cross.
            ValueError: the name is no Python name.
        """
        name = _normalize_identifier(name)
        with self._alone():
            live = self._restore_if_due(self._ready())
            packed = self._put(live, name, value)
            self._values[name] = _independent_copy(value)
            self._recovery.note_put(name, packed)

    def get(self, name: str) -> Any:
        """Fetch a variable's value; see `Kernel.get`."""
        name = unicodedata.normalize("NFKC", name)
        with self._alone():
            live = self._restore_if_due(self._ready())
            answer = self._ask(live, "get", name=name)
            if "ok" in answer:
                try:
                    return live.codec.unpack(answer["ok"])
                except Exception as error:  # code in the kernel may have written any of it
                    problem = f"the kernel's answer when asked for {name!r} can't be read: {error}"
                    raise KernelError(problem, folder=self.folder) from error
            if "error" not in answer:
                raise KernelError(f"the kernel gave no answer when asked for {name!r}", folder=self.folder)
            if answer.get("type") == "KeyError":
                raise KeyError(name)
            raise self._refusal_error(answer)

    def describe_files(
        self, files: Sequence[tuple[str, str]], *, seconds: float, all_seconds: float | None = None
    ) -> dict[str, Any]:
        """Describe files in a process of the kernel; see `FileDescriber.describe_files`.

        Args:
            files: Path and name of each.
            seconds: How long one file may take.
            all_seconds: How long all of them may take; most of `load_seconds` at the most.
        """
        together = min(seconds * len(files) if all_seconds is None else all_seconds, self._look_seconds)
        return self._query_files("describe", files=list(files), seconds=seconds, all_seconds=together)

    def list_files(self, folder: str, *, layouts: bool, max_lines: int, seconds: float) -> dict[str, Any]:
        """List a folder in a process of the kernel; see `FileDescriber.list_files`.

        Args:
            folder: Its path.
            layouts: Read first lines.
            max_lines: Of the list.
            seconds: How long it may take.
        """
        within = min(seconds, self._look_seconds)
        return self._query_files("list", folder=folder, layouts=layouts, max_lines=max_lines, seconds=within)

    @property
    def _look_seconds(self) -> float:
        """How long looking at files may take, so that the kernel still answers within `load_seconds`."""
        return 0.8 * self._settings.load_seconds

    def _query_files(self, op: str, **fields: Any) -> dict[str, Any]:
        with self._alone():
            live = self._ready(replay_failure=KernelStartError)
            try:
                self._untold += self._before_cell(live)
                answer = self._ask(live, op, **fields)
            except KernelError:
                if self._fresh:  # nothing was lost
                    self._loss = ""
                raise
        if not isinstance(answer.get("ok"), dict):
            error = answer.get("error") or "the kernel gave no answer"
            raise KernelError(f"files could not be described: {error}", folder=self.folder)
        return dict(answer["ok"])

    def variables(self) -> tuple[Variable, ...]:
        """Return the user's variables as they were after the last cell, or as they came back from an earlier kernel."""
        dead = self._live is None and self._recovery.kept
        if (self._recovery.due or dead) and not (self._executing or self._closed):
            with self._alone():
                self._restore_if_due(self._ready())
        return self._variables

    def interrupt(self) -> None:
        """Stop the running cell, keep the process; from any thread."""
        if self._executing:
            self._wakeup.wake()

    def kill(self) -> None:
        """End the process of the running cell at once, from any thread; nothing happens if none runs."""
        running, live = self._running, self._live
        if running is not None and live is not None:
            running.kill()
        elif self._executing and live is not None:  # cells are run again, or files are copied
            live.process.end()

    def restart(self) -> None:
        """End the process and start a fresh one with plugins, served functions and put variables."""
        with self._alone():
            self._end()
            self._loss = ""
            self._recovery.forget()
            self._ready()

    def close(self) -> None:
        """End the process; a cell that is running in another thread ends too. Files stay, unless the folder is ours."""
        self._closed = True
        live = self._live
        if live is not None and self._executing:
            self._stop_at_close(live)  # the thread that waits for the cell sees it and cleans up
        with contextlib.suppress(LockTimeout), self._turns.take(0.0):  # else whoever has the turn does it
            if self._live is not None and self._live.process.alive():
                self._recovery.finish(self._live)
            self._end()
            self._pinned.close()
        if self._owns_folder:
            remove_same(self.folder, self._made, self._made_by)

    # What kinds of kernels define.

    def _stop_at_close(self, live: KernelClient) -> str:
        """Stop the cell that runs while the kernel is closed; return how the process ended, empty if it lives on."""
        return live.process.end()

    def _place(self, process: str) -> str:
        """Return where code runs, given what is known of the process."""
        raise NotImplementedError

    def _open(self) -> KernelHandle:
        """Start a process.

        Raises:
            KernelStartError: it does not start.
        """
        raise NotImplementedError

    def _before_plugin(self, plugin: Loadable) -> None:
        """Prepare for a plugin that is about to be loaded."""

    def _before_cell(self, live: KernelClient) -> list[Log]:
        """Prepare the kernel for a cell; give what there is to say about it."""
        return []

    def _after_cell(self, live: KernelClient, outcome: RawResult) -> list[Log]:
        """Take over what a cell left behind; give what there is to say about it."""
        return []

    def _explained(self, ran: Execution) -> Execution:
        """Return what came of a cell, with what there is to say about its error; the kernel is free again."""
        return ran

    # Once this thread has the kernel for itself.

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._turns.take())
            except LockTimeout:
                raise KernelBusyError(
                    "the kernel is running a cell; a function that this cell calls can't use it now, and another "
                    f"thread waits {self._settings.turn_seconds:g} s for its turn at most",
                    folder=self.folder,
                ) from None
            self._wakeup.drain()  # an interrupt concerns the cell that was running
            try:
                yield
            finally:
                if self._closed:
                    self._end()
                    self._pinned.close()

    @contextlib.contextmanager
    def _reachable(self) -> Iterator[None]:
        """Make interrupts, `kill` and `close` reach what this thread waits for, though it is no cell."""
        self._wakeup.drain()
        self._executing = True
        try:
            yield
        finally:
            self._executing = False

    def _execute(
        self, code: str, seconds: float, on_output: OnOutput | None, cancelled: threading.Event | None, undo: bool
    ) -> Execution:
        """Run one cell; arguments as of `execute`."""
        live = self._ready(replay_failure=KernelStartError)
        if self._loss:
            return self._lost_state_execution()
        live = self._restore_if_due(live)
        logs = self._recovery.take_said()
        try:
            untold, self._untold = self._untold, []
            logs += [*untold, *self._before_cell(live)]
        except KernelError:
            return self._lost_state_execution()
        self._wakeup.drain()
        if self._closed:
            raise KernelStartError("the kernel is closed", folder=self.folder)
        if cancelled is not None and cancelled.is_set():
            return Execution(False, error=f"Stopped {ON_REQUEST}: this cell was not run.", logs=tuple(logs))
        if undo:
            live.request_rollback(code)
        running = live.start_cell(code, seconds=seconds, on_output=on_output)
        self._executing, self._running, self._fresh = True, running, False
        if self._closed or (cancelled is not None and cancelled.is_set()):
            self._wakeup.wake()  # what came before this line found nothing that runs
        try:
            outcome = running.wait()
        except BaseException:
            self._note_outcome(running.outcome)
            raise
        finally:
            self._executing, self._running = False, None
        if self._closed and not outcome.died:  # a gateway interrupts a kernel before it ends it
            outcome.died = self._stop_at_close(live)
        self._note_outcome(outcome)
        if outcome.died:
            self._loss = ""  # told by this very result
        elif not outcome.report:  # an interrupt came while it was made, or the code broke the kernel
            self._look_after(live, outcome)
        self._roll_back(live, outcome, wanted=undo or self._settings.rollback_on_error)
        self._put_back(live, outcome)
        logs += self._taken_over(live, outcome)
        if not undo:
            self._recovery.note_cell(live, code, outcome, [variable.name for variable in self._variables])
        return execution_of(
            outcome, logs, self._variables, self.folder, self._settings, lost=self._recovery.loss_message
        )

    def _ready(self, *, replay_failure: type[KernelError] | None = None) -> KernelClient:
        """Return a live process, a fresh one if there is none, with all that belongs into it."""
        if self._closed:
            raise KernelStartError("the kernel is closed", folder=self.folder)
        if self._started is not None and self._live is None:
            raise KernelStartError(
                "the kernel is that of the process from which this one was forked; make another one here, or share it "
                "among threads",
                folder=self.folder,
            )
        if self._live is not None and not self._live.process.alive():
            self._loss = f"The kernel died between two cells: {self._live.end()}."
            self._end()
        if self._live is not None:
            return self._live
        self._pinned.make()
        with contextlib.suppress(OSError), SafeFolder(self.folder) as opened:
            opened.unlock()  # code may have closed its own folder
        check_open_files(self.folder)
        live = KernelClient(
            self.folder,
            settings=self._settings,
            handle=self._open(),
            served=self._served,
            wakeup=self._wakeup,
            variables_key=self._recovery.variables_key(),
        )
        self._started, self._fresh = live, True
        self._end_live = weakref.finalize(self, live.end)
        try:
            for name, doc in self._served.docs().items():
                self._serve(live, name, doc)
            for plugin in self._plugins.values():
                self._load(live, plugin)
            packed = {name: self._put(live, name, value) for name, value in self._values.items()}
            self._recovery.begin(live, packed)
        except (KernelError, PluginLoadError) as error:
            self._end()
            if replay_failure is None or isinstance(error, replay_failure):
                raise
            raise replay_failure(f"a fresh kernel could not be filled: {error}", folder=self.folder) from error
        except BaseException:
            self._end()
            raise
        return live

    def _restore_if_due(self, live: KernelClient) -> KernelClient:
        """Bring variables back that an earlier process had, if that is due; give the kernel, perhaps another one."""
        if not self._recovery.due:
            return live
        try:
            with self._reachable():
                return self._recovery.restore_variables(live, self._take_variables, self._replace_kernel, self._values)
        except BaseException:
            self._end()  # it has a part of them: the next process begins anew
            raise

    def _replace_kernel(self) -> KernelClient:
        """Return another kernel in place of one that ended over what it brought back; an interrupt ended only that."""
        self._executing = False
        self._wakeup.drain()
        self._end()
        live = self._ready()
        self._executing = True
        return live

    def _end(self) -> None:
        if self._end_live is not None:
            self._end_live()
        self._started = self._end_live = None
        self._variables = ()

    def _ask(self, live: KernelClient, op: str, **fields: Any) -> dict[str, Any]:
        try:
            answer = live.ask(op, **fields)
        except KernelError as error:
            self._lose(error)
            raise
        self._take_variables(answer)
        return answer

    def _lose(self, error: KernelError) -> None:
        """End the process that did not answer; the next cell is told."""
        self._loss = f"{str(error).capitalize()}."
        self._end()

    def _load(self, live: KernelClient, plugin: Loadable) -> None:
        path = plugin.path or f"<plugin {plugin.name}>"
        where = str(plugin.path.resolve()) if plugin.path else None
        fields = {"name": plugin.name, "source": plugin.source, "settings": dict(plugin.settings), "path": where}
        try:
            answer = self._ask(live, "load", **fields)
        except KernelError as error:
            raise PluginLoadError(str(error), path=path) from error
        if "ok" not in answer:
            problem = answer.get("problem") or answer.get("error") or "the kernel gave no answer"
            raise PluginLoadError(problem, path=path, line=answer.get("line"))

    def _put(self, live: KernelClient, name: str, value: Any) -> Any:
        packed = live.codec.pack(value)
        answer = self._ask(live, "put", name=name, value=packed, session=not is_table(value))
        if "ok" in answer:
            return packed
        no_answer = KernelError(f"the kernel gave no answer when given {name!r}", folder=self.folder)
        raise self._refusal_error(answer) if "error" in answer else no_answer

    def _refusal_error(self, answer: Mapping[str, Any]) -> Exception:
        """Return the error for a value that did not cross: a file of its table, or its type."""
        of_files = isinstance(kind := getattr(builtins, str(answer.get("type")), 0), type) and issubclass(kind, OSError)
        return KernelError(answer["error"], folder=self.folder) if of_files else TypeError(answer["error"])

    def _serve(self, live: KernelClient, name: str, doc: str) -> None:
        answer = self._ask(live, "serve", name=name, doc=doc)
        if "ok" not in answer:
            problem = answer.get("error") or "the kernel gave no answer"
            raise KernelError(f"the function {name!r} could not be served: {problem}", folder=self.folder)

    def _put_back(self, live: KernelClient, outcome: RawResult) -> None:
        """Make the variables again that a `%reset` has removed with the cell's own: the host has promised them.

        A process that takes more than `load_seconds` for all of them is ended; the next one gets them.
        """
        if not outcome.report.get("reset"):
            return
        until = time.monotonic() + self._settings.load_seconds
        with contextlib.suppress(KernelError, TypeError):  # it died behind the cell, which the next one is told
            for name, value in self._values.items():
                if time.monotonic() > until:
                    self._loss = "The kernel took too long to take back the variables that %reset had removed."
                    self._end()
                    return
                self._put(live, name, value)

    def _lost_state_execution(self) -> Execution:
        loss, self._loss = self._loss, ""
        return Execution(False, error=f"{loss} This cell was not run. {self._recovery.loss_message}", state_lost=True)

    def _taken_over(self, live: KernelClient, outcome: RawResult) -> list[Log]:
        if outcome.died or not outcome.report:
            return []
        try:
            return self._after_cell(live, outcome)
        except KernelError:  # it died behind the cell, which the next one is told
            return []

    def _note_outcome(self, outcome: RawResult) -> None:
        """Take down what a cell did to the process; also behind an exception in this thread."""
        if outcome.died:
            self._loss = f"The kernel ended with the cell before: {outcome.died}."
            self._end()
        elif outcome.report:
            self._take_variables(outcome.report)

    def _look_after(self, live: KernelClient, outcome: RawResult) -> None:
        """Ask a kernel that did not report whether it still answers; end it if it does not."""
        try:
            answer = live.hello()
        except KernelError:
            answer = {}
        if "ok" in answer:
            self._take_variables(answer)
        else:
            self._end()
            large = "its answers were larger than one message may be, or no messages, and it was ended"
            outcome.died = large if outcome.answer_lost else "it answered nothing any more, and was ended"

    def _roll_back(self, live: KernelClient, outcome: RawResult, *, wanted: bool) -> None:
        """Undo a cell that was stopped, and of whose end the kernel could not tell that it failed."""
        if wanted and not outcome.died and ROLLBACK not in outcome.report and not went_well(outcome):
            try:
                answer = live.ask(ROLLBACK)
            except KernelError as error:
                self._end()
                outcome.died = str(error)
            else:
                self._take_variables(answer)
                if isinstance(answer.get("ok"), list):
                    outcome.report[ROLLBACK] = answer["ok"]

    def _take_variables(self, report: dict[str, Any]) -> None:
        if isinstance(report.get("variables"), list):
            self._variables = tuple(
                Variable(name, kind, mask_summary(name, summary) if kind in _PLAIN_TYPES else summary)
                for name, kind, summary in rows(report, "variables", 3)
            )


def _normalize_identifier(name: str) -> str:
    """Return a name in the form in which Python reads it in code: file systems and keyboards write `é` as two letters.

    Raises:
        ValueError: it is no Python name.
    """
    plain = unicodedata.normalize("NFKC", name)
    if not plain.isidentifier() or keyword.iskeyword(plain):
        raise ValueError(f"{name!r} is not a Python name")
    return plain


def _independent_copy(value: Any) -> Any:
    """Return a copy of what was put: what the host does to its own concerns no later process.

    A table takes no memory a second time until the host changes it, where pandas copies on write.
    """
    return value.copy(deep=False) if is_table(value) and copies_on_write() else copy.deepcopy(value)
