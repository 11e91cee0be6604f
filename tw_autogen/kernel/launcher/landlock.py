"""Landlock: which folders may be read and written, said by the process itself; no namespace and no privilege needed.

It holds off: reading and writing any file outside the folders that are named, tracing processes outside, and, from
version 4 of its interface, TCP; from version 6 also signals and abstract sockets. It can't forbid connecting or sending
to a Unix socket by path, changing a file's mode, owner and times, and until version 3 not cutting a file by its path:
the filter of system calls does. It doesn't hold off what is known of a file without opening it, where the system's own
rights allow that: that it exists, its size, owner and times, its extended attributes, and where a link leads. Tried by
tests from inside kernels, as root and as an ordinary user.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Collection, Iterable, Sequence

from .known_paths import Known, open_granted
from .readable_files import listed_and_read
from .system_calls import PR_SET_NO_NEW_PRIVS, prctl, syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_ALL_BY_VERSION = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _IOCTL_DEVICE = 1 << 6, 1 << 11, 1 << 13, 1 << 15
_TCP = 3
_SCOPES = 3

SIGNALS_FROM = 6
"""The version of the interface from which on it keeps signals in."""
TRUNCATE_FROM = 3
"""The version of the interface from which on it sees files being cut."""


def version() -> int:
    """Return the version of the system's interface.

    Raises:
        OSError: the system has none, or it is switched off.
    """
    return syscall("landlock", _CREATE, None, 0, _VERSION_FLAG)


def restrict(
    *,
    read: Iterable[str],
    write: Iterable[str],
    network: bool,
    known: Known,
    written: Sequence[str] = (),
    fixed: Collection[str] = (),
) -> None:
    """Keep this thread, and all that it starts, to these files and folders. It can't be undone.

    Args:
        read: May be read and executed; what doesn't exist is passed over. Of a path with `LISTED` at its end the names
            may be listed, and those of all folders below it.
        write: May be written as well.
        network: TCP stays allowed.
        known: What the host has checked of these; of other paths no link is followed that lies in `written`.
        written: The session's folders among `write`.
        fixed: Those of them out of which, and between whose folders, no file can be renamed (EXDEV: `mv` copies).

    Raises:
        OSError: the system has no Landlock.
        FolderRefusedError: as of `open_known`.
    """
    interface = version()
    handled = _ALL_BY_VERSION[min(interface, max(_ALL_BY_VERSION))]
    attributes = struct.pack("Q", handled)
    if interface >= 4:
        attributes += struct.pack("Q", 0 if network else _TCP)
    if interface >= SIGNALS_FROM:
        attributes += struct.pack("Q", _SCOPES)
    rules = syscall("landlock_create_ruleset", _CREATE, attributes, len(attributes), 0)
    try:
        listed, whole = listed_and_read(read)
        for path in listed:
            _allow(rules, path, handled & _READ_DIR, known, written)
        for path in whole:
            _allow(rules, path, handled & (_EXECUTE | _READ_FILE | _READ_DIR), known, written)
        for path in write:
            _allow(rules, path, handled & ~(_MAKE_CHAR | _MAKE_BLOCK | _REFER * (path in fixed)), known, written)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        syscall("landlock_restrict_self", _RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int, known: Known, written: Sequence[str]) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = open_granted(path, known, written)
        try:
            if not stat.S_ISDIR(os.fstat(found).st_mode):
                rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | (1 << 14) | _IOCTL_DEVICE
            syscall("landlock_add_rule", _ADD, rules, _PATH_BENEATH, struct.pack("=Qi", rights, found), 0)
        finally:
            os.close(found)
