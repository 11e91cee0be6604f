"""Which files of a project's folder code may read: Python files and packages with their data, never dotfiles.

A folder of PYTHONPATH, of an editable install or of a plugin is often a whole project, with `.env` and `.git` in it.
Sandboxes grant folders and files and can't take anything out of them again, so a folder that holds more than code may
read is granted piece by piece: its Python files, and each subfolder with Python files in it (regular packages, and
namespace packages as far as Python tells them from other folders) with all that isn't dotted, and no folder that holds
a session. What is created there later, beside the pieces, can be read by later kernels only.

Limits: at most 50 000 entries of a folder are looked at, and as many again in regular packages; what is not looked at
is not granted. At most 2 000 pieces of a folder are granted, Python files and packages first.
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

_MAX_ENTRIES = 50_000
_MAX_PIECES = 2_000
_DEEPEST = 40
_PYTHON = (".py", ".pyc", ".pyi", ".so", ".pyd", ".pth", ".zip", ".egg", ".egg-link")
_ARCHIVES = (".zip", ".egg", ".whl", ".pyz")
"""Files that modules can be imported from; others on the path are not granted."""
_JOURNAL, _BESIDE = "events.jsonl", frozenset(("files", "made_here"))
"""What a session's folder holds; see `session_layout`."""
_INSTALLED = (f"{os.sep}site-packages", f"{os.sep}dist-packages")
_METADATA = (".dist-info", ".egg-info")
_LIBRARIES = (".libs", ".dylibs")
"""Names of folders, or their endings, in which wheels bring shared libraries along."""
_PARTS = frozenset(
    ("Frameworks", "Headers", "Python", "Resources", "_CodeSignature", "bin", "conda-meta", "include")
) | {*("lib", "lib32", "lib64", "libexec", "man", "pyvenv.cfg", "sbin", "ssl")}
_HARMLESS = frozenset(
    (".DS_Store", ".buildinfo", ".clang-format", ".coveragerc", ".editorconfig", ".empty", ".f2py_f2cmap", ".flake8")
) | {*(".gitattributes", ".gitignore", ".gitkeep", ".keep", ".nojekyll", ".npmignore", ".prettierrc", ".pylintrc")}
"""Files of tools without anything of the user's in them; packages bring them along."""
_CONDA_PARTS = frozenset(
    ("Library", "compiler_compat", "condabin", "doc", "fonts", "info", "libdevice", "mkspecs", "nvvm", "opt")
) | {*("phrasebooks", "plugins", "python.app", "qml", "resources", "share", "shell", "targets", "translations")}
"""What packages of conda have beside that, in the folder of an environment."""
_MARKS = frozenset((".gitignore", ".lock", ".Python", "CACHEDIR.TAG", "etc", "share"))
_ENVIRONMENTS = (".venv", "venv")
"""Names of folders that are an environment, and nothing else."""
_OF_PACKAGES = (
    *("RDKit", "eccodes", "fonts", "gdal", "icu", "jupyter", "man", "mime", "proj", "terminfo", "tessdata", "udunits"),
    *("xyzservices", "zoneinfo"),
)
_SHARED = (
    "etc/ImageMagick-7",
    "etc/OpenCL",
    "etc/fonts",
    "etc/jupyter",
    "nltk_data",
    *(f"share/{name}" for name in _OF_PACKAGES),
)
"""What is an interpreter's in its folder, what `venv` and `uv` leave beside it, and what its packages bring along."""
_FONTS = (".fonts", ".local/share/fonts", "Library/Fonts")
"""Folders of the home folder whose fonts matplotlib's list names."""
_HOLD_KEYS = (".local/share", ".local/state")
"""Folders of the home folder in which programs keep keys, an interpreter's folder or not."""


def environment_paths(
    paths: Iterable[str],
    home: str,
    prefixes: Iterable[str] = (),
    *,
    packages: Iterable[str] = (),
    written: Sequence[str] = (),
    seen: dict[str, int] | None = None,
) -> list[str]:
    """Return what of an interpreter's folders code may read.

    Args:
        paths: Where modules come from.
        home: The user's home folder; nothing that holds it, or is it, is granted.
        prefixes: The interpreter's own folders; libraries there, and folders of installed packages, are granted whole.
        packages: Folders of packages, which are granted whole.
        written: Folders that code may write to, without links. A path over a link there is left out: code may have made
            the link.
        seen: Takes the folders that were looked at, with `changed_at` of each.

    Returns:
        Absolute paths, as they were given and with links resolved; those that end in `LISTED` may only be listed.
    """
    own = [os.path.realpath(prefix) for prefix in prefixes if prefix]
    brought = [os.path.realpath(package) for package in packages]
    whole_below = [*brought, *(os.path.join(root, name) for root in own for name in ("lib", "lib64"))]
    kept: list[str] = []
    for path in paths:
        if not path or _contains_home(path, home):
            continue
        found = resolve(os.path.abspath(path), written)
        if not found or not (os.path.isdir(found) or found.endswith(_ARCHIVES)):
            continue
        archive = found.endswith(_ARCHIVES) and not os.path.isdir(found)
        whole = archive or found.endswith(_INSTALLED) or any(is_below(found, place) for place in whole_below)
        for fromkey in dict.fromkeys((os.path.abspath(path), found)):
            kept += [fromkey] if whole else readable_pieces(fromkey, seen=seen)
    for path in own:
        if not _contains_home(path, home):
            if seen is not None:
                seen[path] = changed_at(path)
            kept += _own_parts(path, os.path.realpath(home))
    return list(dict.fromkeys([*kept, *brought]))


def font_folders(home: str, written: Sequence[str] = ()) -> list[str]:
    """Return the folders of the user's fonts, those over links left out.

    Args:
        home: The user's home folder.
        written: As of `environment_paths`.
    """
    paths = [os.path.join(os.path.realpath(home), name) for name in _FONTS]
    return [folder for folder in paths if os.path.isdir(folder) and resolve(folder, written) == folder]


def readable_pieces(
    folder: str, *, package: bool = False, session: str = "", seen: dict[str, int] | None = None
) -> list[str]:
    """Return what of a folder code may read.

    Args:
        folder: Absolute.
        package: All its files are a package's data; otherwise only Python files and packages count.
        session: Where a session's code works, absolute: what holds that in `folder` is left out, since other sessions
            may lie there. Empty: nowhere.
        seen: As of `environment_paths`.

    Returns:
        The folder itself if nothing in it is to be kept back; else the pieces, and folders that may be listed. The
        look at a folder is remembered until an entry is added to it or removed.
    """
    inside = session[len(folder) + 1 :].split(os.sep)[0] if is_below(session, folder) else ""
    looked, pieces = _pieces(folder, package, inside)
    if any(changed_at(path) != when for path, when in looked):
        _pieces.cache_clear()
        looked, pieces = _pieces(folder, package, inside)
    if seen is not None:
        seen.update(looked)
    return list(pieces)


def changed_at(path: str) -> int:
    """Return when entries of a folder were last added or removed, in nanoseconds; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def editable_paths(modules: Mapping[str, Any], *, seen: dict[str, int] | None = None) -> list[str]:
    """Return the packages and modules that finders of setuptools' editable installs stand for.

    Args:
        modules: Those of the interpreter by name.
        seen: As of `environment_paths`.
    """
    paths = []
    for name, module in modules.items():
        mapping = getattr(module, "MAPPING", None) if name.startswith("__editable__") else None
        for place in mapping.values() if isinstance(mapping, dict) else ():
            paths += readable_pieces(place, package=True, seen=seen) if os.path.isdir(place) else [f"{place}.py"]
    return [path for path in paths if os.path.lexists(path.removesuffix(LISTED))]


def listed_and_read(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split paths into folders that may be listed, without the mark, and what may be read."""
    every = list(paths)
    return (
        [path.removesuffix(LISTED) for path in every if path.endswith(LISTED)],
        [path for path in every if not path.endswith(LISTED)],
    )


@lru_cache(maxsize=64)
def _pieces(folder: str, package: bool, but: str) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """Return the folders that were looked at, with when they had changed last, and the pieces."""
    look = _Look(folder, but)
    found, whole = look.at(folder, package=package, depth=0)
    pieces = (folder,) if whole else (*(f"{name}{LISTED}" for name in look.listed), *found[:_MAX_PIECES])
    return tuple(look.seen.items()), pieces


class _Look:
    """One look at a folder, bounded in all; `but` is the name of an entry that is left out."""

    def __init__(self, root: str, but: str) -> None:
        self.listed: list[str] = []
        self.seen: dict[str, int] = {}
        self._but = but
        self._root = os.path.realpath(root)
        self._left = _MAX_ENTRIES

    def at(self, folder: str, *, package: bool, depth: int) -> tuple[list[str], bool]:
        """Return the pieces of a folder, and whether they are all of it.

        Args:
            folder: Absolute.
            package: Whether a folder above it is a Python package.
            depth: How many folders above it were looked through.
        """
        self.seen[folder] = changed_at(folder)
        try:
            with os.scandir(folder) as entries:
                first = list(itertools.islice(entries, max(1000, self._left)))
        except OSError:
            return [], False
        self._left -= len(first)
        names = {entry.name for entry in first}
        if _JOURNAL in names and _BESIDE & names:
            return [], False
        installed = not depth and any(entry.name.endswith(".dist-info") for entry in first)  # by `pip install --target`
        package = package or any(
            entry.name == "__init__.py" or (depth and entry.name.endswith(".py")) for entry in first
        )
        kept: list[str] = []
        whole = len(first) < max(1000, self._left + len(first))
        listed = len(self.listed)
        self.listed.append(folder)
        for item in sorted(first, key=_sort_key):
            brought = item.name.endswith((*_METADATA, *_LIBRARIES)) or (installed and item.name == "bin")
            left_out = item.name == self._but and depth == 0
            if item.name in _HARMLESS and item.is_file(follow_symlinks=False):
                continue
            if left_out or item.name.startswith(".") and not (package and item.name in _LIBRARIES):
                whole = False
            elif item.is_symlink():
                kept += [item.path] if self._may_follow(item, package=package, depth=depth) else []
            elif not item.is_dir():
                wanted = package or item.name.endswith(_PYTHON)
                whole = whole and wanted
                kept += [item.path] if wanted else []
            elif item.name == "__pycache__":
                kept.append(item.path)
            elif self._may_look(item, depth) and (package or brought or item.name.isidentifier()):
                inner, all_of_it = self.at(item.path, package=package or brought, depth=depth + 1)
                kept += [item.path] if all_of_it else inner
                whole = whole and all_of_it
            else:
                whole = False
        if whole or not kept:
            del self.listed[listed:]
        return kept, whole

    def _may_look(self, folder: os.DirEntry[str], depth: int) -> bool:
        return depth < _DEEPEST and (self._left > 0 or (self._left > -_MAX_ENTRIES and _has_init(folder)))

    def _may_follow(self, link: os.DirEntry[str], *, package: bool, depth: int) -> bool:
        """Return whether a link leads to a file or folder in this one of which nothing is to be kept back."""
        target = os.path.realpath(link.path)
        below = os.path.relpath(target, self._root).split(os.sep)
        if any(part.startswith(".") for part in below) or not os.path.exists(target):
            return False
        if not os.path.isdir(target):
            return package or target.endswith(_PYTHON)
        if is_below(os.path.realpath(os.path.dirname(link.path)), target) or not self._may_look(link, depth):
            return False
        listed = len(self.listed)
        _, whole = self.at(target, package=package, depth=depth + 1)
        del self.listed[listed:]
        return whole


def _sort_key(entry: os.DirEntry[str]) -> tuple[int, str]:
    """Python files come first, then packages, then the rest."""
    if not entry.is_dir(follow_symlinks=False):
        return (0 if entry.name.endswith(_PYTHON) else 2, entry.name)
    return (1 if _has_init(entry) else 3, entry.name)


def _has_init(entry: os.DirEntry[str]) -> bool:
    return os.path.exists(os.path.join(entry.path, "__init__.py"))


def _own_parts(prefix: str, home: str) -> Sequence[str]:
    """Return an interpreter's folder, or what of it is the interpreter's if it is a project's as well, or a home's."""
    try:
        names = sorted(os.listdir(prefix))
    except OSError:
        return []
    of_conda = (
        {name for name in names if name in _CONDA_PARTS or _is_compilers(name)} if "conda-meta" in names else set()
    )
    own = os.path.basename(prefix) in _ENVIRONMENTS or not set(names) - _PARTS - _MARKS - of_conda
    if own and not any(is_below(os.path.join(home, key), prefix) for key in _HOLD_KEYS):
        return [prefix]
    shared = [os.path.join(prefix, name) for name in _SHARED]
    parts = [os.path.join(prefix, name) for name in names if name in _PARTS or name in of_conda]
    keys = [os.path.join(home, key) for key in _HOLD_KEYS]
    return [
        f"{prefix}{LISTED}",
        *parts,
        *(path for path in shared if os.path.exists(path) and not _is_below_any(path, keys)),
    ]


def _is_compilers(name: str) -> bool:
    return "-conda" in name and name.endswith("-linux-gnu")


def _is_below_any(path: str, folders: Iterable[str]) -> bool:
    return any(is_below(path, folder) for folder in folders)


def _contains_home(path: str, home: str) -> bool:
    """Return whether a folder is the root, the user's home, or above that."""
    found, real = os.path.realpath(path), os.path.realpath(home)
    return found == "/" or is_below(real, found)
