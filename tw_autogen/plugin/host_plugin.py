"""`HostPlugin`: a plugin that runs in this process, because it needs secrets, the network or a database."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import machinery
from pathlib import Path
from types import ModuleType
from typing import Any

from tw_autogen.closing import Closing
from tw_autogen.errors import PluginLoadError
from tw_autogen.kernel import Artifact, Log
from tw_autogen.kernel.guest import Made, PluginContext, PluginProblem, load_plugin, run_plugin_tests
from tw_autogen.plugin.artifact_folder import SessionArtifacts
from tw_autogen.plugin.callable_plugins import run_through
from tw_autogen.plugin.spec import PluginSpec
from tw_autogen.trusted_files import guard_imports

CallModel = Callable[[list[dict[str, Any]]], str]
_IMPORTED_FROM: Counter[str] = Counter()
"""How many open plugins were loaded from a folder."""
_OF_IMPORTS = ("<frozen importlib", importlib.__file__)
"""Files of the code by which Python imports."""
_CHANGING = threading.Lock()


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
        self._beside = _ImportsBeside(None if spec.connect else spec.source().resolve().parent)
        self._context = PluginContext(
            self._files, session_variables=session_variables, call_llm=call_model, distrusted=distrusted
        )
        self._on_artifact = on_artifact or _ignore
        self._on_log = on_log or _ignore
        self._numbers = itertools.count(1)
        try:
            self._function = spec.connect(self._context) if spec.connect else _load(spec, self._context)
        except BaseException:
            self._release()
            raise
        self._call = run_through(self._function)
        functools.update_wrapper(self, self._function, updated=())  # so that `help` shows the plugin, not this class
        self.__doc__ = self._function.__doc__ or spec.description

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the plugin once; calls from several threads run side by side, each with files and logs of its own."""
        with self._context.apart(next(self._numbers)) as made:
            try:
                return self._call(*args, **kwargs)
            finally:
                self._report_artifacts_and_logs(made)

    @staticmethod
    def imports_beside(folder: Path) -> Closing:
        """Return what lets the modules of a folder import each other, as a loaded plugin does, until it is closed.

        Args:
            folder: The folder.
        """
        return _ImportsBeside(folder)

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

    def _report_artifacts_and_logs(self, made: Made) -> None:
        kept, logs = made.take()
        for one in kept:
            self._on_artifact(Artifact(one.name, one.kind, one.path, one.preview))
        for level, tag, message in logs:
            self._on_log(Log(level, tag, message))


class _ImportsBeside(Closing):
    """Lets the modules of a folder import each other, until it is closed: after that nobody looks there for modules.

    Args:
        folder: The folder; None: none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = str(folder.resolve()) if folder else ""
        with _CHANGING:
            if self._folder:
                _IMPORTED_FROM[self._folder] += 1
                if _NeighbourFinder not in sys.meta_path:
                    sys.meta_path.append(_NeighbourFinder)  # at the end: it shadows nothing

    def close(self) -> None:
        """Look there no more, unless another plugin was loaded from the folder."""
        folder, self._folder = self._folder, ""
        with _CHANGING:
            if not folder:
                return
            _IMPORTED_FROM[folder] -= 1
            if not _IMPORTED_FROM[folder]:
                del _IMPORTED_FROM[folder]


class _NeighbourFinder:
    """Finds what lies beside a plugin for the modules of that folder only.

    On `sys.path` the folder would be everybody's: packages look for others that may be there (`import numexpr`), and
    would get whatever has such a name in a folder that somebody else has made.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        """Return what is imported, if it lies beside whoever imports it and a plugin there is open; None otherwise.

        Args:
            name: The module's.
            path: Of the package that it is in; None: it is in none, and only then looked for.
            target: As of `importlib.abc.MetaPathFinder`.
        """
        if path is not None:
            return None
        importer = os.path.dirname(_importer())
        with _CHANGING:
            folders = tuple(_IMPORTED_FROM)
        beside = [one for one in folders if f"{importer}{os.sep}".startswith(f"{one}{os.sep}")]
        beside = [one for one in beside if "-packages" not in importer[len(one) :]]  # of an environment that lies there
        return machinery.PathFinder.find_spec(name, beside, target) if beside else None


def _importer() -> str:
    """Return the file of the code that imports something now; empty if it has none."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OF_IMPORTS):
        frame = frame.f_back
    return frame.f_code.co_filename


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


def _ignore(_: object) -> None:
    """Ignore the event."""
