"""Marks of the folders that this user has made: keyed hashes of a folder's path and inode, in a file in it.

`LineSeals` marks the lines of a file in it in the same way, each with those before it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import json
import secrets
from collections.abc import Iterable

from tw_autogen.safe_folder import SafeFolder
from tw_autogen.trust_store import user_key

_MARK_BYTES = 100
_PROCESS_KEY = secrets.token_bytes(32)
_SEAL_BYTES = 16
_FIELD = b', "seal": "'
_FIELD_BYTES = len(_FIELD) + 2 * _SEAL_BYTES + len(b'"}')


def write_owner_mark(folder: SafeFolder, name: str, purpose: str) -> None:
    """Mark a folder as one that this user has made here; where no key can be kept, it stays unmarked.

    Args:
        folder: The folder.
        name: The file with the mark, relative to it.
        purpose: What the mark says that the folder is; a mark of another purpose does not count for it.
    """
    key = user_key()
    if key is not None:
        with contextlib.suppress(OSError):
            folder.copy_in(io.BytesIO(_folder_hmac(folder, key, purpose).encode("ascii")), name, mode=0o600)


def has_owner_mark(folder: SafeFolder, name: str, purpose: str) -> bool:
    """Return whether this user has marked this very folder; False for one that was moved, copied or downloaded.

    Args:
        folder: The folder.
        name: As for `write_owner_mark`.
        purpose: As for `write_owner_mark`.
    """
    key = user_key()
    if key is None:
        return False
    try:
        mark = folder.read_file(name, limit_bytes=_MARK_BYTES).decode("ascii")
        return hmac.compare_digest(mark, _folder_hmac(folder, key, purpose))
    except (OSError, UnicodeDecodeError):
        return False


def _folder_hmac(folder: SafeFolder, key: bytes, purpose: str) -> str:
    parts = (purpose, str(folder.path.resolve()), str(folder.info(".").st_ino))
    return hmac.new(key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def folder_key(folder: SafeFolder, purpose: str) -> bytes:
    """Return a key for this very folder that only this user can make; where no key can be kept, this process alone.

    Args:
        folder: The folder; for one that was moved or copied it is another key.
        purpose: As for `write_owner_mark`.
    """
    return bytes.fromhex(_folder_hmac(folder, user_key() or _PROCESS_KEY, purpose))


def owner_hash(purpose: str, text: str) -> str:
    """Return a hash of a text that only this user can make, with a key of theirs; empty where no key can be kept.

    Args:
        purpose: What the text is; a hash of another purpose is another one.
        text: The text.
    """
    key = user_key()
    return "" if key is None else hmac.new(key, json.dumps((purpose, text)).encode(), hashlib.sha256).hexdigest()


class LineSeals:
    """Seals the lines of a file, JSON objects, each as its last field: a keyed hash of all that stands before it.

    The last seal vouches for the whole file. The key is made of the user's key, the folder's path and its inode, so
    that lines of another file hold as little as those that somebody without the user's key has written.

    Args:
        folder: That of the file.
        purpose: As for `write_owner_mark`.
    """

    def __init__(self, folder: SafeFolder, purpose: str) -> None:
        self._key = folder_key(folder, purpose)
        self._hash = hashlib.sha256()
        self._last = b""

    def take(self, line: bytes) -> None:
        """Go on behind a line of the file, with its end."""
        self._hash.update(self._last)
        self._last = line

    def take_all(self, lines: bytes) -> None:
        """Go on behind lines of the file, with their ends; however many there are, none is looked at for itself."""
        cut = lines.rfind(b"\n", 0, -1) + 1
        if lines:
            self._hash.update(self._last)
            self._hash.update(lines[:cut])
            self._last = lines[cut:]

    @property
    def holds(self) -> bool:
        """Whether the last line is sealed, or there is none yet."""
        if not self._last:
            return True
        bare = unsealed(self._last)
        return hmac.compare_digest(_with_seal(bare, self._seal_of(bare)), self._last)

    def seal(self, line: str) -> str:
        """Return the next line, without its end, with its seal; unchanged where those before it are not sealed.

        Once it is written, `take` goes on behind it.
        """
        if not self.holds:
            return line
        seal = self._seal_of(self._last, line.encode("utf-8", "backslashreplace"))
        return f'{line[:-1]}{_FIELD.decode()}{seal}"}}'

    def seal_all(self, lines: Iterable[bytes]) -> bytes:
        """Return lines with their ends, each sealed behind the one before, and go on behind the last.

        Args:
            lines: Without their ends and seals.
        """
        sealed = []
        for line in lines:
            sealed.append(self.seal(line.decode("utf-8", "backslashreplace")).encode() + b"\n")
            self.take(sealed[-1])
        return b"".join(sealed)

    def _seal_of(self, *parts: bytes) -> str:
        whole = self._hash.copy()
        for part in parts:
            whole.update(part)
        return hmac.digest(self._key, whole.digest(), "sha256")[:_SEAL_BYTES].hex()


def unsealed(line: bytes) -> bytes:
    """Return a line without its end and its seal, if it has one."""
    bare = line.removesuffix(b"\n")
    cut = len(bare) - _FIELD_BYTES
    return bare[:cut] + b"}" if bare[cut:].startswith(_FIELD) and cut > 0 else bare


def _with_seal(bare: bytes, seal: str) -> bytes:
    return b"".join((bare[:-1], _FIELD, seal.encode("ascii"), b'"}\n'))
