"""A plugin's YAML, and its Python where that is needed, written from a function that is there already."""

from __future__ import annotations

import inspect
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError
from tw_autogen.kernel.guest import plugin_options
from tw_autogen.plugin.callable_plugins import callable_plugin
from tw_autogen.plugin.plugin_finder import check_source
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec, read_spec
from tw_autogen.plugin.typed_values import RESULT, structured_types
from tw_autogen.safe_folder import open_or_make_folder
from tw_autogen.yaml_files import readable_yaml

_PYTHON = '''"""`{module}.{function}` as a plugin."""

{imported}

@register_plugin
def {name}(*args, **kwargs):
    return original(*args, **kwargs)
'''
_INSTALLED = """from tw_autogen.plugin import register_plugin
from {module} import {function} as original
"""
_IN_KERNEL = """import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent / {folder!r}))  # where {module} lies
from tw_autogen.plugin import register_plugin
from {module} import {function} as original
"""
_IN_HOST = """from pathlib import Path

from tw_autogen.plugin import HostPlugin, register_plugin

original = HostPlugin.load_module(Path(__file__).resolve().parent / {file!r}, {module!r}).{function}
"""
_PLAIN = (str, int, float, bool, type(None), list, dict)


def write_plugin(
    function: Callable[..., Any], folder: Path, *, name: str | None = None, runs_in: str | None = None
) -> tuple[PluginSpec, tuple[Path, ...]]:
    """Write a plugin's YAML from a function's signature and docstring, and Python that calls it if it needs some.

    A function with `@plugin` or `@register_plugin` in a file of that folder needs none: `code` names that file.

    Args:
        function: On the top level of a module that can be imported.
        folder: Where the files go; opened as `open_or_make_folder` does. What is there is never overwritten.
        name: The plugin's; None: the function's.
        runs_in: `kernel` or `host`; None: what `@plugin` says, else the kernel if the function's module is installed
            or lies in that folder, and it is not async, else the host, since a kernel can't read it where it lies.

    Returns:
        The plugin as it is read from there, and the files.

    Raises:
        ConfigError: a file is there already, a link is in the way, or the function can't be a plugin, or it takes
            dataclasses, models or enums.
    """
    if not inspect.isroutine(function) or "." in function.__qualname__:
        raise ConfigError(f"{function!r}: expected a function on the top level of a module")
    spec = callable_plugin(function, name=name)
    if structured := structured_types(function).keys() - {RESULT}:
        message = f"{', '.join(sorted(structured))}: a YAML has no words for such types"
        raise ConfigError(f"{function.__name__}: {message}; hand the function over, plugins=[{function.__name__}]")
    named, file, folder = folder, _source_file(function), folder.resolve()
    root = file.parents[function.__module__.count(".") + (file.name == "__init__.py")]
    options = plugin_options(function)
    decorated = options is not None or hasattr(function, "_tw_registered")
    marked = decorated and spec.name == function.__name__ and file.parent == folder
    importable = _is_installed(file) or root == folder
    waits = inspect.iscoroutinefunction(function)
    in_kernel = (importable or marked) and not waits
    place = runs_in or (options["runs_in"] if options else "kernel" if in_kernel else "host")
    if waits and place != "host":
        raise ConfigError(f"{function.__name__}: an async function runs in the host: runs_in='host'")
    path = folder / f"{spec.name}.yaml"
    files = {path: _spec_as_yaml(spec, place, file.stem if marked else "")}
    if not marked:
        form = _INSTALLED if importable else _IN_HOST if place == "host" else _IN_KERNEL
        about = {"module": function.__module__, "function": function.__name__}
        paths = {"folder": os.path.relpath(root, folder), "file": os.path.relpath(file, folder)}
        python = _PYTHON.format(**about, name=spec.name, imported=form.format(**about, **paths))
        files[folder / f"{spec.name}.py"] = python
    try:
        with open_or_make_folder(named) as opened:
            there = next((one for one in files if opened.has_entry(one.name)), None)
            if there is not None:
                raise ConfigError(f"{there}: is there already, and is not overwritten; name another folder or name")
            for one, text in files.items():
                with opened.create_file(one.name) as made:
                    made.write(text.encode())
    except OSError as error:
        raise ConfigError(f"{named}: not written: {error.strerror or error}") from error
    return check_source(read_spec(path)), tuple(files)


def _source_file(function: Callable[..., Any]) -> Path:
    """Return the file of a function; of one that is no Python the interpreter's own folder, which a kernel has too."""
    try:
        return Path(inspect.getsourcefile(function) or "").resolve()
    except TypeError:
        return Path(sysconfig.get_path("stdlib"), f"{function.__module__}.py").resolve()


def _is_installed(file: Path) -> bool:
    """Return whether a kernel of this Python finds a module there by itself."""
    places = [Path(place).resolve() for place in sysconfig.get_paths().values()]
    return any(file.is_relative_to(place) for place in places)


def _spec_as_yaml(spec: PluginSpec, runs_in: str, code: str) -> str:
    plain: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": [_parameter_dict(parameter) for parameter in spec.parameters],
        "returns": [
            {"name": one.name, "type": one.type, **({"description": one.description} if one.description else {})}
            for one in spec.returns
        ],
        "examples": spec.examples,
        "code": code,
        "runs_in": runs_in,
    }
    kept = {key: value for key, value in plain.items() if value or key in ("parameters", "returns")}
    return readable_yaml(kept)


def _parameter_dict(parameter: Parameter) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": parameter.name, "type": parameter.type, "required": parameter.required}
    if parameter.description:
        plain["description"] = parameter.description
    if parameter.default is not NO_DEFAULT and isinstance(parameter.default, _PLAIN):
        plain["default"] = parameter.default
    if parameter.by:
        plain["by"] = parameter.by
    return plain
