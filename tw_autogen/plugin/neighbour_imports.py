"""Imports of what lies beside a plugin, or beside a function that is one: by the modules of that folder only."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from importlib import machinery
from pathlib import Path
from types import ModuleType

from tw_autogen.closing import Closing
from tw_autogen.trusted_files import compile_sources_of, source_loader

_IMPORTED_FROM: Counter[str] = Counter()
"""How many open plugins were loaded from a folder."""
_OF_IMPORTS = ("<frozen importlib", importlib.__file__)
"""Files of the code by which Python imports."""
_CHANGING = threading.Lock()


class ImportsBeside(Closing):
    """Lets the modules of a folder import each other, until it is closed: after that nobody looks there for modules.

    Args:
        folder: The folder; None: none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = str(folder.resolve()) if folder else ""
        with _CHANGING:
            if self._folder:
                _IMPORTED_FROM[self._folder] += 1
                if _NeighbourFinder not in sys.meta_path:
                    sys.meta_path.append(_NeighbourFinder)  # at the end: it shadows nothing

    def close(self) -> None:
        """Look there no more, unless another plugin was loaded from the folder."""
        folder, self._folder = self._folder, ""
        with _CHANGING:
            if not folder:
                return
            _IMPORTED_FROM[folder] -= 1
            if not _IMPORTED_FROM[folder]:
                del _IMPORTED_FROM[folder]


class _NeighbourFinder:
    """Finds what lies beside a plugin for the modules of that folder only.

    On `sys.path` the folder would be everybody's: packages look for others that may be there (`import numexpr`), and
    would get whatever has such a name in a folder that somebody else has made.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        """Return what is imported, if it lies beside whoever imports it and a plugin there is open; None otherwise.

        Args:
            name: The module's.
            path: Of the package that it is in; None: it is in none, and only then looked for.
            target: As of `importlib.abc.MetaPathFinder`.
        """
        if path is not None:
            return None
        importer = os.path.dirname(_importing_file())
        with _CHANGING:
            folders = tuple(_IMPORTED_FROM)
        beside = [folder for folder in folders if f"{importer}{os.sep}".startswith(f"{folder}{os.sep}")]
        beside = [one for one in beside if "-packages" not in importer[len(one) :]]  # of an environment that lies there
        return machinery.PathFinder.find_spec(name, beside, target) if beside else None


def _importing_file() -> str:
    """Return the file of the code that imports something now; empty if it has none."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OF_IMPORTS):
        frame = frame.f_back
    return frame.f_code.co_filename


def load_module(file: Path, name: str) -> ModuleType:
    """Load a module of which a function is a plugin, from this very file and, as what lies beside it, its source.

    Modules of its folder can be imported from it, and from each other, from now on, and from nowhere else.

    Args:
        file: The module's.
        name: The module's, with the packages that it is in: `shop.prices` in `mine/shop/prices.py`.

    Raises:
        ImportError: one of these packages is there already, from another place; the file is no plain file.
        Exception: whatever the module raises.
    """
    file, parts = file.resolve(), name.split(".")
    is_package = file.name == "__init__.py"
    root = file.parents[len(parts) - 1 + is_package]
    compile_sources_of(root)
    ImportsBeside(root)  # never closed: a call may import as well
    for depth in range(1, len(parts)):
        _load_module(".".join(parts[:depth]), root.joinpath(*parts[:depth], "__init__.py"), is_package=True)
    module = _load_module(name, file, is_package=is_package)
    for depth in range(1, len(parts)):
        setattr(sys.modules[".".join(parts[:depth])], parts[depth], sys.modules[".".join(parts[: depth + 1])])
    return module


def _load_module(name: str, source: Path, *, is_package: bool) -> ModuleType:
    known = sys.modules.get(name)
    is_bare = is_package and not source.exists()  # a package without a file of its own
    if known is not None and known.__spec__ is not None:
        if is_bare:
            same = str(source.parent) in map(os.path.realpath, known.__spec__.submodule_search_locations or ())
        else:
            same = os.path.realpath(known.__spec__.origin or "") == str(source)
        if same:
            return known
    if known is not None and (is_package or "." in name):
        raise ImportError(
            f"{source}: a module {name!r} is there already, from another place; rename this one", name=name
        )
    loader, origin = (None, None) if is_bare else (source_loader(name, source), str(source))
    spec = machinery.ModuleSpec(name, loader, origin=origin, is_package=is_package)
    spec.submodule_search_locations = [str(source.parent)] if is_package else None
    spec.has_location = not is_bare
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look there
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        if known is not None:
            sys.modules[name] = known
    return module
