"""Standard streams that are closed, what others write to them, and errors of the system in one line with a remedy."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from typing import TYPE_CHECKING, Literal, TextIO

from tw_autogen.errors import ConfigError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.text_escaping import visible

if TYPE_CHECKING:
    import logging
else:
    logging = LazyModule("logging")

_REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space, or keep sessions elsewhere with --workspace DIR",
    errno.EDQUOT: "your disk quota is used up: free some space, or keep sessions elsewhere with --workspace DIR",
    errno.EROFS: "nothing can be written there: start in a folder of your own, or name one with --workspace DIR",
    errno.EACCES: "that belongs to somebody else: start in a folder of your own, or name one with --workspace DIR",
    errno.EPERM: "that belongs to somebody else: start in a folder of your own, or name one with --workspace DIR",
    errno.EMFILE: "too many files are open: close sessions, or allow more with `ulimit -n`",
    errno.ENFILE: "too many files are open on this machine",
    errno.ENOMEM: "there is no memory left",
}


def words_of_os_error(error: OSError) -> str:
    """Return one line that says what the operating system refused, where, and what to do.

    Example:
        >>> words_of_os_error(OSError(errno.ENFILE, "Too many open files in system"))
        'Too many open files in system; too many files are open on this machine'
    """
    where = f"{error.filename}: " if error.filename else ""
    remedy = _REMEDIES.get(error.errno or 0, "")
    return f"{where}{error.strerror or error}{'; ' if remedy else ''}{remedy}"


def escape_what_libraries_say() -> None:
    """Write Python's warnings and log messages with escapes from now on, for what can't be seen or moves other text.

    They may quote files, and names of files, of anybody's; a warning would show the line of source, too.
    """
    warnings.formatwarning = _format_warning
    if logging.lastResort is not None:  # what writes where nobody has set up logging
        logging.lastResort.format = lambda record: visible(logging.Formatter().format(record))  # type: ignore[method-assign]  # of this one handler


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    return visible(f"{filename}:{lineno}: {category.__name__}: {message}") + "\n"


def prepare_streams() -> None:
    """Open the null device in place of streams that the caller has closed (`<&-`), and let all take any character.

    Otherwise the next file that is opened would become standard input, output or error of this program and of all that
    it starts. A pipe gets UTF-8, whatever the locale says; a terminal shows `?` for what its encoding lacks.

    Raises:
        ConfigError: standard output is closed, so that no answer could be delivered; asked before anything is paid for.
    """
    for number in (0, 1, 2):  # in this order: the lowest free number is the one that is given out
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    output_closed = sys.stdout is None
    sys.stdin = _tolerant_stream(sys.stdin, 0, "r")
    sys.stdout = _tolerant_stream(sys.stdout, 1, "w")
    sys.stderr = _tolerant_stream(sys.stderr, 2, "w")
    if output_closed:
        raise ConfigError("standard output is closed, so there is nowhere to write an answer to; redirect it to a file")


def drop_unwritten() -> None:
    """Drop what standard output does not take: at its end Python would try again, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _tolerant_stream(stream: TextIO | None, number: int, mode: Literal["r", "w"]) -> TextIO:
    if stream is not None:
        if isinstance(stream, io.TextIOWrapper) and mode == "r":
            stream.reconfigure(errors="surrogateescape")
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="replace")
        return stream
    return os.fdopen(number, mode, encoding="utf-8", errors="replace", closefd=False)
