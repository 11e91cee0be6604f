"""A copy of a session under a name of its own, which is resumed beside the first one."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import stat
import sys
from pathlib import Path

from tw_autogen.conversation import new_id
from tw_autogen.errors import ConfigError
from tw_autogen.events import FileCopied, SessionOpened
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.owner_marks import unsealed
from tw_autogen.private_files import create_held_folder
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session.earlier_session import EarlierSession, is_made_by_user, mark_own_session
from tw_autogen.session.event_journal import LARGEST_BYTES, seal_lines, whole_lines
from tw_autogen.session.working_copies import read_copies, write_copies
from tw_autogen.session_layout import FILES, JOURNAL
from tw_autogen.text_escaping import visible_line

_MAX_LEVELS = 100
_ID = re.compile(r"session-[0-9a-f]+")
_COPIED = f'"event": "{FileCopied.__name__}"'.encode()
"""In a line of the journal: a copy of an answer's file, which the first session keeps."""


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
        with SafeFolder.without_links(folder) as source, create_held_folder(root), SafeFolder(root) as target:
            said = whole_lines(source.read_file(JOURNAL, limit_bytes=LARGEST_BYTES))
            own, journal = is_made_by_user(source, said), said if words else b""
            own_names = _names_of(earlier)
            lines = [
                own_names.sub(name.encode(), unsealed(line)) for line in io.BytesIO(journal) if _COPIED not in line
            ]
            # a copy is no more this user's own than the first one
            journal = seal_lines(target, lines) if own else b"".join(line + b"\n" for line in lines)
            target.copy_in(io.BytesIO(journal), JOURNAL, mode=0o600)
            if known := read_copies(folder):
                write_copies(root, known)
            target.make_folder(FILES)
            if source.has_entry(FILES):
                with source.open_folder(FILES) as files, target.open_folder(FILES) as copies:
                    _copy_files(files, copies, limit_mb)
        if own:
            mark_own_session(root)
            LocalKernel.adopt(root / FILES, folder / FILES)
    except OSError as error:
        with contextlib.suppress(OSError), SafeFolder.without_links(folder.parent) as workspace:
            workspace.remove_tree(name)
        where = f"{visible_line(os.path.basename(str(error.filename)))}: " if error.filename else ""
        raise ConfigError(f"{folder}: not copied: {where}{error.strerror or error}") from error
    return root


def _names_of(earlier: EarlierSession) -> re.Pattern[bytes]:
    """Return a pattern for a session's ids, and for its folder's name in a path: it may be a word elsewhere."""
    opened = (event.session_id for event in earlier.events if isinstance(event, SessionOpened))
    ids = sorted(one for one in {earlier.id, *opened} if _ID.fullmatch(one))
    above, own = (json.dumps(one, ensure_ascii=False)[1:-1] for one in (f"{earlier.folder.parent}{os.sep}", earlier.id))
    path = rf"(?<={re.escape(above)})(?:{re.escape(own)})(?![\w\x80-\xff-]|\.\w)"
    return re.compile("|".join([path, *map(re.escape, ids)]).encode())


def _copy_files(source: SafeFolder, target: SafeFolder, limit_mb: int) -> None:
    """Copy plain files and folders; links are left out.

    Raises:
        OSError: an entry can't be read or written, folders are nested too deep, or the files are larger than
            `limit_mb`.
    """
    limit_bytes = (limit_mb << 20) or sys.maxsize
    size = 0
    for entry in source.walk():  # no name is kept: code may have made a million, each of 16 000 characters
        if entry.name.count("/") >= _MAX_LEVELS:
            raise _too_deep()
        size += entry.info.st_size if entry.is_file else 0
    if size > limit_bytes:
        raise OSError(errno.EFBIG, f"its files have {size >> 20} MB; at most {limit_mb} are copied (kernel.disk_mb)")
    _copy_folder(source, target, left=limit_bytes, levels=_MAX_LEVELS)


def _copy_folder(source: SafeFolder, target: SafeFolder, *, left: int, levels: int) -> int:
    """Copy one folder after the other, so that names of entries are relative to their own folder.

    Args:
        source: Open.
        target: Open.
        left: How many bytes may still be copied.
        levels: How many levels of entries there may be, those of this folder included.

    Returns:
        How many bytes may be copied after this.

    Raises:
        OSError: as `_copy_files`.
    """
    folders = []
    for entry in source.walk(enter=lambda name: False):
        if not levels:
            raise _too_deep()
        if entry.is_folder:
            folders.append(entry.name)
        elif entry.is_file:
            with source.open_file(entry.name) as file:
                mode = stat.S_IMODE(entry.info.st_mode) & 0o777
                target.copy_in(file, entry.name, mode=mode, limit_bytes=left)
                left -= file.tell()
            if os.utime in os.supports_fd:  # what code has not written since then shows by its time
                with target.open_file(entry.name) as copied:
                    os.utime(copied.fileno(), ns=(entry.info.st_atime_ns, entry.info.st_mtime_ns))
    for name in folders:
        target.make_folder(name)
        with source.open_folder(name) as inner, target.open_folder(name) as copy:
            left = _copy_folder(inner, copy, left=left, levels=levels - 1)
    return left


def _too_deep() -> OSError:
    return OSError(errno.ENAMETOOLONG, f"its folders are nested more than {_MAX_LEVELS} deep")
