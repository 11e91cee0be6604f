"""Gives up what a process may do beyond an ordinary one, for good."""

from __future__ import annotations

import contextlib
import os

from .system import (
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


def become(uid: int, *, keep_reading: bool = False) -> None:
    """Become another user, in no group but its own.

    Args:
        uid: Its number; also the group's.
        keep_reading: Folders that are closed to it may be passed; for an interpreter below root's home, behind a wall
            that says itself which folders may be read.
    """
    if keep_reading:
        prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if keep_reading:
        set_capabilities(1 << CAP_DAC_READ_SEARCH)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)


def give_up(*, keep_reading: bool = False) -> None:
    """Drop every capability, and the ways to get one back (set-uid programs among them)."""
    for one in range(_CAPABILITIES):
        if not (keep_reading and one == CAP_DAC_READ_SEARCH):
            with contextlib.suppress(OSError):  # this system has fewer, or we may not: then we have none
                prctl(PR_CAPBSET_DROP, one)
    if not keep_reading:
        set_capabilities(0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
