"""`Kernel`: the protocol that every kernel keeps; `Execution`: what comes of a cell."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, runtime_checkable

from tw_autogen.kernel.guest.artifacts import FileNames
from tw_autogen.picture_files import PictureReader, is_picture
from tw_autogen.safe_folder import open_or_make_folder
from tw_autogen.svg_sanitizer import UnsafeSvgError
from tw_autogen.text_escaping import inert_output, markdown_line, visible
from tw_autogen.text_truncation import first_of

_LIST_CHARS = 10_000


@dataclass(frozen=True)
class Artifact:
    """A file that a cell or a plugin made for the user.

    Args:
        name: What it is called in words.
        kind: `chart`, `image`, `df`, `file`, `txt`, `svg`, `html` or `json`.
        path: Absolute; inside the kernel's folder.
        preview: A line or a few that say what is in it.
    """

    name: str
    kind: str
    path: Path
    preview: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return plain values, the path as text."""
        return {"name": self.name, "kind": self.kind, "path": str(self.path), "preview": self.preview}

    @classmethod
    def from_dict(cls, plain: Mapping[str, str]) -> Artifact:
        """Read what `to_dict` gave."""
        return cls(plain["name"], plain["kind"], Path(plain["path"]), plain.get("preview", ""))

    @staticmethod
    def open_new_file(folder: Path, name: str, kind: str) -> tuple[Path, BinaryIO]:
        """Make a file for an artifact below a kernel's folder; no link that code left there leads out of it.

        Args:
            folder: The kernel's.
            name: A wish, with folders below it; made safe, and numbered if there is one of that name.
            kind: Of artifact; it gives a missing suffix.

        Returns:
            Its path, and the file, open for writing; the caller closes it.

        Raises:
            OSError: it can't be made, or a link is in the way.
        """
        below, _, plain = name.rpartition("/")
        with open_or_make_folder(folder) as opened:
            if below:
                opened.make_folder(below, parents=True)
            names = FileNames(lambda one: opened.has_entry(f"{below}/{one}".lstrip("/")))
            while True:
                free = f"{below}/{names.free(plain, kind)}".lstrip("/")
                with contextlib.suppress(FileExistsError):
                    return folder / free, opened.create_file(free)

    @staticmethod
    def list_markdown(artifacts: Sequence[Artifact]) -> str:
        """Return a Markdown list of files; of very many the first are named, since it becomes part of chats."""
        return "\n".join(first_of([artifact.markdown() for artifact in artifacts], _LIST_CHARS))

    def markdown(self) -> str:
        """Return one line of a Markdown list: name, place, and the first line of the preview; nothing in it acts."""
        preview = inert_output(next(iter(self.preview.strip().splitlines()), ""))
        return f"- [{markdown_line(self.path.name)}]({self.path.as_uri()})" + (f": {preview}" if preview else "")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return what a notebook shows: the picture, if it is one that can be shown, and name, place and preview."""
        bundle: dict[str, Any] = {"text/plain": visible("\n".join(filter(None, (str(self.path), self.preview))))}
        if is_picture(self.path):
            try:
                mime, data = PictureReader().read_mime_data(self.path)
            except (OSError, UnsafeSvgError) as error:
                bundle["text/plain"] += visible(f"\n(not shown: {error})")
            else:
                bundle[mime] = data
        return bundle


@dataclass(frozen=True)
class Variable:
    """A variable that exists in the kernel.

    Args:
        name: As the code spells it.
        type: Name of its class, such as `DataFrame`.
        summary: Shape, columns with dtypes, length or value, cut to one short line.
    """

    name: str
    type: str
    summary: str = ""

    def __str__(self) -> str:
        """Return `df: DataFrame, 720 x 2, columns ts: object, val: float64`."""
        return f"{self.name}: {self.type}" + (f", {self.summary}" if self.summary else "")

    def short(self, limit_chars: int) -> str:
        """Return the text of `str`, cut to so many characters."""
        text = str(self)
        return text if len(text) <= limit_chars else f"{text[: limit_chars - 1]}…"


@dataclass(frozen=True)
class Log:
    """A line that a plugin logged."""

    level: str
    tag: str
    message: str


@dataclass(frozen=True)
class Execution:
    """What came of a cell; always a value, whatever the code did.

    Args:
        ok: The cell ran to its end.
        result: `repr` text of the last expression, or None where there is none.
        stdout: All that was printed, in order (cut in the middle, with a mark, beyond the kernel's limit).
        stderr: The same of standard error.
        logs: What plugins logged.
        artifacts: Files made by this cell, in order.
        variables: The user's variables that exist after it, by name; plugins and modules are left out.
        error: The traceback as the model should read it (frames of the cell's own code and the exception's own line,
            no paths of this machine), or the reason why the cell was stopped; empty if `ok`. It says so where the cell
            was undone (`KernelSettings.rollback_on_error`).
        state_lost: The kernel was ended, and all variables with it; the next cell gets a fresh one with plugins loaded,
            and with what `KernelSettings.checkpoint_seconds` brings back, if that is set: `error` says so.
        seconds: Wall-clock time of the cell, without the time spent in host calls.
        print_ends: Where in `stdout` the first prints end, in characters, ascending; empty if that is not known.
        kept_as: The variable in which long output is kept whole, with the result's text; empty if it is in none.
        undone: Variables are as they were before it.
    """

    ok: bool
    result: str | None = None
    stdout: str = ""
    stderr: str = ""
    logs: tuple[Log, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    variables: tuple[Variable, ...] = ()
    error: str = ""
    state_lost: bool = False
    seconds: float = 0.0
    print_ends: tuple[int, ...] = ()
    kept_as: str = ""
    undone: bool = False


OnOutput = Callable[[str, str], None]
"""Called with (`stdout` or `stderr`, new text) while a cell runs."""


@dataclass(frozen=True)
class Loadable:
    """A plugin that is to be put into a kernel.

    Args:
        name: The function's name in the kernel.
        source: Python text: a `@register_plugin` class or function.
        settings: The spec's `configurations`; JSON values only.
        path: The file that the source came from; errors name it, and imports of modules beside it work.
    """

    name: str
    source: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None


@runtime_checkable
class Kernel(Protocol):
    """A Python process that remembers; threads that use it wait for each other, `interrupt` and `close` excepted."""

    folder: Path
    """Where its code runs (cwd) and its files lie; absolute."""

    @property
    def where(self) -> str:
        """Describe in one line where code runs, such as `local kernel, Python 3.11.7, pid 123, no sandbox`."""
        ...

    def execute(
        self,
        code: str,
        *,
        seconds: float,
        on_output: OnOutput | None = None,
        cancelled: threading.Event | None = None,
        undo: bool = False,
    ) -> Execution:
        """Run one cell; called by the CodeInterpreter, and starts the process if there is none yet.

        Always ends in a value: beyond `seconds` the cell is interrupted, and the process killed if that doesn't help.
        Whoever sets `cancelled` calls `interrupt` afterwards; if that comes before the cell has begun, it still counts.

        Args:
            code: The cell.
            seconds: How long it may run.
            on_output: Called with stream and text as they come; None: nobody listens.
            cancelled: Set before the cell begins, it keeps the cell from running.
            undo: Restore the variables as they were before it, however it ends; files that it made stay.

        Raises:
            KernelStartError: the process does not start.
            KernelBusyError: called from a host call of the cell that is running, or no turn came in time.
        """
        ...

    def load(self, plugin: Loadable) -> None:
        """Load a plugin; it is loaded again, by itself, into each fresh process.

        Raises:
            PluginLoadError: naming file and line.
        """
        ...

    def serve(self, name: str, function: Callable[..., Any], *, seconds: float | None = None) -> None:
        """Make `name(...)` in the kernel call a function of this process, and `name.submit(...)` calls side by side.

        JSON values and DataFrames cross in both directions. An exception becomes a `HostCallError` in the cell, whose
        text begins with the function's name and the exception's type, such as `TimeoutError` or `HostCallBudgetError`.
        Calls run on threads of this process, one at a time and in order; submitted ones beside them. Each has its own
        copy of the context variables of the thread that called `execute`. The time for which the cell waits is not
        counted as the cell's; a call that takes longer than `seconds` is given up, with an exception in the cell.

        Args:
            name: The name in the kernel.
            function: Called in this process.
            seconds: How long one call may take; None: no limit.
        """
        ...

    def put(self, name: str, value: Any) -> None:
        """Make a variable: JSON values, DataFrames and Series; also again in each fresh process.

        Args:
            name: The variable's name.
            value: Its value.

        Raises:
            KernelError: a table can't be written into the kernel's folder, as on a full disk.
        """
        ...

    def get(self, name: str) -> Any:
        """Fetch a variable's value: JSON values, DataFrames, Series.

        Raises:
            KeyError: there is none of that name.
            TypeError: it is of a type that doesn't cross.
            KernelError: a table can't be written into the kernel's folder, as on a full disk.
        """
        ...

    def variables(self) -> tuple[Variable, ...]:
        """Return the user's variables as they were after the last cell."""
        ...

    def interrupt(self) -> None:
        """Stop the running cell, keep the process; called from any thread; nothing happens if none runs."""
        ...

    def restart(self) -> None:
        """End the process and start a fresh one with plugins, served functions and put variables."""
        ...

    def close(self) -> None:
        """End the process; files in the folder stay. A second time nothing happens."""
        ...

    def __enter__(self) -> Kernel: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class FileDescriber(Protocol):
    """A kernel that can say what files hold, where its code could read them, and with its limits."""

    def describe_files(
        self, files: Sequence[tuple[str, str]], *, seconds: float, all_seconds: float | None = None
    ) -> dict[str, Any]:
        """Describe files by what they hold.

        Args:
            files: Path and name of each; a relative path is relative to the kernel's folder. The name stands in the
                calls that read the file.
            seconds: How long one file may take.
            all_seconds: How long all of them may take; None: as long as each may.

        Returns:
            `files`: for each in order `name`, `size` in words, `headline`, `lines`, `columns` and `problem`, which is
            empty unless it can't be read as its kind; `joins`: lines about columns that join them. Code in the kernel
            can have made any of it.

        Raises:
            KernelError: the kernel does not start, or ended.
        """
        ...

    def list_files(self, folder: str, *, layouts: bool, max_lines: int, seconds: float) -> dict[str, Any]:
        """List the files below a folder that are neither hidden nor ignored by `.gitignore` nor named as secrets are.

        Args:
            folder: Its path.
            layouts: Read the beginnings of files, so that tables of one layout are one line, and for what files are
                found by.
            max_lines: How many lines at most.
            seconds: How long it may take.

        Returns:
            `lines`; `files`: for each family that can be described its first name, its number of files, and what it is
            found by: `names`, `heads`, `values` and `years`; `problem`.

        Raises:
            KernelError: as above.
        """
        ...
