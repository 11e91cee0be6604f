"""`SafeFolder`: reads and writes files in a folder that untrusted code can write to, without leaving the folder."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tw_autogen.closing import Closing
from tw_autogen.safe_folder import directory_calls
from tw_autogen.safe_folder.directory_calls import PATH_MAX, At, OwnerOf
from tw_autogen.safe_folder.directory_tree import Descent, empty
from tw_autogen.safe_folder.held_folder import (
    KERNEL_FOLDERS,
    as_of_code,
    held_above,
    innermost_held_folder,
    is_of_code,
    over_no_link_of_code,
)
from tw_autogen.session_layout import FILES, JOURNAL

_HOLE_BYTES = 1 << 16  # a run of zeros as long as this is left out of a copy
_LONGEST_NAME = 16_000
"""How long a name may be below which a walk goes on: names of very deep entries take quadratic time in all."""
_CLOSED: At = -1 if directory_calls.BY_DESCRIPTOR else os.path.join(os.devnull, "closed")
"""Where nothing can be: an empty path would be the current folder."""


@dataclass(frozen=True)
class Entry:
    """One entry of a folder.

    Args:
        name: Relative to the folder, with `/`.
        info: As of `os.lstat`.
    """

    name: str
    info: os.stat_result

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file: no link, FIFO, socket or directory."""
        return stat.S_ISREG(self.info.st_mode)

    @property
    def is_folder(self) -> bool:
        """Whether it is a directory: no link to one."""
        return stat.S_ISDIR(self.info.st_mode)


class SafeFolder(Closing):
    """A folder that untrusted code may change at any time; no operation reaches a file outside it.

    Modelled on Go's `os.Root`. Every name is relative to the folder and is resolved one component at a time, each
    opened relative to the descriptor of the one before with `O_NOFOLLOW`, so neither a link nor a rename between two
    steps leads out. A file is checked after it was opened: it must be a regular file, and not a hard link to a file
    of another user than the owner of its directory.

    A hard link to a file of the same user passes: behind a sandbox, code can link only what lies on a mount that it can
    write to, and the user's own hard links (backups, package caches) have to stay readable.

    On Windows, which has no `dir_fd`, each component is checked by path before it is used. Making a link needs a
    privilege there, but a rename between check and use is not detected.

    Where the host is root, and the folder is one of `KERNEL_FOLDERS` or lies in one, what is closed to the code there
    is closed here too: somebody else's directories that others may not pass, and files that they may not read. So it
    is below such a folder that a name leads into.

    Args:
        path: The folder; must not be a link itself. The directories above it are trusted, unless it is a `HeldFolder`
            or lies in one: it is then opened below that folder's descriptor, without following links. One that is of
            `KERNEL_FOLDERS`, or lies in one, is opened over no link at all: its path had none when a kernel was made.

    Raises:
        OSError: there is no such directory.
    """

    _named_by_code = True

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._at: At = _CLOSED
        of_code = directory_calls.BY_DESCRIPTOR and is_of_code(path)
        held = held_above(path)
        if held is None and not of_code and KERNEL_FOLDERS and directory_calls.BY_DESCRIPTOR:
            path, of_code = over_no_link_of_code(path)
        if held is None and of_code and (full := os.path.abspath(path)) != os.sep:
            try:
                self._at = SafeFolder.without_links(full)._at
            except OSError as error:
                raise directory_calls.explained(error, full) from None
            return
        of_code = of_code and os.geteuid() == 0
        if held is not None:
            found, below = held
            self._at = directory_calls.UntrustedDirFd(found) if of_code else found
            if below:
                try:
                    self._named_by_code = False
                    inner = self.open_folder(below)
                finally:
                    self.close()
                self._at, self._named_by_code = inner._at, True
            return
        try:
            self._at = directory_calls.open_folder(None, os.fspath(path))
        except OSError as error:
            raise directory_calls.explained(error, os.fspath(path)) from None
        if of_code:
            self._at = directory_calls.UntrustedDirFd(self._at)

    @classmethod
    def without_links(cls, path: Path | str) -> SafeFolder:
        """Open a folder by its absolute path, if no component of the path is a link; the caller closes it.

        For a path whose links were followed before: one that leads there now has come since.

        Raises:
            OSError: there is no such folder, the path is relative, or it leads over a link.
        """
        path = Path(path)
        if not path.is_absolute():
            raise FileNotFoundError(errno.ENOENT, "not an absolute path", os.fspath(path))
        if innermost_held_folder(path) or path == Path(path.anchor):
            return cls(path)
        with cls(path.anchor) as root:
            return root.open_folder(path.relative_to(path.anchor).as_posix())

    def close(self) -> None:
        """Close the descriptor; what is asked of the folder then is an `OSError`."""
        at, self._at = self._at, _CLOSED
        if at != _CLOSED:
            directory_calls.close(at)

    def name_of(self, path: Path | str) -> str:
        """Return the name of a path relative to this folder, empty if it lies elsewhere.

        Args:
            path: Absolute, or relative to the working directory. Links above the folder are followed, none below it.
                In a held folder it is the path as it is written: it means this folder, whatever lies there by now.
        """
        full, mine = Path(os.path.abspath(path)), os.path.abspath(self.path)
        if (innermost_held_folder(mine) or is_of_code(mine)) and full.is_relative_to(mine):
            return "" if str(full) == mine else full.relative_to(mine).as_posix()
        for above in reversed(full.parents):
            with contextlib.suppress(OSError):
                if os.path.samestat(above.stat(), os.stat(self._at)):
                    return full.relative_to(above).as_posix()
        return ""

    @staticmethod
    def outermost(path: Path | str, folders: Iterable[Path]) -> tuple[str, Path]:
        """Return the name of a path in the outermost of those folders that it lies in, and that folder; else two empty.

        Args:
            path: Absolute.
            folders: Any number: those that it can't lie in are not opened.
        """
        name, base = "", Path()
        around = {*map(_identity, Path(path).parents)} - {None}
        for one in (each for each in folders if _identity(each) in around or innermost_held_folder(each)):
            with contextlib.suppress(OSError), SafeFolder(one) as folder:
                if len(found := folder.name_of(path)) > len(name):
                    name, base = found, one
        return name, base

    def open_folder(self, name: str, *, same_mount: bool = False) -> SafeFolder:
        """Open a directory below this one; the caller closes it.

        Args:
            name: Relative to the folder; `.` is the folder itself, opened once more.
            same_mount: On Linux, one on which something is mounted is refused: code may not see what that holds.

        Raises:
            OSError: there is no such directory, a link is in the way, or something is mounted there.
        """
        if name == ".":
            return self._from_descriptor(self.path, directory_calls.open_folder(self._at, "."))
        with self._parent_of(name) as (at, last):
            try:
                self._refuse_kept(at, last)
                inner = (directory_calls.open_on_same_mount if same_mount else directory_calls.open_folder)(at, last)
            except OSError as error:
                raise directory_calls.explained(error, name) from None
        return self._from_descriptor(
            self.path / name, as_of_code(inner, os.path.normpath(os.path.join(self._path_as_root(), name)))
        )

    @staticmethod
    def _from_descriptor(path: Path, at: At) -> SafeFolder:
        opened = SafeFolder.__new__(SafeFolder)
        opened.path, opened._at = path, at
        return opened

    def open_file(self, name: str) -> BinaryIO:
        """Open a file for reading; a FIFO does not block.

        Args:
            name: Relative to the folder; may come from untrusted code.

        Raises:
            FileNotFoundError: there is no such file, or the name leads out of the folder.
            PermissionError: it is not a regular file of this folder; the message says what it is.
        """
        return os.fdopen(self._open(name, os.O_RDONLY), "rb")

    def create_file(self, name: str, *, mode: int = 0o644) -> BinaryIO:
        """Create a file that does not exist yet, for writing.

        Args:
            name: A path below the folder.
            mode: Its permissions.

        Raises:
            FileExistsError: something has this name, even a dangling link.
            OSError: a link is in the way, or the system refuses.
        """
        return os.fdopen(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=mode), "wb")

    def append_file(self, name: str, *, mode: int = 0o644) -> BinaryIO:
        """Open a file for appending; errors as of `open_file`.

        Args:
            name: A path below the folder.
            mode: The permissions with which it is created if it does not exist; those of a file that exists stay.
        """
        return os.fdopen(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=mode), "ab")

    def read_file(self, name: str, *, limit_bytes: int) -> bytes:
        """Read a whole file.

        Args:
            name: Relative to the folder.
            limit_bytes: Of a longer file nothing is returned.

        Raises:
            OSError: as of `open_file`; with `errno.EFBIG` if the file is longer than the limit.
        """
        with self.open_file(name) as file:
            size = min(os.fstat(file.fileno()).st_size, limit_bytes)  # memory for a whole read is taken before it
            data = file.read(size + 1)
            if size < len(data) <= limit_bytes:  # it grew meanwhile
                data += file.read(limit_bytes + 1 - len(data))
        if len(data) > limit_bytes:
            raise _too_large(name, limit_bytes)
        return data

    def info(self, name: str) -> os.stat_result:
        """Return what `os.lstat` says of an entry; `.` is the folder itself.

        Raises:
            OSError: there is none, or a link is in the way.
        """
        if name == ".":
            return os.stat(self._at)
        with self._parent_of(name) as (at, last):
            return directory_calls.lstat(at, last)

    def has_entry(self, name: str) -> bool:
        """Return whether anything has this name, even a dangling link."""
        try:
            self.info(name)
        except FileNotFoundError:
            return False
        return True

    def has_file(self, name: str) -> bool:
        """Return whether a regular file has this name."""
        try:
            return stat.S_ISREG(self.info(name).st_mode)
        except (OSError, ValueError):
            return False

    def make_folder(self, name: str, *, parents: bool = False, owner: int = 0, mode: int | None = None) -> None:
        """Make a directory; one that exists is fine.

        Args:
            name: Relative to the folder.
            parents: Make the directories above it too.
            owner: The user and group that a new directory is given to; 0: the caller.
            mode: Permissions of a new directory; None: as the umask says.

        Raises:
            PermissionError: something else has this name, or is in the way.
            OSError: the system refuses.
        """
        components = _components(name)
        for depth in range(1, len(components) if parents else 1):
            self.make_folder("/".join(components[:depth]))
        with self._parent_of(name, changes=True) as (at, last):
            try:
                directory_calls.make_folder(at, last)
            except FileExistsError:
                about = directory_calls.lstat(at, last)
                if not stat.S_ISDIR(about.st_mode):
                    kind = "link" if stat.S_ISLNK(about.st_mode) else "file"
                    raise PermissionError(errno.EPERM, f"a {kind} is in the way", name) from None
            else:
                if mode is not None or owner:
                    directory_calls.set_up_folder(at, last, mode=mode, owner=owner)

    def copy_in(self, source: BinaryIO, name: str, *, mode: int = 0o644, limit_bytes: int | None = None) -> None:
        """Copy an open file into the folder, in place of whatever file or link has that name.

        Args:
            source: Read to its end.
            name: Relative to the folder.
            mode: Permissions of the copy; set on its descriptor, before it has its name.
            limit_bytes: How much is copied at most.

        Raises:
            OSError: a directory has that name, a link is in the way, the system refuses, the file is longer than the
                limit (`errno.EFBIG`), or untrusted code has exchanged the copy before it had its name.
        """
        with self._replacement_file(name, mode=0o600) as (file, at, part):
            directory_calls.copy(source, file, limit_bytes)
            file.flush()
            directory_calls.set_mode(file.fileno(), at, part, mode)

    def write_file(self, name: str, data: bytes) -> None:
        """Write a new file in place of whatever file or link has that name. Errors as of `copy_in`.

        Args:
            name: Below this folder.
            data: All that it will hold.
        """
        with self._replacement_file(name, mode=0o644) as (file, _, _):
            file.write(data)

    def copy_out(self, name: str, target: Path, *, limit_bytes: int | None = None) -> None:
        """Copy a file to a place that untrusted code can't write to.

        Args:
            name: Relative to the folder.
            target: Outside the folder; a file or link of that name is replaced. Zeros in long runs become holes.
            limit_bytes: A longer file is an error; so much of it may have been written.

        Raises:
            OSError: as of `read_file`.
        """
        with self.open_file(name) as file:
            target.unlink(missing_ok=True)
            with open(target, "xb") as copy:  # a link that has been put there meanwhile is not followed
                left = limit_bytes
                while data := file.read(_HOLE_BYTES if left is None else min(_HOLE_BYTES, left + 1)):
                    if left is not None:
                        left -= len(data)
                        if left < 0:
                            raise _too_large(name, limit_bytes)
                    if data == bytes(len(data)):
                        copy.seek(len(data), os.SEEK_CUR)
                    else:
                        copy.write(data)
                copy.truncate()

    def move(self, name: str, target: str) -> None:
        """Rename an entry in this folder; a file or link of the new name is replaced.

        Args:
            name: Below this folder.
            target: Its new name, below this folder too.

        Raises:
            OSError: there is no such entry, a link is in the way, or the system refuses.
        """
        with self._parent_of(name, changes=True) as (at, last), self._parent_of(target, changes=True) as (there, new):
            directory_calls.rename(at, last, there, new)

    def remove(self, name: str) -> None:
        """Remove an entry that is no directory; of a link, the link itself.

        Raises:
            OSError: there is none, it is a directory, or a link is in the way.
        """
        with self._parent_of(name, changes=True) as (at, last):
            directory_calls.unlink(at, last)

    def remove_tree(self, name: str, *, seconds: float = math.inf) -> None:
        """Remove an entry with all below it, however deep; of a link, the link itself.

        Args:
            name: The entry's.
            seconds: How long it may take, where code that lives may write.

        Raises:
            OSError: something could not be removed; the rest is removed.
        """
        with self._parent_of(name, changes=True) as (at, last):
            if not stat.S_ISDIR(directory_calls.lstat(at, last).st_mode):
                directory_calls.unlink(at, last)
                return
            inner = directory_calls.open_to_empty(at, last)
            try:
                empty(inner, seconds=seconds)
            finally:
                directory_calls.close(inner)
            directory_calls.rmdir(at, last)

    def hold_socket(self, name: str) -> int:
        """Open a Unix socket's entry without connecting; see `directory_calls.hold_socket`.

        Raises:
            OSError: it is not a socket of this folder; it may not be there yet.
        """
        with self._parent_of(name) as (at, last):
            return directory_calls.hold_socket(at, last)

    def unlock(self) -> None:
        """Restore all permissions of the folder's owner, where code has taken them away."""
        directory_calls.unlock(self._at)

    def clear(self) -> None:
        """Remove all that is in a folder of the host's own, and only what code could. Errors as of `remove_tree`."""
        self.unlock()
        inner = self._open_to_list()
        if isinstance(inner, int) and os.geteuid() == 0:  # code may have moved into it what is somebody else's
            inner = directory_calls.UntrustedDirFd(inner)
        try:
            empty(inner)
        finally:
            directory_calls.close(inner)

    def walk(self, *, enter: Callable[[str], bool] = lambda name: True, but_sessions: bool = False) -> Iterator[Entry]:
        """Return all entries below the folder: of each directory those in it by name, then what is below them.

        Args:
            enter: Called with the last component of a directory's name: walk into it?
            but_sessions: Leave out what lies in a session's folder below this one; its own name is returned.

        What vanishes or can't be opened is left out, and what lies below a directory whose name has more than 16 000
        characters. Links are returned, not followed; a directory that is moved meanwhile is entered once.
        """
        with Descent(self._open_to_list(), once=True) as way:
            more = True
            while more:
                folders, prefix = [], way.prefix
                names = sorted(os.listdir(way.at))
                of_session = but_sessions and prefix and {JOURNAL, FILES} <= set(names)
                for name in () if of_session else names:
                    with contextlib.suppress(OSError):
                        one = Entry(f"{prefix}{name}", directory_calls.lstat(way.at, name))
                        yield one
                        if one.is_folder and len(one.name) < _LONGEST_NAME and enter(name):
                            folders.append(name)
                more = way.advance(folders)

    def chown(self, owner_of: OwnerOf, *, but: Callable[[str], bool] = lambda name: False) -> None:
        """Change the owner, and the mode if one is named, of the folder and of what is below it, as the superuser can.

        Args:
            owner_of: Called with what the system says of an entry; returns its new owner, or None to leave it alone.
                It may be called twice for an entry.
            but: Called with the name of a directory, relative to the folder: is it left alone, with all in it? If it is
                the superuser's, a kernel's user can't rename it either.

        The entry that was looked at is the one whose owner changes: the look and the change use one descriptor, or
        a name in a directory that only the superuser can change at that time. Devices are left alone, and so is what
        vanishes or can't be opened.
        """
        with Descent(self._open_to_list()) as way:
            more = True
            while more:
                prefix = way.prefix
                folders = directory_calls.chown_entries(way.at, owner_of, but, prefix=prefix)
                more = way.advance([name for name in folders if not but(f"{prefix}{name}")])

    def _open(self, name: str, flags: int, *, mode: int = 0o644) -> int:
        changes = flags != os.O_RDONLY
        with self._parent_of(name, changes=changes) as (at, last):
            same_mount = changes and is_of_code(self.path)
            return directory_calls.open_plain(at, last, flags, mode=mode, name=name, same_mount=same_mount)

    def _open_to_list(self) -> At:
        return directory_calls.open_folder(self._at, ".", listed=True)

    @contextlib.contextmanager
    def _replacement_file(self, name: str, *, mode: int) -> Iterator[tuple[BinaryIO, At, str]]:
        """Yield a new file, with its folder and its name there; once it is written, it takes the place of another one.

        Args:
            name: The name that it gets then, below this folder; the file or link that has it is replaced.
            mode: Its permissions while it is written.

        Raises:
            PermissionError: untrusted code has exchanged it before it had its name.
        """
        with self._parent_of(name, changes=True) as (at, last):
            part = f".{secrets.token_hex(8)}.part"
            try:
                made = directory_calls.open_plain(at, part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=mode)
                with os.fdopen(made, "wb") as file:
                    yield file, at, part
                    file.flush()
                    written = os.fstat(made)
                directory_calls.rename(at, part, at, last)
                if not os.path.samestat(directory_calls.lstat(at, last), written):
                    raise PermissionError(errno.EPERM, "exchanged by code while it was copied", name)
            except BaseException:
                with contextlib.suppress(OSError):
                    directory_calls.unlink(at, part)
                raise

    def _refuse_kept(self, at: At, name: str) -> None:
        """Refuse sessions of root's where code may have said the name; not on the way of the host's own path."""
        if self._named_by_code and isinstance(self._at, directory_calls.UntrustedDirFd):
            directory_calls.refuse_kept(at, name)

    def _path_as_root(self) -> str:
        """Return the folder's absolute path where `UntrustedDirFd` counts: where the host is root; else nothing."""
        return os.path.abspath(self.path) if directory_calls.BY_DESCRIPTOR and os.geteuid() == 0 else ""

    @contextlib.contextmanager
    def _parent_of(self, name: str, *, changes: bool = False) -> Iterator[tuple[At, str]]:
        """Open the directory that an entry is in; return it with the last component of the name.

        Args:
            name: The entry's.
            changes: The host will change the entry: in a folder where code works, not where something is mounted, which
                code may have moved there without seeing what it holds.
        """
        *above, last = _components(name)
        at, path = self._at, self._path_as_root()
        open_inner: Callable[[At, str], At] = directory_calls.open_folder
        if changes and above and is_of_code(self.path):
            open_inner = directory_calls.open_on_same_mount
        try:
            for part in above:
                try:
                    self._refuse_kept(at, part)
                    inner = open_inner(at, part)
                except OSError as error:
                    raise directory_calls.explained(error, name, part) from None
                path = os.path.join(path, part)[:PATH_MAX]
                inner = as_of_code(inner, path)
                outer, at = at, inner  # first: a signal may raise between any two lines, and nothing is closed twice
                if outer != self._at:
                    directory_calls.close(outer)
            yield at, last
        finally:
            if at != self._at:
                directory_calls.close(at)


def read_unlinked(path: Path | str, *, limit_bytes: int) -> bytes:
    """Read a whole file by its absolute path, if no component of the path is a link.

    For a path that was noted when the file was made, in a folder that untrusted code could change since.

    Args:
        path: Absolute.
        limit_bytes: Of a longer file nothing is returned.

    Raises:
        OSError: there is no such file, the path is relative, or it leads over a link; with `errno.EFBIG` if the file is
            longer than the limit.
    """
    path = Path(path)
    with SafeFolder.without_links(path.parent) as folder:
        return folder.read_file(path.name, limit_bytes=limit_bytes)


def remove_folder(path: Path | str) -> None:
    """Remove a folder with all in it, however deep; what can't be removed stays, and a link is not followed."""
    with contextlib.suppress(OSError):
        with SafeFolder(path) as folder, contextlib.suppress(OSError):
            folder.clear()
        os.rmdir(path)


def _components(name: str) -> tuple[str, ...]:
    plain = name.replace(os.sep, "/")
    parts = tuple(part for part in plain.split("/") if part not in ("", "."))
    try:
        odd = b"\0" in os.fsencode(name) or bool(os.path.splitdrive(name)[0])
    except UnicodeEncodeError:
        odd = True
    if odd or not parts or ".." in parts or plain.startswith("/"):
        raise FileNotFoundError(errno.ENOENT, "not a file below the folder", name)
    return parts


def _too_large(name: str, limit_bytes: int | None) -> OSError:
    return OSError(errno.EFBIG, f"larger than {limit_bytes} bytes", name)


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        return directory_calls.identity(os.fspath(path))
    return None
