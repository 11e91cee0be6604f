"""What a session's folder holds, by name."""

import os
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
    try:
        journal = os.open(folder.parent / JOURNAL, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except PermissionError:  # another user's
        return True
    except OSError:
        return False
    try:
        return _FIRST in os.read(journal, _MOST_BYTES)
    except OSError:  # a folder
        return False
    finally:
        os.close(journal)
