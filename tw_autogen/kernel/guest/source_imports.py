"""Modules beside plugins are compiled from their sources: what lies compiled beside these may be anybody's."""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from types import CodeType


class _FromSource(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_folders: set[str] = set()


def import_from_sources(folder: str) -> None:
    """Make modules of a folder importable, after all others of their names, whatever `__pycache__` holds there.

    Args:
        folder: Absolute.
    """
    if folder in _folders:
        return
    _folders.add(folder)
    below = os.path.join(folder, "")

    def finder(path: str) -> FileFinder:
        if path != folder and not path.startswith(below):
            raise ImportError
        return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.pop(folder, None)
    if folder not in sys.path:
        sys.path.append(folder)
