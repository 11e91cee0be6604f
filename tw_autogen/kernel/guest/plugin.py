"""`Plugin`, the decorators of a plugin's file, and how such a file is loaded."""

from __future__ import annotations

import builtins
import importlib.util
import inspect
import linecache
import os
import pkgutil
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, TypeVar, overload

from .plugin_context import LogErrorLevel, PluginContext
from .traceback_text import code_lines

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_MARK = "_tw_registered"
_TEST = "_tw_test"
_OPTIONS = "_tw_options"
_files: dict[tuple[str, str], types.ModuleType] = {}  # files of `@plugin` functions that this process has run
_loading = threading.RLock()
_folders: dict[str, Mapping[str, Any]] = {}  # folders of plugins: what their modules see as builtins
_loads: dict[str, tuple[frozenset[str], float]] = {}  # the same: modules that were there before, time of the last load
_APART = "tw_beside_"
_CLOCK_SECONDS = 0.05
"""How much older than this process's clock the time of a file may be."""


class Plugin:
    """A function that generated code calls, with settings and a context.

    Subclass it, write `__call__`, put `@register_plugin` on top.

    Args:
        name: The function's name in generated code.
        ctx: What it may ask of the session.
        config: The YAML's `configurations`.
    """

    def __init__(self, name: str, ctx: PluginContext, config: dict[str, Any]) -> None:
        self.name = name
        self.ctx = ctx
        self.config = config

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do the work; what it returns is what generated code gets."""
        raise NotImplementedError(f"plugin {self.name!r} has no __call__")

    def log(self, level: LogErrorLevel, message: str) -> None:
        """Leave a line that is shown beside what the code printed.

        Args:
            level: `info`, `warning` or `error`.
            message: The words.
        """
        self.ctx.log(level, self.name, message)

    def get_env(self, variable_name: str) -> str:
        """Read the environment variable `PLUGIN_<this plugin>_<variable_name>`."""
        return self.ctx.get_env(self.name, variable_name)


class PluginProblem(Exception):
    """A plugin's source does not load; `line` is the line of that source, where one is to blame."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


def register_plugin(registered: T) -> T:
    """Mark the class or function that is the plugin; each file has exactly one."""
    setattr(registered, _MARK, True)
    return registered


@overload
def plugin(function: F, /) -> F: ...
@overload
def plugin(
    *,
    runs_in: str = "kernel",
    examples: str = "",
    required: bool = False,
    plugin_only: bool = False,
    calls: int | None = None,
    seconds: float | None = None,
) -> Callable[[F], F]: ...
def plugin(
    function: Any = None,
    /,
    *,
    runs_in: str = "kernel",
    examples: str = "",
    required: bool = False,
    plugin_only: bool = False,
    calls: int | None = None,
    seconds: float | None = None,
) -> Any:
    """Make a typed, documented function a plugin; nothing else is needed.

    Name, types and defaults come from the signature, words from the docstring (Google's, NumPy's or Sphinx's form). A
    file may hold several; a process runs it once for all of them. The file is named in `plugins=["my_plugins.py"]`, or
    its folder is. It is read without being run, so each option below is written out as a value.

    Args:
        function: What code calls, under its own name.
        runs_in: `kernel`, beside the generated code, or `host`, for what needs secrets, the network or a database. A
            function that is handed over as an object, `plugins=[double]`, runs in the host in any case.
        examples: Python lines that show calls; empty: those of the docstring.
        required: Always shown to the model, also where only a few of many plugins are.
        plugin_only: May be called by a model that may do nothing but call plugins.
        calls: How often code may call it in one round; None: as often as all host calls together.
        seconds: How long one call may take, if it runs in the host; None: as long as the round.

    Example:
        >>> @plugin
        ... def double(x: float) -> float:
        ...     "Double a number."
        ...     return 2 * x
        >>> double(4)
        8
    """
    options = {
        "runs_in": runs_in,
        "examples": examples,
        "required": required,
        "plugin_only": plugin_only,
        "calls": calls,
        "seconds": seconds,
    }

    def mark(marked: Any) -> Any:
        if not isinstance(marked, types.FunctionType):
            raise TypeError(f"@plugin stands on a function, not on {marked!r}; a class takes @register_plugin")
        setattr(marked, _OPTIONS, options)
        return marked

    return mark if function is None else mark(function)


def plugin_options(function: object) -> Mapping[str, Any] | None:
    """Return what `@plugin` said of a function; None if it does not stand there."""
    options: Mapping[str, Any] | None = getattr(function, _OPTIONS, None)
    return options


@overload
def test_plugin(name: F, /) -> F: ...
@overload
def test_plugin(name: str | None = None, description: str | None = None) -> Callable[[F], F]: ...
def test_plugin(name: Any = None, description: str | None = None) -> Any:
    """Mark a function as a test of the file's plugin: it is called with the plugin and raises if something is wrong.

    Args:
        name: The test's name; None: the function's. The function itself, where no brackets stand behind the decorator.
        description: What is tested; None: nothing is said.
    """
    if callable(name):
        return test_plugin()(name)

    def mark(function: Any) -> Any:
        setattr(function, _TEST, (name or getattr(function, "__name__", "test"), description or ""))
        return function

    return mark


test_plugin.__test__ = False  # type: ignore[attr-defined] # pytest must not take the decorator for a test


def load_plugin(
    name: str, source: str, *, ctx: PluginContext, settings: Mapping[str, Any], path: str | None = None
) -> Callable[..., Any]:
    """Run a plugin's source and make the one that it registers, or give its `@plugin` function of that name.

    Args:
        name: The function's name.
        source: Python text.
        ctx: Handed to a class; a registered function runs without one.
        settings: Handed to a class as `config`.
        path: The file that the source came from; the caller sees to it that modules beside it can be imported. Those
            are imported again if one of them was edited since the last load.

    Returns:
        A function of that name, with the docstring of the plugin.

    Raises:
        PluginProblem: it does not load, registers none or several, or its constructor fails.
    """
    install_names()
    with _loading:
        if path is not None:
            _forget_edited(os.path.dirname(path))
        module = _files.get((path or "", source)) or _run_plugin_source(name, source, path)
        if path is not None and _plugin_functions(module):
            _files[path, source] = module
    own = (var for var in vars(module).values() if isinstance(var, (type, types.FunctionType)))
    found: list[Any] = [function for function in _plugin_functions(module) if function.__name__ == name]
    found = found or [
        function for function in own if function.__module__ == module.__name__ and vars(function).get(_MARK)
    ]
    if len(found) != 1:
        names = ", ".join(function.__name__ for function in found) or "none"
        raise PluginProblem(f"expected exactly one class or function with @register_plugin, found {names}")
    registered = found[0]
    if isinstance(registered, type):
        try:
            registered = registered(name, ctx, dict(settings))
        except (Exception, SystemExit) as error:  # foreign code: whatever its constructor raises
            raise PluginProblem(f"{type(error).__name__}: {error}", _line_of_error(error, module)) from error
        if not callable(registered):
            raise PluginProblem(f"{type(registered).__name__} has no __call__")
    function = _named_wrapper(name, registered)
    function._tw_module = module  # type: ignore[attr-defined] # where `run_plugin_tests` finds them
    return function


def _plugin_functions(module: types.ModuleType) -> list[types.FunctionType]:
    """Return a file's own `@plugin` functions."""
    own = (var for var in vars(module).values() if isinstance(var, types.FunctionType))
    return [
        function for function in own if function.__module__ == module.__name__ and plugin_options(function) is not None
    ]


def run_plugin_tests(tested: Callable[..., Any]) -> list[tuple[str, str]]:
    """Run the tests in the file of a loaded plugin; give each one's name and what went wrong (empty if nothing).

    In a file of several `@plugin` functions, a test is for the one that its parameter is named for.
    """
    outcomes = []
    module: types.ModuleType = tested._tw_module  # type: ignore[attr-defined] # set by `load_plugin`
    several = len(_plugin_functions(module)) > 1
    for var in list(vars(module).values()):
        if (marked := getattr(var, _TEST, None)) is not None:
            if several and tested.__name__ not in inspect.signature(var).parameters:
                continue
            try:
                var(tested)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - foreign code; what it raises is the outcome, SystemExit too
                outcomes.append((marked[0], f"{type(error).__name__}: {error}"))
            else:
                outcomes.append((marked[0], ""))
    return outcomes


def install_names() -> None:
    """Make `from taskweaver.plugin import …` and `from tw_autogen.plugin import …` give the names of this module.

    What is installed here under these names comes first, so that one process never has two `Plugin` classes.
    """
    for package in ("tw_autogen", "taskweaver"):
        full = f"{package}.plugin"
        if full in sys.modules or (package == "tw_autogen" and not __name__.startswith("tw_guest")):
            continue
        module = types.ModuleType(full, "What a plugin's author writes against.")
        names = {
            item.__name__: item for item in (Plugin, PluginContext, register_plugin, run_plugin_tests, test_plugin)
        }
        vars(module).update(names, plugin=plugin)
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            sys.modules[package] = types.ModuleType(package, "Stands in, so that plugins find what they import.")
            sys.modules[package].__path__ = []
            vars(sys.modules[package]).update(names)
        sys.modules[full] = module
        if package in sys.modules:
            sys.modules[package].plugin = module  # type: ignore[attr-defined]  # modules take attributes


def _run_plugin_source(name: str, source: str, path: str | None) -> types.ModuleType:
    module = types.ModuleType(f"tw_plugin_{name}")
    module.__file__ = path or f"<plugin {name}>"
    lines = [f"{line}\n" for line in code_lines(source)]
    linecache.cache[module.__file__] = (len(source), None, lines, module.__file__)
    sys.modules[module.__name__] = module  # dataclasses and pickle look there
    vars(module)["__builtins__"] = _builtins_for(os.path.dirname(path)) if path else vars(builtins)
    try:
        exec(compile(source, module.__file__, "exec", dont_inherit=True), vars(module))
    except SyntaxError as error:
        line = error.lineno if error.filename == module.__file__ else _line_of_error(error, module)
        raise PluginProblem(f"SyntaxError: {error.msg}", line) from error
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises while it is imported
        raise PluginProblem(f"{type(error).__name__}: {error}", _line_of_error(error, module)) from error
    return module


def _forget_edited(folder: str) -> None:
    """Forget what plugins of a folder have imported beside them, if a file of it was changed since the last load."""
    before, last = _loads.get(folder, (frozenset(sys.modules), time.time()))
    _loads[folder] = before, time.time()
    files = {name: file for name in {*sys.modules} - before if (file := _file_beside(name, folder))}
    if any(_changed_at(file) > last - _CLOCK_SECONDS for file in files.values()):
        for name in files:
            sys.modules.pop(name, None)
        for path, source in [key for key in _files if os.path.dirname(key[0]) == folder]:
            del _files[path, source]


def _file_beside(name: str, folder: str) -> str:
    """Return a module's file if it lies in a folder, and was imported from there; empty if not."""
    file, root = getattr(sys.modules.get(name), "__file__", None) or "", name.partition(".")[0]
    inside = file[len(folder) + 1 :] if file.startswith(f"{folder}{os.sep}") else ""
    return file if inside.startswith((f"{root}.", f"{root}{os.sep}")) or inside and root.startswith(_APART) else ""


def _changed_at(file: str) -> float:
    try:
        about = os.stat(file)
    except OSError:  # it is gone
        return float("inf")
    return max(about.st_mtime, about.st_ctime)


def _builtins_for(folder: str) -> Mapping[str, Any]:
    """Return the builtins of a folder's plugins; their imports are resolved apart if another folder has such names."""
    if folder not in _folders:
        names = {module.name for module in pkgutil.iter_modules([folder])}
        taken = {module.name for module in pkgutil.iter_modules(_folders)}
        _folders[folder] = _ImportsApart(folder).builtins if names & taken else vars(builtins)
    return _folders[folder]


class _ImportsApart:
    """Imports what lies beside a plugin under names of its own: another folder's plugins have imported such names.

    No finder of `sys.meta_path` can do that: what `sys.modules` has under a name is looked for no more.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._space = folder, f"{_APART}{len(_folders)}"
        sys.modules[self._space] = types.ModuleType(self._space, f"What lies in {folder}.")
        sys.modules[self._space].__path__ = [folder]
        self.builtins: Mapping[str, Any] = {**vars(builtins), "__import__": self._import}
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the folder, whose imports go through `_import` too, as a finder of `sys.meta_path` does.

        Args:
            name: Its full name.
            path: The `__path__` of the package that it is in.
            target: Not used.
        """
        spec = PathFinder.find_spec(name, path) if name.startswith(f"{self._space}.") else None
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                vars(module)["__builtins__"] = self.builtins
                run(module)

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 - no method may be assigned to
        return spec

    def _import(
        self,
        name: str,
        globals: Any = None,  # noqa: A002 - the names that `__import__` has
        locals: Any = None,  # noqa: A002 - as above
        fromlist: Any = (),
        level: int = 0,
    ) -> types.ModuleType:
        top = name.partition(".")[0]
        if level or not self._owns_module(top):
            return builtins.__import__(name, globals, locals, fromlist, level)
        module = builtins.__import__(f"{self._space}.{name}", None, None, fromlist or ("__name__",))
        return module if fromlist else sys.modules[f"{self._space}.{top}"]

    def _owns_module(self, top: str) -> bool:
        """Return whether a module lies in the folder, and nothing that is installed has its name."""
        if f"{self._space}.{top}" in sys.modules or PathFinder.find_spec(top, [self._folder]) is None:
            return f"{self._space}.{top}" in sys.modules
        try:
            spec = importlib.util.find_spec(top)
        except ValueError:  # one that was made without a file
            return False
        origins = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec is not None else []
        return not origins or os.path.dirname(origins[0]) in _folders


def _line_of_error(error: BaseException, module: types.ModuleType) -> int | None:
    """Find the last line of the plugin's own file that the error passed through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == module.__file__]
    return lines[-1] if lines else None


def _named_wrapper(name: str, registered: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a plugin, so that `help(name)` and a traceback show a function of that name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return registered(*args, **kwargs)

    target = registered if isinstance(registered, types.FunctionType) else type(registered).__call__
    call.__name__ = call.__qualname__ = name
    call.__doc__ = target.__doc__ or registered.__doc__
    call._tw_plugin = registered  # type: ignore[attr-defined] # the instance, for who has to close it
    call.__signature__ = inspect.signature(registered)  # type: ignore[attr-defined] # what `help` shows
    return call
