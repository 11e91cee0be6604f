"""Where the host is root: which users kernels become, and to whom their folders belong, while they run and later."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import secrets
import stat
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.errors import SandboxError
from tw_autogen.kernel.launcher.known_paths import SESSIONS
from tw_autogen.private_files import open_private_folder
from tw_autogen.safe_folder import KERNEL_USERS, Owner, SafeFolder
from tw_autogen.trust_store import state_folder

if sys.platform != "win32":
    import fcntl

USERS = range(61184, 65520)
"""The numbers that systemd gives to services that need a user for a while; those of accounts are left out."""
KERNEL_USERS.update(USERS)

_MAX_TRIES = 2000
_LOCKS = "kernel-users"
_ROOT = (0, 0)
_ROOT_ALONE_WRITES = 0o755
"""The permissions that what code has made may keep when it becomes root's: root's next files there are root's alone."""
_Owners = dict[tuple[int, int], tuple[int, int, int]]
"""User, group and mode of what code was given, by device and number of the file."""


@dataclass
class _FolderLease:
    """A folder where kernels work: the users that they are, and whose was what they were given."""

    users: list[int] = field(default_factory=list)
    owners: _Owners = field(default_factory=dict)


class UserNumbers:
    """The users that kernels become: no two kernels that live, of any of root's processes, are one in two folders.

    A process holds a number by a lock on the byte of that place in a file of the state folder. Where there is none, it
    knows only its own. The next number can't be foreseen: code that ends its kernel again and again would otherwise
    become the user of another one's files.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Counter[int] = Counter()
        self._file = -1

    def take(self, numbers: Sequence[int]) -> int:
        """Choose a number that is nobody's; it is held until `free`.

        Args:
            numbers: To choose from.

        Raises:
            SandboxError: all are taken.
        """
        for _ in range(_MAX_TRIES):
            found = secrets.choice(numbers)
            KERNEL_USERS.add(found)
            with self._lock:
                if found in KERNEL_USERS and found not in self._held and self._lock_byte(found):
                    self._held[found] = 1
                    return found
        raise SandboxError("root's kernels become other users, and none of their numbers is free; close other kernels")

    def share(self, number: int) -> int:
        """Hold a number once more, for another kernel in the same folder; return it."""
        with self._lock:
            self._held[number] += 1
        return number

    def free(self, number: int) -> None:
        """Hold a number once less; 0: nothing is done."""
        with self._lock:
            if number in self._held:
                self._held[number] -= 1
                if not self._held[number]:
                    del self._held[number]
                    if self._file >= 0:
                        with contextlib.suppress(OSError):
                            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)

    def is_held(self, number: int) -> bool:
        """Return whether a number is a living kernel's, as far as that is known."""
        with self._lock:
            if number in self._held:
                return True
            free = self._lock_byte(number)
            if free and self._file >= 0:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)
            return not free

    def _lock_byte(self, number: int) -> bool:
        try:
            if self._file < 0 and (state := state_folder()) is not None:
                with open_private_folder(state) as folder, folder.append_file(_LOCKS, mode=0o600) as file:
                    self._file = os.dup(file.fileno())  # open as long as this process lives: a lock ends with it
            if self._file >= 0:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError as error:
            return self._file < 0 or error.errno not in (errno.EACCES, errno.EAGAIN)
        return True


USER_NUMBERS = UserNumbers()


class FolderOwnership:
    """Which users the kernels of this process have become, by the folders that they work in.

    With the first kernel a folder, and what is root's in it, becomes its user's. With the end of the last one it is
    given back: to whom it belonged, with the mode that it had; what code has made there, to root, who alone may write
    to it then.
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._busy: list[Path] = []
        self._leases: dict[Path, _FolderLease] = {}

    def user(self, folder: Path) -> int:
        """Return the user that a folder belongs to while a kernel works there; a second kernel must be the same."""
        with self._alone_in(folder):
            return self._leases[folder].users[-1] if folder in self._leases else 0

    def acquire(self, folder: Path, uid: int) -> None:
        """Remember a kernel, and make the folder its own; 0: it is the host's user, and nothing changes.

        Args:
            folder: The kernel's folder.
            uid: The kernel's user; 0: the host's.
        """
        with self._alone_in(folder):
            lease = self._leases.setdefault(folder, _FolderLease())
            lease.users.append(uid)
            lease.owners = {**hand_over(folder, uid, functools.cache(USER_NUMBERS.is_held)), **lease.owners}

    def release(self, folder: Path, uid: int) -> None:
        """Forget a kernel that has ended; the last one's folder is given back.

        Args:
            folder: The kernel's folder.
            uid: The kernel's user; 0: the host's.
        """
        with self._alone_in(folder):
            lease = self._leases.get(folder, _FolderLease())
            if uid in lease.users:
                lease.users.remove(uid)
                if not lease.users:
                    del self._leases[folder]
                    _give_back(folder, uid, lease.owners)

    @contextlib.contextmanager
    def _alone_in(self, folder: Path) -> Iterator[None]:
        """Wait for others that change owners in a folder, above it or below it, but not for those elsewhere."""

        def is_free() -> bool:
            return not any(folder in (busy, *busy.parents) or busy in folder.parents for busy in self._busy)

        with self._turn:
            self._turn.wait_for(is_free)
            self._busy.append(folder)
        try:
            yield
        finally:
            with self._turn:
                self._busy.remove(folder)
                self._turn.notify_all()


OWNERSHIP = FolderOwnership()


def hand_over(folder: Path, uid: int, is_held: Callable[[int], bool] = lambda uid: False) -> _Owners:
    """Change the owner of a session's folder to its kernel's user, where it is root's or an earlier kernel's.

    All by descriptor: what another kernel exchanges in the folder meanwhile leads to no other file. What belongs to
    somebody else stays theirs, and so does a file of root's that has a second hard link: it may lie elsewhere too. The
    command line's sessions in the folder, however deep, are left alone: where they lie, code gets no directory but the
    right to write in it. So is what a living kernel has.

    Args:
        folder: With all in it.
        uid: The kernel's user; 0: nothing is done.
        is_held: Tells whether a user is that of a kernel that lives.

    Returns:
        User, group and mode of what was given, by device and number of the file; not of what earlier kernels have made.
    """
    owners: _Owners = {}
    if not uid:
        return owners
    with contextlib.suppress(FileNotFoundError), SafeFolder(folder) as opened:
        top = opened.info(".")

        given = Owner(uid, uid)

        def take(found: os.stat_result) -> Owner | None:
            linked = stat.S_ISREG(found.st_mode) and found.st_nlink > 1  # a file that has a name elsewhere too
            whole = os.path.samestat(found, top)
            of_kernel = found.st_uid in KERNEL_USERS and found.st_uid != uid and not is_held(found.st_uid)
            if found.st_uid == uid or not (whole or of_kernel or (found.st_uid == 0 and not linked)):
                return None
            if not of_kernel:
                owners[found.st_dev, found.st_ino] = (found.st_uid, found.st_gid, found.st_mode)
            return given

        opened.chown(take, but=lambda name: name.rpartition("/")[2] == SESSIONS)
    return owners


def _give_back(folder: Path, uid: int, owners: _Owners) -> None:
    """Return what is a kernel's user's to its owner before, else to root; no link that code made is followed.

    Modes are what they were, or none by which others write to root's files: code can change them. A file gets no mode
    by which it runs as its owner or group, since code may have written it.
    """
    if not uid:
        return

    def give(found: os.stat_result) -> Owner | None:
        shared = stat.S_ISDIR(found.st_mode) and (found.st_uid, found.st_gid) == (0, uid)
        if found.st_uid != uid and not shared:
            return None
        made = (*_ROOT, found.st_mode & _ROOT_ALONE_WRITES)
        user, group, mode = owners.get((found.st_dev, found.st_ino), made)
        if stat.S_IFMT(mode) not in (0, stat.S_IFMT(found.st_mode)):  # the number is another file's now
            user, group, mode = made
        mode = stat.S_IMODE(mode)
        if stat.S_ISLNK(found.st_mode):
            return Owner(user, group)
        return Owner(user, group, mode if stat.S_ISDIR(found.st_mode) else mode & 0o777)

    with contextlib.suppress(OSError), SafeFolder(folder) as opened:  # it may be gone
        by_code = opened.has_entry(SESSIONS) and opened.info(SESSIONS).st_uid == uid  # where none was
        opened.chown(give, but=lambda name: name == SESSIONS and not by_code)
