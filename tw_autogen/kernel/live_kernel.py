"""`LiveKernel`: what every kernel can be asked to do, one request after another."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tw_autogen.errors import KernelBusyError, KernelError, KernelStartError
from tw_autogen.kernel.execution import Execution, Variable
from tw_autogen.kernel.fair_lock import FairLock, LockTimeout
from tw_autogen.kernel.kernel import Loadable, OnOutput
from tw_autogen.kernel.kernel_base import KernelBase, is_table
from tw_autogen.kernel.pinned_paths import remove_same
from tw_autogen.kernel.request import ExecuteRequest
from tw_autogen.kernel.results import execution_of
from tw_autogen.kernel.settings import KernelSettings

if TYPE_CHECKING:
    from typing_extensions import Self


_UNREADABLE = (AttributeError, ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What unpacking raises at an answer that no kernel of ours gives."""


class LiveKernel(KernelBase):
    """An IPython kernel in a process of its own, started when it is first needed; where, each kind says by `_open`.

    Args:
        folder: Where its files lie; None: a temporary one, removed by `close`.
        settings: Limits, interpreter, environment.
    """

    def __init__(self, folder: Path | str | None = None, *, settings: KernelSettings | None = None) -> None:
        super().__init__(folder, settings=settings)
        self._turns = FairLock(self._settings.turn_seconds)
        self._executing = False
        self._running: ExecuteRequest | None = None

    def execute(
        self,
        code: str,
        *,
        seconds: float,
        on_output: OnOutput | None = None,
        cancelled: threading.Event | None = None,
    ) -> Execution:
        """Run one cell; see `Kernel.execute`."""
        with self._alone():
            live = self._ready(replay_failure=KernelStartError)
            if self._loss:
                return self._told_lost()
            live = self._resumed(live)
            said = self._recovery.take_said()
            try:
                said += self._before_cell(live)
            except KernelError:
                return self._told_lost()
            self._bell.answer()
            running = live.start_cell(code, seconds=seconds, on_output=on_output)
            self._executing, self._running, self._fresh = True, running, False
            if cancelled is not None and cancelled.is_set():
                self._bell.ring()  # an interrupt that came before this line found nothing that runs
            try:
                outcome = running.wait()
            except BaseException:
                self._note(running.outcome)
                raise
            finally:
                self._executing, self._running = False, None
            if self._closed and not outcome.died:  # a gateway interrupts a kernel before it ends it
                outcome.died = live.process.end()
            self._note(outcome)
            if outcome.died:
                self._loss = ""  # told by this very result
            elif not outcome.report:  # an interrupt came while it was made, or the code broke the kernel
                self._look_after(live, outcome)
            self._roll_back(live, outcome)
            if outcome.report.get("reset"):
                self._put_back(live)
            said += self._taken_over(live, outcome)
            self._recovery.note_cell(live, code, outcome, [one.name for one in self._variables])
            return execution_of(outcome, said, self._variables, self.folder, self._settings, lost=self._recovery.lost)

    def load(self, plugin: Loadable) -> None:
        """Load a plugin; see `Kernel.load`."""
        with self._alone():
            self._before_plugin(plugin)
            self._load(self._ready(), plugin)
            self._plugins[plugin.name] = plugin

    def serve(self, name: str, function: Callable[..., Any], *, seconds: float | None = None) -> None:
        """Make a function of this process callable in the kernel; see `Kernel.serve`.

        Under the name `call_llm_api` it also answers plugins that ask their context for the model.

        Raises:
            ValueError: the name is no Python name.
        """
        if not name.isidentifier():
            raise ValueError(f"{name!r} is not a Python name")
        with self._alone():
            self._served.add(name, function, seconds)
            if self._live is not None:
                self._ask(self._ready(), "serve", name=name, doc=self._served.docs()[name])

    def put(self, name: str, value: Any) -> None:
        """Make a variable; see `Kernel.put`. JSON values are session variables too, which plugins read.

        Raises:
            TypeError: the value is of a type that doesn't cross.
            ValueError: the name is no Python name.
        """
        if not name.isidentifier():
            raise ValueError(f"{name!r} is not a Python name")
        with self._alone():
            live = self._resumed(self._ready())
            packed = self._put(live, name, value)
            self._values[name] = value
            self._recovery.note_put(name, packed, is_table=is_table(value))

    def get(self, name: str) -> Any:
        """Fetch a variable's value; see `Kernel.get`."""
        with self._alone():
            live = self._resumed(self._ready())
            answer = self._ask(live, "get", name=name)
            if "ok" in answer:
                try:
                    return live.codec.unpack(answer["ok"])
                except _UNREADABLE as error:  # code in the kernel may have written any of it
                    said = f"the kernel's answer when asked for {name!r} can't be read: {error}"
                    raise KernelError(said, folder=self.folder) from error
            if "error" not in answer:
                raise KernelError(f"the kernel gave no answer when asked for {name!r}", folder=self.folder)
            if answer.get("type") == "KeyError":
                raise KeyError(name)
            raise TypeError(answer["error"])

    def variables(self) -> tuple[Variable, ...]:
        """Return the user's variables as they were after the last cell, or as they came back from an earlier kernel."""
        dead = self._live is None and self._recovery.kept
        if (self._recovery.due or dead) and not (self._executing or self._closed):
            with self._alone():
                self._resumed(self._ready())
        return self._variables

    def interrupt(self) -> None:
        """Stop the running cell, keep the process; from any thread."""
        if self._executing:
            self._bell.ring()

    def kill(self) -> None:
        """End the process of the running cell at once, from any thread; nothing happens if none runs."""
        running = self._running
        if running is not None:
            running.kill()

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
            live.process.end()  # the thread that waits for the cell sees it and cleans up
        with self._turns.take_if_free() as free:
            if free:
                self._end()
                self._pinned.close()
        if self._owns_folder:
            remove_same(self.folder, self._made)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
            self._bell.answer()  # an interrupt concerns the cell that was running
            try:
                yield
            finally:
                if self._closed:
                    self._end()
                    self._pinned.close()
