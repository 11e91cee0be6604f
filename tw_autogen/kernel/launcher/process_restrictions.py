"""What a process gives up before code runs in it: rights of its user, and resources beyond limits."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from .system_calls import (
    CAP_DAC_READ_SEARCH,
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_RAISE,
    PR_CAPBSET_DROP,
    PR_SET_KEEPCAPS,
    PR_SET_NO_NEW_PRIVS,
    prctl,
    set_capabilities,
)

_CAPABILITIES = 64


def switch_user(uid: int, *, keep_reading: bool = False) -> None:
    """Become another user, in no group but its own.

    Args:
        uid: Its number; also the group's.
        keep_reading: Folders that are closed to it may be passed; for an interpreter below root's home, in a sandbox
            that says itself which folders may be read. Closed files may be read too, and what is known of a file
            without opening it is open everywhere: Linux has no right for folders alone.
    """
    if keep_reading:
        prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if keep_reading:
        set_capabilities(1 << CAP_DAC_READ_SEARCH)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)


def drop_privileges(*, keep_reading: bool = False) -> None:
    """Drop every capability, and the ways to get one back (set-uid programs among them)."""
    for one in range(_CAPABILITIES):
        if not (keep_reading and one == CAP_DAC_READ_SEARCH):
            with contextlib.suppress(OSError):  # this system has fewer, or we may not: then we have none
                prctl(PR_CAPBSET_DROP, one)
    if not keep_reading:
        set_capabilities(0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


with contextlib.suppress(ImportError):  # Windows, where the host imports this module too
    import resource


def set_limits(limits: Mapping[str, Any], *, counts_all: bool) -> None:
    """Set this process's hard limits; children inherit them and nobody can raise them again.

    Args:
        limits: `memory_bytes`, `file_bytes`, `processes`, `open_files`; 0 stands for no limit.
        counts_all: The system counts all processes of this user against us, not only the kernel's own. Those there
            are now are added to the limit; when they end, code has room for as many more.
    """
    taken = _count_threads() if counts_all and limits["processes"] else 0
    wanted = {
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_DATA: limits["memory_bytes"],  # what is written to; mapped files don't count
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NPROC: limits["processes"] and limits["processes"] + taken,
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_MSGQUEUE: 1,
        resource.RLIMIT_MEMLOCK: 8 << 20,
    }
    for what, most in wanted.items():
        if most:
            _, hard = resource.getrlimit(what)
            lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (lower, lower))


def _count_threads() -> int:
    """Count all threads of this user, as the system does for its limit; others' would give code room for as many."""
    user, many = os.getuid(), 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended, or is hidden from us
            if os.stat(f"/proc/{name}").st_uid not in (0, user):  # those that hide their memory seem to be root's
                continue
            with open(f"/proc/{name}/status", "rb") as file:
                about = file.read()
            if int(about.partition(b"\nUid:")[2].split(None, 1)[0]) == user:
                many += int(about.partition(b"\nThreads:")[2].split(None, 1)[0])
    return many
