"""A root of its own for one kernel: only what it may see is there at all.

Holds off: every file that is not mounted, other processes and their environment, the network and abstract sockets, the
host's System V memory. It relies on the system's kernel being sound, and a Unix socket that lies in a granted folder
can be reached. Tried by tests from inside kernels, as root and as an ordinary user.

Two steps, because a kernel is started before anybody knows for which session: `build` makes a root with what all
kernels see; `admit` adds the session's folders and takes the old root away, before any code of the session runs.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Collection, Container, Iterable, Sequence
from contextlib import ExitStack
from types import MappingProxyType

from .known_paths import PATH, FolderRefusedError, Known, exchanged, identity, is_below, open_granted, open_known
from .readable_files import listed_and_read
from .system_calls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    bind,
    mount,
    open_without_links,
    pivot_root,
    unmount,
    unshare,
)

DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
_TELLING = ("kcore", "keys", "key-users", "kmsg", "sched_debug", "sysrq-trigger", "timer_list")
"""Files of /proc that tell, or do, more than the process namespace holds."""
_OLD = ".old"
_MEMORY = ("/", "/tmp", "/dev/shm")
"""File systems in memory that nobody else has, in the root that `build` makes."""
_PER_FILE = 8192
"""How many bytes of the limit each file in memory takes of their number: also an empty one takes memory."""
HOME = "/tmp/home"
"""The home folder of code in this sandbox: empty, gone with the kernel."""


def own_user() -> None:
    """Enter a user namespace in which this process may do what the other steps need, as the same user.

    Raises:
        OSError: the system forbids it to ordinary users.
    """
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def build(
    stage: str,
    *,
    read: Iterable[str],
    write: Iterable[str],
    network: bool,
    memory_bytes: int,
    uid: int = 0,
    written: Sequence[str] = (),
) -> None:
    """Enter a root that holds what every kernel sees; called in the first process of a pid namespace.

    Args:
        stage: An empty folder.
        read: What of this system may be read, at the same path.
        write: The kernel's own folders.
        network: The host's network stays there.
        memory_bytes: How much may be written to /tmp and shared memory, each.
        uid: The user that the kernel becomes; 0: it stays this one.
        written: The session's folders that code may write to, if they are known; no link there is followed.

    Raises:
        OSError: the system doesn't allow it.
    """
    unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (0 if network else CLONE_NEWNET))
    mount("", "/", "", MS_REC | MS_PRIVATE)
    quiet = MS_NOSUID | MS_NODEV
    mount("tw", stage, "tmpfs", quiet, "size=4m,mode=755")
    bounded = f"size={memory_bytes},nr_inodes={memory_bytes // _PER_FILE + 1024}," if memory_bytes else ""
    size = f"{bounded}mode=1777"
    for name, data in (("tmp", size), ("dev", "size=64k,mode=755"), ("dev/shm", size)):
        os.mkdir(f"{stage}/{name}")
        mount("tw", f"{stage}/{name}", "tmpfs", quiet, data)
    for name in DEVICES:
        _show(f"/dev/{name}", stage, writable=True, device=True)
    for name, target in LINKS.items():
        os.symlink(target, f"{stage}/dev/{name}")
    mount("tw", f"{stage}/dev", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC)
    os.mkdir(f"{stage}/proc")
    mount("proc", f"{stage}/proc", "proc", quiet | MS_NOEXEC)
    for path in hidden():
        mount("/dev/null", f"{stage}{path}", "", MS_BIND)
    settings = os.open(f"{stage}/proc/sys", PATH)
    bind(settings, settings, writable=False)
    os.close(settings)
    os.mkdir(f"{stage}/etc")
    for name, text in etc_texts(uid).items():
        with open(f"{stage}/etc/{name}", "w", encoding="ascii") as file:
            file.write(text)
    for path in outermost(read):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # gone meanwhile, or over a link of code's
            _show(path, stage, writable=False, written=written)
    for path in write:
        _show(path, stage, writable=True)
    os.mkdir(f"{stage}{HOME}", 0o777)
    os.chmod(f"{stage}{HOME}", 0o777)
    os.mkdir(f"{stage}/{_OLD}", 0o700)
    pivot_root(stage, f"{stage}/{_OLD}")
    os.chdir("/")


def admit(
    *,
    read: Iterable[str],
    write: Iterable[str],
    own: Iterable[str],
    kept: Collection[str] = (),
    known: Known = MappingProxyType({}),
) -> None:
    """Show the session's folders to every process in this sandbox, and take the old root away.

    Args:
        read: Its files and folders.
        write: Those that may be written too.
        own: The kernel's own folders, once more where one of the others has covered them.
        kept: What stays read-only where it lies in a folder that may be written.
        known: What the host has checked of these, and of the folders on the way to what is kept.

    Raises:
        OSError: the old root can't be taken away.
        FolderRefusedError: one is no longer what the host has checked, or can't be shown.
    """
    folders = writable_by_folder(read=read, write=write, kept=kept)
    ours = {os.stat(path).st_dev for path in _MEMORY}  # before anything is shown in their place
    with ExitStack() as undo:
        sources = {}
        for folder in own:
            if any(folder.startswith(f"{path.rstrip('/')}/") for path in folders):
                sources[folder] = open_known(folder, {})  # where `build` has shown it, before anything covers it
                undo.callback(os.close, sources[folder])
        folders |= dict.fromkeys(sources, True)
        for path, writable in sorted(folders.items()):  # what lies above comes first
            _show_granted(path, sources.get(path), known, ours, writable=writable)
    unmount(f"/{_OLD}")
    os.rmdir(f"/{_OLD}")
    mount("tw", "/", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def writable_by_folder(*, read: Iterable[str], write: Iterable[str], kept: Collection[str]) -> dict[str, bool]:
    """Return the folders to be shown, and whether each may be written.

    Folders between one that may be written and one that is kept are shown for themselves: a place where something is
    shown can't be moved.

    Args:
        read: Files and folders that may be read.
        write: Folders that may be written.
        kept: What stays read-only below these.
    """
    asked: dict[str, bool] = {**dict.fromkeys(listed_and_read(read)[1], False), **dict.fromkeys(write, True)}
    steps: dict[str, bool] = {}
    inside: dict[str, bool] = {}
    places = {**dict.fromkeys(kept, False), **{path.rstrip("/"): True for path in asked if asked[path]}}
    for path in kept:
        above = path.rpartition("/")[0]
        while above and above not in places:
            above = above.rpartition("/")[0]
        if places.get(above):  # else it lies in what is kept, or in no folder that may be written
            between = path[len(above) + 1 :].split("/")[:-1]
            steps |= dict.fromkeys(itertools.accumulate(between, os.path.join, initial=above), True)
            inside[path] = False
    return {**steps, **inside, **asked}


def outermost(paths: Iterable[str]) -> list[str]:
    """Leave out, of what may be read, what doesn't exist and what lies below another one; links come as they are."""
    kept: list[str] = []
    for path in sorted({os.path.normpath(path) for path in listed_and_read(paths)[1]}):
        inside = any(is_below(path, other) for other in kept if not os.path.islink(other))
        if os.path.lexists(path) and not inside:
            kept.append(path)
    return kept


def _show(path: str, target: str, *, writable: bool, device: bool = False, written: Sequence[str] = ()) -> None:
    """Show a path of this root at the same path below a folder that nobody else writes to."""
    place = f"{target}{path}"
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.islink(path) and not device:
        if not os.path.lexists(place):
            os.symlink(os.readlink(path), place)
        return
    with ExitStack() as undo:
        source = open_granted(path, {}, written)
        undo.callback(os.close, source)
        if stat.S_ISDIR(os.fstat(source).st_mode):
            os.makedirs(place, exist_ok=True)
        elif not os.path.exists(place):
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644))
        if device:
            mount(path, place, "", MS_BIND)
            return
        shown_at = os.open(place, PATH)
        undo.callback(os.close, shown_at)
        bind(source, shown_at, writable=writable)


def _show_granted(path: str, source: int | None, known: Known, ours: Container[int], *, writable: bool) -> None:
    """Show a path of the old root, or an open folder, at this path; code may be exchanging both ends.

    Args:
        path: Absolute.
        source: Descriptor of the folder; None: the path of the old root is opened.
        known: What the host has checked.
        ours: As of `_open_target`.
        writable: Whether it may be written there.

    Raises:
        FolderRefusedError: one of them is not what the host has checked, or can't be shown.
    """
    with ExitStack() as undo:
        if source is None:
            source = open_known(path, known, root=f"/{_OLD}")
            undo.callback(os.close, source)
        try:
            target = _open_target(path, os.fstat(source), ours)
            undo.callback(os.close, target)
            bind(source, target, writable=writable)
        except OSError as error:
            raise FolderRefusedError(f"{path}: can't be shown to code, so none is run ({error.strerror})") from error


def _open_target(path: str, about: os.stat_result, ours: Container[int]) -> int:
    """Open the place where something is shown, made if it is missing in a file system of the kernel's own.

    In a folder that was shown before, the place has to be what is shown there.

    Args:
        path: Absolute.
        about: What is shown.
        ours: Devices of the kernel's own file systems.

    Raises:
        FolderRefusedError: it is something else, is missing, or a link is in the way.
        OSError: it can't be made.
    """
    with contextlib.suppress(OSError):  # it has to be made, a link is in the way, or an older system
        found = open_without_links(path, PATH)
        if identity(os.fstat(found)) == identity(about):
            return found
        os.close(found)
    at = os.open("/", PATH)
    try:
        parts = [part for part in path.split("/") if part]
        for depth, part in enumerate(parts, 1):
            if os.fstat(at).st_dev in ours:
                _make_mount_point(at, part, folder=depth < len(parts) or stat.S_ISDIR(about.st_mode))
            inner = os.open(part, PATH | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        there = os.fstat(at)
        if stat.S_ISLNK(there.st_mode) or (there.st_dev not in ours and identity(there) != identity(about)):
            raise exchanged(path)
        at, result = -1, at
        return result
    except (FileNotFoundError, NotADirectoryError):
        raise exchanged(path) from None
    finally:
        if at >= 0:
            os.close(at)


def _make_mount_point(at: int, name: str, *, folder: bool) -> None:
    """Make a folder or an empty file in an open folder, if nothing has that name."""
    with contextlib.suppress(FileExistsError):
        if folder:
            os.mkdir(name, 0o755, dir_fd=at)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=at))


def hidden() -> list[str]:
    """Return the files of /proc that tell, or do, more than the process namespace holds, such as this user's keys."""
    return [path for path in (f"/proc/{name}" for name in _TELLING) if os.path.exists(path)]


def etc_texts(uid: int = 0) -> dict[str, str]:
    """Return the files of /etc that libraries look up users and names in, without what stands in the host's.

    Args:
        uid: The user that the kernel becomes; 0: it stays this one.
    """
    gid = uid or os.getegid() or 65534
    uid = uid or os.geteuid() or 65534
    return {
        "passwd": f"root:x:0:0:root:/:/bin/sh\nuser:x:{uid}:{gid}:user:{HOME}:/bin/sh\n",
        "group": f"root:x:0:\nuser:x:{gid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
