"""Marks of the folders that this user has made: keyed hashes of a folder's path and inode, in a file in it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import json

from tw_autogen.safe_folder import SafeFolder
from tw_autogen.trust_store import user_key

_MARK_BYTES = 100


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
        said = folder.read_file(name, limit_bytes=_MARK_BYTES).decode("ascii")
        return hmac.compare_digest(said, _folder_hmac(folder, key, purpose))
    except (OSError, UnicodeDecodeError):
        return False


def _folder_hmac(folder: SafeFolder, key: bytes, purpose: str) -> str:
    parts = (purpose, str(folder.path.resolve()), str(folder.info(".").st_ino))
    return hmac.new(key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()
