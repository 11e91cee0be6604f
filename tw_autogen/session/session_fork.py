"""A copy of a session under a name of its own, which is gone on with beside the first one."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import stat
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from tw_autogen.conversation import new_id
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.private_files import keep_private_folder
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session.earlier_session import FILES, EarlierSession, mark_own_session
from tw_autogen.session.event_journal import JOURNAL

_MOST_LEVELS = 100


def fork_session(
    folder: Path, *, words: bool = True, trust: bool = False, limit_mb: int = KernelSettings.disk_mb
) -> Path:
    """Copy a session that has ended: journal, files, saved variables and cells. The first one stays as it is.

    Args:
        folder: The session's, absolute and without links.
        words: Copy what was said, too; otherwise the new session begins with files and variables alone.
        trust: Copy also what this user did not make in this folder.
        limit_mb: How large its files may be together, by their length: holes in them take room in the copies; 0: no
            limit.

    Returns:
        The new session's folder, beside the first one.

    Raises:
        ConfigError: as `EarlierSession.read`, its files are larger, or the copy can't be written; nothing of it is left
            then.
    """
    earlier = EarlierSession.read(folder, trust=trust)
    name = new_id("session")
    root = folder.parent / name
    try:
        with SafeFolder(folder) as source, keep_private_folder(root), SafeFolder(root) as target:
            journal = source.read_file(JOURNAL).replace(earlier.id.encode(), name.encode()) if words else b""
            target.copy_in(io.BytesIO(journal), JOURNAL, mode=0o600)
            target.make_folder(FILES)
            if source.has_entry(FILES):
                with source.open_folder(FILES) as files, target.open_folder(FILES) as copies:
                    _copy_files(files, copies, limit_mb)
        mark_own_session(root)
        LocalKernel.adopt(root / FILES)
    except OSError as error:
        with contextlib.suppress(OSError), SafeFolder(folder.parent) as workspace:
            workspace.remove_tree(name)
        raise ConfigError(f"{folder}: not copied: {error.strerror or error}") from error
    return root


def _copy_files(source: SafeFolder, target: SafeFolder, limit_mb: int) -> None:
    """Copy plain files and folders; links are left out.

    Raises:
        OSError: an entry can't be read or written, or the files are larger than `limit_mb`.
    """
    left = (limit_mb << 20) or sys.maxsize
    entries = list(source.walk())
    if (size := sum(one.info.st_size for one in entries if one.is_file)) > left:
        raise OSError(errno.EFBIG, f"its files have {size >> 20} MB; at most {limit_mb} are copied (kernel.disk_mb)")
    if any(one.name.count("/") >= _MOST_LEVELS for one in entries):
        raise OSError(errno.ENAMETOOLONG, f"its folders are nested more than {_MOST_LEVELS} deep")
    for above, below in itertools.groupby(entries, key=lambda one: one.name.rpartition("/")[0]):
        with _below(source, above) as those, _below(target, above) as copies:
            for entry in below:
                name = entry.name.rpartition("/")[2]
                if entry.is_folder:
                    copies.make_folder(name)
                elif entry.is_file:
                    with those.open_file(name) as file:
                        copies.copy_in(file, name, mode=stat.S_IMODE(entry.info.st_mode) & 0o777, limit_bytes=left)
                        left -= file.tell()


def _below(folder: SafeFolder, name: str) -> AbstractContextManager[SafeFolder]:
    """Return a folder below one, or for no name that one itself, which stays open."""
    return folder.open_folder(name) if name else contextlib.nullcontext(folder)
