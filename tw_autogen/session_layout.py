"""What a session's folder holds, by name."""

import os
import stat
from pathlib import Path

JOURNAL = "events.jsonl"
"""The file that its events are written to."""
FILES = "files"
"""The folder in which its code works."""
COPIES = "copies.json"
"""The file that says of which files those in `FILES` are copies."""
FOLDER_COPIES = ".tw-copies.json"
"""The same in a folder of the user's own in which code works."""
LONGEST_NAME_BYTES = 255
"""What file systems take."""
CELLS = ".checkpoint/cells.jsonl"
"""The file in `FILES` that says which cells have run, so that they can be run again."""
_FIRST = b'"event": "SessionOpened"'
_MAX_BYTES = 300


def is_working_folder(folder: Path) -> bool:
    """Return whether a folder is the one in which code of a session works or worked: the journal beside it says so.

    Args:
        folder: Absolute, without links.
    """
    if folder.name != FILES:
        return False
    by_descriptor = os.open in os.supports_dir_fd
    above, opened = -1, -1
    try:
        if by_descriptor:
            above = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        path, at = (JOURNAL, {"dir_fd": above}) if by_descriptor else (str(folder.parent / JOURNAL), {})
        if not stat.S_ISREG(os.stat(path, follow_symlinks=False, **at).st_mode):
            return False
        flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)  # whoever made it may exchange it
        opened = os.open(path, os.O_RDONLY | flags, **at)
        return stat.S_ISREG(os.fstat(opened).st_mode) and _FIRST in os.read(opened, _MAX_BYTES)
    except PermissionError:  # another user's
        return True
    except OSError:
        return False
    finally:
        for one in (above, opened):
            if one >= 0:
                os.close(one)
