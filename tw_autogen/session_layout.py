"""What a session's folder holds, by name."""

from pathlib import Path

JOURNAL = "events.jsonl"
"""The file that its events are written to."""
FILES = "files"
"""The folder in which its code works."""


def is_working_folder(folder: Path) -> bool:
    """Return whether a folder is the one in which code of a session works or worked: the journal lies beside it.

    Args:
        folder: Absolute, without links.
    """
    return folder.name == FILES and (folder.parent / JOURNAL).is_file()
