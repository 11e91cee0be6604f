"""`register_plugins`: plugins as tools of any agent of the host."""

from __future__ import annotations

import asyncio
import csv
import inspect
import io
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tw_autogen import bounded_json
from tw_autogen.closing import Closing
from tw_autogen.deadline import threaded
from tw_autogen.errors import ConfigError
from tw_autogen.hosts.agent_files import save_text, table_csv, table_words, value_words
from tw_autogen.hosts.conversable.messages import without_end
from tw_autogen.hosts.conversable.model import HostModel
from tw_autogen.hosts.conversable.parquet import read_parquet
from tw_autogen.hosts.worker_threads import on_thread
from tw_autogen.kernel import Artifact, FileDescriber
from tw_autogen.lazy_module import LazyModule
from tw_autogen.named_folders import distrusted_now
from tw_autogen.plugin import HostPlugin, PluginSpec, PluginWanted, check_arguments, is_table, json_schema
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session import check_plugins, open_kernel, read_logged
from tw_autogen.text_escaping import inert_output

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

_POLL_SECONDS = 0.1
_READING = "to be read with "
"""How the line of a description begins that ends with a call."""
_LONG_CHARS = 200
_MAX_CELLS = 10_000_000
_MAX_COLUMNS = 10_000
_MAX_VALUES = 20_000_000
"""Of a CSV; the file alone may hold six times as many, for which pandas takes more than 2 GB."""
_MAX_ROW_CHARS = 16 << 20
"""Of a CSV: the values of a row are counted once all of it is parsed."""


def _read_csv(file: BinaryIO) -> Any:
    """Read a CSV file whose values have commas between them, in UTF-8.

    Raises:
        ValueError: pandas can't read it, a field is longer than `csv.field_size_limit` (128 kB, unless the host has
            set another), a record is too long or has too many fields, the file has too many, or short records stand
            for many cells.
    """
    _check_csv(file)
    file.seek(0)
    return pd.read_csv(file)


def _check_csv(file: BinaryIO) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
    rows = fields = first = widest = chars = 0

    def lines() -> Iterator[str]:
        nonlocal chars
        while line := text.readline(_MAX_ROW_CHARS):
            chars += len(line)
            if chars >= _MAX_ROW_CHARS:
                raise ValueError(f"row {rows + 1} has more than {_MAX_ROW_CHARS >> 20} MB, which a tool takes at most")
            yield line

    try:
        for record in csv.reader(lines()):  # records, not lines: a field in quotes may have line breaks
            chars = 0
            rows += 1
            fields += len(record)
            if fields > _MAX_VALUES:
                raise ValueError(f"the table has more than {_MAX_VALUES} values, which a tool takes at most")
            first = first or len(record)
            widest = max(widest, len(record))
            _check_size(widest, cells=rows * widest - fields)  # those that are not in the file
            if rows == 2 and len(record) > first + 1:  # of which pandas makes labels of several levels
                raise ValueError(f"the first row has {len(record)} values, and the header {first} names")
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        text.detach()


def _read_json(file: BinaryIO) -> Any:
    """Read a table of JSON.

    Raises:
        ValueError: it is none, or few bytes stand for many cells, as where each row has columns of its own.
    """
    data = file.read()
    held = bounded_json.loads(data)
    lines = held if isinstance(held, list) else list(held.values()) if isinstance(held, dict) else []
    names = {name for line in lines if isinstance(line, dict) for name in line}
    listed = any(isinstance(line, list) for line in lines)  # then a text among them is taken apart too
    longest = max((len(line) for line in lines if listed and isinstance(line, list | str)), default=1)
    across = max(len(names), longest)
    _check_size(across if isinstance(held, list) else len(lines), cells=len(lines) * across)
    return pd.read_json(io.BytesIO(data), dtype=False)  # a text of digits is none of its numbers


def _check_size(columns: int, *, cells: int) -> None:
    if columns > _MAX_COLUMNS:
        raise ValueError(f"a row has {columns} columns; a tool takes {_MAX_COLUMNS} at most")
    if cells > _MAX_CELLS:
        raise ValueError(f"it stands for {cells} cells, most of them empty; a tool takes {_MAX_CELLS} at most")


_READERS: Mapping[str, tuple[Callable[[BinaryIO], Any], int]] = {
    ".csv": (_read_csv, 256 << 20),
    ".parquet": (read_parquet, 256 << 20),
    ".json": (_read_json, 32 << 20),
}
"""What reads a table, and how many bytes its file may have."""


def register_plugins(
    caller: Any,
    executor: Any,
    plugins: Sequence[PluginWanted],
    *,
    files: Sequence[str | Path] = (),
    variables: Mapping[str, Any] | None = None,
    folder: Path | str | None = None,
    settings: Mapping[str, Any] | None = None,
    seconds: float = 180.0,
    result_chars: int = 2000,
    trust: bool = False,
) -> PluginTools:
    """Register plugins as tools of an agent.

    Args:
        caller: The agent whose model is offered the tools; it needs an `llm_config`.
        executor: The agent that runs them; the same one, or its partner, as AutoGen has it.
        plugins: Names, paths of files or folders, functions, or specs; as in `open_session`.
        files: Copied into the working folder, so that a tool can be given their names.
        variables: Session variables by name, which plugins may read; JSON values.
        folder: The working folder, where files come from and go to; None: one of its own in `session.workspace`.
        settings: Dotted keys.
        seconds: How long one call may take.
        result_chars: Longer results come back as a summary, with the whole in a file.
        trust: All that the current folder's settings file sets is wanted; as in `open_session`.

    Returns:
        What owns the kernel and the plugins; close it, or use it in `with`. It is closed at the end of the process.

    Raises:
        ConfigError: a plugin is wrong, or the caller has no model.
    """
    specs = check_plugins(plugins)
    if not caller.llm_config:
        raise ConfigError(f"register_plugins: {caller.name} has no llm_config, so nobody would call the tools")
    tools = PluginTools(
        specs,
        HostModel(caller),
        files=files,
        variables=variables,
        folder=folder,
        settings=settings,
        seconds=seconds,
        chars=result_chars,
        trust=trust,
    )
    for spec in specs:
        about = {"name": spec.name, "description": spec.description, "parameters": json_schema(spec)}
        caller.update_tool_signature({"type": "function", "function": about}, is_remove=False)
        executor.register_function(function_map={spec.name: tools.function(spec.name)})
    return tools


class PluginTools(Closing):
    """Plugins that are called with JSON arguments and answer in words; those of the kernel share one.

    Args:
        specs: The plugins.
        model: What host-run plugins may ask.
        files: As in `register_plugins`, like the rest.
        variables: Session variables.
        folder: The working folder.
        settings: Dotted keys.
        seconds: How long one call may take.
        chars: Longer results come back as a summary.
        trust: The current folder is trusted.
    """

    def __init__(
        self,
        specs: Sequence[PluginSpec],
        model: HostModel,
        *,
        files: Sequence[str | Path] = (),
        variables: Mapping[str, Any] | None = None,
        folder: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        seconds: float = 180.0,
        chars: int = 2000,
        trust: bool = False,
    ) -> None:
        read = read_logged(settings, trust=trust)
        self._specs = {spec.name: spec for spec in specs}
        self._variables = dict(variables or {})
        self._seconds = seconds
        self._chars = chars
        self._made: list[Artifact] = []
        self._lock = threading.Lock()
        self._guard = threading.Lock()
        self._running: threading.Event | None = None
        self._loaded: set[str] = set()
        with ExitStack() as stack:
            self._kernel = open_kernel(read, folder, stack, name="tools", files=files, variables=variables)
            self.folder = self._kernel.folder
            self._host = {
                spec.name: stack.enter_context(
                    HostPlugin(
                        spec,
                        folder=self.folder,
                        session_variables=self._variables,
                        call_model=lambda messages: model.complete(messages).words,
                        distrusted=distrusted_now,
                        on_artifact=self._made.append,
                    )
                )
                for spec in specs
                if spec.runs_in == "host"
            }
            self._end = weakref.finalize(self, stack.pop_all().close)

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function of a tool: asynchronous, so that it holds up no chat; the host runs it in both kinds."""
        spec = self._specs[name]

        async def tool(**arguments: Any) -> str:
            stopped = threading.Event()
            try:
                return await on_thread(lambda: self._call(name, arguments, stopped), name=f"tool {name}")
            except asyncio.CancelledError:
                stopped.set()
                threaded(lambda: self._interrupt(stopped), name="interrupt")
                raise

        tool.__name__ = name
        tool.__doc__ = spec.description
        return tool

    def _call(self, name: str, arguments: Mapping[str, Any], stopped: threading.Event) -> str:
        """Call a plugin, and say in words, as of `inert_output`, what came of it; also what went wrong is an answer."""
        spec = self._specs[name]
        if not self._end.alive:
            return f"{name} was not called: these tools were closed"
        try:
            given = check_arguments(spec, arguments)
            tables = {
                parameter.name
                for parameter in spec.parameters
                if is_table(parameter) and isinstance(given.get(parameter.name), str)
            }
            with self._wait_for_turn(stopped):
                if stopped.is_set():  # while it waited for its turn
                    return f"{name} was not called"
                given = {key: self._table(value) if key in tables else value for key, value in given.items()}
                self._made.clear()
                run = self._in_host if name in self._host else self._in_kernel
                value = run(spec, *_by_position(spec, given))
                return without_end(inert_output(self._result_text(name, value)))
        except Exception as error:  # noqa: BLE001 - a plugin is foreign code; a tool's failure is told, not raised
            return without_end(inert_output(f"{name} failed: {type(error).__name__}: {error}"))

    @contextmanager
    def _wait_for_turn(self, stopped: threading.Event) -> Iterator[None]:
        """Wait for earlier calls, and note whose turn it is."""
        with self._lock:
            with self._guard:
                self._running = stopped
            try:
                yield
            finally:
                with self._guard:
                    self._running = None

    def _interrupt(self, stopped: threading.Event) -> None:
        """Interrupt what a call does in the kernel, which is several steps; that of no other call."""
        while True:
            with self._guard:
                if self._running is not stopped:
                    return
                self._kernel.interrupt()
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """End the kernel and the plugins; files stay."""
        self._end()

    def _table(self, name: str) -> Any:
        path = Path(name)
        inner = str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else name
        with SafeFolder(self.folder) as folder:
            names = [one.name for one in folder.walk(enter=lambda name: False) if one.is_file]
            there = ", ".join(one for one in names if Path(one).suffix.lower() in _READERS) or "none"
            try:
                file = folder.open_file(inner)
            except OSError as error:
                raise FileNotFoundError(f"{name!r} is no file of the working folder; tables there: {there}") from error
        with file:
            if path.suffix.lower() not in _READERS:
                raise ValueError(f"{name!r}: expected one of {', '.join(_READERS)}; tables there: {there}")
            reader, limit_bytes = _READERS[path.suffix.lower()]
            held = io.BytesIO(file.read(limit_bytes + 1))  # code may go on writing: what is checked is what is read
        if len(held.getbuffer()) > limit_bytes:
            raise ValueError(f"{name!r}: larger than the {limit_bytes >> 20} MB that a tool takes; hand over a part")
        if reader is _read_csv and (call := self._reading_call(inner)):
            _check_csv(held)
            return self._read_in_kernel(call)
        return reader(held)

    def _reading_call(self, name: str) -> str:
        """Return the call that reads a CSV file as it is described to models; empty where `read_csv(name)` does."""
        if not isinstance(self._kernel, FileDescriber):
            return ""
        (found,) = self._kernel.describe_files([(name, name)], seconds=self._seconds)["files"]
        lines = [line for line in found["lines"] if line.startswith(_READING)]
        return lines[0].removeprefix(_READING) if len(lines) == 1 else ""

    def _read_in_kernel(self, call: str) -> Any:
        ran = self._kernel.execute(f"import pandas as pd\n_table = {call}", seconds=self._seconds)
        if not ran.ok:
            raise ValueError(ran.error)
        try:
            return self._kernel.get("_table")
        finally:
            self._kernel.execute("del _table", seconds=self._seconds)

    def _in_host(self, spec: PluginSpec, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        done = threaded(lambda: self._host[spec.name](*args, **given), name=f"plugin {spec.name}")
        wait([done], timeout=self._seconds)
        if not done.done():
            raise TimeoutError(f"no answer within {self._seconds:g} s; ask for less")
        error = done.exception()
        if error is not None and not isinstance(error, Exception):  # such as SystemExit, which would end this program
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        return done.result()

    def _in_kernel(self, spec: PluginSpec, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        if spec.name not in self._loaded:
            for key, value in self._variables.items():
                self._kernel.put(key, value)
            self._kernel.load(spec.loadable())
            self._loaded.add(spec.name)
        values = [*(("", value) for value in args), *((f"{key}=", value) for key, value in given.items())]
        for index, (_, value) in enumerate(values):
            self._kernel.put(f"_given_{index}", value)
        arguments = ", ".join(f"{key}_given_{at}" for at, (key, _) in enumerate(values))
        ran = self._kernel.execute(f"_value = {spec.name}({arguments})", seconds=self._seconds)
        self._made += ran.artifacts
        if not ran.ok:
            raise RuntimeError(ran.error)
        try:
            return self._kernel.get("_value")
        except TypeError:  # an object that only lives in the kernel
            return self._kernel.execute("repr(_value)", seconds=self._seconds).result

    def _result_text(self, name: str, value: Any) -> str:
        values = value if isinstance(value, tuple) else (value,)
        parts = [self._value_text(name, one) for one in values if one is not None]
        return "\n\n".join([*parts, *(one.markdown() for one in self._made)]) or "done"

    def _value_text(self, name: str, value: Any) -> str:
        if isinstance(value, pd.DataFrame | pd.Series):
            table = value if isinstance(value, pd.DataFrame) else value.to_frame()
            path = save_text(self.folder, f"{name}.csv", table_csv(table))
            return f"A table in {path.name}: {table_words(table)}"
        text = value_words(value)
        if len(text) <= self._chars:
            return text
        path = save_text(self.folder, f"{name}.txt", text)
        return f"{len(text)} characters, all of them in {path.name}. They begin:\n{text[:_LONG_CHARS]}"


def _by_position(spec: PluginSpec, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call by position, where they can't be given by name, and by name."""
    args: list[Any] = []
    for parameter in spec.parameters:
        value = given.get(parameter.name, parameter.default)
        if parameter.by != "position" or value is inspect.Parameter.empty:
            break
        args.append(value)
    named = {parameter.name for parameter in spec.parameters[: len(args)]}
    return args, {key: value for key, value in given.items() if key not in named}
