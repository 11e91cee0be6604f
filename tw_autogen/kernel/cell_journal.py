"""`CellJournal`: the cells that ran to their end in a folder, so that a later kernel can run them again."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.kernel.exchange_folder import make_hidden
from tw_autogen.kernel.guest.checkpoint import FOLDER
from tw_autogen.kernel.guest.json_size import MOST_BYTES, estimate_parsed_bytes
from tw_autogen.owner_marks import has_owner_mark, write_owner_mark
from tw_autogen.safe_folder import SafeFolder

_FILE = f"{FOLDER}/cells.jsonl"
_COPY = f"{FOLDER}/variables"
_MARK = f"{FOLDER}/made_here"
_PURPOSE = "kernel"
_MOST_FILE_BYTES = 64 << 20
_MOST_LINES = 100_000


class CellJournal:
    """A file with a line of JSON for each cell that ran to its end, or left new names, and each variable put in.

    It is only appended to; a last line that was cut off by a crash is passed over, and counts as a line. Code in the
    kernel can write to it, as to all of the folder: what stands there is only ever run in a kernel.

    Args:
        folder: The kernel's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.position = 0

    def open(self, uid: int = 0) -> list[dict[str, Any]]:
        """Make the hidden folder if it isn't there, and give what the file holds.

        Args:
            uid: The user that the kernel is, where the host is root; 0: the same as the host.

        Returns:
            A dictionary for each line, of 100 000 at most; an empty one for a line that can't be read, or that would
            take too much memory with those before it.
        """
        data = b""
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            make_hidden(folder, FOLDER, uid)
            with folder.open_file(_FILE) as file:
                data = file.read(_MOST_FILE_BYTES)
        if data and not data.endswith(b"\n"):
            with contextlib.suppress(OSError):
                self._write(b"\n")
        entries, held = [], 0
        for line in itertools.islice(io.BytesIO(data), _MOST_LINES):
            needed = estimate_parsed_bytes(line)
            fits = held + needed <= MOST_BYTES
            held += needed if fits else 0
            entries.append(_entry(line) if fits else {})
        self.position = len(entries)
        self.mark_own()
        return entries

    def is_own(self) -> bool:
        """Return whether this user keeps a journal in this very folder, or nothing is kept there.

        That is shown by a keyed hash of the folder's path and inode; the key lies in the user's state folder. It says
        who made the session and where, not that code has left the files alone: these are read in the kernel only.
        """
        if not self._keeps_anything():
            return True
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            return has_owner_mark(folder, _MARK, _PURPOSE)
        return False

    def _keeps_anything(self) -> bool:
        """Return whether something lies where cells or variables are kept."""
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            for name in (_FILE, _COPY):
                with contextlib.suppress(FileNotFoundError):
                    folder.info(name)
                    return True
            return False
        return self._folder.exists()

    def mark_own(self) -> None:
        """Mark the folder as one in which this user keeps a journal; where no key can be kept, it stays unmarked."""
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            write_owner_mark(folder, _MARK, _PURPOSE)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add a line; code that has put something else in the file's place loses the journal, and breaks nothing."""
        with contextlib.suppress(OSError):
            self._write(json.dumps(entry).encode() + b"\n")
        self.position += 1

    def clear(self) -> None:
        """Forget all, checkpoints too."""
        self.position = 0
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            folder.remove_tree(FOLDER)

    def set_aside(self) -> None:
        """Begin a new one; what there was stays beside it, for people."""
        self.position = 0
        old = f"{FOLDER}.old"
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            with contextlib.suppress(OSError):
                folder.remove_tree(old)
            folder.move(FOLDER, old)

    def _write(self, data: bytes) -> None:
        with SafeFolder(self._folder) as folder, folder.append_file(_FILE, mode=0o600) as file:
            file.write(data)


def _entry(line: bytes) -> dict[str, Any]:
    try:
        found = bounded_json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
