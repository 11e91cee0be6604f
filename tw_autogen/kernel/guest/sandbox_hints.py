"""Says which sandbox has caused an error, and which setting lets the code through; where a file is, how it is read."""

from __future__ import annotations

import errno
import glob
import os
import re
import shutil
import socket
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .error_files import (
    error_text,
    failed_line,
    is_about_folder,
    is_missing,
    is_refused,
    last_frames,
    named_files,
    writes,
)
from .files.describe import data_bytes
from .files.folder_listing import list_files
from .files.text_encoding import find_encoding
from .missing_names import nearest
from .reachable_files import ReachableFiles, can_read, closed_part, is_absent, is_below

_CHAIN = 10
_MAX_NAMED = 3
_MAX_LIKE = 2000
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r\f\x1a\x1b"})
_LITTLE = 1 << 20
_STACK = 8 << 20
"""What a thread takes for its stack, unless somebody has set that."""
_LANDLOCK = "landlock"
_NO_NAME = re.compile(
    r"name resolution|[Cc]ould(?: not|n't) resolve|[Nn]ame or service not known|Network is unreachable"
    r"|nodename nor servname|[Nn]o address associated"
)
_TOO_LARGE = re.compile(r"File too large")
_FORKS = {"_execute_child", "_fork_exec", "_posix_spawn", "_launch", "fork", "forkpty", "start"}
_NETWORK_FILES = ("socket.py", "asyncio/selector_events.py", "asyncio/base_events.py", "multiprocessing/connection.py")
_SHARING_FILES = ("multiprocessing/synchronize.py", "multiprocessing/shared_memory.py", "loky/backend/synchronize.py")
_WORKERS = ("multiprocessing/connection.py", "/distributed/")
"""Parts of the names of files in which processes of one program connect to one another."""
_STYLE = re.compile(r"'([^/']+)' is not a valid package style")
_BROWSER = re.compile(r"(?:choreo|kaleido|plotly)_get_chrome")
_BROWSER_ERRORS = {"BrowserFailedError", "BrowserClosedError", "BrowserDepsError", "ChromeNotFoundError"}
_SOURCES = ("", "src")
"""Where modules lie in a project."""


class Hints:
    """What this kernel may do, as the host has told it.

    Args:
        folder: Where cells run.
        sandbox: `level`, `network`, `links`, `read` and `write` (paths), `kept` (paths that stay read-only), `system`
            (paths that all may read), and the limits `memory_mb`, `file_mb`, `processes`, `open_files`; where there
            is no sandbox of ours, `read` and `write` only, or nothing.
    """

    def __init__(self, folder: str, sandbox: Mapping[str, Any]) -> None:
        self._folder = folder
        self._sandbox = sandbox
        self._files = ReachableFiles(folder, sandbox)

    def hint_for(self, error: BaseException) -> str:
        """Return one line about an error; empty if neither a sandbox nor a file's place or encoding has caused it."""
        sandboxed = "level" in self._sandbox
        looks = (
            *((self._leads_out,) if sandboxed else ()),
            _encoding_hint,
            self._given_file_hint,
            self._module_hint,
            self._elsewhere_hint,
            *((self._of_home, self._sharing_hint, _browser_hint, self._network_hint) if sandboxed else ()),
            *((self._link_hint, self._limit_hint, self._path_hint) if sandboxed else ()),
            self._similar_files_hint,
        )
        try:
            return next((hint for cause in _error_chain(error) for look in looks if (hint := look(cause))), "")
        except Exception:  # noqa: BLE001 - the exception is foreign code, and so are its attributes
            return ""

    def _leads_out(self, error: BaseException) -> str:
        """Look for a link on the way to a file that leads to what was not granted."""
        if not (is_missing(error) or is_refused(error)):
            return ""
        found = (self._link_out(_absolute_path(given), error) for given in named_files(error))
        return next((hint for hint in found if hint), "")

    def _link_out(self, path: str, error: BaseException) -> str:
        if self._files.beside and is_missing(error) and not os.path.exists(path):
            return ""  # there it says the truth
        found = self._files.link_out(path)
        if found is None:
            return ""
        link, target = found
        if writes(error):
            place = target if path != link or is_about_folder(error) else os.path.dirname(target)
            ways = f"kernel.write={[place]!r} would let code write there"
        else:
            ways = f"kernel.read={[target]!r} would show it"
        return f"{link} is a link to {target}, which was not granted; {ways}."

    def _given_file_hint(self, error: BaseException) -> str:
        """Look for a file that was given to the session: it can be read only, with a sandbox and without."""
        if not (isinstance(error, PermissionError) and isinstance(error.filename, str)):
            return ""
        try:
            state = os.stat(error.filename)
        except OSError:
            return ""
        if (
            not stat.S_ISREG(state.st_mode)
            or state.st_mode & 0o222
            or not is_below(os.path.abspath(error.filename), (self._folder,))
        ):
            return ""
        name = os.path.basename(error.filename)
        return f"{name} is read-only, as files are that were given: copy it under another name, and change the copy."

    def _module_hint(self, error: BaseException) -> str:
        """Look for a module that lies in a folder that code may read, and from which it imports nothing."""
        name = error.name if isinstance(error, ModuleNotFoundError) else None
        top = name.partition(".")[0] if isinstance(name, str) else ""
        if not top or top in sys.modules:
            return ""
        granted = [path for path in self._files.granted if path != self._folder]
        folders = [os.path.normpath(os.path.join(place, source)) for place in granted for source in _SOURCES]
        folders += [os.path.dirname(path) for path in granted if os.path.basename(path) == f"{top}.py"]
        known = {os.path.realpath(path) for path in sys.path}
        for folder in folders:
            found = any(can_read(os.path.join(folder, candidate)) for candidate in (f"{top}.py", f"{top}/__init__.py"))
            if found and os.path.realpath(folder) not in known:
                return f"{top} lies in {folder}: `sys.path.append({folder!r})` lets code import it."
        return ""

    def _of_home(self, error: BaseException) -> str:
        """Look for what a library searches in the home folder, by a name that is no path."""
        text = error_text(error)
        if type(error) is LookupError and "nltk.download(" in text:
            folder, name, use = "nltk_data", "", "nltk.data.path.append"
        elif (style := _STYLE.match(text)) and not style[1].startswith("seaborn"):  # which older matplotlibs have
            folder, name, use = ".config/matplotlib/stylelib", f"/{style[1]}.mplstyle", "plt.style.use"
        else:
            return ""
        own = "The sandbox gives code an empty home folder of its own"
        if there := self._files.granted_home(f"/{folder}{name}"):
            return "" if there in text else f"{own}; `{use}({there!r})` takes the user's."
        return f"{own}; kernel.read={[f'~/{folder}']!r} would show what the user has in {folder}, for `{use}`."

    def _sharing_hint(self, error: BaseException) -> str:
        if self._sandbox["level"] != _LANDLOCK or not is_refused(error):
            return ""
        if not _is_in(error, _SHARING_FILES) and "shared memory" not in error_text(error):
            return ""
        return (
            "Processes can't share semaphores or memory at the sandbox's level landlock: use threads or n_jobs=1; at "
            "the levels namespaces and bubblewrap (kernel.sandbox) they can."
        )

    def _network_hint(self, error: BaseException) -> str:
        if self._sandbox["network"] or not _is_network(error):
            return ""
        if _is_in(error, _WORKERS):
            return (
                "The sandbox lets processes of a cell connect to no sockets, Unix sockets included: use threads or one "
                "process (num_workers=0, dask without a Client); kernel.allow_network=True lets them, with all of the "
                "network."
            )
        return (
            "The sandbox allows no network; kernel.allow_network=True would, or a plugin that runs in the host "
            "(`runs_in: host`)."
        )

    def _link_hint(self, error: BaseException) -> str:
        refused = getattr(error, "errno", None) == errno.EPERM and "symlink" in failed_line(error)
        several = isinstance(error, shutil.Error) and f"[Errno {errno.EPERM}]" in error_text(error)  # of `copytree`
        if self._sandbox["links"] or not (refused or several):
            return ""
        return (
            "The sandbox lets code make no symbolic links: copy the file (`shutil.copy2`); "
            "kernel.allow_symlinks=True would allow them."
        )

    def _limit_hint(self, error: BaseException) -> str:
        sandbox, number, text = self._sandbox, getattr(error, "errno", None), error_text(error)
        short = isinstance(error, MemoryError) or number == errno.ENOMEM
        short = short or (
            _is_thread(error) and data_bytes() + (threading.stack_size() or _STACK) > sandbox["memory_mb"] << 20
        )
        if sandbox["memory_mb"] and short:
            allowed = f"The sandbox allows {sandbox['memory_mb']} MB of memory; kernel.memory_mb sets how much."
            return f"{allowed} Of a large file read only columns that matter, or one part after the other."
        if sandbox["processes"] and _is_fork(error):
            return f"The sandbox allows {sandbox['processes']} processes and threads; kernel.processes sets how many."
        if sandbox["file_mb"] and (number == errno.EFBIG or (isinstance(error, OSError) and _TOO_LARGE.search(text))):
            return f"The sandbox allows files of {sandbox['file_mb']} MB at most; kernel.file_mb sets how large."
        if number == errno.EMFILE and sandbox["open_files"]:
            return (
                f"The sandbox allows {sandbox['open_files']} open files; close some; kernel.open_files sets how many."
            )
        if sandbox["memory_mb"] and number == errno.ENOSPC and any(_is_full(place) for place in ("/tmp", "/dev/shm")):
            return "The sandbox keeps /tmp in memory, a quarter of kernel.memory_mb; the working folder holds more."
        return ""

    def _elsewhere_hint(self, error: BaseException) -> str:
        """Look for a file that is missing in the folders that code may read besides: by its path, then by its name."""
        places = (*self._sandbox.get("read", ()), *self._sandbox.get("write", ()))
        for given in named_files(error) if is_missing(error) else []:
            path = _absolute_path(given)
            here = is_below(path, (self._folder,))
            asked = here or not os.path.isabs(given) or is_below(path, places)
            if _is_pattern(path, error) or os.path.exists(path) or not asked:
                continue
            relative, name = os.path.normpath(given), os.path.basename(path)
            if os.path.isabs(given):
                relative = os.path.relpath(path, self._folder) if here else name
            leaves = relative.startswith("../")
            inner = relative if leaves else name
            while inner.startswith("../"):
                inner = inner[3:]
            direct = [os.path.join(place, relative) for place in places]
            for one in map(os.path.normpath, direct) if "level" in self._sandbox else ():
                if hint := self._link_out(one, error):
                    return hint
            direct += [os.path.join(place, inner) for place in places]
            found = [os.path.normpath(path) for path in direct if os.path.isfile(path) and can_read(path)][:1]
            found = found or [path for path in _find_by_name(name, places) if path.endswith(f"/{inner}")]
            where = "the working folder" if here else os.path.dirname(given if leaves else path)
            if len(found) == 1:
                return f"{name} is not in {where}; it is {found[0]!r}."
            if found:
                more = ", …" if len(found) > _MAX_NAMED else ""
                return f"{name} is not in {where}; there are {', '.join(map(repr, found[:_MAX_NAMED]))}{more}."
        return ""

    def _similar_files_hint(self, error: BaseException) -> str:
        """Look for files whose names are like that of a missing one."""
        for given in named_files(error) if is_missing(error) and not writes(error) else []:
            places = [path for path in self._files.granted if os.path.isdir(path)]
            path = _absolute_path(given)
            if _is_pattern(path, error) or os.path.exists(path) or not is_below(path, places):
                continue
            there: dict[str, str] = {}
            for place in places:
                for entry in list_files(place)[0][:_MAX_LIKE]:
                    shown = entry.name if place == self._folder else os.path.join(place, entry.name)
                    there.setdefault(_stem(entry.name), shown)
            if near := nearest([_stem(path)], there):
                return f"Similar files that are there: {', '.join(repr(there[name]) for name in near)}."
        return ""

    def _path_hint(self, error: BaseException) -> str:
        missing = is_missing(error)
        for given in named_files(error) if missing or is_refused(error) else []:
            path = _absolute_path(given)
            leaves = not os.path.isabs(given) and not is_below(path, (self._folder,))
            if missing and leaves and not self._files.beside:
                continue  # whether the host has such a file can't be known
            while _is_pattern(path, error):
                path = os.path.dirname(path)
            above = os.path.dirname(path)
            outside = not self._files.beside and not self._files.is_reachable_by_code(above)
            place = path if above == "/" or is_about_folder(error) or (outside and _makes_folder(error)) else above
            if hint := self._of_file(path, place, missing=missing, writing=_is_writing(error, path)):
                return hint
        return ""

    def _of_file(self, path: str, place: str, *, missing: bool, writing: bool) -> str:
        files = self._files
        if missing and (own := files.hidden_user_path(path)):
            what, named = own
            if named.startswith("~") and (there := files.granted_home(named[1:])):
                return f"The sandbox gives code an empty {what} of its own; the user's file is {there!r}."
            show = f"kernel.read={[named]!r} would show the user's"
            if writing:
                named = named if place == path else os.path.dirname(named)
                show = f"kernel.write={[named]!r} would let code write there"
            return f"The sandbox gives code an empty {what} of its own; {show}."
        if is_below(path, self._sandbox.get("kept", ())) and not missing:
            name = os.path.basename(path)
            return f"{name} stays read-only, as settings files, hooks and what other programs use do here."
        if files.is_writable(path) or (missing and files.beside and not os.path.exists(path)):
            return ""
        if not files.is_reachable_by_code(path):
            ways = f"kernel.read={[path]!r} would show it"
            if writing:
                ways = f"kernel.write={[place]!r} would let code write there"
            return f"The sandbox shows code only the working folder{self._granted_paths_text()} and the system; {ways}."
        return "" if missing else self._of_shown(path, place, writing=writing)

    def _of_shown(self, path: str, place: str, *, writing: bool) -> str:
        if not self._files.beside and (closed := closed_part(path)):
            what = "this" if closed == path else closed
            return f"The sandbox runs code as another user (number {os.getuid()}), who may not read {what}."
        if not writing:
            return ""
        return (
            "The sandbox lets code write only in the working folder and in the folder for temporary files; "
            f"kernel.write={[place]!r} would let it write there."
        )

    def _granted_paths_text(self) -> str:
        paths = [path for path in self._files.granted if path != self._folder]
        more = ["…"] if len(paths) > _MAX_NAMED else []
        return "".join(f", {path}" for path in [*paths[:_MAX_NAMED], *more])


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _encoding_hint(error: BaseException) -> str:
    """Look for text that is not UTF-8, and what it is."""
    if not isinstance(error, UnicodeDecodeError) or not error.encoding.lower().startswith("utf"):
        return ""
    start = bytes(error.object[:_LITTLE])
    found = find_encoding(start)
    if not found.startswith("utf-16") and len(start.translate(None, _CONTROLS)) < len(start):
        return ""  # no text at all, such as a picture
    if not found.startswith("utf-8"):
        cell = "" if b"\n" in start else "; if most of the file is UTF-8, encoding_errors='replace' does"  # of a table
        return f"This text is not UTF-8; encoding={found!r} reads it{cell}."
    if found == "utf-8" and not start.isascii():
        return "This text is UTF-8 but for a few bytes; errors='replace' reads it, in pandas encoding_errors='replace'."
    return ""


def _error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it, also where a library has put one into another's arguments."""
    seen: list[BaseException] = []
    left: list[Any] = [error]
    while left and len(seen) < _CHAIN:
        cause = left.pop(0)
        if isinstance(cause, BaseException) and all(cause is not other for other in seen):
            seen.append(cause)
            yield cause
            inner = [*cause.args, getattr(cause, "reason", None), *getattr(cause, "exceptions", ())]
            left += [cause.__cause__, None if cause.__suppress_context__ else cause.__context__, *inner]


def _browser_hint(error: BaseException) -> str:
    if type(error).__name__ not in _BROWSER_ERRORS and not _BROWSER.search(error_text(error)):
        return ""
    return (
        "Browsers such as Chrome can't run in the sandbox, whatever is installed, so plotly's write_image can't: use "
        "matplotlib, altair (with vl-convert) or HTML (write_html)."
    )


def _is_network(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror):
        return True
    number = getattr(error, "errno", None)
    if number in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
        return True
    if number in (errno.EPERM, errno.EACCES) and getattr(error, "filename", None) is None:
        return any(frame.filename.endswith(_NETWORK_FILES) for frame in last_frames(error)) or "socket" in failed_line(
            error
        )
    return bool(_NO_NAME.search(error_text(error)))


def _is_fork(error: BaseException) -> bool:
    if _is_thread(error):
        return True
    if getattr(error, "errno", None) != errno.EAGAIN:
        return False
    return any(frame.name in _FORKS for frame in last_frames(error)[-2:]) or "fork" in failed_line(error)


def _is_thread(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "can't start new thread" in error_text(error)


def _is_full(place: str) -> bool:
    try:
        state = os.statvfs(place)
    except OSError:
        return False
    return state.f_bavail * state.f_frsize < _LITTLE


def _find_by_name(name: str, places: Iterable[str]) -> list[str]:
    """Return the paths of files of a plain name below folders, hidden, ignored and secret-like ones left out."""
    found = (
        os.path.join(place, entry.name)
        for place in places
        if os.path.isdir(place)
        for entry in list_files(place)[0]
        if entry.name.rpartition("/")[2] == name
    )
    return list(dict.fromkeys(found))


def _makes_folder(error: BaseException) -> bool:
    return "mkdir(" in failed_line(error) or any(
        frame.name in ("mkdir", "makedirs") for frame in last_frames(error)[-1:]
    )


def _is_in(error: BaseException, parts: Iterable[str]) -> bool:
    """Return whether an error comes from, or through, files whose names contain one of these parts."""
    return any(part in frame.filename for frame in last_frames(error) for part in parts)


def _absolute_path(path: str) -> str:
    """Return a path from the root; empty if that can't be known."""
    try:
        return os.path.abspath(path)
    except OSError:  # the code removed the folder that it is in
        return ""


def _is_writing(error: BaseException, path: str) -> bool:
    """Return whether what failed was to write: for reading, a missing file is no refused one."""
    if writes(error):
        return True
    runs = any(frame.name in _FORKS for frame in last_frames(error)[-1:])
    return is_refused(error) and not runs and (is_absent(path) or can_read(path))


def _is_pattern(path: str, error: BaseException) -> bool:
    """Return whether what an error names is a pattern of names."""
    return glob.has_magic(path) and not isinstance(getattr(error, "filename", None), str)
