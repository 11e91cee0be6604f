"""Plugins that installed packages bring: the entry points of the group `tw_autogen.plugins`."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.errors import ConfigError
from tw_autogen.kernel.guest import plugin_options
from tw_autogen.lazy_module import LazyModule
from tw_autogen.plugin.callable_plugins import function_plugin
from tw_autogen.plugin.decorated_functions import read_functions
from tw_autogen.plugin.folder import enabled_in, read_file
from tw_autogen.plugin.spec import PluginSpec

if TYPE_CHECKING:
    from importlib import metadata
    from importlib.metadata import EntryPoint
else:
    metadata = LazyModule("importlib.metadata")

GROUP = "tw_autogen.plugins"


def installed_plugins() -> dict[str, EntryPoint]:
    """Return the entry points of all installed packages, by name; nothing of them is imported.

    Raises:
        ConfigError: two packages bring the same name.
    """
    found: dict[str, EntryPoint] = {}
    for point in metadata.entry_points(group=GROUP):
        twin = found.setdefault(point.name, point)
        if twin.value != point.value:
            raise ConfigError(
                f"two packages bring a plugin {point.name!r}: {_package(twin)} ({twin.value}) and {_package(point)} "
                f"({point.value}); uninstall one of them"
            )
    return found


def read_entry(point: EntryPoint) -> tuple[PluginSpec, ...]:
    """Return the plugins behind an entry point.

    Args:
        point: `package.module`: the module's `@plugin` functions, or all plugins of a package's folder, read without
            importing it. `package.module:name`: a function, a PluginSpec, a path of a YAML, of a Python file or of a
            folder, or several of these. A function with `@plugin` runs where that says, another one in the host.

    Raises:
        ConfigError: the package can't be imported, or brings something else.
    """
    try:
        if not point.attr:
            return _of_file(_module_path(point))
        return _of_object(point.load(), point)
    except ConfigError as error:
        raise ConfigError(f"plugin {point.name!r} of {_package(point)}: {error}") from error
    except (Exception, SystemExit) as error:  # foreign code: whatever its import raises
        message = f"{point.value} can't be loaded: {type(error).__name__}: {error}"
        raise ConfigError(f"plugin {point.name!r} of {_package(point)}: {message}") from error


def _module_path(point: EntryPoint) -> Path:
    found = importlib.util.find_spec(point.module)
    if found is None:
        raise ConfigError(f"there is no module {point.module}")
    if found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    if found.origin is None or not found.origin.endswith(".py"):
        raise ConfigError(f"{point.module} is no Python file")
    return Path(found.origin)


def _of_file(path: Path) -> tuple[PluginSpec, ...]:
    return enabled_in(path) if path.is_dir() else read_file(path)


def _of_object(value: Any, point: EntryPoint) -> tuple[PluginSpec, ...]:
    if isinstance(value, PluginSpec):
        return (value,)
    if isinstance(value, str | Path):
        return _of_file(Path(value))
    if callable(value):
        return (_of_function(value),)
    if isinstance(value, Iterable):
        return tuple(spec for one in value for spec in _of_object(one, point))
    raise ConfigError(f"{point.value} is {type(value).__name__}; expected a function, a PluginSpec or a path")


def _of_function(function: Callable[..., Any]) -> PluginSpec:
    """Return a function as its `@plugin` says: a kernel gets its file."""
    options = plugin_options(function)
    file = inspect.getsourcefile(function) if options and options["runs_in"] == "kernel" else None
    if file is None:
        return function_plugin(function)
    return next(spec for spec in read_functions(Path(file)) if spec.name == function.__name__)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "a package"
