"""`FakeKernel`: a kernel that follows a script and starts no process."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any

from tw_autogen.kernel import Describer, Execution, Loadable, Variable

Answer = Execution | str | BaseException
"""What came of a cell; text is a result without anything printed; an exception is raised by `execute`."""


class FakeKernel:
    """A `Kernel` whose cells come out as the script says; for tests of what stands around a kernel.

    Args:
        answers: One a cell, in order, or a function of the code that gives one.
        folder: What it calls its folder; nothing is written there.

    Raises:
        AssertionError: from the cell that is one too many; and on leaving `with` while answers are left over, unless
            an exception is on its way already.

    Example:
        >>> with FakeKernel(["42"]) as kernel:
        ...     kernel.execute("6 * 7", seconds=1).result
        '42'
        >>> kernel.cells
        ['6 * 7']
    """

    def __init__(self, answers: Sequence[Answer] | Callable[[str], Answer] = (), *, folder: Path | str = ".") -> None:
        self.folder = Path(folder).resolve()
        self.cells: list[str] = []
        self.loaded: dict[str, Loadable] = {}
        self.served: dict[str, Callable[..., Any]] = {}
        self.values: dict[str, Any] = {}
        self.restarts = 0
        self.interrupts = 0
        self.closed = False
        self._answers = answers
        self._seen: dict[str, Variable] = {}
        self._lock = threading.Lock()
        self._describer = Describer(self.folder, apart=False)

    @property
    def where(self) -> str:
        """Return that no code runs."""
        return "fake kernel: a script, no process"

    def execute(
        self,
        code: str,
        *,
        seconds: float,
        on_output: Callable[[str, str], None] | None = None,
        cancelled: threading.Event | None = None,
        undo: bool = False,
    ) -> Execution:
        """Return the next answer; what it says was printed is handed to `on_output` first.

        Args:
            code: Kept in `cells`.
            seconds: Not used.
            on_output: Called with `stdout` or `stderr`, and the text.
            cancelled: Not used.
            undo: The variables of the answer are not taken over.
        """
        with self._lock:
            number = len(self.cells)
            if not callable(self._answers) and number >= len(self._answers):
                raise AssertionError(f"the fake kernel was to run {number} cells, and gets one more: {code!r}")
            self.cells.append(code)
        answer = self._answers(code) if callable(self._answers) else self._answers[number]
        if isinstance(answer, BaseException):
            raise answer
        execution = Execution(ok=True, result=answer) if isinstance(answer, str) else answer
        if on_output:
            for stream, text in (("stdout", execution.stdout), ("stderr", execution.stderr)):
                if text:
                    on_output(stream, text)
        if not undo:
            self._seen = {variable.name: variable for variable in execution.variables}
        return execution

    def load(self, plugin: Loadable) -> None:
        """Keep the plugin in `loaded`; its source is not run."""
        self.loaded[plugin.name] = plugin

    def serve(self, name: str, function: Callable[..., Any], *, seconds: float | None = None) -> None:
        """Keep the function in `served`; an answer that is a function may call it, and its `submit`.

        Args:
            name: The function's, in the kernel.
            function: What is called.
            seconds: Not used.
        """
        self.served[name] = _with_submit(function)

    def put(self, name: str, value: Any) -> None:
        """Keep the value in `values`.

        Args:
            name: The variable's.
            value: Any object.
        """
        self.values[name] = value

    def get(self, name: str) -> Any:
        """Return a value from `values`.

        Raises:
            KeyError: there is none of that name.
        """
        if name not in self.values:
            raise KeyError(f"no variable {name!r}; there are: {', '.join(self.values) or 'none'}")
        return self.values[name]

    def describe_files(
        self, files: Sequence[tuple[str, str]], *, seconds: float, all_seconds: float | None = None
    ) -> dict[str, Any]:
        """Describe files as a kernel does, in this process.

        Args:
            files: Path and name of each.
            seconds: Not used.
            all_seconds: How long all may take.
        """
        described, joins = self._describer.describe_all(files, seconds=seconds, all_seconds=all_seconds)
        return {"files": described, "joins": joins}

    def list_files(self, folder: str, *, layouts: bool, max_lines: int, seconds: float) -> dict[str, Any]:
        """List a folder as a kernel does, in this process.

        Args:
            folder: Its path.
            layouts: Read first lines.
            max_lines: Of the list.
            seconds: Not used.
        """
        return self._describer.list_folder(folder, layouts=layouts, max_lines=max_lines, seconds=seconds)

    def variables(self) -> tuple[Variable, ...]:
        """Return those that were put, and those of the last answer."""
        put: Mapping[str, Variable] = {
            name: Variable(name, type(value).__name__) for name, value in self.values.items()
        }
        return tuple({**put, **self._seen}.values())

    def interrupt(self) -> None:
        """Count it."""
        self.interrupts += 1

    def restart(self) -> None:
        """Count it; what was loaded, served and put stays."""
        self.restarts += 1
        self._seen = {}

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def __enter__(self) -> FakeKernel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None and not callable(self._answers) and len(self.cells) < len(self._answers):
            raise AssertionError(f"the fake kernel ran {len(self.cells)} of {len(self._answers)} cells")


def _with_submit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as code in a kernel sees it: with `submit`, which here runs it at once."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def submit(*args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - foreign code; it comes out of `result`
            done.set_exception(error)
        return done

    call.submit = submit  # type: ignore[attr-defined]  # functions take attributes
    return call
