"""`HostPlugin`: a plugin that runs in this process, because it needs secrets, the network or a database."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.closing import Closing
from tw_autogen.errors import PluginLoadError
from tw_autogen.kernel import Artifact, Log
from tw_autogen.kernel.guest import ExecutionOutputs, PluginContext, PluginProblem, load_plugin, run_plugin_tests
from tw_autogen.plugin.artifact_folder import SessionArtifacts
from tw_autogen.plugin.callable_plugins import as_sync
from tw_autogen.plugin.host_arguments import with_path_texts
from tw_autogen.plugin.neighbour_imports import ImportsBeside, load_module
from tw_autogen.plugin.spec import PluginSpec
from tw_autogen.trusted_files import guard_imports

CallModel = Callable[[list[dict[str, Any]]], str]


class HostPlugin(Closing):
    """A plugin, loaded into this process and called like the function that generated code sees.

    Hand it to a kernel: `kernel.serve(spec.name, host_plugin)`. What it raises goes to the caller.

    Args:
        spec: Which plugin; any will do, also one that says `runs_in: kernel`.
        folder: The session's folder; files that it makes go there.
        session_variables: Looked up at each call, so that what the session is given later is seen.
        call_model: Answers the plugin's messages, each with `role` and `content`, with text; None if there is no model.
        distrusted: As of `PluginContext`.
        on_artifact: Takes each file that a call made, also when the call failed in the end.
        on_log: Takes each line that the plugin logged.

    Raises:
        PluginLoadError: the Python fails while it is loaded, or its constructor does; names file and line.

    Example:
        with HostPlugin(read_spec("plugins/sql_pull_data.yaml"), folder=session.folder) as pull:
            df, description = pull("SELECT * FROM time_series")
    """

    def __init__(
        self,
        spec: PluginSpec,
        *,
        folder: Path,
        session_variables: Mapping[str, Any] | None = None,
        call_model: CallModel | None = None,
        distrusted: Callable[[], Sequence[Path]] | None = None,
        on_artifact: Callable[[Artifact], None] | None = None,
        on_log: Callable[[Log], None] | None = None,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self._files = SessionArtifacts(folder)
        self._beside = ImportsBeside(None if spec.connect else spec.source().resolve().parent)
        self._context = PluginContext(
            self._files, session_variables=session_variables, call_llm=call_model, distrusted=distrusted
        )
        self._on_artifact = on_artifact or (lambda made: None)
        self._on_log = on_log or (lambda line: None)
        self._numbers = itertools.count(1)
        try:
            self._function = spec.connect(self._context) if spec.connect else _load(spec, self._context)
        except BaseException:
            self._release()
            raise
        self._call = with_path_texts(as_sync(self._function), spec.parameters)
        functools.update_wrapper(self, self._function, updated=())  # so that `help` shows the plugin, not this class
        self.__doc__ = self._function.__doc__ or spec.description

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the plugin once; calls from several threads run side by side, each with files and logs of its own."""
        with self._context.apart(next(self._numbers)) as made:
            try:
                return self._call(*args, **kwargs)
            finally:
                self._report_artifacts_and_logs(made)

    load_module = staticmethod(load_module)

    def run_tests(self) -> list[tuple[str, str]]:
        """Run the `@test_plugin` tests of its file here; give each one's name and what went wrong, empty if nothing."""
        with self._context.apart(next(self._numbers)) as made:
            try:
                return run_plugin_tests(self._function)
            finally:
                self._report_artifacts_and_logs(made)

    def begin_cell(self, *, second_try: bool) -> None:
        """Call the plugin's `begin_cell`, if it has one: a cell begins.

        Args:
            second_try: The cell before it failed, and was of the same request.
        """
        begin = getattr(self._function, "begin_cell", None)
        if callable(begin):
            begin(second_try=second_try)

    def close(self) -> None:
        """Call the plugin's `close`, if it has one."""
        close = getattr(getattr(self._function, "_tw_plugin", self._function), "close", None)
        try:
            if callable(close):
                close()
        finally:
            self._release()

    def _release(self) -> None:
        self._beside.close()
        self._files.close()

    def _report_artifacts_and_logs(self, made: ExecutionOutputs) -> None:
        kept, logs = made.take()
        for one in kept:
            self._on_artifact(Artifact(one.name, one.kind, one.path, one.preview))
        for level, tag, message in logs:
            self._on_log(Log(level, tag, message))


def _load(spec: PluginSpec, context: PluginContext) -> Callable[..., Any]:
    loadable, path = spec.loadable(), spec.source().resolve()
    guard_imports(path.parent, spec.files)
    try:
        function: Callable[..., Any] = load_plugin(
            spec.name, loadable.source, ctx=context, settings=loadable.settings, path=str(path)
        )
    except PluginProblem as problem:
        raise PluginLoadError(problem.problem, path=path, line=problem.line) from problem
    return function
