"""The folder for a host plugin's files: code can write to it, and to folders above it perhaps."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from pathlib import Path
from typing import BinaryIO

from tw_autogen.kernel.guest import TooLarge
from tw_autogen.safe_folder import SafeFolder, real_path, remove_folder, temporary_folder


class SessionArtifacts:
    """Creates files in a session's folder by descriptor; what a plugin writes by path lies in a private folder first.

    Args:
        path: The session's folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = real_path(path)
        self._private: Path | None = None
        self._lock = threading.Lock()  # calls of one plugin may run side by side

    def close(self) -> None:
        """Remove the private folder; a later file gets a new one."""
        with self._lock:
            if self._private is not None:
                remove_folder(self._private)
                self._private = None

    def exists(self, name: str) -> bool:
        """Return whether anything has this name, even a dangling link."""
        with SafeFolder(self.path) as folder:
            return folder.has_entry(name)

    def create_new(self, name: str) -> BinaryIO:
        """Create a file where nothing exists, for writing."""
        with SafeFolder(self.path) as folder:
            return folder.create_file(name)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError), SafeFolder(self.path) as folder:
            folder.remove(name)

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if it is missing, or no regular file."""
        try:
            with SafeFolder(self.path) as folder:
                return folder.info(name).st_size if folder.has_file(name) else None
        except OSError:
            return None

    def promise(self, name: str) -> Path:
        """Return a path in the private folder."""
        with self._lock:
            if self._private is None:
                self._private = temporary_folder("tw-artifacts-")
                weakref.finalize(self, _remove_if_owner, self._private, os.getpid())
            return self._private / name

    def collect_promised(self, name: str, max_bytes: int) -> None:
        """Copy a file that a plugin has written from the private folder, and remove it there.

        Args:
            name: The file's name, as the plugin got it promised; nothing happens if it was not written.
            max_bytes: The largest size of one artifact, in bytes.

        Raises:
            TooLarge: it is larger than `max_bytes`.
            OSError: it is no regular file, or the system refuses.
        """
        with SafeFolder(self.promise(name).parent) as private:
            if not private.has_file(name):
                return
            with private.open_file(name) as written, SafeFolder(self.path) as folder:
                if os.fstat(written.fileno()).st_size > max_bytes:
                    raise TooLarge(TooLarge.words(max_bytes))
                folder.copy_in(written, name)
            private.remove(name)


def _remove_if_owner(folder: Path, owner: int) -> None:
    """Remove a folder, but not in a fork of the process that made it."""
    if os.getpid() == owner:
        remove_folder(folder)
