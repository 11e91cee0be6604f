"""Operations of the host in a folder that untrusted code can write to; none of them reaches a file outside it."""

from tw_autogen.safe_folder.folder import Entry, SafeFolder, open_unlinked, read_unlinked, remove_folder

__all__ = ["Entry", "SafeFolder", "open_unlinked", "read_unlinked", "remove_folder"]
