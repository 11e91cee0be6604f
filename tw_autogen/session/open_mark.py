"""The mark on a journal that its session is open: a lock that ends with the process, however it ends."""

from __future__ import annotations

import contextlib
import sys

if sys.platform != "win32":
    import fcntl


def mark_open(file: int) -> None:
    """Mark a session as open for as long as the descriptor of its journal is; not on Windows."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def is_marked_open(file: int) -> bool:
    """Return whether a session is open, by a descriptor of its journal; always False on Windows."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks: its age alone says
        return False
    fcntl.flock(file, fcntl.LOCK_UN)
    return False
