"""What a request brings: files and variables, checked before anything is done, and copied into the session's folder."""

from __future__ import annotations

import keyword
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError

FilesWanted = Iterable[Path | str] | Path | str
"""Files by their paths; a single one needs no list."""


def several(wanted: Any) -> tuple[Any, ...]:
    """Give what is wanted as a tuple; a single thing, such as a path or a name, needs no list around it.

    Example:
        >>> several("sales.csv"), several(["a.csv", "b.csv"])
        (('sales.csv',), ('a.csv', 'b.csv'))
    """
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        return (wanted,)
    return tuple(wanted)


def checked_inputs(files: FilesWanted, variables: Mapping[str, Any]) -> list[Path]:
    """Give the files as paths.

    Raises:
        ConfigError: a file doesn't exist, two have the same name, or a variable's name is no identifier.
    """
    paths = [Path(one) for one in several(files)]
    for path in paths:
        if not path.is_file():
            raise ConfigError(f"{path}: {'not a file' if path.exists() else 'there is no such file'}")
    names = [path.name for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two of the files are called {name!r}; rename one, they come into one folder")
    for name in variables:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ConfigError(f"{name!r} can't be a variable: it is no Python identifier")
    return paths


def copy_in(path: Path, folder: Path) -> Path:
    """Copy a file read-only into a folder; one that lies there already stays as it is.

    What code may have left under that name is replaced; a link of its making is not followed.

    Returns:
        The copy.

    Raises:
        ConfigError: a folder of that name is in the way.
    """
    target = folder / path.name
    if not target.is_symlink() and target.exists() and target.samefile(path):
        return target
    if target.is_dir() and not target.is_symlink():
        raise ConfigError(f"{path}: can't be put into the working folder, which has a folder {path.name!r}")
    made, name = tempfile.mkstemp(prefix=".given-", dir=folder)
    try:
        with os.fdopen(made, "wb") as file, path.open("rb") as given:
            shutil.copyfileobj(given, file)
        os.chmod(name, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        if os.name == "nt" and target.exists():
            target.chmod(stat.S_IWRITE)  # a read-only file can't be replaced there
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return target
