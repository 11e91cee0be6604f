"""`VectorCache`: embeddings on disk by the hash of what was embedded, so that a text is embedded once and for all."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tw_autogen.lazy_module import LazyModule
from tw_autogen.private_files import make_private_folder, touch_private

if TYPE_CHECKING:
    import sqlite3
else:
    sqlite3 = LazyModule("sqlite3")

_log = logging.getLogger(__name__)
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
_MOST = 100_000
_AT_ONCE = 500
_WAIT_SECONDS = 10.0


def cache_folder() -> Path:
    """Return the cache folder: `$XDG_CACHE_HOME/tw-autogen`, else `~/.cache/tw-autogen`."""
    given = os.environ.get("XDG_CACHE_HOME", "")  # a relative one would lie in whatever folder is the current one
    return Path(given if os.path.isabs(given) else Path.home() / ".cache", "tw-autogen")


class VectorCache:
    """Vectors by model and text, in one SQLite file that several processes may use at the same time.

    It holds hashes and numbers, never a text, and nothing in it is ever run. A folder that can't be written, or a file
    that is broken, costs time and no more: the vectors are kept in memory then, or made anew.

    Args:
        folder: Where `embeddings.sqlite` lies; made with the first vector.
        most: Beyond so many vectors all are forgotten, since each can be made again.
    """

    def __init__(self, folder: Path, *, most: int = _MOST) -> None:
        self.path = folder / "embeddings.sqlite"
        self._most = most
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, model: str, texts: Sequence[str]) -> dict[str, bytes]:
        """Return the cached vectors by text, as bytes of 32-bit floats, little-endian.

        Args:
            model: Everything that a vector depends on besides its text: server, model, its version.
            texts: In any order.
        """
        wanted = {_key(model, text): text for text in texts}
        keys = list(wanted)
        found: dict[str, bytes] = {}
        with self._lock:
            for at in range(0, len(keys), _AT_ONCE):
                some = keys[at : at + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = self._open().execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some)
                found.update((wanted[key], vector) for key, vector in rows)
        return found

    def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Add vectors to the cache.

        Args:
            model: As in `get`.
            vectors: By text, as `get` returns them.
        """
        with self._lock, self._open() as connection:
            (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
            if count + len(vectors) > self._most:
                connection.execute("DELETE FROM vectors")
            rows = [(_key(model, text), vector) for text, vector in vectors.items()]
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                make_private_folder(self.path.parent)
                touch_private(self.path)
                self._connection = _connect(str(self.path))
            except sqlite3.OperationalError as error:
                self._connection = self._in_memory(error)
            except sqlite3.DatabaseError:  # not a database: half written by a machine that went down, or not ours
                self._connection = self._anew()
            except OSError as error:
                self._connection = self._in_memory(error)
            weakref.finalize(self, self._connection.close)
        return self._connection

    def _anew(self) -> sqlite3.Connection:
        try:
            self.path.unlink()
            touch_private(self.path)
            return _connect(str(self.path))
        except (OSError, sqlite3.Error) as error:
            return self._in_memory(error)

    def _in_memory(self, error: Exception) -> sqlite3.Connection:
        _log.warning("%s: %s; embeddings are kept in memory only", self.path, error)
        return _connect(":memory:")


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, check_same_thread=False)
    try:
        with connection:
            connection.execute(_TABLE)
            connection.execute("SELECT count(*) FROM vectors").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _key(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode("utf-8", "surrogatepass")).digest()
