"""Operations of the host in a folder that untrusted code can write to; none of them reaches a file outside it."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.safe_folder.directory_calls import KERNEL_USERS, Owner
from tw_autogen.safe_folder.held_folder import KERNEL_FOLDERS, HeldFolder, innermost_held_folder, real_path
from tw_autogen.safe_folder.open_without_links import open_or_make_folder
from tw_autogen.safe_folder.protected_names import is_protected, protected_below
from tw_autogen.safe_folder.safe_folder import (
    SafeFolder,
    read_unlinked,
    remove_folder,
)
from tw_autogen.safe_folder.symlink_resolution import walk_links
from tw_autogen.safe_folder.temporary_folders import private_folder, temporary_folder
from tw_autogen.safe_folder.used_elsewhere import used_elsewhere

__all__ = [
    "KERNEL_FOLDERS",
    "KERNEL_USERS",
    "HeldFolder",
    "Owner",
    "SafeFolder",
    "open_or_make_folder",
    "is_protected",
    "innermost_held_folder",
    "used_elsewhere",
    "private_folder",
    "protected_below",
    "read_unlinked",
    "real_path",
    "remove_folder",
    "temporary_folder",
    "walk_links",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "tw_autogen.safe_folder.safe_folder": ("Entry",),
        },
    )
