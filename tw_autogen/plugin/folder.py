"""Folders of plugins: YAML files with their Python, and Python files with `@plugin` functions."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from tw_autogen.errors import ConfigError, PluginSpecError
from tw_autogen.plugin.decorated_functions import SUFFIX, holds_functions, read_functions
from tw_autogen.plugin.spec import PluginSpec, read_spec
from tw_autogen.trust_store import MAX_BYTES

YAMLS = (".yaml", ".yml")
_SUFFIXES = (*YAMLS, SUFFIX)
_MAX_FILES, _MAX_FOLDER_BYTES = 2000, 64 << 20


def is_name(wanted: str) -> bool:
    """Return whether a text can only be a plugin's name: what lies in the current folder by chance takes no name.

    A path has a separator (`./weather`), starts with `~`, ends with a suffix of plugins' files, or is `.` or `..`.
    """
    if any(mark and mark in wanted for mark in ("/", os.sep, os.altsep)) or wanted in ("", ".", ".."):
        return False
    return not wanted.startswith("~") and not wanted.endswith((*YAMLS, SUFFIX))


def plugin_files(folder: Path) -> list[Path]:
    """Return a folder's YAML files, then its Python files with `@plugin` functions, each kind by name.

    Args:
        folder: Of plugins, or of a TaskWeaver project (its `plugins` folder is taken).

    Raises:
        PluginSpecError: there are none.
    """
    return list(_plugin_files(folder, needed=True))


def _plugin_files(
    folder: Path,
    *,
    needed: bool,
    leave_out: Callable[[Path], bool] = lambda path: False,
    unseen: Callable[[Path], bool] = lambda path: False,
) -> Iterator[Path]:
    """Yield the same one after the other, so that a file is parsed once by whoever reads it then."""
    inner = folder / "plugins"
    if unseen(inner):
        return
    inner = inner_folder(folder)
    files = _list_source_files(inner, unseen)
    is_empty = True
    for path in sorted(files, key=_is_python):
        if not leave_out(path) and (not _is_python(path) or holds_functions(path)):
            is_empty = False
            yield path
    if needed and is_empty and inner is folder:
        raise PluginSpecError(
            "no plugins here: expected *.yaml files, *.py files with @plugin functions, or a folder `plugins` of these",
            path=folder,
        )


def inner_folder(folder: Path) -> Path:
    """Return where a folder's plugins lie: in its own folder `plugins`, if it has one."""
    inner = folder / "plugins"
    return inner if os.path.isdir(inner) else folder


def is_folder(path: Path) -> bool:
    """Return whether a folder of plugins is there.

    Raises:
        PluginSpecError: a folder on the way to it can't be entered, so that nobody knows.
    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        reason = f"it can't be looked at ({error.strerror}); chmod u+x the folders above it, or name another one"
        raise PluginSpecError(f"{reason} (plugin.folder)", path=path) from error


def read_file(path: Path) -> tuple[PluginSpec, ...]:
    """Return the plugins of one file: that of a YAML, or those of a Python file's `@plugin` functions.

    Raises:
        PluginSpecError: the YAML is wrong or missing.
        PluginLoadError: the Python is wrong or missing.
    """
    return read_functions(path) if path.suffix == SUFFIX else (read_spec(path),)


def read_folder(
    folder: Path,
    *,
    needed: bool = True,
    leave_out: Callable[[Path], bool] = lambda path: False,
    unseen: Callable[[Path], bool] = lambda path: False,
) -> Iterator[PluginSpec | ConfigError]:
    """Yield all plugins of a folder, also those that are not enabled, and for each file that is wrong what is wrong.

    A `@plugin` function that a YAML of its name stands for is that YAML's.

    Args:
        folder: As in `plugin_files`.
        needed: There must be some.
        leave_out: Called once with each YAML and Python file before it is read: is it left out?
        unseen: Called with each name before what lies there is looked at: is it passed over?

    Raises:
        PluginSpecError: there are none, and some are needed; or the folder can't be listed.
    """
    claimed: dict[str, list[PluginSpec]] = {}
    for path in _plugin_files(folder, needed=needed, leave_out=leave_out, unseen=unseen):
        try:
            specs = read_file(path)
        except ConfigError as error:
            yield error
            continue
        for spec in specs:
            if not spec.declared_in_python:
                claimed.setdefault(spec.name, []).append(spec)
            elif any(path == one.source() for one in claimed.get(spec.name, ())):
                continue
            yield spec


def enabled_in(folder: Path) -> tuple[PluginSpec, ...]:
    """Return the plugins of a folder that are enabled.

    Raises:
        ConfigError: a file is wrong, or none is enabled.
    """
    found = list(read_folder(folder))
    for one in found:
        if isinstance(one, ConfigError):
            raise one
    enabled = tuple(one for one in found if isinstance(one, PluginSpec) and one.enabled)
    if not enabled:
        raise PluginSpecError(
            "no plugin here is enabled; one that is named itself, by its file, is loaded all the same", path=folder
        )
    return enabled


def named_in(folder: Path | None) -> dict[str, Path]:
    """Return the names that a folder's plugins can be called for by, each with its file; none if there is no folder.

    A YAML goes by its file's name, a function by its own.
    """
    if folder is None or not os.path.isdir(folder):
        return {}
    files = _list_source_files(folder)
    functions = {spec.name: path for path in files if path.suffix == SUFFIX for spec in _functions_in(path)}
    return {**functions, **{path.stem: path for path in files if path.suffix in YAMLS}}


def _is_python(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def _list_source_files(folder: Path, unseen: Callable[[Path], bool] = lambda path: False) -> list[Path]:
    """Return the YAML and Python files of a folder, by name; a link to a file is one.

    Raises:
        PluginSpecError: they are more, or larger together, than plugins are, or can't be listed.
    """
    try:
        with os.scandir(folder) as found:
            named = [one for one in found if one.name.endswith(_SUFFIXES) and not unseen(Path(one.path))]
            sizes = {one.name: one.stat().st_size for one in named if one.is_file()}
    except OSError as error:
        reason = f"it can't be listed ({error.strerror}); chmod u+rx, or name another folder (plugin.folder)"
        raise PluginSpecError(reason, path=folder) from error
    read_bytes = sum(size for size in sizes.values() if size <= MAX_BYTES)  # larger ones are not read
    if len(sizes) > _MAX_FILES or read_bytes > _MAX_FOLDER_BYTES:
        reason = f"at most {_MAX_FILES} of {_MAX_FOLDER_BYTES >> 20} MB together are read as plugins"
        raise PluginSpecError(f"{len(sizes)} YAML and Python files of {read_bytes} bytes; {reason}", path=folder)
    return [folder / name for name in sorted(sizes)]


def _functions_in(path: Path) -> tuple[PluginSpec, ...]:
    try:
        return read_functions(path) if holds_functions(path) else ()
    except ConfigError:  # told when it is asked for
        return ()
