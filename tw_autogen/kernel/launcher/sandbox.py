"""Which sandbox a kernel has, and the steps that put it up, in the supervisor and in the kernel's own process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import landlock, namespaces
from .known_paths import (
    FolderRefusedError,
    check_known,
    closed_folder,
    crosses,
    exposed_sessions_reason,
    is_below,
)
from .mount_check import check_mounts
from .process_restrictions import drop_privileges, set_limits, switch_user
from .readable_files import listed_and_read
from .seccomp import install_syscall_filter
from .seccomp import prepare as prepare_filter

NAMESPACES, LANDLOCK, BUBBLEWRAP, OFF = "namespaces", "landlock", "bubblewrap", "off"
_ENCLOSED = {"signals": True, "truncates": True, "others": True}
"""What the filter of system calls may allow where namespaces hide all else."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_OWN = ("auxv", "cgroup", "cmdline", "comm", "fd", "limits", "maps", "smaps", "stat", "statm", "status", "task")
_PROC = (
    *(f"/proc/self/{name}" for name in _OWN),
    *(f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")),
    *(f"/proc/sys/{name}" for name in ("vm/overcommit_memory", "vm/max_map_count", "kernel/osrelease")),
    "/sys/fs/cgroup",  # how many processors a container has; what shows, and can't be opened, ends DuckDB
)


class SandboxFailed(Exception):
    """A part of the sandbox can't be set up on this system; the host then tries another one."""


class Sandbox:
    """A sandbox of one level.

    Args:
        plan: `level`; `stage` (an empty folder), `read` (what of this system all kernels may read), `write` (the
            kernel's own folders), `kept` (what stays read-only though it lies in a folder that code may write to),
            `network`, `links`, `limits` (see `process_restrictions.set_limits`), `uid` (0: the host's own user),
            `written` (the session's folders that code may write to); where these come later, `path` (where modules
            come from, and what that led to).
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.level = str(plan["level"])
        self._plan = plan

    @property
    def late(self) -> bool:
        """Return whether a session's folders can be added when the kernel is running already."""
        return self.level not in (LANDLOCK, BUBBLEWRAP)

    @property
    def encloses(self) -> bool:
        """Return whether the supervisor is the first process of a process namespace."""
        return self.level in (NAMESPACES, BUBBLEWRAP)

    def prepare(self) -> None:
        """Compute, in the process that supervisors are forked from, the filter of kernels with this plan."""
        if self.level == NAMESPACES:
            prepare_filter(**self._filter_options(**_ENCLOSED))

    def around_supervisor(self) -> None:
        """Build what the kernel will see; in the supervisor, before the kernel's process is made."""
        if self.level == NAMESPACES:
            with _os_error_as_sandbox_failed():
                namespaces.build(
                    self._plan["stage"],
                    read=self._plan["read"],
                    write=self._plan["write"],
                    network=self._plan["network"],
                    uid=self._plan["uid"],
                    memory_bytes=self._plan["limits"]["memory_bytes"] // 4,
                    written=self._plan.get("written", ()),
                )

    def admit(self, assignment: Mapping[str, Any]) -> None:
        """Show the running kernel its session's folders; runs in the supervisor.

        Raises:
            SandboxFailed: they can't be shown.
            FolderRefusedError: one was exchanged since the host has checked it, or can't be shown; or something lies in
                one that code may write which this sandbox can't keep read-only; or it holds sessions that are closed to
                others, and wouldn't be to code.
        """
        kept = [*self._plan.get("kept", ()), *assignment.get("kept", ())]
        known = assignment.get("known", {})
        for path, found in self._plan.get("path", {}).items() if self.level != OFF else ():
            if any(crosses(one, assignment["write"]) for one in (path, found)):
                raise FolderRefusedError(f"{path}: modules come from here, and code may write to it or above it")
        if self.level == NAMESPACES:
            with _os_error_as_sandbox_failed():
                namespaces.admit(
                    read=assignment["read"], write=assignment["write"], own=self._plan["write"], kept=kept, known=known
                )
        elif self.level == BUBBLEWRAP:
            check_mounts(known, assignment["mounts"])
        elif self.level == LANDLOCK:
            _check_kept(assignment["write"], kept)
            shown = [*listed_and_read(assignment["read"])[1], *assignment["write"]]
            check_known({path: known[path] for path in shown if path in known})
            self._check_sessions(shown, assignment)

    def around_kernel(self, assignment: Mapping[str, Any] | None) -> None:
        """Drop, in the kernel's process, all that code must not have. It can't be undone.

        Args:
            assignment: `read` and `write`: the session's folders, and `kept`; known by now unless it is `late`.

        Raises:
            SandboxFailed: a part of the sandbox can't be set up.
            FolderRefusedError: a folder was exchanged since the host has checked it.
        """
        if self.level != OFF:
            with _os_error_as_sandbox_failed():
                set_limits(self._plan["limits"], counts_all=self.level == LANDLOCK and not self._plan["uid"])
                if self.encloses:
                    self._inside_namespaces()
                else:
                    self._behind_landlock(assignment or {"read": [], "write": []})

    def _inside_namespaces(self) -> None:
        if self._plan["uid"]:
            switch_user(self._plan["uid"])
        elif self.level == NAMESPACES:
            namespaces.own_user()  # so that its processes are counted for themselves
        drop_privileges()
        install_syscall_filter(**self._filter_options(**_ENCLOSED))

    def _behind_landlock(self, assignment: Mapping[str, Any]) -> None:
        uid, network = self._plan["uid"], self._plan["network"]
        read, write = self._beside_landlock(assignment)
        own = next(iter(assignment["write"]), "")
        keep_reading = bool(uid) and any(map(closed_folder, (*listed_and_read(read)[1], *write)))
        if uid:
            switch_user(uid, keep_reading=keep_reading)
        landlock.restrict(
            read=read,
            write=write,
            network=network,
            known=assignment.get("known", {}),
            written=assignment["write"],
            # What is root's in the kernel's folder is given to its user at the next start: no other file gets there.
            # Nor does a folder of somebody else's get to where root removes all when the kernel ends.
            fixed=[path for path in write if path != own] if uid else (),
        )
        known = landlock.version()
        drop_privileges(keep_reading=keep_reading)
        signals, truncates = known >= landlock.SIGNALS_FROM, known >= landlock.TRUNCATE_FROM
        install_syscall_filter(**self._filter_options(signals=signals, truncates=truncates, others=False))

    def _beside_landlock(self, assignment: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Return all that code may read and write where it sees the folders of the host."""
        read = [*self._plan["read"], *_PROC, *assignment["read"]]
        return read, [*_DEVICES, *self._plan["write"], *assignment["write"]]

    def _check_sessions(self, shown: Sequence[str], assignment: Mapping[str, Any]) -> None:
        """Raise an error if a folder that is shown holds sessions of root's, and closed files are open to code."""
        read, write = self._beside_landlock(assignment)
        reached = (*listed_and_read(read)[1], *write)
        for path in shown if self._plan["uid"] else ():
            if why := exposed_sessions_reason(path, assignment["folder"], reached):
                raise FolderRefusedError(f"{path} can't be granted, because it is {why}")

    def _filter_options(self, **rest: bool) -> dict[str, Any]:
        shared_bytes = self._plan["limits"]["memory_bytes"] // 4
        allowed = {one: self._plan[one] for one in ("network", "links")}
        return {**allowed, "shared_bytes": shared_bytes, **rest}


def _check_kept(write: Iterable[str], kept: Iterable[str]) -> None:
    """Raise an error if something that has to stay read-only lies in a folder that code may write to."""
    for folder in write:
        for one in kept:
            if is_below(one, folder):
                raise FolderRefusedError(
                    f"{folder}: code may write here, and {one}, which programs outside the sandbox use, lies in "
                    "it; Landlock can't keep a part of a folder read-only. Let code work in another folder, for one "
                    "below this, move the environment, or set kernel.sandbox to 'namespaces' or 'bubblewrap'"
                )


@contextlib.contextmanager
def _os_error_as_sandbox_failed() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxFailed(error.strerror or str(error)) from error
