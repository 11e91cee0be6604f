"""The kernel's side of the folder in which tables cross."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import BinaryIO

FOLDER = ".tw-exchange"
"""Hidden, below the kernel's folder, and removed whole; not `.tw`, which holds the command line's sessions."""


def make_folder(path: Path) -> None:
    """Make the folder, also where code has put a link or a file in its place."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    path.mkdir(exist_ok=True)


def write_error_reason(folder: Path, error: OSError) -> str:
    """Return in words why a file of the folder can't be written, and what to do.

    Args:
        folder: The hidden one.
        error: What writing it raised.
    """
    why = f"what crosses between kernel and host can't be written ({error.strerror or error})"
    return f"{folder}: {why}; free some space there, or keep the session in another folder"


class InsideExchange:
    """Writes and reads tables below the kernel's folder.

    Args:
        folder: The kernel's.
        token: What the names of this kernel's files have, and those of another kernel in the folder don't.
    """

    def __init__(self, folder: Path, token: str = "") -> None:
        self._folder = folder / FOLDER
        self._token = token
        self._numbers = itertools.count(1)

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a new file; give its name and the open file."""
        make_folder(self._folder)
        name = f"kernel-{self._token}-{os.getpid()}-{next(self._numbers)}{suffix}"
        return name, open(self._folder / name, "wb")

    def open(self, name: str) -> BinaryIO:
        """Open a file that the host wrote."""
        return open(self._folder / name, "rb")

    def remove(self, name: str) -> None:
        """Remove a file that was read."""
        (self._folder / name).unlink(missing_ok=True)

    def as_write_error(self, error: OSError) -> Exception:
        """Return what is raised where a file can't be written: it names the folder."""
        return OSError(error.errno, write_error_reason(self._folder, error))
