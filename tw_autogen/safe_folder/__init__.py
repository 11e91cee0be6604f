"""Operations of the host in a folder that untrusted code can write to; none of them reaches a file outside it."""

from tw_autogen.safe_folder.folder import Entry, SafeFolder, open_unlinked, read_unlinked, remove_folder
from tw_autogen.safe_folder.held import held_folder
from tw_autogen.safe_folder.kept import KeptFolder, kept_path
from tw_autogen.safe_folder.protected import is_protected, protected_below
from tw_autogen.safe_folder.temporary import temporary_folder

__all__ = [
    "Entry",
    "KeptFolder",
    "SafeFolder",
    "held_folder",
    "is_protected",
    "kept_path",
    "open_unlinked",
    "protected_below",
    "read_unlinked",
    "remove_folder",
    "temporary_folder",
]
