"""`PluginsRead`: what the plugins of a folder that is not trusted are, as far as their files are small."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tw_autogen.errors import PluginSpecError
from tw_autogen.named_folders import step_out_of
from tw_autogen.plugin import PluginSpec, read_folder

PLUGIN_SUFFIXES = (".yaml", ".yml", ".py")
_MAX_BYTES, _MAX_FOLDER_BYTES = 64_000, 256_000
"""Of a file, and of all together: parsing 64 kB takes a second."""


class PluginsRead:
    """Reads the small files of a folder's plugins, without running them.

    Args:
        folder: Of plugins; exists.
        inside: Nothing outside of this folder is looked at; None: plugins may be links, wherever these lead.
    """

    def __init__(self, folder: Path, *, inside: Path | None = None) -> None:
        self._folder = folder
        self._inside = inside
        self.outside: list[Path] = []
        """Links out of `inside`, as far as `specs` has come."""
        self._left_bytes = _MAX_FOLDER_BYTES
        self.left_out: list[Path] = []
        """The files that are too large, as far as `specs` has come."""
        self.files: list[Path] = []
        """All files that were found, as far as `specs` has come."""
        self.problem = ""
        """Why none was read: there are more files than are read as plugins, or they can't be listed."""

    def specs(self) -> Iterator[PluginSpec]:
        """Yield the plugins that can be read; nothing if there are too many files, which loading reports."""
        try:
            for found in read_folder(self._folder, needed=False, leave_out=self._leaves_out, unseen=self._is_outside):
                if isinstance(found, PluginSpec):
                    yield found
        except PluginSpecError as error:
            self.problem = error.problem

    def _is_outside(self, path: Path) -> bool:
        """Return whether a name leads out of the folder that is looked at."""
        if self._inside is None or not step_out_of(self._inside, path):
            return False
        self.outside.append(path)
        return True

    def _leaves_out(self, path: Path) -> bool:
        """Return whether a file is not read, because it is too large."""
        self.files.append(path)
        try:
            size = path.stat().st_size
        except OSError:
            return False  # whoever reads it gets the error again
        if size > min(self._left_bytes, _MAX_BYTES):
            self.left_out.append(path)
            return True
        self._left_bytes -= size
        return False
