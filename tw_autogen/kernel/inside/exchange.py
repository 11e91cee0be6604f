"""The kernel's side of the folder in which tables cross."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import BinaryIO

FOLDER = ".tw"
"""Hidden, below the kernel's folder."""


class InsideExchange:
    """Writes and reads tables below the kernel's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._numbers = itertools.count(1)

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a new file; give its name and the open file."""
        self._folder.mkdir(exist_ok=True)
        name = f"kernel-{os.getpid()}-{next(self._numbers)}{suffix}"
        return name, open(self._folder / name, "wb")

    def open(self, name: str) -> BinaryIO:
        """Open a file that the host wrote."""
        return open(self._folder / name, "rb")

    def remove(self, name: str) -> None:
        """Remove a file that was read."""
        (self._folder / name).unlink(missing_ok=True)
