"""`KernelBase`: what every kernel keeps: a folder, one process at a time, and what belongs into each of these."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError, KernelStartError, PluginLoadError
from tw_autogen.kernel.client import KernelClient
from tw_autogen.kernel.execution import Execution, Log, Variable
from tw_autogen.kernel.failure import ROLLBACK, went_well
from tw_autogen.kernel.folder import KERNEL_FOLDERS
from tw_autogen.kernel.handle import KernelHandle
from tw_autogen.kernel.host_functions import HostFunctions
from tw_autogen.kernel.kernel import Loadable
from tw_autogen.kernel.pinned_paths import PinnedPaths, folder_identity, remove_same
from tw_autogen.kernel.poller import WakeupSocket
from tw_autogen.kernel.process import check_open_files
from tw_autogen.kernel.recovery import Recovery
from tw_autogen.kernel.request import RawResult
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.safe_folder import SafeFolder, temporary_folder


class KernelBase:
    """A kernel's process, started when it is first needed; where, each kind of kernel says by `_open`.

    A process that has ended is followed by a fresh one, with plugins, served functions and the variables that the host
    has put; how it ended, and what was lost, is told once. Nothing here waits for its turn: `LiveKernel` sees to it.

    Args:
        folder: Where its files lie; None: a temporary one.
        settings: Limits, interpreter, environment.
    """

    def __init__(self, folder: Path | str | None = None, *, settings: KernelSettings | None = None) -> None:
        if folder is None:
            self.folder = temporary_folder("tw-kernel-")
            self._made = folder_identity(self.folder)
            weakref.finalize(self, remove_same, self.folder, self._made)
        else:
            self.folder = Path(folder).resolve()
            self.folder.mkdir(parents=True, exist_ok=True)
        self._owns_folder = folder is None
        self._settings = settings or KernelSettings()
        self._pinned = PinnedPaths(self.folder, self._settings)
        KERNEL_FOLDERS.update((self.folder, *(Path(one).expanduser().resolve() for one in self._settings.write)))
        check_open_files(self.folder)
        self._bell = WakeupSocket()
        weakref.finalize(self, self._bell.close)
        self._live: KernelClient | None = None
        self._end_live: Callable[[], object] | None = None
        self._plugins: dict[str, Loadable] = {}
        self._served = HostFunctions()
        self._values: dict[str, Any] = {}
        self._variables: tuple[Variable, ...] = ()
        self._loss = ""
        self._fresh = True
        self._closed = False
        self._recovery = Recovery()

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

    def _ready(self, *, replay_failure: type[KernelError] | None = None) -> KernelClient:
        """Return a live process, a fresh one if there is none, with all that belongs into it."""
        if self._closed:
            raise KernelStartError("the kernel is closed", folder=self.folder)
        if self._live is not None and not self._live.process.alive():
            self._loss = f"The kernel died between two cells: {self._live.end()}."
            self._end()
        if self._live is not None:
            return self._live
        self._pinned.make()
        with contextlib.suppress(OSError), SafeFolder(self.folder) as opened:
            opened.unlock()  # code may have closed its own folder
        check_open_files(self.folder)
        peer = self._open()
        live = KernelClient(
            self.folder,
            settings=self._settings,
            peer=peer,
            served=self._served,
            bell=self._bell,
            keeps=self._recovery.keeps,
        )
        self._live, self._fresh = live, True
        self._end_live = weakref.finalize(self, live.end)
        try:
            for name, doc in self._served.docs().items():
                self._ask(live, "serve", name=name, doc=doc)
            for plugin in self._plugins.values():
                self._load(live, plugin)
            for name, value in self._values.items():
                self._put(live, name, value)
            self._recovery.begin(live)
        except (KernelError, PluginLoadError) as error:
            self._end()
            if replay_failure is None or isinstance(error, replay_failure):
                raise
            raise replay_failure(f"a fresh kernel could not be filled: {error}", folder=self.folder) from error
        except BaseException:
            self._end()
            raise
        return live

    def _resumed(self, live: KernelClient) -> KernelClient:
        """Bring variables back that an earlier process had, if that is due; give the kernel, perhaps another one."""
        return self._recovery.bring_back(live, self._take_variables, self._renew)

    def _renew(self) -> KernelClient:
        self._end()
        return self._ready()

    def _end(self) -> None:
        if self._end_live is not None:
            self._end_live()
        self._live = self._end_live = None
        self._variables = ()

    def _ask(self, live: KernelClient, op: str, **fields: Any) -> dict[str, Any]:
        try:
            answer = live.ask(op, **fields)
        except KernelError as error:
            self._loss = f"{str(error).capitalize()}."
            self._end()
            raise
        self._take_variables(answer)
        return answer

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
        if "error" in answer:
            raise TypeError(answer["error"])
        return packed

    def _put_back(self, live: KernelClient) -> None:
        """Make the variables again that `%reset` has removed with the cell's own: the host has promised them."""
        with contextlib.suppress(KernelError, TypeError):  # it died behind the cell, which the next one is told
            for name, value in self._values.items():
                self._put(live, name, value)

    def _told_lost(self) -> Execution:
        loss, self._loss = self._loss, ""
        return Execution(False, error=f"{loss} This cell was not run. {self._recovery.lost}", state_lost=True)

    def _taken_over(self, live: KernelClient, outcome: RawResult) -> list[Log]:
        if outcome.died or not outcome.report:
            return []
        try:
            return self._after_cell(live, outcome)
        except KernelError:  # it died behind the cell, which the next one is told
            return []

    def _note(self, outcome: RawResult) -> None:
        """Take down what a cell did to the process; also behind an exception in this thread."""
        if outcome.died:
            self._loss = f"The kernel ended with the cell before: {outcome.died}."
            self._end()
        elif outcome.report:
            self._take_variables(outcome.report)

    def _look_after(self, live: KernelClient, outcome: RawResult) -> None:
        """Ask a kernel that did not report whether it still answers; end it if it does not."""
        try:
            answer = live.ask("hello")
        except KernelError:
            answer = {}
        if "ok" in answer:
            self._take_variables(answer)
        else:
            self._end()
            outcome.died = "it answered nothing any more, and was ended"

    def _roll_back(self, live: KernelClient, outcome: RawResult) -> None:
        """Undo a cell that was stopped, and of whose end the kernel could not tell that it failed."""
        wanted = self._settings.rollback_on_error and not outcome.died and ROLLBACK not in outcome.report
        if wanted and not went_well(outcome):
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
        with contextlib.suppress(KeyError, TypeError, ValueError):  # said by the kernel, so it may be anything
            told = report["variables"]
            self._variables = tuple(Variable(str(name), str(kind), str(line)) for name, kind, line in told)


def is_table(value: Any) -> bool:
    """Return whether a value is a table of pandas: it crosses, but is no session variable."""
    return type(value).__name__ in ("DataFrame", "Series")
