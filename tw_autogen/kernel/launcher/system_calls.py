"""System calls that Python's library has no function for; each raises OSError with its own name."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_SET_KEEPCAPS, PR_SET_SECCOMP = 36, 47, 2, 8, 22
CAP_DAC_READ_SEARCH = 2
_CAPS_VERSION = 0x20080522
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_AT_FDCWD, _RESOLVE_NO_SYMLINKS = -100, 0x04
_OPEN_TREE_CLONE = 1
_MOVE_FROM_EMPTY, _MOVE_TO_EMPTY = 0x04, 0x40
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4

# Numbers that libc has no name for; those above 424 are the same on every machine.
_NUMBERS = {"pivot_root": {"x86_64": 155, "aarch64": 41}}
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442


@functools.cache
def _libc() -> ctypes.CDLL:
    """Load it when it is needed: the host imports this module where there is no Linux too."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
    library.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
    return library


def _check_result(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Leave the namespaces of the parent; for pids, the next child does."""
    _check_result("unshare", _libc().unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount; `kind` is the file system's name, empty for a bind.

    Args:
        source: What is mounted.
        target: Where.
        kind: The file system's name; empty for a bind.
        flags: Those of mount(2).
        data: The file system's own options.
    """
    result = _libc().mount(os.fsencode(source), os.fsencode(target), kind.encode(), flags, data.encode() or None)
    _check_result(f"mount {target}", result)


def bind(source: int, target: int, *, writable: bool) -> None:
    """Show a file or folder with all that is mounted below it at a second place, without devices and set-uid.

    Neither place is looked up by a path, so whoever renames what is above them changes nothing.

    Args:
        source: Descriptor of what is shown, in this mount namespace.
        target: Descriptor of the place; a folder for a folder, a file for a file.
        writable: Whether it may be written there.
    """
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | _AT_RECURSIVE | os.O_CLOEXEC
    copy = syscall("open_tree", _OPEN_TREE, source, b"", flags)
    try:
        attributes = struct.pack("QQQQ", _ATTR_NOSUID | _ATTR_NODEV | (0 if writable else _ATTR_RDONLY), 0, 0, 0)
        how = _AT_EMPTY_PATH | _AT_RECURSIVE
        syscall("mount_setattr", _MOUNT_SETATTR, copy, b"", how, attributes, len(attributes))
        syscall("move_mount", _MOVE_MOUNT, copy, b"", target, b"", _MOVE_FROM_EMPTY | _MOVE_TO_EMPTY)
    finally:
        os.close(copy)


def open_without_links(path: str, flags: int) -> int:
    """Open a path over no link, in one call.

    Args:
        path: Absolute.
        flags: Those of open(2).

    Raises:
        OSError: a link is in the way, it is missing, or the system is older than Linux 5.6.
    """
    how = struct.pack("QQQ", flags, 0, _RESOLVE_NO_SYMLINKS)
    return syscall("openat2", _OPENAT2, _AT_FDCWD, os.fsencode(path), how, len(how))


def pivot_root(new: str, old: str) -> None:
    """Make a mount the root of this mount namespace, for all in it.

    Args:
        new: The new root.
        old: Where the old root is mounted then.
    """
    number = _NUMBERS["pivot_root"][platform.machine()]
    _check_result("pivot_root", _libc().syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old)))


def unmount(path: str) -> None:
    """Take a mount away as soon as nobody uses it."""
    _check_result("umount", _libc().umount2(os.fsencode(path), ctypes.c_int(MNT_DETACH)))


def prctl(option: int, argument: int = 0, second: int = 0) -> int:
    """Set something about this process.

    Args:
        option: As prctl(2) numbers it.
        argument: Its first argument.
        second: Its second argument.
    """
    return _check_result(f"prctl {option}", _libc().prctl(option, argument, second, 0, 0))


def prctl_pointer(option: int, argument: int, pointer: int) -> None:
    """Set something about this process that lies in memory.

    Args:
        option: As prctl(2) numbers it.
        argument: Its first argument.
        pointer: Address of the second one.
    """
    _check_result(f"prctl {option}", _libc().prctl(option, argument, pointer, 0, 0))


def syscall(name: str, number: int, *arguments: int | bytes | None) -> int:
    """Make a call by its number, with whole numbers and bytes.

    Args:
        name: For the error.
        number: On this machine.
        *arguments: As the call takes them; None: a null pointer.
    """
    plain = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    return _check_result(name, _libc().syscall(ctypes.c_long(number), *plain))


def set_capabilities(kept: int = 0) -> None:
    """Drop root's capabilities, but for the bits in `kept`; for ever, in this thread."""
    header = struct.pack("Ii", _CAPS_VERSION, 0)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    _check_result("capset", _libc().capset(header, struct.pack("IIIIII", low, low, low, high, high, high)))
