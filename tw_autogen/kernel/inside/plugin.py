"""`Plugin`, the two decorators of a plugin's file, and how such a file is loaded."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .context import LogErrorLevel, PluginContext

T = TypeVar("T")
_MARK = "_tw_registered"
_TEST = "_tw_test"


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
        """Leave a line that is shown beside what the code printed."""
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


def test_plugin(name: str | None = None, description: str | None = None) -> Callable[[T], T]:
    """Mark a function as a test of the file's plugin: it is called with the plugin and raises if something is wrong."""

    def mark(function: T) -> T:
        setattr(function, _TEST, (name or getattr(function, "__name__", "test"), description or ""))
        return function

    return mark


test_plugin.__test__ = False  # type: ignore[attr-defined] # pytest must not take the decorator for a test


def load_plugin(
    name: str, source: str, *, ctx: PluginContext, settings: Mapping[str, Any], path: str | None = None
) -> Callable[..., Any]:
    """Run a plugin's source and make the one that it registers.

    Args:
        name: The function's name.
        source: Python text.
        ctx: Handed to a class; a registered function runs without one.
        settings: Handed to a class as `config`.
        path: The file that the source came from; modules beside it can be imported.

    Returns:
        A function of that name, with the docstring of the plugin.

    Raises:
        PluginProblem: it does not load, registers none or several, or its constructor fails.
    """
    install_names()
    module = _run(name, source, path)
    own = (one for one in vars(module).values() if isinstance(one, (type, types.FunctionType)))
    registered: list[Any] = [one for one in own if one.__module__ == module.__name__ and vars(one).get(_MARK)]
    if len(registered) != 1:
        found = ", ".join(one.__name__ for one in registered) or "none"
        raise PluginProblem(f"expected exactly one class or function with @register_plugin, found {found}")
    plugin = registered[0]
    if isinstance(plugin, type):
        try:
            plugin = plugin(name, ctx, dict(settings))
        except Exception as error:  # foreign code: whatever its constructor raises
            raise PluginProblem(f"{type(error).__name__}: {error}", _line(error, module)) from error
        if not callable(plugin):
            raise PluginProblem(f"{type(plugin).__name__} has no __call__")
    function = _function(name, plugin)
    function._tw_module = module  # type: ignore[attr-defined] # where `run_plugin_tests` finds them
    return function


def run_plugin_tests(plugin: Callable[..., Any]) -> list[tuple[str, str]]:
    """Run the tests in the file of a loaded plugin; give each one's name and what went wrong (empty if nothing)."""
    outcomes = []
    for one in vars(plugin._tw_module).values():  # type: ignore[attr-defined] # set by `load_plugin`
        if (marked := getattr(one, _TEST, None)) is not None:
            try:
                one(plugin)
            except Exception as error:  # noqa: BLE001 - foreign code; what it raises is the outcome
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
        if full in sys.modules or (package == "tw_autogen" and not __name__.startswith("tw_inside")):
            continue
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            sys.modules[package] = types.ModuleType(package, "Stands in, so that plugins find what they import.")
            sys.modules[package].__path__ = []
        module = types.ModuleType(full, "What a plugin's author writes against.")
        for value in (Plugin, PluginContext, register_plugin, test_plugin):
            setattr(module, value.__name__, value)
        sys.modules[full] = module
        if package in sys.modules:
            sys.modules[package].plugin = module  # type: ignore[attr-defined]


def _run(name: str, source: str, path: str | None) -> types.ModuleType:
    module = types.ModuleType(f"tw_plugin_{name}")
    module.__file__ = path or f"<plugin {name}>"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(keepends=True), module.__file__)
    if path is not None:
        beside = path.replace("\\", "/").rpartition("/")[0]
        if beside and beside not in sys.path:
            sys.path.append(beside)  # at the end: it shadows nothing
    sys.modules[module.__name__] = module  # dataclasses and pickle look there
    try:
        exec(compile(source, module.__file__, "exec", dont_inherit=True), vars(module))
    except SyntaxError as error:
        line = error.lineno if error.filename == module.__file__ else _line(error, module)
        raise PluginProblem(f"SyntaxError: {error.msg}", line) from error
    except Exception as error:  # foreign code: whatever it raises while it is imported
        raise PluginProblem(f"{type(error).__name__}: {error}", _line(error, module)) from error
    return module


def _line(error: BaseException, module: types.ModuleType) -> int | None:
    """Find the last line of the plugin's own file that the error passed through."""
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == module.__file__]
    return lines[-1] if lines else None


def _function(name: str, plugin: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a plugin, so that `help(name)` and a traceback show a function of that name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return plugin(*args, **kwargs)

    target = plugin if isinstance(plugin, types.FunctionType) else type(plugin).__call__
    call.__name__ = call.__qualname__ = name
    call.__doc__ = target.__doc__ or plugin.__doc__
    call._tw_plugin = plugin  # type: ignore[attr-defined] # the instance, for who has to close it
    call.__signature__ = inspect.signature(plugin)  # type: ignore[attr-defined] # what `help` shows
    return call
