r"""Trust of folders: which folders the user trusts, as they were then, and keyed hashes.

A folder is trusted as it is: the record holds its real path and a hash of the files that matter, so that a change of
one of them asks again. Records, and the key of keyed hashes, lie in the user's state folder, readable by the user
alone: `$XDG_STATE_HOME/tw-autogen` or `~/.local/state/tw-autogen`, `~/Library/Application Support/tw-autogen` on macOS,
`%LOCALAPPDATA%\tw-autogen` on Windows.
"""

from __future__ import annotations

import dataclasses
import enum
import errno
import hashlib
import json
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from pathlib import Path

from tw_autogen.closing import value_set
from tw_autogen.errors import ConfigError
from tw_autogen.named_folders import named_file
from tw_autogen.private_files import lies_in, make_private_folder
from tw_autogen.safe_folder import SafeFolder, is_protected
from tw_autogen.unlisted_folders import check_unlisted

_OVER_NO_LINK = ContextVar("over_no_link", default=False)
_PIECE_BYTES = 1 << 20
MAX_BYTES = 4 << 20
"""Of a file of code or YAML that is read, and of a record."""
MAX_SETTINGS_BYTES = 100_000
"""Of a settings file, and of a file of MCP servers."""
_KEY_BYTES = 32
_MAX_FILES = 100_000
CODE_SUFFIXES: tuple[str, ...] = (
    *(".py", ".pyc", ".so", ".pyd", ".dll", ".dylib", ".yaml", ".yml", ".json", ".toml"),
    *(".js", ".mjs", ".cjs", ".ts", ".sh"),
)
"""What the names of files end with that are code or describe it."""
ALL_SUFFIXES = ("",)
"""Of a model's files: an index may name any of them as weights, which are pickled as Python objects are."""
PROGRAM_SUFFIXES: tuple[str, ...] = (
    ".py", ".pyc", ".pyz", ".pyzw", ".pex", ".pth", "._pth", ".so", ".pyd", ".dll", ".dylib", ".toml", ".cfg",
    ".ini", ".lock", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".sh", ".bash", ".ps1", ".bat",
    ".cmd", ".exe", ".jar", ".war", ".class", ".rb", ".pl", ".pm", ".php", ".phar", ".lua", ".go", ".rs", ".java",
    ".kt", ".scala", ".cs", ".ex", ".exs", ".erl", ".jl", ".r", ".R", ".tcl", ".fish", ".zsh", ".asar", ".c", ".h",
    ".cc", ".cpp", ".mk", ".cmake", ".gradle", ".bzl", "CMakeLists.txt", ".node", ".wasm", ".egg", ".whl", ".nix",
    "Pipfile", ".yarnrc.yml", ".yarnrc", "pom.xml", "deno.jsonc", "package.json", "package-lock.json",
    "pnpm-lock.yaml", "deno.json", "composer.json", "go.mod", "tsconfig.json", "akefile", "ustfile", "emfile",
    "rocfile", "ockerfile", ".npmrc", ".envrc", ".env", ".env.local", "gradlew", "mvnw", "requirements.txt",
    ".python-version", ".python-versions", "Taskfile.yml", "Taskfile.yaml", "compose.yaml", "compose.yml",
)  # fmt: skip
"""What the names of programs end with, and of files that say which program `make`, `npm`, `uv` and the like run."""

_HELD: dict[tuple[str, bool], tuple[str, tuple[str, ...]]] = {}
"""Hashes under which folders are trusted until this process ends, and their programs, where no record was written."""


def state_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the user's state folder for this package, which need not exist; None if the user has no home.

    Args:
        environ: The environment; None: that of this process.
    """
    environ = os.environ if environ is None else environ
    given = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):  # a relative one would lie in whatever folder is the current one
        return Path(given, "tw-autogen")
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA", "")
        return Path(local, "tw-autogen") if os.path.isabs(local) else None
    home = home_folder(environ)
    if home is None:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "tw-autogen"
    return home / ".local" / "state" / "tw-autogen"


def config_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the folder of the user's own settings file, which need not exist; None if the user has no home.

    Args:
        environ: The environment; None: that of this process.
    """
    environ = os.environ if environ is None else environ
    given, home = environ.get("XDG_CONFIG_HOME", ""), home_folder(environ)
    config = Path(given) if os.path.isabs(given) else home / ".config" if home else None
    return config / "tw-autogen" if config else None  # never a path that is relative


def home_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the user's home folder; None if there is none, or only a relative path that names it."""
    environ = os.environ if environ is None else environ
    home = environ.get("HOME") if "HOME" in environ else os.path.expanduser("~")
    return Path(home) if home and os.path.isabs(home) and home != os.path.sep else None


@dataclasses.dataclass(frozen=True)
class TrustStore:
    """The folders that the user trusts, a record each.

    Args:
        folder: Where the records lie; None: there is no place for them, so that no folder is trusted.
        named: The records are about folders whose path the caller wrote; the user was asked about less there.
    """

    folder: Path | None
    named: bool = False

    @classmethod
    def of_user(cls, environ: Mapping[str, str] | None = None, *, named: bool = False) -> TrustStore:
        """Return the store in the user's state folder.

        Args:
            environ: The environment; None: that of this process.
            named: The records of folders that the user has named, which are kept apart.
        """
        state = state_folder(environ)
        return cls(state / "trust" if state else None, named)

    def record(self, folder: Path) -> Path | None:
        """Return the path of a folder's record, which need not exist; removing it takes the trust back.

        None where there is none, or the records lie in the folder itself (`XDG_STATE_HOME` leads there): whoever made
        the folder could have made them.
        """
        if self.folder is None or self._lies_in(folder):
            return None
        name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
        return self.folder / f"{name}{'-named' * self.named}.json"

    def read(self, folder: Path) -> tuple[str, str]:
        """Return the hash under which a folder is trusted, and a problem in words; both may be empty.

        A record that is damaged, or that another user could have written, trusts nothing.
        """
        held = _HELD.get(self._holder_key(folder))
        if held is not None:
            return held[0], ""
        path = self.record(folder)
        if path is None:
            return "", ""
        try:
            plain = json.loads(_read_private(path))
            if plain["folder"] != str(folder.resolve()):
                raise ValueError("it is another folder's")
            if plain.get("ended"):
                why = f"code of a kernel could write to {plain['ended']}, where programs of it lie"
                return "", f"{folder} is not trusted any more: {why}"
            if "programs" not in plain:
                return "", f"{folder} was trusted with an earlier version, so it counts as not trusted"
            return str(plain["sha256"]), ""
        except FileNotFoundError:
            return "", ""
        except OSError as error:
            return "", f"{path}: cannot be read ({error.strerror or error}), so {folder} counts as not trusted"
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return "", f"{path}: damaged ({type(error).__name__}: {error}), so {folder} counts as not trusted"

    def remember(self, folder: Path, sha256: str, programs: Iterable[str] = ()) -> str:
        """Record that a folder is trusted as long as its hash is this one; return a problem in words, or nothing.

        Where no record can be written, it is trusted so until this process ends.

        Args:
            folder: Absolute.
            sha256: Hash of what was shown.
            programs: Where programs lie that this trust starts, absolute: it ends when code may write there.
        """
        path, programs = self.record(folder), tuple(programs)
        self.hold(folder, sha256, programs)
        if path is None:
            return "there is no folder of yours outside of it to remember this in; it holds until this program ends"
        try:
            record = {"folder": str(folder.resolve()), "sha256": sha256, "programs": programs}
            _write_private(path, json.dumps(record) + "\n")
        except (OSError, UnicodeEncodeError) as error:
            return f"{path}: cannot be written ({error}); it holds until this program ends"
        del _HELD[self._holder_key(folder)]
        return ""

    def hold(self, folder: Path, sha256: str, programs: tuple[str, ...] = ()) -> None:
        """Trust a folder until this process ends.

        Args:
            folder: As for `remember`.
            sha256: As for `remember`.
            programs: As for `remember`.
        """
        _HELD[self._holder_key(folder)] = (sha256, programs)

    def end(self, writable: str) -> None:
        """End the trust of all folders with programs where code may write, named ones too.

        Args:
            writable: The folder that code may write to; absolute, without links.

        Raises:
            OSError: a record can't be written anew.
        """
        for holder, (_, programs) in list(_HELD.items()):
            if any(lie_together(writable, program) for program in programs):
                _HELD.pop(holder, None)
        for path in sorted(self.folder.glob("*.json")) if self.folder else ():
            try:
                plain = json.loads(read_regular(path))  # whoever could have written it could end trust by itself
                known = [str(program) for program in plain.get("programs", ())]
            except (OSError, ValueError, AttributeError, TypeError, RecursionError):
                continue  # it trusts nothing
            if any(lie_together(writable, one) for one in known):
                _write_private(path, json.dumps({"folder": plain["folder"], "ended": writable}) + "\n")

    def _lies_in(self, folder: Path) -> bool:
        place, home = str(folder.resolve()), home_folder()
        records, homes = os.path.realpath(self.folder or ""), [os.path.realpath(home)] if home else []
        return lies_in(records, place) and not any(lies_in(one, place) and lies_in(records, one) for one in homes)

    def _holder_key(self, folder: Path) -> tuple[str, bool]:
        return str(folder.resolve()), self.named


def lie_together(one: str, other: str) -> bool:
    """Return whether a place is another one, or lies in it, or the other way round.

    Args:
        one: Absolute, without links.
        other: Likewise.
    """
    return lies_in(one, other) or lies_in(other, one)


def user_key() -> bytes | None:
    """Return the key of this user's keyed hashes, made at its first use; None where it can't be kept."""
    state = state_folder()
    if state is None:
        return None
    path = state / "trust" / "key"
    for _ in range(2):  # a second time where another process has made it meanwhile
        try:
            key = bytes.fromhex(_read_private(path).strip())
            return key if len(key) == _KEY_BYTES else None
        except FileNotFoundError:
            try:
                _write_private(path, secrets.token_hex(_KEY_BYTES), replace=False)
            except FileExistsError:
                continue
            except OSError:
                return None
        except (OSError, ValueError):
            return None
    return None


def read_regular(path: Path, *, limit_bytes: int = MAX_BYTES, head: int = 0) -> bytes:
    """Return what a file holds; it is never waited for, as a pipe would be.

    Args:
        path: The file; links are followed, but for those of `over_no_link`.
        limit_bytes: A larger file is an error.
        head: Return this many bytes of a file of any size; 0: all.

    Raises:
        OSError: it is no plain file, too large, unreadable, or reached over such a link.
    """
    found, size = _opened_over_no_link(path) if _OVER_NO_LINK.get() else open_regular(path)
    try:
        if not head and size > limit_bytes:
            raise _too_large(limit_bytes)
        left = head or size or limit_bytes  # files of /proc have no size
        pieces: list[bytes] = []
        while left and (piece := os.read(found, min(left, _PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(found)


def hash_regular(path: Path, *, limit_bytes: int) -> tuple[str, int]:
    """Return the SHA-256 of a file, and its size in bytes; memory does not grow with the size.

    Args:
        path: The file; links are followed.
        limit_bytes: A larger file is an error, and is not read.

    Raises:
        OSError: as `read_regular`.
    """
    digest, left = hashlib.sha256(), limit_bytes
    found, size = open_regular(path)
    try:
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        while piece := os.read(found, _PIECE_BYTES):
            left -= len(piece)
            if left < 0:  # it grows while it is read
                raise _too_large(limit_bytes)
            digest.update(piece)
    finally:
        os.close(found)
    return digest.hexdigest(), limit_bytes - left


def over_no_link() -> AbstractContextManager[None]:
    """Read by `read_regular` in this block over no link that others could have made and that leads out of their folder.

    That is, out of one that code of this process can write to, or that was the current one while nobody trusted it.
    """
    return value_set(_OVER_NO_LINK, True)


def _opened_over_no_link(path: Path) -> tuple[int, int]:
    try:
        real, folder = named_file(path)
    except ConfigError as error:
        raise PermissionError(errno.EPERM, str(error), os.fspath(path)) from error
    if folder is None:
        return open_regular(path)
    with SafeFolder(folder) as opened, opened.open_file(opened.name_of(real)) as file:
        return os.dup(file.fileno()), os.fstat(file.fileno()).st_size


def open_regular(path: Path) -> tuple[int, int]:
    """Open a plain file without waiting for it; return its descriptor, and its size in bytes.

    Args:
        path: The file; links are followed.

    Raises:
        OSError: it is no plain file, or can't be opened.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe or a device has effects
        raise OSError(errno.EINVAL, "it is no plain file")
    found = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    about = os.fstat(found)
    if not stat.S_ISREG(about.st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is no plain file")
    return found, about.st_size


def _too_large(limit_bytes: int) -> OSError:
    most = f"{limit_bytes >> 20} MB" if limit_bytes >= 1 << 20 else f"{limit_bytes // 1000} kB"
    return OSError(errno.EFBIG, f"it has more than {most}")


class BytecodeCaches(enum.Enum):
    """Which of the files that Python has compiled by itself count as code: those of packages are very many."""

    none = "none"
    own = "but for those of installed packages"
    every = "every"


_INSTALLED = {"site-packages", "dist-packages"}


def code_files(
    folders: Iterable[Path],
    *,
    suffixes: tuple[str, ...] = CODE_SUFFIXES,
    caches: BytecodeCaches = BytecodeCaches.none,
    enter: Callable[[str], bool] = lambda path: True,
) -> Iterator[Path]:
    """Return the files below folders that are code or describe it: Python, native modules, scripts, YAML, JSON, TOML.

    A folder that lies in another one is walked once. `.git` and `.tw` at the top of one are left out, unless named or a
    model's files are looked for; of `.tw` its sessions alone, if programs are looked for.

    Python's own caches are left out, unless they are of the kind that is used without a look at the source's time; so
    are folders below it whose names begin with a dot, if code for imports is looked for: no import can name them.

    Args:
        folders: Where they are looked for.
        suffixes: What their names end with; with `PROGRAM_SUFFIXES` a file counts too that may be executed, or that
            programs obey by its name (`is_protected`).
        caches: Which of Python's own caches too.
        enter: Called with the path of a folder below: look into it?

    Raises:
        ConfigError: there are more than 100 000 files and folders, links lead round in circles, or a folder can't be
            listed, so that what it holds is not known.
    """
    count, imports, programs = 0, suffixes == CODE_SUFFIXES, suffixes == PROGRAM_SUFFIXES
    left_out = () if suffixes == ALL_SUFFIXES else (".git",) if programs else (".git", ".tw")
    walked: set[str] = set()
    for folder in sorted(map(os.path.abspath, folders), key=len):  # those that hold others come first
        for place, inner, names in _walk(folder) if folder not in walked else ():
            walked.add(place)
            top = place == folder
            inner[:] = [one for one in inner if not (imports and one.startswith(".") or top and one in left_out)]
            if programs and place == os.path.join(folder, ".tw"):
                inner[:] = [one for one in inner if one != "sessions"]
            inner[:] = [one for one in inner if enter(os.path.join(place, one)) and not _leads_up(folder, place, one)]
            every = (
                suffixes == ALL_SUFFIXES
                or caches is BytecodeCaches.every
                or caches is BytecodeCaches.own
                and not _INSTALLED & {*place[len(folder) :].split(os.sep)}
            )
            count += len(inner) + len(names)
            if count > _MAX_FILES:
                raise ConfigError(f"{folder}: more than {_MAX_FILES} files, too many to look through for trust")
            for name in names:
                path = Path(place, name)
                counts = name.endswith(suffixes) or programs and (_is_obeyed(name) or os.access(path, os.X_OK))
                if counts and (every or not name.endswith(".pyc") or _replaces_source(path)):
                    yield path


def _is_obeyed(name: str) -> bool:
    """Return whether programs obey a file of this name; git, which no server is, has its own, one of them in `.tw`."""
    return is_protected(name) and not name.startswith(".git")


def _walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    def refuse(error: OSError) -> None:
        try:
            check_unlisted(error, error.filename)
        except PermissionError as unknown:
            raise ConfigError(f"{unknown.filename}: {unknown.strerror}") from error

    return os.walk(folder, followlinks=True, onerror=refuse)


def _leads_up(top: str, place: str, name: str) -> bool:
    """Return whether a folder is a link to one on the way to it, whose files are looked at by their other paths.

    Args:
        top: Where the walk has begun; what lies above it is looked at over the link.
        place: The folder that the link is in.
        name: The link's.
    """
    path = os.path.join(place, name)
    if not os.path.islink(path):
        return False
    target, way = os.path.realpath(path), [place]
    while len(way[-1]) > len(top):
        way.append(os.path.dirname(way[-1]))
    return target in map(os.path.realpath, way)


def _replaces_source(path: Path) -> bool:
    """Return whether Python would take a compiled file without comparing the source's time."""
    if path.parent.name != "__pycache__":
        return True
    try:
        return any(read_regular(path, head=8)[4:8])
    except OSError:
        return True


def _read_private(path: Path) -> str:
    """Return the text of a file that nobody but this user, or root, can have written or put there.

    Raises:
        OSError: the file, or a folder on the way to it from the user's home, is another user's or open to others.
        UnicodeDecodeError: the text is not UTF-8.
    """
    if os.name == "posix":
        home = home_folder()
        for way in (path.absolute(), path.resolve()):  # who owns a folder decides where its links lead
            for parent in (way, *way.parents):
                _check_owner(parent, strict=parent in (way, way.parent))
                if home is not None and parent in (home, home.resolve()):
                    break
    return read_regular(path).decode("utf-8")


def _check_owner(path: Path, *, strict: bool) -> None:
    """Raise if another user could have exchanged what lies here.

    Args:
        path: A file, folder or link.
        strict: No group may write to it either; else the user's own may, and others where only owners rename.

    Raises:
        OSError: it is another user's, or others may write to it.
    """
    about = os.lstat(path)
    mode = 0 if stat.S_ISLNK(about.st_mode) else about.st_mode
    shared = mode & (0o022 if strict or about.st_gid != os.getegid() else 0o002)
    if about.st_uid not in (0, os.geteuid()) or shared and (strict or not mode & stat.S_ISVTX):
        raise PermissionError(f"{path} may be written by others")


def _write_private(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file that is whole or not there, readable by this user alone.

    Raises:
        FileExistsError: it is there already and is not to be replaced.
        OSError: it can't be written.
    """
    make_private_folder(path.parent)
    found, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # readable by this user alone
    try:
        with os.fdopen(found, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(name, path)
        elif os.name == "posix":
            os.link(name, path)
        else:
            os.rename(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
