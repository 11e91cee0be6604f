"""Which files of a project's folder code may read: Python files and packages with their data, never dotfiles.

A folder of PYTHONPATH, of an editable install or of a plugin is often a whole project, with `.env` and `.git` in it.
Sandboxes grant folders and files and can't take anything out of them again, so a folder that holds more than code may
read is granted piece by piece: its Python files, and each subfolder with Python files in it (regular packages, and
namespace packages as far as Python tells them from other folders) with all that isn't dotted. What is created there
later, beside the pieces, can be read by later kernels only.

Limits: at most 20 000 entries of a folder are looked at; below that, subfolders of a package are granted unseen, and
those of other folders not at all. At most 500 pieces of a folder are granted, Python files and packages first.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .known_paths import is_below, resolve

LISTED = "/."
"""Ends a path of which code may list the entries, and that grants nothing in it."""

_MOST_ENTRIES = 20_000
_MOST_PIECES = 500
_DEEPEST = 40
_PYTHON = (".py", ".pyc", ".pyi", ".so", ".pyd", ".pth", ".zip", ".egg", ".egg-link")
_ARCHIVES = (".zip", ".egg", ".whl", ".pyz")
"""Files that modules can be imported from; others on the path are not granted."""
_METADATA = (".dist-info", ".egg-info")
_LIBRARIES = frozenset({".libs", ".dylibs"})
"""Dotted folders in which wheels bring shared libraries along."""


def environment_paths(
    paths: Iterable[str], home: str, prefixes: Iterable[str] = (), *, written: Sequence[str] = ()
) -> list[str]:
    """Return what of an interpreter's folders code may read.

    Args:
        paths: Where modules come from.
        home: The user's home folder; nothing that holds it, or is it, is granted.
        prefixes: The interpreter's own folders; what lies there, and folders of installed packages, is granted whole.
        written: Folders that code may write to, without links. A path over a link there is left out: code may have made
            the link.

    Returns:
        Absolute paths, as they were given and with links resolved; those that end in `LISTED` may only be listed.
    """
    own = [os.path.realpath(one) for one in prefixes if one]
    kept: list[str] = []
    for path in paths:
        if not path or _holds(path, home):
            continue
        found = resolve(os.path.abspath(path), written)
        if not found or not (os.path.isdir(found) or found.endswith(_ARCHIVES)):
            continue
        whole = found.endswith((*_ARCHIVES, "-packages")) or any(is_below(found, one) for one in own)
        for one in dict.fromkeys((os.path.abspath(path), found)):
            kept += [one] if whole else readable_pieces(one)
    for path in own:
        if not _holds(path, home):
            kept += _without_dotted(path)
    return list(dict.fromkeys(kept))


def readable_pieces(folder: str, *, package: bool = False, session: str = "") -> list[str]:
    """Return what of a folder code may read.

    Args:
        folder: Absolute.
        package: All its files are a package's data; otherwise only Python files and packages count.
        session: Where a session's code works, absolute: what holds that in `folder` is left out, since other sessions
            may lie there. Empty: nowhere.

    Returns:
        The folder itself if nothing in it is to be kept back; else the pieces, and folders that may be listed. The
        look at a folder is remembered until an entry is added to it or removed.
    """
    try:
        changed = os.stat(folder).st_mtime_ns
    except OSError:
        return []
    inside = session[len(folder) + 1 :].split(os.sep)[0] if is_below(session, folder) else ""
    return list(_pieces(folder, package, changed, inside))


def editable_paths(modules: Mapping[str, Any]) -> list[str]:
    """Return the packages and modules that finders of setuptools' editable installs stand for.

    Args:
        modules: Those of the interpreter by name.
    """
    found = []
    for name, module in modules.items():
        mapping = getattr(module, "MAPPING", None) if name.startswith("__editable__") else None
        for place in mapping.values() if isinstance(mapping, dict) else ():
            found += readable_pieces(place, package=True) if os.path.isdir(place) else [f"{place}.py"]
    return [one for one in found if os.path.lexists(one.removesuffix(LISTED))]


def listed_and_read(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split paths into folders that may be listed, without the mark, and what may be read."""
    every = list(paths)
    return (
        [one.removesuffix(LISTED) for one in every if one.endswith(LISTED)],
        [one for one in every if not one.endswith(LISTED)],
    )


@lru_cache(maxsize=64)
def _pieces(folder: str, package: bool, changed: int, but: str) -> tuple[str, ...]:
    look = _Look(folder, but)
    if not package and look.installed():
        return (folder,)
    found, whole = look.at(folder, package=package, depth=0)
    if whole:
        return (folder,)
    return (*(f"{one}{LISTED}" for one in look.listed), *found[:_MOST_PIECES])


class _Look:
    """One look at a folder, bounded in all; `but` is the name of an entry that is left out."""

    def __init__(self, root: str, but: str) -> None:
        self.listed: list[str] = []
        self._but = but
        self._root = os.path.realpath(root)
        self._left = _MOST_ENTRIES

    def installed(self) -> bool:
        """Return whether the folder holds installed packages, as `pip install --target` leaves them."""
        try:
            with os.scandir(self._root) as entries:
                return any(one.name.endswith(".dist-info") for one in itertools.islice(entries, _MOST_ENTRIES))
        except OSError:
            return False

    def at(self, folder: str, *, package: bool, depth: int) -> tuple[list[str], bool]:
        """Return the pieces of a folder, and whether they are all of it.

        Args:
            folder: Absolute.
            package: Whether a folder above it is a Python package.
            depth: How many folders above it were looked through.
        """
        seen = self._left > 0
        try:
            with os.scandir(folder) as entries:
                first = list(itertools.islice(entries, max(1000, self._left)))
        except OSError:
            return [], False
        self._left -= len(first)
        package = package or any(one.name == "__init__.py" or (depth and one.name.endswith(".py")) for one in first)
        kept: list[str] = []
        whole = len(first) < max(1000, self._left + len(first))
        listed = len(self.listed)
        self.listed.append(folder)
        for one in sorted(first, key=_order):
            left_out = one.name == self._but and depth == 0
            if left_out or one.name.startswith(".") and not (package and one.name in _LIBRARIES):
                whole = False
            elif one.is_symlink():
                kept += [one.path] if self._stays(one.path) else []
            elif not one.is_dir():
                wanted = package or one.name.endswith(_PYTHON)
                whole = whole and wanted
                kept += [one.path] if wanted else []
            elif one.name == "__pycache__" or (package and not seen):
                kept.append(one.path)
            elif depth < _DEEPEST and (seen or _has_init(one)) and (package or _importable(one.name)):
                inner, all_of_it = self.at(one.path, package=package or one.name.endswith(_METADATA), depth=depth + 1)
                kept += [one.path] if all_of_it else inner
                whole = whole and all_of_it
            else:
                whole = False
        if whole or not kept:
            del self.listed[listed:]
        return kept, whole

    def _stays(self, link: str) -> bool:
        """Return whether a link leads to something in the folder that isn't dotted."""
        target = os.path.realpath(link)
        below = os.path.relpath(target, self._root).split(os.sep)
        return not any(part.startswith(".") for part in below) and os.path.exists(target)


def _order(entry: os.DirEntry[str]) -> tuple[int, str]:
    """Python files come first, then packages, then the rest."""
    if not entry.is_dir(follow_symlinks=False):
        return (0 if entry.name.endswith(_PYTHON) else 2, entry.name)
    return (1 if _has_init(entry) else 3, entry.name)


def _has_init(entry: os.DirEntry[str]) -> bool:
    return os.path.exists(os.path.join(entry.path, "__init__.py"))


def _importable(name: str) -> bool:
    return name.isidentifier() or name.endswith(_METADATA)


def _without_dotted(prefix: str) -> Sequence[str]:
    """Return an interpreter's folder, or its entries if it is a project's as well."""
    try:
        names = sorted(os.listdir(prefix))
    except OSError:
        return []
    if not any(name.startswith(".env") or name == ".git" for name in names):
        return [prefix]
    return [f"{prefix}{LISTED}", *(os.path.join(prefix, name) for name in names if not name.startswith("."))]


def _holds(path: str, home: str) -> bool:
    """Return whether a folder is the root, the user's home, or above that."""
    found, real = os.path.realpath(path), os.path.realpath(home)
    return found == "/" or is_below(real, found)
