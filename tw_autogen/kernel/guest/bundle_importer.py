"""Sent first: lets a bundle of sources be imported as a package that lies nowhere on disk."""

from __future__ import annotations

import sys
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader


class Bundled(InspectLoader):
    """Finds and loads modules whose source is in a dictionary.

    Args:
        sources: Full module names and their Python text.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Answer for the bundled names only.

        Args:
            name: The module's full name.
            path: The package's path.
            target: As `importlib` passes it.
        """
        return spec_from_loader(name, self) if name in self._sources else None

    def get_source(self, fullname: str) -> str:
        """Return a module's text; tracebacks quote it."""
        return self._sources[fullname]

    def is_package(self, fullname: str) -> bool:
        """Return whether a name is a package's, not a module's."""
        return any(source.startswith(f"{fullname}.") for source in self._sources)


def install(sources: dict[str, str]) -> None:
    """Make the bundle importable; a second time nothing happens."""
    if not any(type(finder).__name__ == "Bundled" for finder in sys.meta_path):
        sys.meta_path.append(Bundled(sources))
