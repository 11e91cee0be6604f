"""Finds the plugins that are wanted, and checks each one's Python against its YAML before anything runs."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Signature
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError, PluginLoadError, PluginSpecError, nearest
from tw_autogen.named_folders import checked_path
from tw_autogen.plugin.callable_plugins import function_plugin
from tw_autogen.plugin.decorated_functions import SUFFIX
from tw_autogen.plugin.entry_points import installed_plugins, read_entry
from tw_autogen.plugin.folder import enabled_in, is_name, named_in, read_file, read_folder
from tw_autogen.plugin.signature import shown_default, signature_in
from tw_autogen.plugin.source import (
    Function,
    decorated_in,
    last_word,
    parse_source,
    read_source,
    registered_in,
)
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec
from tw_autogen.trusted_files import active_trusted_files, trusted_files_for

_log = logging.getLogger(__name__)

PluginWanted = str | Path | PluginSpec | Callable[..., Any]
"""A name, a path of a file or folder, a spec, or a function."""


def find_plugins(
    wanted: Iterable[PluginWanted] | PluginWanted,
    *,
    shipped: Path | None,
    own: Path | None = None,
    project: Iterable[PluginSpec] = (),
) -> tuple[PluginSpec, ...]:
    """Return the specs that are wanted, in that order, each with its Python found and checked; none is run.

    Args:
        wanted: Names, which a single word always is (`./word` is a folder); paths of YAML files, or of Python files
            with `@plugin` functions; folders of both, or of a TaskWeaver project (its `plugins` folder is taken);
            specs; functions, which run in this process. A plugin that is not enabled is skipped in a folder, but
            loaded when it is named itself. The same file twice counts once.
        shipped: Folder of the shipped plugins; None if there are none.
        own: Folder of a project's own plugins, which can be named as well; their names come first, then those of the
            shipped ones, then those of the entry points `tw_autogen.plugins`.
        project: A project's plugins, checked already; they come first. One that is wanted too is no longer optional.

    Returns:
        The specs; defaults that only the Python knows are filled in, and a parameter to which the Python gives none is
        required, whatever the YAML says.

    Raises:
        PluginSpecError: a YAML is wrong or missing, or two plugins have the same name.
        PluginLoadError: a plugin's Python is missing, is no Python, or does not fit its YAML; names file and line.
        ConfigError: no plugin has that name, a function can't be one, or something else is wanted.
    """
    if isinstance(wanted, (str, Path, PluginSpec)) or callable(wanted) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    specs = {spec.name: spec for spec in project}
    for path in wanted:
        for spec in _find_specs(path, shipped, own):
            if _has_twin(spec, specs):
                specs[spec.name] = replace(specs[spec.name], optional=False)
            else:
                specs[spec.name] = check_source(spec)
                for line in renamed_parameters(spec, specs[spec.name]):
                    _log.warning("%s: %s", spec.path, line)
    return tuple(specs.values())


def _has_twin(spec: PluginSpec, specs: Mapping[str, PluginSpec]) -> bool:
    """Return whether a plugin is among those found.

    Raises:
        PluginSpecError: another one of its name is.
    """
    twin = specs.get(spec.name)
    if twin is not None and not _is_same_plugin(twin, spec):
        raise PluginSpecError(
            f"there is a plugin {spec.name!r} already, from {twin.path or 'Python'}; rename one of the two",
            path=spec.path or spec.name,
        )
    return twin is not None


def _is_same_plugin(spec: PluginSpec, other: PluginSpec) -> bool:
    if spec.connect or other.connect:
        return spec.connect is other.connect
    if spec.path is None or other.path is None:
        return False
    if spec.path.resolve() == other.path.resolve():
        return True
    function = spec.declared_in_python or other.declared_in_python  # a YAML beside the function that it stands for
    return function and spec.source().resolve() == other.source().resolve()


def check_source(spec: PluginSpec) -> PluginSpec:
    """Check the Python of a plugin without running it, and complete the spec with the defaults that stand there.

    A plugin that was made from a function, or read from one's source, has nothing else to fit, and stays as it is.
    Where the YAML calls a parameter otherwise than the Python does at the same place, the Python's name is taken, and
    the YAML's words stay (TaskWeaver compares neither names nor numbers); `renamed_parameters` says which. A function
    that takes any name keeps the YAML's.

    Args:
        spec: As it was read.

    Raises:
        PluginLoadError: naming file and line.
    """
    if spec.connect is not None or spec.declared_in_python:
        return spec
    path, trusted = spec.source(), active_trusted_files()
    if trusted is not None and spec.path is not None and trusted.holds(spec.path) and not trusted.holds(path):
        raise PluginLoadError("not among the files that its folder was trusted by, so it is not loaded", path=path)
    text = read_source(path, wanted_by=str(spec.path))
    tree = parse_source(path, text=text)
    registered = _find_registered(tree, spec, path)
    called = _called_function(registered, tree, path)
    parameters = spec.parameters
    if isinstance(called, ast.AsyncFunctionDef) and spec.runs_in != "host":
        raise PluginLoadError("an async function runs in the host: runs_in: host", path=path, line=called.lineno)
    if called is not None:  # else it is inherited from elsewhere: only running it would tell
        signature = signature_in(called, bound=isinstance(registered, ast.ClassDef))
        parameters = _rename_positional(parameters, signature)
        _check_signature(spec, parameters, signature, called)
        parameters = tuple(_complete_default(parameter, signature) for parameter in parameters)
    return replace(spec, text=text, files=trusted_files_for(path), parameters=parameters)


def renamed_parameters(before: PluginSpec, after: PluginSpec) -> tuple[str, ...]:
    """Describe in lines which parameters `check_source` has renamed.

    Args:
        before: As it was read.
        after: As it was checked.
    """
    return tuple(
        f"the parameter {old.name} is called {new.name} in the Python, and so to the model"
        for old, new in zip(before.parameters, after.parameters, strict=True)
        if old.name != new.name
    )


def _find_specs(wanted: PluginWanted, shipped: Path | None, own: Path | None) -> Iterator[PluginSpec]:
    if isinstance(wanted, PluginSpec):
        yield wanted
    elif not isinstance(wanted, (str, Path)):
        if not callable(wanted):
            raise ConfigError(f"plugins: expected names, paths and functions, got {wanted!r:.200}; none is ()")
        yield function_plugin(wanted)
    elif isinstance(wanted, str) and (specs := _specs_by_name(wanted, shipped, own)):
        yield from specs
    elif isinstance(wanted, str) and is_name(wanted):
        if Path(wanted).is_dir():
            raise ConfigError(f"no plugin is called {wanted!r}; write ./{wanted} for the folder that lies here")
        known = {**named_in(shipped), **named_in(own), **installed_plugins()}
        raise ConfigError(
            f"no plugin is called {wanted!r}{nearest(wanted, known)}\n"
            "One of your own is named by the path of its file, *.py or *.yaml, or of its folder."
        )
    elif (path := checked_path(wanted, "plugins")).is_dir():
        yield from enabled_in(path)
    else:
        yield from read_file(path)


def _specs_by_name(name: str, shipped: Path | None, own: Path | None) -> tuple[PluginSpec, ...]:
    """Return what goes by a name; nothing if nothing does. A project's that is not enabled shadows no shipped one."""
    for folder in (own, shipped):
        path = named_in(folder).get(name)
        if path is not None:
            specs = read_file(path)
            if folder is own and not any(spec.enabled for spec in specs) and name in named_in(shipped):
                continue
            if path.suffix != SUFFIX:
                return specs
            there = [spec for spec in read_folder(path.parent) if isinstance(spec, PluginSpec)]
            return tuple(spec for spec in there if spec.name == name)  # a YAML's, where one stands for the function
    if not name.isidentifier() and "-" not in name:  # a path, of which there is no need to look at all packages
        return ()
    point = installed_plugins().get(name)
    return read_entry(point) if point else ()


def _find_registered(tree: ast.Module, spec: PluginSpec, path: Path) -> ast.ClassDef | Function:
    functions = [function for function, _ in decorated_in(tree, path)]
    named = [function for function in functions if function.name == spec.name]
    if named:
        return named[0]
    found = registered_in(tree)
    if not found:
        others = ", ".join(function.name for function in functions)
        more = f", and @plugin stands on {others}, not on {spec.name}" if others else ""
        raise PluginLoadError(f"no class or function here has the decorator @register_plugin{more}", path=path)
    if len(found) > 1:
        names = ", ".join(node.name for node in found)
        raise PluginLoadError(
            f"@register_plugin stands {len(found)} times ({names}); a file holds one plugin",
            path=path,
            line=found[1].lineno,
        )
    return found[0]


def _called_function(node: ast.ClassDef | Function, tree: ast.Module, path: Path) -> Function | None:
    """Find what is called: the function, or the class's `__call__`, also in a parent class in the same file."""
    if not isinstance(node, ast.ClassDef):
        return node
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == "__call__":
            return statement
    parents = [last_word(base) for base in node.bases]
    for name in parents:
        if name in classes and classes[name] is not node:
            return _called_function(classes[name], tree, path)
    if all(name in ("Plugin", "object") for name in parents):
        raise PluginLoadError(f"class {node.name} has no `__call__`", path=path, line=node.lineno)
    return None


def _check_signature(
    spec: PluginSpec, parameters: Sequence[Parameter], signature: Signature, function: Function
) -> None:
    positional, taken, takes_any = _parameter_names(signature)
    listed = [parameter.name for parameter in parameters]
    problem = ""
    if not takes_any:
        unknown = [name for name in listed if name not in taken]
        problem = f"has no parameter {unknown[0]!r}" if unknown else ""
    needed = [name for name in taken if name not in listed and signature.parameters[name].default is Signature.empty]
    if not problem and needed:
        problem = f"needs {needed[0]!r}"
    in_yaml = [name for name in listed if name in positional]
    if not problem and in_yaml != [name for name in positional if name in in_yaml]:
        problem = "has its parameters in another order"
    if problem:
        where = spec.path.name if spec.path else "its spec"
        raise PluginLoadError(
            f"`{function.name}({', '.join(taken)})` {problem}; {where} lists: {', '.join(listed) or 'none'}",
            path=spec.source(),
            line=function.lineno,
        )


def _parameter_names(signature: Signature) -> tuple[list[str], list[str], bool]:
    """Return the parameters that can be passed by position, all that have a name, and whether others are accepted."""
    every = list(signature.parameters.values())
    positional = [
        parameter.name
        for parameter in every
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    named = positional + [parameter.name for parameter in every if parameter.kind is parameter.KEYWORD_ONLY]
    return positional, named, len(named) < len(every)


def _rename_positional(parameters: tuple[Parameter, ...], signature: Signature) -> tuple[Parameter, ...]:
    positional, taken, takes_any = _parameter_names(signature)
    listed = {parameter.name for parameter in parameters}
    if takes_any or listed <= set(taken):
        return parameters
    return tuple(
        replace(parameter, name=positional[index])
        if parameter.name not in taken and index < len(positional) and positional[index] not in listed
        else parameter
        for index, parameter in enumerate(parameters)
    )


def _complete_default(parameter: Parameter, signature: Signature) -> Parameter:
    found = signature.parameters.get(parameter.name)
    if found is None or found.kind in (found.VAR_POSITIONAL, found.VAR_KEYWORD) or parameter.required:
        return parameter
    if found.default is found.empty:
        return replace(parameter, required=True, default=NO_DEFAULT)
    default = shown_default(found.default)
    return parameter if default is NO_DEFAULT else replace(parameter, default=default)
