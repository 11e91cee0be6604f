"""What a session's folder holds, by name."""

import os
import stat
from pathlib import Path

JOURNAL = "events.jsonl"
"""The file that its events are written to."""
FILES = "files"
"""The folder in which its code works."""
_FIRST = b'"event": "SessionOpened"'
_MOST_BYTES = 300


def is_working_folder(folder: Path) -> bool:
    """Return whether a folder is the one in which code of a session works or worked: the journal beside it says so.

    Args:
        folder: Absolute, without links.
    """
    if folder.name != FILES:
        return False
    path = folder.parent / JOURNAL
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)  # whoever made it may exchange it
        journal = os.open(path, os.O_RDONLY | flags)
    except PermissionError:  # another user's
        return True
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(journal).st_mode) and _FIRST in os.read(journal, _MOST_BYTES)
    finally:
        os.close(journal)
