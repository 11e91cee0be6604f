r"""Trust of folders: what a folder's settings file may set unasked, which folders the user trusts, and keyed hashes.

A folder is trusted as it is: the record holds its real path and a hash of the files that matter, so that a change of
one of them asks again. Records, and the key of keyed hashes, lie in the user's state folder, readable by the user
alone: `$XDG_STATE_HOME/tw-autogen` or `~/.local/state/tw-autogen`, `~/Library/Application Support/tw-autogen` on macOS,
`%LOCALAPPDATA%\tw-autogen` on Windows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import hmac
import json
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError

_MOST_BYTES = 4 << 20  # of a settings file or a record; code that is hashed may be longer
_KEY_BYTES = 32


class Trust(IntEnum):
    """How far a folder's settings count."""

    none = 0
    """It is the current folder, which nobody named."""
    named = 1
    """The caller wrote its path: its roles, plugins and what describes them count."""
    full = 2
    """The user trusts it: all counts."""


COUNT = {"folder": "count"}
"""Metadata of a setting that any folder may set, but not above what the user's own file says."""
LIMIT = {"folder": "limit"}
"""A limit that any folder may lower; 0 is no limit."""
LOWER = {"folder": "lower"}
"""A number above 0 that any folder may lower."""
NARROWER = {"folder": "narrower"}
"""A list of what is allowed, which any folder may shorten; None is all."""
LONGER = {"folder": "longer"}
"""A list of what is refused, which any folder may lengthen."""
OFF = {"folder": "off"}
"""A flag that any folder may clear."""
ON = {"folder": "on"}
"""A flag that any folder may set."""
PROMPT = {"folder": "prompt"}
"""Text for prompts, or a folder of it: any folder may set it where the user's file doesn't, and it is shown by name."""
NAMED = {"folder": "named"}
"""A setting that counts from a folder whose path the caller wrote; a setting without any of these needs trust."""


def may_set(rule: str, value: Any, base: Any, *, own: bool, trust: Trust) -> bool:
    """Return whether a folder's value counts.

    Args:
        rule: The field's metadata `folder`; empty: nothing but a trusted folder may set it.
        value: The folder's value, of the field's type.
        base: The value that holds without it: the user's file's, else the default.
        own: The user's file sets `base`.
        trust: How far the folder is trusted.
    """
    if trust is Trust.full or (trust is Trust.named and rule in ("named", "prompt", "count")):
        return True
    if rule == "count":
        return bool(value >= 0 and (not own or value <= base))
    if rule == "limit":
        return bool(value > 0 and (base <= 0 or value <= base))
    if rule == "lower":
        return bool(0 < value <= base)
    if rule == "narrower":
        return value is not None and (base is None or set(value) <= set(base))
    if rule == "longer":
        return set(value) >= set(base)
    if rule in ("on", "off"):
        return bool(value) is (rule == "on") or value == base
    return rule == "prompt" and not own


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
        """Return the store in the user's state folder."""
        state = state_folder(environ)
        return cls(state / "trust" if state else None, named)

    def record(self, folder: Path) -> Path | None:
        """Return the path of a folder's record, which need not exist; removing it takes the trust back."""
        if self.folder is None:
            return None
        name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
        return self.folder / f"{name}{'-named' * self.named}.json"

    def read(self, folder: Path) -> tuple[str, str]:
        """Return the hash under which a folder is trusted, and a problem in words; both may be empty.

        A record that is damaged, or that another user could have written, trusts nothing.
        """
        path = self.record(folder)
        if path is None:
            return "", ""
        try:
            plain = json.loads(_read_private(path))
            if plain["folder"] != str(folder.resolve()):
                raise ValueError("it is another folder's")
            return str(plain["sha256"]), ""
        except FileNotFoundError:
            return "", ""
        except OSError as error:
            return "", f"{path}: cannot be read ({error.strerror or error}), so {folder} counts as not trusted"
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return "", f"{path}: damaged ({type(error).__name__}: {error}), so {folder} counts as not trusted"

    def write(self, folder: Path, sha256: str) -> str:
        """Record that a folder is trusted as long as its hash is this one; return a problem in words, or nothing."""
        path = self.record(folder)
        if path is None:
            return "there is no home folder in which this could be remembered; it holds for this time only"
        try:
            _write_private(path, json.dumps({"folder": str(folder.resolve()), "sha256": sha256}) + "\n")
        except (OSError, UnicodeEncodeError) as error:
            return f"{path}: cannot be written ({error}); it holds for this time only"
        return ""


def fingerprint(folder: Path, files: Iterable[Path]) -> str:
    """Return a SHA-256 over names and contents of files.

    Args:
        folder: Names are relative to it.
        files: In any order; one that is missing, unreadable or no plain file counts as such.
    """
    whole = hashlib.sha256()
    for path in sorted(set(files)):
        part = hashlib.sha256()
        try:
            found = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(found, "rb") as file:
                if not stat.S_ISREG(os.fstat(found).st_mode):
                    raise OSError("no plain file")
                while block := file.read(1 << 20):
                    part.update(block)
            state = part.hexdigest()
        except OSError:
            state = "unreadable"
        whole.update(os.fsencode(os.path.relpath(path, folder)) + b"\0" + state.encode() + b"\n")
    return whole.hexdigest()


def user_key(environ: Mapping[str, str] | None = None) -> bytes | None:
    """Return the key of this user's keyed hashes, made at its first use; None where it can't be kept."""
    state = state_folder(environ)
    if state is None:
        return None
    path = state / "trust" / "key"
    for _ in range(2):  # a second time where another process has made it meanwhile
        try:
            key = bytes.fromhex(_read_private(path).strip())
            return key if len(key) == _KEY_BYTES else None
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                try:
                    _write_private(path, secrets.token_hex(_KEY_BYTES), replace=False)
                except FileExistsError:
                    raise
                except OSError:
                    return None
        except (OSError, ValueError):
            return None
    return None


def keyed_hash(key: bytes, *parts: str) -> str:
    """Return the HMAC-SHA-256 of some texts, in hexadecimal."""
    return hmac.new(key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def same_hash(one: str, other: str) -> bool:
    """Return whether two keyed hashes are equal, in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def read_plain(path: Path) -> str:
    """Return the text of a settings file: a plain file of at most 4 MB, never a pipe or a device.

    Raises:
        ConfigError: the file is too large, no plain file, unreadable, or not UTF-8.
    """
    try:
        return _read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error


def visible(text: str) -> str:
    r"""Return text on one line whose signs can all be seen: others are written as escapes.

    Example:
        >>> visible("a\u202eb\n")
        'a\\u202eb\\n'
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def code_files(folder: Path, *, most: int = 100_000) -> Iterator[Path]:
    """Return the files below a folder that are code or describe it: Python, native modules, YAML, JSON and TOML.

    Python's own caches are left out, unless they are of the kind that is used without a look at the source's time.

    Raises:
        ConfigError: there are more than `most` files and folders, or links lead round in circles.
    """
    count = 0
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [one for one in folders if one not in (".git", ".tw")]  # no import can name these
        count += len(folders) + len(names)
        if count > most:
            raise ConfigError(f"{folder}: more than {most} files, too many to look through for trust")
        for name in names:
            path = Path(place, name)
            if path.suffix == ".pyc" and not _replaces_source(path):
                continue
            if path.suffix in (".py", ".pyc", ".so", ".pyd", ".dll", ".dylib", ".yaml", ".yml", ".json", ".toml"):
                yield path


def _replaces_source(path: Path) -> bool:
    """Return whether Python would take a compiled file without comparing the source's time."""
    if path.parent.name != "__pycache__":
        return True
    try:
        return any(_read(path, most=8)[4:8])
    except OSError:
        return True


def _read(path: Path, *, most: int | None = None) -> bytes:
    found = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(found, "rb") as file:
        about = os.fstat(found)
        if not stat.S_ISREG(about.st_mode):
            raise OSError("it is no plain file")
        if most is None and about.st_size > _MOST_BYTES:
            raise OSError(f"it has more than {_MOST_BYTES >> 20} MB")
        return file.read(_MOST_BYTES if most is None else most)


def _read_private(path: Path) -> str:
    """Return the text of a file that nobody but this user, or root, can have written.

    Raises:
        OSError: the file, or its folder, is another user's or may be written by others.
        UnicodeDecodeError: the text is not UTF-8.
    """
    if os.name == "posix":
        for one in (path, path.parent):
            about = os.stat(one, follow_symlinks=one is not path)
            if about.st_uid not in (0, os.geteuid()) or about.st_mode & 0o022:
                raise PermissionError(f"{one} may be written by others")
            if one is path and not stat.S_ISREG(about.st_mode):
                raise OSError("it is no plain file")
    return _read(path).decode("utf-8")


def _write_private(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file that is whole or not there, readable by this user alone.

    Raises:
        FileExistsError: it is there already and is not to be replaced.
        OSError: it can't be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
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
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
