"""Says which wall has caused an error, and which setting lets the code through; where a file is, how it is read."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import stat
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .csv_dialect import find_encoding
from .folder_listing import list_files
from .output_capture import clip

_CHAIN = 10
_MOST_NAMED = 3
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r\f\x1a\x1b"})
_LITTLE = 1 << 20
_TEXT_CHARS = 100_000
"""How much of an exception's text is searched."""
_STACK = 8 << 20
"""What a thread takes for its stack, unless somebody has set that."""
_LANDLOCK = "landlock"
_PATH = re.compile(r"""['"](/[^'"\n]+)['"]""")
_NO_NAME = re.compile(
    r"name resolution|[Cc]ould(?: not|n't) resolve|[Nn]ame or service not known|Network is unreachable"
    r"|nodename nor servname|[Nn]o address associated"
)
_NO_PLACE = re.compile(r"No such file|non-existent directory|[Uu]nable to open|[Cc]annot open|[Cc]an't open")
_NOT_ALLOWED = re.compile(r"Permission denied|Read-only file system|Operation not permitted")
_TOO_LARGE = re.compile(r"File too large")
_FORKS = {"_execute_child", "_fork_exec", "_posix_spawn", "_launch", "fork", "forkpty", "start"}
_NETWORK_FILES = ("socket.py", "asyncio/selector_events.py", "asyncio/base_events.py", "multiprocessing/connection.py")


class Hints:
    """What stands around this kernel, as the host has told it.

    Args:
        folder: Where cells run.
        wall: `level`, `network`, `links`, `read` and `write` (paths), `kept` (paths that stay read-only), `system`
            (paths that all may read), and the limits `memory_mb`, `file_mb`, `processes`, `open_files`; where no wall
            of ours stands, `read` and `write` only, or nothing.
    """

    def __init__(self, folder: str, wall: Mapping[str, Any]) -> None:
        self._folder = folder
        self._wall = wall
        self._home = os.path.expanduser("~")

    def hint_for(self, error: BaseException) -> str:
        """Return one line about an error; empty if neither a wall nor a file's place or encoding has caused it."""
        walled = "level" in self._wall
        looks = (
            _encoding,
            self._given,
            self._elsewhere,
            *((self._network, self._link, self._limit, self._path) if walled else ()),
        )
        return next((hint for one in _chain(error) for look in looks if (hint := look(one))), "")

    def _given(self, error: BaseException) -> str:
        """Look for a file that was given to the session: it can be read only, with a wall and without."""
        if not (isinstance(error, PermissionError) and isinstance(error.filename, str)):
            return ""
        try:
            state = os.stat(error.filename)
        except OSError:
            return ""
        if (
            not stat.S_ISREG(state.st_mode)
            or state.st_mode & 0o222
            or not _below(os.path.abspath(error.filename), (self._folder,))
        ):
            return ""
        name = os.path.basename(error.filename)
        return f"{name} is read-only, as files are that were given: copy it under another name, and change the copy."

    def _network(self, error: BaseException) -> str:
        if self._wall["network"] or not _is_network(error):
            return ""
        return (
            "The sandbox allows no network; kernel.allow_network=True would, or a plugin that runs in the host "
            "(`runs_in: host`)."
        )

    def _link(self, error: BaseException) -> str:
        one = getattr(error, "errno", None) == errno.EPERM and "symlink" in _line(error)
        several = isinstance(error, shutil.Error) and f"[Errno {errno.EPERM}]" in _text(error)  # of `copytree`
        if self._wall["links"] or not (one or several):
            return ""
        return (
            "The sandbox lets code make no symbolic links: copy the file (`shutil.copy2`); "
            "kernel.allow_symlinks=True would allow them."
        )

    def _limit(self, error: BaseException) -> str:
        wall, number, text = self._wall, getattr(error, "errno", None), _text(error)
        short = isinstance(error, MemoryError) or number == errno.ENOMEM
        short = short or (_is_thread(error) and _taken() + (threading.stack_size() or _STACK) > wall["memory_mb"] << 20)
        if wall["memory_mb"] and short:
            return f"The sandbox allows {wall['memory_mb']} MB of memory; kernel.memory_mb sets how much."
        if wall["processes"] and _is_fork(error):
            return f"The sandbox allows {wall['processes']} processes and threads; kernel.processes sets how many."
        if wall["file_mb"] and (number == errno.EFBIG or (isinstance(error, OSError) and _TOO_LARGE.search(text))):
            return f"The sandbox allows files of {wall['file_mb']} MB at most; kernel.file_mb sets how large."
        if number == errno.EMFILE and wall["open_files"]:
            return f"The sandbox allows {wall['open_files']} open files; close some; kernel.open_files sets how many."
        if wall["memory_mb"] and number == errno.ENOSPC and any(_full(place) for place in ("/tmp", "/dev/shm")):
            return "The sandbox keeps /tmp in memory, a quarter of kernel.memory_mb; the working folder holds more."
        return ""

    def _elsewhere(self, error: BaseException) -> str:
        """Look for a file that is missing in the folders that code may read besides: by its path, then by its name."""
        places = (*self._wall.get("read", ()), *self._wall.get("write", ()))
        for path in _paths(error) if _missing(error) else []:
            here = _below(path, (self._folder,))
            if os.path.exists(path) or not (here or _below(path, places)):
                continue
            relative, name = os.path.relpath(path, self._folder), os.path.basename(path)
            direct = (os.path.join(place, one) for place in places for one in dict.fromkeys((relative, name)))
            found = [one for one in direct if os.path.isfile(one)][:1] or _named(name, places)
            where = "the working folder" if here else os.path.dirname(path)
            if len(found) == 1:
                return f"{name} is not in {where}; it is {found[0]!r}."
            if found:
                more = ", …" if len(found) > _MOST_NAMED else ""
                return f"{name} is not in {where}; there are {', '.join(map(repr, found[:_MOST_NAMED]))}{more}."
        return ""

    def _path(self, error: BaseException) -> str:
        missing, refused = _missing(error), _refused(error)
        if missing and self._wall["level"] == _LANDLOCK:
            return ""  # there it says the truth
        paths = _paths(error) if missing or refused else []
        return next((hint for path in paths if (hint := self._of_path(path, missing=missing))), "")

    def _of_path(self, path: str, *, missing: bool) -> str:
        above = os.path.dirname(path)
        place = repr([path if above == "/" else above])
        if missing and not _below(path, self._grants()):
            for own, what, theirs in ((self._home, "home folder", "~"), ("/tmp", "/tmp", "/tmp")):
                if _below(path, (own,)):
                    named = theirs + os.path.realpath(path)[len(os.path.realpath(own)) :]
                    show = f"kernel.read={[named]!r} would show the user's"
                    return f"The sandbox gives code an empty {what} of its own; {show}."
        if _below(path, self._wall.get("kept", ())) and not missing:
            name = os.path.basename(path)
            return f"{name} stays read-only, as settings files, hooks and what other programs use do here."
        if self._writable(path):
            return ""
        if not self._shown(path):
            ways = f"kernel.read={[path]!r} would show it, kernel.write={place} would let code write there"
            return f"The sandbox shows code only the working folder{self._granted()} and the system; {ways}."
        if missing:
            return ""
        if self._wall["level"] != _LANDLOCK and (closed := _closed(path)):
            what = "this" if closed == path else closed
            return f"The sandbox runs code as another user (number {os.getuid()}), who may not read {what}."
        return (
            "The sandbox lets code write only in the working folder and in the folder for temporary files; "
            f"kernel.write={place} would let it write there."
        )

    def _granted(self) -> str:
        paths = [one for one in (*self._wall["read"], *self._wall["write"]) if one != self._folder]
        more = ["…"] if len(paths) > _MOST_NAMED else []
        return "".join(f", {one}" for one in [*paths[:_MOST_NAMED], *more])

    def _grants(self) -> tuple[str, ...]:
        return (self._folder, *self._wall["read"], *self._wall["write"])

    def _shown(self, path: str) -> bool:
        wall = self._wall
        own = (*wall["read"], *wall["system"], sys.prefix, sys.base_prefix, *(one for one in sys.path if one))
        return self._writable(path) or _below(path, own)

    def _writable(self, path: str) -> bool:
        if _below(path, (self._folder, *self._wall["write"])):
            return True
        places = ("/dev", "/proc") if self._wall["level"] == _LANDLOCK else ("/tmp", "/dev", "/proc")
        return _below(path, (*places, *self._private())) and not _below(path, self._wall["read"])

    def _private(self) -> Iterator[str]:
        names = ("TMPDIR", "HOME", "MPLCONFIGDIR", "IPYTHONDIR", "XDG_CACHE_HOME", "JUPYTER_RUNTIME_DIR")
        return (os.environ[name] for name in names if os.environ.get(name))


def _encoding(error: BaseException) -> str:
    """Look for text that is not UTF-8, and what it is."""
    if not isinstance(error, UnicodeDecodeError) or not error.encoding.lower().startswith("utf"):
        return ""
    start = bytes(error.object[:_LITTLE])
    found = find_encoding(start)
    if not found.startswith("utf-16") and len(start.translate(None, _CONTROLS)) < len(start):
        return ""  # no text at all, such as a picture
    return f"This text is not UTF-8; encoding={found!r} reads it." if not found.startswith("utf-8") else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it, also where a library has put one into another's arguments."""
    seen: list[BaseException] = []
    left: list[Any] = [error]
    while left and len(seen) < _CHAIN:
        one = left.pop(0)
        if isinstance(one, BaseException) and all(one is not other for other in seen):
            seen.append(one)
            yield one
            inner = [*one.args, getattr(one, "reason", None), *getattr(one, "exceptions", ())]
            left += [one.__cause__, None if one.__suppress_context__ else one.__context__, *inner]


def _is_network(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror):
        return True
    number = getattr(error, "errno", None)
    if number in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
        return True
    if number in (errno.EPERM, errno.EACCES) and getattr(error, "filename", None) is None:
        return any(frame.filename.endswith(_NETWORK_FILES) for frame in _frames(error)) or "socket" in _line(error)
    return bool(_NO_NAME.search(_text(error)))


def _is_fork(error: BaseException) -> bool:
    if _is_thread(error):
        return True
    if getattr(error, "errno", None) != errno.EAGAIN:
        return False
    return any(frame.name in _FORKS for frame in _frames(error)[-2:]) or "fork" in _line(error)


def _is_thread(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "can't start new thread" in _text(error)


def _taken() -> int:
    """Return how much memory of this process counts against its limit, in bytes; 0 where the system doesn't tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _missing(error: BaseException) -> bool:
    number = getattr(error, "errno", None)
    return number == errno.ENOENT or (number is None and bool(_NO_PLACE.search(_text(error))))


def _refused(error: BaseException) -> bool:
    number = getattr(error, "errno", None)
    return number in (errno.EACCES, errno.EROFS, errno.EPERM) or (
        number is None and bool(_NOT_ALLOWED.search(_text(error)))
    )


def _paths(error: BaseException) -> list[str]:
    """Return the files that an error is about, absolute."""
    named = [getattr(error, name, None) for name in ("filename2", "filename")]  # where to comes first
    found = [os.fsdecode(one) for one in named if isinstance(one, str | bytes | os.PathLike)]
    try:
        return [os.path.abspath(one) for one in found or _PATH.findall(_text(error))]
    except OSError:  # the code removed the folder that it is in
        return []


def _closed(path: str) -> str:
    """Return what of a path this user may not read: the first folder on the way, or the path; empty if none."""
    names = path.split("/")
    for depth in range(2, len(names) + 1):
        above = "/".join(names[:depth])
        mode = os.R_OK if above == path else os.X_OK
        if os.path.exists(above) and not os.access(above, mode):
            return above
    return ""


def _frames(error: BaseException) -> traceback.StackSummary:
    return traceback.extract_tb(error.__traceback__)


def _line(error: BaseException) -> str:
    frames = _frames(error)
    return frames[-1].line or "" if frames else ""


def _text(error: BaseException) -> str:
    try:
        return clip(str(error), _TEXT_CHARS)
    except Exception:  # noqa: BLE001 - the exception is foreign code
        return ""


def _full(place: str) -> bool:
    try:
        state = os.statvfs(place)
    except OSError:
        return False
    return state.f_bavail * state.f_frsize < _LITTLE


def _named(name: str, places: Iterable[str]) -> list[str]:
    """Return the paths of files of a plain name below folders, hidden, ignored and secret-like ones left out."""
    found = (
        os.path.join(place, one.name)
        for place in places
        if os.path.isdir(place)
        for one in list_files(place)[0]
        if one.name.rpartition("/")[2] == name
    )
    return list(dict.fromkeys(found))


def _below(path: str, places: Iterable[str]) -> bool:
    found = {path, os.path.realpath(path)}
    return any(one == top or one.startswith(top.rstrip("/") + "/") for top in places for one in found)
