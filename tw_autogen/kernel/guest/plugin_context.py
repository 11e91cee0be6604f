"""`PluginContext`: what a plugin may ask of the session that it runs in."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from .artifacts import ArtifactFolder, FileNames, OwnFolder, TooLarge, TooMany, preview, write_value

ArtifactType = Literal["chart", "image", "df", "file", "txt", "svg", "html", "json"]
_KINDS = get_args(ArtifactType)
LogErrorLevel = Literal["info", "warning", "error"]
CallModel = Callable[..., Any]

_START_TEMPORAL = "{{DELIMITER_START_TEMPORAL}}"
_END_TEMPORAL = "{{DELIMITER_END_TEMPORAL}}"
_MAX_LOGS = 500
_LOG_CHARS = 2000


@dataclass(frozen=True)
class Kept:
    """A file that was made for the user; `path` lies in the context's folder."""

    name: str
    kind: str
    path: Path
    preview: str
    promised: bool = False


@dataclass(eq=False)
class ExecutionOutputs:
    """What one execution has made so far."""

    folder: ArtifactFolder
    number: int = 0
    max_bytes: int = 100 << 20
    kept: list[Kept] = field(default_factory=list)
    logs: list[tuple[str, str, str]] = field(default_factory=list)

    def take(self) -> tuple[list[Kept], list[tuple[str, str, str]]]:
        """Return files and logs and forget them; a file that was promised but not written, or is too large, is none."""
        kept, logs = [], list(self.logs)
        for one in self.kept:
            try:
                if one.promised:
                    self.folder.collect_promised(one.path.name, self.max_bytes)
            except (OSError, TooLarge) as error:
                logs.append(("warning", one.name, f"{one.path.name} is left out: {error}"))
                continue
            size = self.folder.size(one.path.name)
            if size is None:
                logs.append(("warning", one.name, f"{one.path.name} was never written"))
            elif size > self.max_bytes:
                logs.append(("warning", one.name, f"{one.path.name} is left out: {TooLarge.words(self.max_bytes)}"))
            else:
                kept.append(one)
        self.kept.clear()
        self.logs.clear()
        return kept, logs


_HERE: ContextVar[Mapping[PluginContext, ExecutionOutputs]] = ContextVar("tw_made", default={})  # noqa: B039 - never changed
"""What each context's call in this thread has made; a mapping, because a plugin's call may lead to another's."""


_SESSION_FILES = "files"
"""The folder in a session's own in which its code runs."""


def session_name(folder: Path) -> str:
    """Return the name of the session that works in a folder: the folder's own, or its parent's for a session's `files`.

    Example:
        >>> session_name(Path(".tw/sessions/session-3be272b9ccf6/files")), session_name(Path("work"))
        ('session-3be272b9ccf6', 'work')
    """
    return folder.parent.name if folder.name == _SESSION_FILES else folder.name


class PluginContext:
    """What a plugin may ask of the session: files for the user, logs, settings from the environment, variables.

    Args:
        folder: Where its files go; a path where code can do no more than this process.
        session_id: The session's name; empty: what the folder says, as `session_name` has it.
        session_variables: Read by `get_session_var`; looked up at each call.
        environment: Where `get_env` looks; the process's own if None.
        call_llm: Asks the session's model; None if there is none.
        distrusted: Returns folders that nobody has trusted, whenever it is asked: a file that the user names there must
            not be a link out of one. None: there are none.
        max_artifacts: How many files one execution may make.
        max_artifact_bytes: How large one of them may be.

    Source:
        TaskWeaver's `plugin/context.py`. Differs: file names are made safe and never collide, `image` and `json` take
        values, a session variable keeps its type, `call_llm_api` works.
    """

    def __init__(
        self,
        folder: Path | str | ArtifactFolder,
        *,
        session_id: str = "",
        session_variables: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        call_llm: CallModel | None = None,
        distrusted: Callable[[], Sequence[Path]] | None = None,
        max_artifacts: int = 100,
        max_artifact_bytes: int = 100 << 20,
    ) -> None:
        self._files: ArtifactFolder = OwnFolder(folder) if isinstance(folder, (str, Path)) else folder
        self.folder = self._files.path
        self._session_id = session_id or session_name(self.folder)
        self._variables: Mapping[str, Any] = {} if session_variables is None else session_variables
        self._environment: Mapping[str, str] = os.environ if environment is None else environment
        self._call_llm = call_llm
        self._distrusted = distrusted
        self._max_artifacts = max_artifacts
        self._max_bytes = max_artifact_bytes
        self._names = FileNames(self._files.exists)
        self._made = ExecutionOutputs(self._files, max_bytes=max_artifact_bytes)
        self._apart: list[ExecutionOutputs] = []
        self._lock = threading.Lock()

    @property
    def env_id(self) -> str:
        """Name of the kernel."""
        return "local"

    @property
    def session_id(self) -> str:
        """Name of the session."""
        return self._session_id

    @property
    def execution_id(self) -> str:
        """Name of the current execution, such as `exec-3`."""
        return f"exec-{self._current_outputs().number}"

    @property
    def execution_idx(self) -> int:
        """Number of the current execution, from 1."""
        return self._current_outputs().number

    @property
    def distrusted(self) -> Sequence[Path]:
        """Folders that nobody has trusted: a file that the user names there must not be a link out of one."""
        return self._distrusted() if self._distrusted else ()

    @property
    def max_artifact_bytes(self) -> int:
        """How large one file may be."""
        return self._max_bytes

    def add_artifact(
        self,
        name: str,
        file_name: str,
        type: ArtifactType,  # noqa: A002 - TaskWeaver's plugins pass it by this name
        val: Any,
        desc: str | None = None,
    ) -> str:
        """Write a file for the user.

        Args:
            name: What it is called in words.
            file_name: A wish: made safe, and numbered if there is one of that name.
            type: chart, image, df, file, txt, svg, html or json.
            val: Text or bytes; also a figure or Pillow picture (chart, image), a DataFrame (df), JSON values (json).
            desc: A line that says what is in it; made from the value if None.

        Returns:
            The name of the file that was written.

        Raises:
            TypeError: this kind can't be made from that value.
            ValueError: there is no such kind, this execution has made too many files (`TooMany`), or this one would be
                too large (`TooLarge`).
        """
        self._check_may_add(type)
        free = self._names.free(file_name, type)
        write_value(self._files, free, type, val, max_bytes=self._max_bytes)
        line = preview(type, val) if desc is None else str(desc)
        self._current_outputs().kept.append(Kept(str(name), type, self.folder / free, line))
        return free

    def create_artifact_path(
        self,
        name: str,
        file_name: str,
        type: ArtifactType,  # noqa: A002 - TaskWeaver's plugins pass it by this name
        desc: str = "",
    ) -> tuple[str, str]:
        """Return the id and absolute path of a file that the plugin is going to write itself, before its call ends.

        In the host the path lies in a private folder, from which the file is copied to the session's as the call ends.

        Args:
            name: The artifact's name.
            file_name: The file's name, without folders.
            type: What it holds.
            desc: A line about it.

        Raises:
            ValueError: there is no such kind, or this execution has made too many files.
        """
        self._check_may_add(type)
        free = self._names.free(file_name, type)
        self._current_outputs().kept.append(Kept(str(name), type, self.folder / free, str(desc), promised=True))
        return free, str(self._files.promise(free))

    def log(self, level: LogErrorLevel, tag: str, message: str) -> None:
        """Leave a line that is shown beside what the code printed.

        Args:
            level: `info`, `warning` or `error`.
            tag: Who says it.
            message: The words.
        """
        logs = self._current_outputs().logs
        if len(logs) < _MAX_LOGS:
            logs.append((str(level), str(tag), str(message)[:_LOG_CHARS]))

    def get_env(self, plugin_name: str, variable_name: str) -> str:
        """Read the environment variable `PLUGIN_<plugin_name>_<variable_name>`.

        Args:
            plugin_name: The plugin's name.
            variable_name: The last part of the variable's name.

        Raises:
            ValueError: it is not set, or not passed on to the kernel.
        """
        name = f"PLUGIN_{plugin_name}_{variable_name}"
        value = self._environment.get(name)
        if value is None:
            raise ValueError(f"environment variable {name} is not set, or `kernel.environment` does not pass it on")
        return value

    def get_session_var(self, variable_name: str, default: Any = None) -> Any:
        """Read a variable that the session was given, with the type that it had.

        Args:
            variable_name: Its name.
            default: Returned if there is none.
        """
        return self._variables.get(variable_name, default)

    def wrap_text_with_delimiter_temporal(self, text: str) -> str:
        """Mark text that roles see in the current round only."""
        return f"{_START_TEMPORAL}{text}{_END_TEMPORAL}"

    def call_llm_api(self, messages: Sequence[Mapping[str, Any]], **kwargs: Any) -> Any:
        """Ask the session's model, with `[{"role": "user", "content": …}]`.

        Raises:
            RuntimeError: this session gave its plugins no model.
        """
        if self._call_llm is None:
            raise RuntimeError(
                "call_llm_api: no model was given to this plugin; let it run in the host (`runs_in: host`) "
                "of a session that has a model"
            )
        return self._call_llm(messages, **kwargs)

    def begin(self, number: int) -> None:
        """Start execution `number`; what the one before left and nobody took is dropped."""
        self._made = ExecutionOutputs(self._files, number, self._max_bytes)

    def take(self) -> tuple[list[Kept], list[tuple[str, str, str]]]:
        """Return the files and logs since `begin` and forget them; a file that was promised but not written is none."""
        return self._made.take()

    @contextlib.contextmanager
    def apart(self, number: int) -> Iterator[ExecutionOutputs]:
        """Start execution `number` beside others that run: what this thread makes meanwhile is its own.

        What threads make that know nothing of this one, because the plugin has started them, goes to the call that
        began last.
        """
        made = ExecutionOutputs(self._files, number, self._max_bytes)
        before = _HERE.set({**_HERE.get(), self: made})
        with self._lock:
            self._apart.append(made)
        try:
            yield made
        finally:
            with self._lock:
                self._apart.remove(made)
            _HERE.reset(before)

    def _current_outputs(self) -> ExecutionOutputs:
        made = _HERE.get().get(self)
        if made is not None:
            return made
        with self._lock:
            return self._apart[-1] if self._apart else self._made

    def _check_may_add(self, kind: str) -> None:
        if kind not in _KINDS:
            raise ValueError(f"no artifact is of type {kind!r}; known: {', '.join(_KINDS)}")
        if len(self._current_outputs().kept) >= self._max_artifacts:
            raise TooMany(f"this execution has made {self._max_artifacts} files already, and no more are allowed")
