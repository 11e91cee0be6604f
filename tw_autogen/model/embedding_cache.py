"""`VectorCache`: embeddings on disk by the hash of what was embedded, so that a text is embedded once and for all."""

from __future__ import annotations

import hashlib
import io
import itertools
import logging
import os
import secrets
import struct
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.named_folders import named_folder
from tw_autogen.private_files import FILE_MODE, belongs_to_user, open_private_folder
from tw_autogen.safe_folder import SafeFolder

_log = logging.getLogger(__name__)
_SUFFIX = ".vectors"
_HEAD = struct.Struct("<8sII")
_MAGIC = b"TWVEC\0\0\1"
_KEY_BYTES = 32
_MAX_BYTES = 1 << 29
_MAX_VECTORS = 1 << 20
_MAX_FILES = 16
_MAX_READ = 64


class VectorCache:
    """Vectors by model and text, in files that several processes may use at the same time.

    It holds hashes and numbers, never a text, and nothing in it is ever run. A folder that can't be written, or a file
    that is broken, costs time and no more: the vectors are kept in memory then, or made anew.

    Each `put` writes a file of its own, `<hash of the model>-<random>.vectors`, which gets its name once it is whole
    and is never changed: a head, the keys of all vectors, then the vectors, all of one length. When a model has 16
    files, the smaller half becomes one; who merges removes only what the new file holds, so no lock is needed.

    Args:
        folder: Where the files lie; made with the first vector.
        max_bytes: Beyond so many bytes all is forgotten, since each vector can be made again.
        distrusted: A folder that somebody else may have made: a link there must not lead out of it. None: there is
            none.
    """

    def __init__(self, folder: Path, *, max_bytes: int = _MAX_BYTES, distrusted: Path | None = None) -> None:
        self._path = Path(os.path.abspath(folder))
        self._distrusted = distrusted
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._unwritten: dict[bytes, bytes] = {}
        self._warned = False

    def get(self, model: str, texts: Sequence[str]) -> dict[str, bytes]:
        """Return the cached vectors by text, as bytes of 32-bit floats, little-endian.

        Args:
            model: Everything that a vector depends on besides its text: server, model, its version.
            texts: In any order.
        """
        wanted = {_key(model, text): text for text in texts}
        found: dict[bytes, bytes] = {}

        def read(folder: SafeFolder) -> None:
            left = self._max_bytes
            for name, size in itertools.islice(_cache_files(folder, _file_prefix(model)).items(), _MAX_READ):
                left -= size
                found.update(_read(folder, name, size, wanted) if left >= 0 else ())

        with self._lock:
            self._use_folder(read)
            found.update((key, vector) for key, vector in self._unwritten.items() if key in wanted)
        return {wanted[key]: vector for key, vector in found.items()}

    def put(self, model: str, vectors: Mapping[str, bytes], *, anew: bool = False) -> None:
        """Add vectors to the cache.

        Args:
            model: As in `get`.
            vectors: By text, as `get` returns them; all of one length.
            anew: Forget the model's other vectors, which have another length.
        """
        rows = {_key(model, text): vector for text, vector in vectors.items()}
        with self._lock:
            if self._use_folder(lambda folder: self._write(folder, _file_prefix(model), rows, anew=anew)):
                return
            if anew or sum(map(len, self._unwritten.values())) > self._max_bytes:
                self._unwritten.clear()
            self._unwritten.update(rows)

    def _write(self, folder: SafeFolder, prefix: str, rows: Mapping[bytes, bytes], *, anew: bool) -> None:
        """Write vectors by their keys; what they replace, or are merged with, is removed then."""
        every, own = _cache_files(folder), _cache_files(folder, prefix)
        old: list[str] = []
        if sum(every.values()) + sum(_KEY_BYTES + len(row) for row in rows.values()) > self._max_bytes:
            old = list(every)
        elif anew:
            old = list(own)
        elif len(own) >= _MAX_FILES:
            old = sorted(own, key=own.__getitem__)[: _MAX_FILES // 2]
            rows = {**{key: one for name in old for key, one in _read(folder, name, own[name]).items()}, **rows}
        folder.copy_in(io.BytesIO(_pack_rows(rows)), f"{prefix}{secrets.token_hex(8)}{_SUFFIX}", mode=FILE_MODE)
        for name in old:
            with suppress(OSError):  # another process has removed it
                folder.remove(name)

    def _use_folder(self, work: Callable[[SafeFolder], None]) -> bool:
        """Do something in the folder, which is made if it is missing; return False if it can't be used."""
        try:
            with open_private_folder(named_folder(self._path, distrusted=self._distrusted)) as folder:
                work(folder)
        except (OSError, ConfigError) as error:
            if not self._warned:
                _log.warning("%s: %s; embeddings are kept in memory only", self._path, error)
            self._warned = True
            return False
        return True


def _cache_files(folder: SafeFolder, prefix: str = "") -> dict[str, int]:
    """Return the names of this user's files in a cache with their sizes, those of a model or all."""
    return {
        one.name: one.info.st_size
        for one in folder.walk(enter=lambda name: False)
        if one.is_file and one.name.startswith(prefix) and one.name.endswith(_SUFFIX) and belongs_to_user(one.info)
    }


def _pack_rows(rows: Mapping[bytes, bytes]) -> bytes:
    """Return a file's bytes; only vectors of the last one's length are kept, as an exchanged model makes others."""
    length = len(list(rows.values())[-1]) if rows else 0
    same = {key: vector for key, vector in rows.items() if len(vector) == length}
    return b"".join((_HEAD.pack(_MAGIC, len(same), length), *same, *same.values()))


def _read(folder: SafeFolder, name: str, size: int, wanted: Container[bytes] | None = None) -> dict[bytes, bytes]:
    """Return the vectors of a file by their keys; none of one that is gone, and a broken one is removed.

    Args:
        folder: The cache.
        name: The file's.
        size: Its bytes, as `_cache_files` says.
        wanted: Keys; None: all.
    """
    found: dict[bytes, bytes] = {}
    length = 0
    try:
        with folder.open_file(name) as file:
            magic, count, length = _HEAD.unpack(file.read(_HEAD.size))
            start = _HEAD.size + count * _KEY_BYTES
            whole = os.fstat(file.fileno()).st_size == size == start + count * length
            if magic != _MAGIC or not whole or not length or length % 4 or count > _MAX_VECTORS:
                raise ValueError("not a whole file of vectors")
            keys = file.read(count * _KEY_BYTES)
            for index in range(count):
                key = keys[index * _KEY_BYTES : (index + 1) * _KEY_BYTES]
                if wanted is None or key in wanted:
                    file.seek(start + index * length)
                    found[key] = file.read(length)
    except (ValueError, struct.error):
        with suppress(OSError):
            folder.remove(name)
    except OSError:  # merged by another process
        pass
    return {key: vector for key, vector in found.items() if len(vector) == length}


def _file_prefix(model: str) -> str:
    """Return what the names of a model's files begin with."""
    return f"{_key(model, '').hex()[:16]}-"


def _key(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode("utf-8", "surrogatepass")).digest()
