"""What a request brings: files and variables, checked before anything is done, and copied into the session's folder."""

from __future__ import annotations

import keyword
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError


def checked_inputs(files: Sequence[Path | str], variables: Mapping[str, Any]) -> list[Path]:
    """Give the files as paths.

    Raises:
        ConfigError: a file doesn't exist, two have the same name, or a variable's name is no identifier.
    """
    paths = [Path(one) for one in files]
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

    Returns:
        The copy.
    """
    target = folder / path.name
    if target.exists() and target.samefile(path):
        return target
    if target.exists():
        target.chmod(target.stat().st_mode | stat.S_IWUSR)
    shutil.copyfile(path, target)
    target.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    return target
