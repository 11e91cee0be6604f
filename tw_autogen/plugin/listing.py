"""Which plugins there are: shipped, installed, in a project, at a path."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError, PluginLoadError, nearest
from tw_autogen.named_folders import checked_path
from tw_autogen.plugin.entry_points import installed_plugins, read_entry
from tw_autogen.plugin.folder import is_folder, is_name, plugin_files, read_file, read_folder
from tw_autogen.plugin.import_check import check_imports, missing_of_taskweaver
from tw_autogen.plugin.plugin_finder import check_source, renamed_parameters
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec
from tw_autogen.shipped_folders import shipped_folder


@dataclass(frozen=True)
class Listed:
    """One plugin, or a file that holds none that can be read.

    Args:
        name: The plugin's, or the file's if it can't be read.
        origin: `shipped`, the package that brings it, `project`, `path`, or `folder`: that of plugins of a folder that
            is no project, is not trusted or loads none, so that a run takes it only if it is told to.
        runs_in: `kernel` or `host`.
        enabled: Its folder brings it.
        line: As the Planner sees it.
        path: The YAML, or the Python file of a function.
        problem: Why it can't be used; empty if it can.
        spec: What was read.
    """

    name: str
    origin: str
    runs_in: str = ""
    enabled: bool = True
    line: str = ""
    path: Path | None = None
    problem: str = ""
    spec: PluginSpec | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        spec = self.spec
        return {
            "name": self.name,
            "origin": self.origin,
            "path": str(self.path) if self.path else None,
            "runs_in": self.runs_in or None,
            "enabled": self.enabled,
            "plugin_only": bool(spec and spec.plugin_only),
            "description": spec.description if spec else None,
            "parameters": [_parameter_dict(parameter) for parameter in spec.parameters] if spec else [],
            "returns": [{"name": one.name, "type": one.type, "description": one.description} for one in spec.returns]
            if spec
            else [],
            "examples": spec.examples if spec else "",
            "problem": self.problem or None,
        }


def listed_plugins(
    project: Path | None,
    paths: Sequence[Path],
    *,
    used: bool = True,
    python: str = sys.executable,
    unseen: Callable[[Path], bool] = lambda path: False,
) -> list[Listed]:
    """List all plugins that can be named here.

    Args:
        project: Folder of the project's plugins, if there is one.
        paths: Files and folders of more.
        used: A run takes the project's by itself.
        python: The interpreter of kernels.
        unseen: As of `read_folder`, for the project's.

    Raises:
        ConfigError: a path holds no plugins, or two packages bring the same name.
    """
    found = list(_list_plugins(read_folder(shipped_folder("plugins")), "shipped", python))
    for point in installed_plugins().values():
        try:
            origin = f"{point.dist.name} {point.dist.version}" if point.dist else "installed"
            found += _list_plugins(read_entry(point), origin, python)
        except ConfigError as error:
            found.append(Listed(point.name, "installed", problem=str(error)))
    if project is not None:
        found += _list_plugins(read_folder(project, unseen=unseen), "project" if used else "folder", python)
    for path in paths:
        found += _list_plugins(read_folder(path) if path.is_dir() else read_file(path), "path", python)
    return found


def files_of_plugins(wanted: Sequence[str], project: Path | None) -> list[Path]:
    """Return the files of plugins that are named as for a run: by a path, or by the name in the list.

    Args:
        wanted: Paths of files and folders, and names, which a single word always is (`./word` is a folder).
        project: Folder of the project's plugins, if there is one.

    Raises:
        ConfigError: there is no such file, folder or name; names the neighbour.
    """
    files: list[Path] = []
    named: dict[str, Listed] = {}
    for one in wanted:
        path = Path(one) if is_name(one) else checked_path(one, "plugins")
        if not is_name(one) and path.exists():
            files += plugin_files(path) if path.is_dir() else [path]
            continue
        named = named or {each.name: each for each in listed_plugins(project, ())}
        if one not in named and path.exists():
            raise ConfigError(f"{one}: no plugin is called that; write ./{one} for what lies here")
        if one not in named:
            raise ConfigError(f"{one}: no such file or folder, and no plugin is called that{nearest(one, named)}")
        file = named[one].path
        if file is None:
            raise ConfigError(f"{one}: {named[one].problem or 'it has no file'}")
        files.append(file)
    return files


def _list_plugins(found: Iterable[PluginSpec | ConfigError], origin: str, python: str) -> Iterator[Listed]:
    names: dict[str, Path | None] = {}
    for one in found:
        if isinstance(one, ConfigError):
            path = getattr(one, "path", None)
            yield Listed(path.name if path else "?", origin, path=path, problem=str(one))
            continue
        try:
            spec, problem = check_source(one), ""
            check_imports(spec, python)
            if one.enabled and one.name in names:
                problem = f"{names[one.name]} is called {one.name} too; rename one of the two"
            elif one.enabled:
                names[one.name] = one.path
        except ConfigError as error:
            spec, problem = one, str(error)
        yield Listed(spec.name, origin, spec.runs_in, spec.enabled, spec.line(), spec.path, problem, spec)


def _parameter_dict(parameter: Parameter) -> dict[str, Any]:
    plain = asdict(parameter)
    default = plain.pop("default")
    if default is not NO_DEFAULT and not parameter.required:
        plain["default"] = default if isinstance(default, str | int | float | bool | None) else repr(default)
    return plain


def project_plugins(place: Path, python: str) -> tuple[list[PluginSpec], list[str], list[str]]:
    """Read the plugins that a project brings: those of its folder that are enabled and whose Python fits them.

    Args:
        place: Its folder of plugins; none are there if it is missing.
        python: The interpreter of kernels, in which what they import has to be.

    Returns:
        The plugins, each optional; what was left out, with the reason; and notes for the user.
    """
    found: dict[str, PluginSpec] = {}
    left_out: list[str] = []
    notes: list[str] = []
    idle: list[str] = []
    for one in read_folder(place, needed=False) if is_folder(place) else ():
        if isinstance(one, ConfigError):
            left_out.append(str(one))
        elif one.enabled:
            try:
                spec = check_source(one)
                check_imports(spec, python)
                if one.name in found:
                    raise PluginLoadError(f"there is a plugin {one.name!r} already", path=one.path or one.name)
            except ConfigError as error:
                left_out.append(str(error))
            else:
                found[spec.name] = replace(spec, optional=True)
                lines = (*renamed_parameters(one, spec), *missing_of_taskweaver(spec))
                notes += [f"{one.path}: {line}" for line in lines]
        else:
            idle.append(one.name)
    if idle and not found and not left_out:
        notes.append(f"{place}: no plugin is enabled; one is brought by its name: {', '.join(idle)}")
    return list(found.values()), left_out, notes
