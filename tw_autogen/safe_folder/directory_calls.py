"""Calls of the system on an entry of an open directory; none follows a link.

On Windows, which has no `dir_fd`, a directory is its path and each call checks for links first.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

if sys.platform != "win32":
    import pwd

_PIECE_BYTES, _AT_ONCE_BYTES = 1 << 20, 1 << 30
PATH_MAX = 4096
"""Linux's limit of a path, with the NUL at its end; what lies deeper no program finds by its path."""
BY_DESCRIPTOR = hasattr(os, "O_NOFOLLOW") and os.open in os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
_PATH = getattr(os, "O_PATH", 0)  # needs no permission on the entry itself; Linux only
_FILE = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_REPARSE_POINT = 0x400  # a link or a junction on Windows
_NOT_PLAIN = {
    stat.S_IFDIR: "a directory", stat.S_IFLNK: "a link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


@functools.cache
def _is_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


class _KernelUsers(set[int]):
    """Numbers of users; one with an account, as clusters and directories may have it, is none of them."""

    def __contains__(self, uid: object) -> bool:
        return super().__contains__(uid) and isinstance(uid, int) and not _is_account(uid)


KERNEL_USERS = _KernelUsers()
"""The users that code becomes, or became in an earlier process, where the host is root, by number."""

At = int | str
"""An open directory: its descriptor; its path on a system without `dir_fd`."""


class Owner(NamedTuple):
    """To whom a file is given.

    Args:
        user: The user's number.
        group: The group's number.
        mode: The file's permissions then; None: they stay, but for those that a change of owner takes. Not of a link.
    """

    user: int
    group: int
    mode: int | None = None


OwnerOf = Callable[[os.stat_result], Owner | None]
"""To whom a file is given, by what the system says of it; None: it stays as it is."""


class UntrustedDirFd(int):
    """A descriptor in a folder where code works as another user than the host, which is root.

    Code can rename what is directly in its folder, also somebody's closed directory. So what is opened below is what
    code could reach itself, or what is root's or a kernel's user's: nobody else's closed directories and files.
    """

    __slots__ = ()


class ForeignAt(UntrustedDirFd):
    """A descriptor of another user's directory there, which code may pass and not change: nor does the host."""

    __slots__ = ()


def _is_writable_by_kernel_group(about: os.stat_result) -> bool:
    """Return whether a directory is root's, who lets code write in it by its group, but keeps what is root's there."""
    return about.st_uid == 0 and about.st_gid in KERNEL_USERS and bool(about.st_mode & stat.S_ISVTX)


def refuse_kept(at: At, name: str) -> None:
    """Refuse a directory of root's in one that is shared with code: it is left alone with all in it.

    Args:
        at: The directory that it is in.
        name: Its plain name.

    Raises:
        PermissionError: it is one.
    """
    if isinstance(at, int) and _is_writable_by_kernel_group(os.fstat(at)) and lstat(at, name).st_uid == 0:
        raise PermissionError(errno.EPERM, "root's, in a folder where code works", name)


def _entry_to_remove(at: At, name: str) -> tuple[str, dict[str, Any]]:
    """Return the same as `_entry_to_change`, to take an entry away; refuse what code could not in its folder."""
    shared = isinstance(at, int) and _is_writable_by_kernel_group(os.fstat(at))
    if shared and lstat(at, name).st_uid not in KERNEL_USERS:
        raise PermissionError(errno.EPERM, "somebody else's, in a folder of root's where code works", name)
    return _entry_to_change(at, name)


def _refuse_closed(at: At | None, fd: int, name: str, *, write: bool = False) -> bool:
    """Refuse what code could not reach itself, in a folder of code's; return whether it is somebody else's there.

    Args:
        at: The directory that it is in.
        fd: A descriptor of what was opened.
        name: What errors call it.
        write: It will be changed.
    """
    about = os.fstat(fd)
    if not isinstance(at, UntrustedDirFd) or not about.st_uid or about.st_uid in KERNEL_USERS:
        return False
    is_folder = stat.S_ISDIR(about.st_mode)
    needed = (stat.S_IXOTH if is_folder else stat.S_IROTH) | (stat.S_IWOTH if write else 0)
    if needed & ~about.st_mode or (write and about.st_mode & stat.S_ISVTX):
        raise PermissionError(errno.EPERM, f"a closed {'folder' if is_folder else 'file'} of another user", name)
    return is_folder and (not about.st_mode & stat.S_IWOTH or bool(about.st_mode & stat.S_ISVTX))


def _entry_to_change(at: At, name: str) -> tuple[str, dict[str, Any]]:
    """Return the same as `entry`, for a call that makes, changes or removes the entry."""
    if isinstance(at, ForeignAt):
        raise PermissionError(errno.EPERM, "in a folder of another user, which code can't change", name)
    return entry(at, name)


def entry(at: At, name: str) -> tuple[str, dict[str, Any]]:
    """Return what names an entry of a directory for a call of `os`: a path, and keywords.

    Args:
        at: The directory.
        name: The entry's plain name.
    """
    return (name, {"dir_fd": at}) if isinstance(at, int) else (os.path.join(at, name), {})


def open_folder(at: At | None, name: str, *, listed: bool = False) -> At:
    """Open a directory that is no link.

    Args:
        at: The directory that it is in; None: `name` is a path.
        name: Its name there.
        listed: Its entries will be read, which needs the permission for it.

    Raises:
        PermissionError: it is closed to the code that works there, see `UntrustedDirFd`.
        OSError: it is no directory, or the system refuses.
    """
    where, below = (name, {}) if at is None else entry(at, name)
    if not BY_DESCRIPTOR:
        _refuse_link(where)
        if not os.path.isdir(where):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", where)
        return where
    fd = os.open(where, (0 if listed else _PATH) | os.O_RDONLY | _DIRECTORY, **below)
    return _opened_below(at, fd, name)


def _opened_below(at: At | None, fd: int, name: str) -> At:
    """Return a directory that was just opened as what it is; it is closed where it is refused."""
    if not isinstance(at, UntrustedDirFd):
        return fd
    try:
        foreign = _refuse_closed(at, fd, name) if name != "." else isinstance(at, ForeignAt)
    except BaseException:
        os.close(fd)
        raise
    return ForeignAt(fd) if foreign else UntrustedDirFd(fd)


def open_again(at: At) -> At:
    """Return an open directory once more, with a descriptor of its own."""
    return type(at)(os.dup(at)) if isinstance(at, int) else at


def open_above(at: At) -> At:
    """Open the directory that an open directory is in now."""
    # A walk that removes never goes down into a `ForeignAt`.
    kind = UntrustedDirFd if isinstance(at, UntrustedDirFd) else int
    return kind(os.open("..", os.O_RDONLY | _DIRECTORY, dir_fd=int(at)))


def open_to_empty(at: At, name: str) -> At:
    """Open a directory whose entries will be removed; its mode is changed where it forbids that to its owner.

    Args:
        at: The directory above.
        name: Plain name of the one to open.

    Raises:
        OSError: it is no directory, or the system refuses.
    """
    refuse_kept(at, name)
    if isinstance(at, int) and _PATH:
        fd = os.open(name, _PATH | _DIRECTORY, dir_fd=at)
        try:
            _refuse_closed(at, fd, name, write=True)
            _check_same_mount(at, fd, name)
            unlock(fd)
            inner = os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=fd)  # by its name another one may be found
        finally:
            os.close(fd)
        return _opened_below(at, inner, name)
    if isinstance(at, int) and os.chmod in os.supports_follow_symlinks:
        with contextlib.suppress(OSError):
            os.chmod(name, stat.S_IRWXU, dir_fd=at, follow_symlinks=False)
    return open_folder(at, name, listed=True)


def open_on_same_mount(at: At, name: str) -> At:
    """Open a directory as `open_folder` does, but, on Linux, none on which something is mounted.

    Args:
        at: The directory that it is in.
        name: Its name there.

    Raises:
        OSError: as of `open_folder`; EXDEV: something is mounted there.
    """
    inner = open_folder(at, name)
    try:
        _check_same_mount(at, inner, name)
    except OSError:
        close(inner)
        raise
    return inner


def _check_same_mount(at: At, inner: At, name: str) -> None:
    if isinstance(at, int) and isinstance(inner, int) and _PATH and _mount_of(inner) != _mount_of(at):
        raise OSError(errno.EXDEV, "something is mounted there, so it is left alone", name)


def _mount_of(at: int) -> bytes:
    """Return the line that names the mount in which an open directory lies; of the same one in every call."""
    with open(f"/proc/self/fdinfo/{int(at)}", "rb") as file:
        return next((line for line in file if line.startswith(b"mnt_id")), b"")


def unlock(at: At) -> None:
    """Change an open directory's mode where it forbids its owner, us or a kernel, to list or change it; Linux only."""
    if not isinstance(at, int) or not _PATH:
        return
    about = os.fstat(at)
    ours = about.st_uid == os.geteuid() or (os.geteuid() == 0 and about.st_uid in KERNEL_USERS)
    if ours and about.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        given = stat.S_IMODE(about.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH) | stat.S_IRWXU
        os.chmod(f"/proc/self/fd/{at}", given)  # a descriptor of O_PATH takes no fchmod


def close(at: At) -> None:
    """Close a directory."""
    if isinstance(at, int):
        os.close(at)


def identity(at: At) -> tuple[int, int]:
    """Return device and number of an open directory."""
    info = os.stat(at)
    return info.st_dev, info.st_ino


def open_plain(at: At, last: str, flags: int, *, mode: int = 0o644, name: str = "", same_mount: bool = False) -> int:
    """Open a regular file and return its descriptor.

    Args:
        at: The directory that it is in.
        last: Its name there.
        flags: As of `os.open`.
        mode: Of a file that is created.
        name: What errors call it.
        same_mount: On Linux, one that is mounted there is refused.

    Raises:
        PermissionError: it is not a regular file, or a hard link to a file of another user than the directory's owner,
            or closed to that owner, or to the code that works there, see `UntrustedDirFd`.
        OSError: the system refuses.
    """
    write = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    where, below = _entry_to_change(at, last) if write else entry(at, last)
    try:
        if not BY_DESCRIPTOR:
            _refuse_link(where, missing=bool(flags & os.O_CREAT))
        fd = os.open(where, flags | _FILE, mode, **below)
    except OSError as error:
        raise explained(error, name or last) from None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            kind = _NOT_PLAIN.get(stat.S_IFMT(about.st_mode), "something else")
            raise PermissionError(errno.EPERM, f"not a regular file but {kind}", name or last)
        if same_mount:
            _check_same_mount(at, fd, name or last)
        _refuse_closed(at, fd, name or last, write=write)
        closed = not about.st_mode & stat.S_IROTH
        above = os.stat(at) if closed or about.st_nlink > 1 else about
        owner = above.st_gid if _is_writable_by_kernel_group(above) else above.st_uid
        if about.st_nlink > 1 and about.st_uid != owner:
            raise PermissionError(errno.EPERM, "a hard link to a file of another user", name or last)
        foreign = about.st_uid not in (0, owner)
        if closed and foreign and (owner or isinstance(at, UntrustedDirFd)):  # only root gets as far
            raise PermissionError(errno.EPERM, "a closed file of another user than its folder's", name or last)
    except BaseException:
        os.close(fd)
        raise
    return fd


def hold_socket(at: At, name: str) -> int:
    """Open a Unix socket's entry without connecting; it stays the same one whatever its name means later.

    Args:
        at: The directory.
        name: The socket's plain name.

    Returns:
        A descriptor with the path `/proc/self/fd/…`; -1 on a system other than Linux, where the name was checked only.

    Raises:
        PermissionError: it is not a socket, or has other names.
        OSError: there is none, or the system refuses.
    """
    where, below = entry(at, name)
    fd = os.open(where, _PATH | _NOFOLLOW, **below) if _PATH else -1
    about = os.fstat(fd) if _PATH else lstat(at, name)
    if not stat.S_ISSOCK(about.st_mode) or about.st_nlink != 1:
        if _PATH:
            os.close(fd)
        raise PermissionError(errno.EPERM, "not a socket of this folder", name)
    return fd


def lstat(at: At, name: str) -> os.stat_result:
    """Return what `os.lstat` says of an entry.

    Args:
        at: The directory.
        name: The entry's plain name.
    """
    where, below = entry(at, name)
    return os.stat(where, follow_symlinks=False, **below)


def make_folder(at: At, name: str) -> None:
    """Make a directory.

    Args:
        at: The directory above.
        name: The new one's plain name.
    """
    where, below = _entry_to_change(at, name)
    os.mkdir(where, **below)


def set_up_folder(at: At, name: str, *, mode: int | None, owner: int) -> None:
    """Change mode and owner of a directory of this user's that was just made; Windows has neither.

    Args:
        at: The directory above.
        name: Its plain name.
        mode: The new mode; None: it stays as it is.
        owner: The user and group that it is given to; 0: nobody.

    Raises:
        PermissionError: it is another user's; or not empty, and so not the one that was made.
        OSError: it is no directory, or a link; or something is mounted there.
    """
    if not BY_DESCRIPTOR:
        return
    fd = int(open_on_same_mount(at, name))
    place: Any = f"/proc/self/fd/{fd}" if _PATH else fd  # a descriptor of O_PATH takes no fchmod
    try:
        if os.fstat(fd).st_uid != os.geteuid() or (owner and not _is_empty(fd)):  # code may have exchanged it
            raise PermissionError(errno.EPERM, "another one than was made", name)
        if mode is not None:
            os.chmod(place, mode)
        if owner:
            os.chown(place, owner, owner)
    finally:
        os.close(fd)


def _is_empty(at: int) -> bool:
    inner = os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=at)
    try:
        with os.scandir(inner) as entries:
            return next(entries, None) is None
    finally:
        os.close(inner)


def unlink(at: At, name: str) -> None:
    """Remove an entry that is no directory.

    Args:
        at: The directory.
        name: The entry's plain name.
    """
    where, below = _entry_to_remove(at, name)
    if not below:
        _make_writable(where)
    os.unlink(where, **below)


def rmdir(at: At, name: str) -> None:
    """Remove an empty directory.

    Args:
        at: The directory above.
        name: The plain name of the one to remove.
    """
    where, below = _entry_to_remove(at, name)
    os.rmdir(where, **below)


def rename(at: At, name: str, there: At, new: str) -> None:
    """Rename an entry, in place of a file or link of the new name.

    Args:
        at: The directory.
        name: The entry's plain name.
        there: The directory that it goes to.
        new: Its plain name there.
    """
    _entry_to_remove(at, name), _entry_to_change(there, new)
    if isinstance(at, int) and isinstance(there, int):
        os.replace(name, new, src_dir_fd=at, dst_dir_fd=there)
    else:
        _make_writable(os.path.join(str(there), new))
        os.replace(os.path.join(str(at), name), os.path.join(str(there), new))


def set_mode(file: int, at: At, name: str, mode: int) -> None:
    """Change the mode of an open file; on Windows by its name.

    Args:
        file: Descriptor of the file.
        at: Its directory.
        name: Its plain name.
        mode: The new mode.
    """
    if BY_DESCRIPTOR:
        os.fchmod(file, mode)
    else:
        os.chmod(entry(at, name)[0], mode)


def chown(at: At, name: str, owner_of: OwnerOf) -> None:
    """Change the owner of an entry, after a look at the very descriptor by which that is done; never of a device.

    Args:
        at: The directory.
        name: The entry's plain name.
        owner_of: Returns user and group for what was found; None: it stays as it is.
    """
    with contextlib.suppress(OSError):
        fd = os.open(name, _PATH | _NOFOLLOW, dir_fd=int(at))
        try:
            owner = _new_owner(os.fstat(fd), owner_of)
            if owner is not None:  # a descriptor of O_PATH takes no fchown and no fchmod
                os.chown(f"/proc/self/fd/{fd}", owner.user, owner.group)
                if owner.mode is not None:
                    os.chmod(f"/proc/self/fd/{fd}", owner.mode)
        finally:
            os.close(fd)


def chown_entries(at: At, owner_of: OwnerOf, but: Callable[[str], bool], *, prefix: str = "") -> list[str]:
    """Change the owner of an open directory and of all that is in it, but not of what is in directories below it.

    The directory belongs to the superuser meanwhile. If nobody else may write to it either, a name in it can't be
    exchanged between look and change, and no descriptor is needed for each entry: a third of the time.

    Args:
        at: The directory.
        owner_of: As of `chown`.
        but: As of `chown`. A directory in which one of the superuser's is left alone is not given to a kernel's user:
            it stays the superuser's, shared with that user's group (`_is_writable_by_kernel_group`).
        prefix: What stands before names for `but`.

    Returns:
        The names of the directories below.
    """
    folders: list[str] = []
    fd, new = int(at), owner_of(os.fstat(int(at)))
    if new is not None:
        os.fchown(fd, 0, 0)
        if new.mode is not None:
            os.fchmod(fd, new.mode)
    about = os.fstat(fd)
    fixed = about.st_uid == 0 and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)  # with an ACL: its mask
    try:
        with os.scandir(fd) as entries:
            for one in entries:
                try:
                    if one.is_dir(follow_symlinks=False):
                        folders.append(one.name)
                        continue
                    owner = _new_owner(one.stat(follow_symlinks=False), owner_of)
                    if owner is not None and fixed:
                        os.chown(one.name, owner.user, owner.group, dir_fd=fd, follow_symlinks=False)
                        if owner.mode is not None:
                            os.chmod(one.name, owner.mode, dir_fd=fd)
                    elif owner is not None:
                        chown(fd, one.name, owner_of)
                except OSError:
                    continue
    finally:
        if (
            new is not None
            and new.user in KERNEL_USERS
            and any(but(f"{prefix}{folder}") and not lstat(fd, folder).st_uid for folder in folders)
        ):
            os.fchown(fd, 0, new.group)
            os.fchmod(fd, stat.S_IMODE(about.st_mode) | stat.S_IRWXG | stat.S_ISVTX)
        elif new is not None:
            os.fchown(fd, new.user, new.group)
    return folders


def _new_owner(about: os.stat_result, owner_of: OwnerOf) -> Owner | None:
    return None if stat.S_IFMT(about.st_mode) in (stat.S_IFCHR, stat.S_IFBLK) else owner_of(about)


def copy(source: BinaryIO, target: BinaryIO, limit_bytes: int | None = None) -> None:
    """Copy an open file to its end, inside the system where that is possible; some file systems share the blocks then.

    Args:
        source: Read from its beginning; somebody may go on writing to it.
        target: New and empty.
        limit_bytes: How much is copied at most.

    Raises:
        OSError: with `errno.EFBIG` if there is more than the limit.
    """
    left = sys.maxsize if limit_bytes is None else limit_bytes
    with contextlib.suppress(OSError, ValueError, AttributeError):  # not on this system, or not between these files
        if source.tell() == 0:
            while done := os.copy_file_range(source.fileno(), target.fileno(), min(left, _AT_ONCE_BYTES)):
                left -= done
    while piece := source.read(min(left + 1, _PIECE_BYTES)):  # what is left
        left -= len(piece)
        if left < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        target.write(piece)


def explained(error: OSError, name: str, part: str = "") -> OSError:
    """Return an error that names a file, and what is wrong with it where a link, FIFO, socket or directory is.

    Args:
        error: What the system said.
        name: The file.
        part: The component at which it said so; empty: the last one.
    """
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        why = f"a link or a file is in the way at {part!r}" if part and part != name else "a link"
        return PermissionError(errno.EPERM, why if error.errno == errno.ELOOP or part else "not a directory", name)
    if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):
        return PermissionError(errno.EPERM, "not a regular file but a socket or FIFO", name)
    if error.errno == errno.EISDIR:
        return PermissionError(errno.EPERM, "not a regular file but a directory", name)
    return OSError(error.errno, error.strerror, name) if error.errno else error


def _make_writable(path: str) -> None:
    """Change a file's mode where Windows neither removes nor replaces it, because it is read-only."""
    with contextlib.suppress(OSError):
        os.chmod(path, stat.S_IWRITE)


def _refuse_link(path: str, *, missing: bool = False) -> None:
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        if missing:
            return
        raise
    if stat.S_ISLNK(about.st_mode) or getattr(about, "st_file_attributes", 0) & _REPARSE_POINT:
        raise OSError(errno.ELOOP, "a link", path)
