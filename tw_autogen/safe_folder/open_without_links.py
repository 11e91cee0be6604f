"""A folder that the user names, opened for writing without a way through links that code may have laid."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from tw_autogen.safe_folder.held_folder import KERNEL_FOLDERS, innermost_held_folder, is_of_code
from tw_autogen.safe_folder.safe_folder import SafeFolder
from tw_autogen.safe_folder.symlink_resolution import Walk, walk_links
from tw_autogen.session_layout import is_working_folder


def open_or_make_folder(path: Path | str, *, below: Iterable[Path | str] = ()) -> SafeFolder:
    """Open a folder, and make it if it is missing; the caller closes it.

    Args:
        path: Absolute, or relative to the current folder. Its last component must not be a link, nor any below the
            current folder or below one of `below`. Links above those are the user's own and are followed, but none on
            a path that is of a kernel's folder, or below it: it had none when the kernel was made.
        below: Other folders that untrusted code may write to. What is missing or a link itself is left out.

    Raises:
        PermissionError: a link is in the way; the message names it.
        OSError: the folder can't be made or opened.
    """
    full = Path(os.path.abspath(path))
    around = innermost_held_folder(full)
    if str(full) == around:
        return SafeFolder(full)
    base = Path(around or full.anchor)
    folders, way = [base], walk_links(full.parent)  # once: code may exchange a folder for a link at any time
    if not around and not is_of_code(full):
        _refuse_link_of_code(full, way)
        base = Path(os.getcwd())
        folders = [base, *map(Path, below), *KERNEL_FOLDERS]
    name, found = SafeFolder.outermost(full, folders)
    if name:
        base = found
    else:
        if full == base or full == full.parent:
            return SafeFolder(full)
        base = Path(full.anchor)
        name = (Path(way.target) / full.name).relative_to(base).as_posix()
    with SafeFolder(base) as folder:
        for depth, _ in enumerate(parts := name.split("/"), 1):
            part = "/".join(parts[:depth])
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(folder.info(part).st_mode):
                    continue  # making it anew may fail in another way than that it exists
            try:
                folder.make_folder(part)
            except PermissionError as error:
                raise _link_error(base / part, full) or error from None
        try:
            held = folder.open_folder(name)
        except OSError as error:  # code may have put a link there since
            raise _link_error(base / name, full) or error from None
    held.path = full
    return held


def _refuse_link_of_code(full: Path, way: Walk) -> None:
    """Refuse a path above whose last folder there is a link where code works, wherever that leads."""
    for link in map(Path, way.links):
        if any(parent in KERNEL_FOLDERS or is_working_folder(parent) for parent in link.parents):
            raise _link_error(link, full) or PermissionError(errno.EPERM, "changed while it was looked at", str(full))


def _link_error(path: Path, full: Path) -> PermissionError | None:
    """Return what to raise where a link is in the way of a folder; None: it is no link."""
    if not path.is_symlink():
        return None
    why = f"{path} is a link, which code may have made; name the folder that it leads to"
    return PermissionError(errno.EPERM, why, str(full))
