"""Keeps what a cell has flushed where a crash does not reach it: in files that the host reads behind a death.

Sent messages lie with zmq for a moment, whose threads end with the process. Lost with a crash is what was not flushed,
what passed the limit of a cell, and what C code and commands wrote to a descriptor in that moment.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from .exchange import FOLDER, make_folder


def file_name(stream: str) -> str:
    """Give the name of a stream's file in the exchange; its first line is the request that the rest belongs to."""
    return f"last-words-{stream}"


class LastWords:
    """Writes down one stream's text, cell by cell.

    Args:
        stream: `stdout` or `stderr`.
        request: Gives the id of the request that is being answered.
    """

    def __init__(self, stream: str, request: Callable[[], str]) -> None:
        self._name = file_name(stream)
        self._request = request
        self._folder: Path | None = None
        self._process = os.getpid()
        self._begins = True

    def settle(self, folder: Path | None) -> None:
        """Begin a session that works in a folder; None: the host doesn't see it."""
        self._folder = folder

    def begin(self) -> None:
        """Forget the cell before."""
        self._begins = True

    def add(self, text: str) -> None:
        """Write down what was flushed."""
        if self._folder is None or os.getpid() != self._process:  # forked ones print as well
            return
        how = os.O_TRUNC if self._begins else os.O_APPEND
        with contextlib.suppress(Exception):  # a disk that is full, a folder that is gone: the stream has it anyway
            make_folder(self._folder / FOLDER)
            file = os.open(self._folder / FOLDER / self._name, os.O_WRONLY | os.O_CREAT | how, 0o600)
            try:
                head = f"{self._request()}\n" if self._begins else ""
                os.write(file, (head + text).encode("utf-8", "replace"))
            finally:
                os.close(file)
            self._begins = False
