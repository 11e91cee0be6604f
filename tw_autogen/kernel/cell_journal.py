"""`CellJournal`: the cells that ran to their end in a folder, so that a later kernel can run them again."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import logging
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.kernel.exchange_folder import hidden_folder
from tw_autogen.kernel.guest.checkpoint import FOLDER, seal_anew
from tw_autogen.kernel.guest.json_size import MAX_BYTES, estimate_parsed_bytes
from tw_autogen.owner_marks import LineSeals, folder_key, unsealed
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session_layout import CELLS as _FILE

_NAME = PurePath(_FILE).name
_COPY = f"{FOLDER}/variables"
_OLD = f"{FOLDER}.old"
_CELLS, _VARIABLES = "cells", "variables"
"""What keys are for."""
_MAX_FILE_BYTES = 64 << 20
_MAX_LINES = 100_000
_REMOVAL_SECONDS = 1.0
"""How long what code has put in the way may take to be removed: while its kernel lives, code can go on making more."""
_CUT_OFF = json.dumps({"cut_off": True})

_log = logging.getLogger(__name__)


class CellJournal:
    """A file with a line of JSON for each cell that ran to its end, or left new names, and each variable put in.

    It is only appended to, each line sealed by the host with the user's key; code in the kernel can write to it, as to
    all of the folder, and code of another kernel perhaps too. One in which somebody else has written counts as missing,
    with the copy of the variables beside it. A last line that was cut off by a crash is passed over, and counts as a
    line.

    Args:
        folder: The kernel's.
        trust: Read also what somebody else has written.
    """

    def __init__(self, folder: Path, *, trust: bool = False) -> None:
        self._folder = folder
        self._trust = trust
        self._uid = 0
        self._seals: LineSeals | None = None
        self._bytes = self._held = 0
        self.position = 0
        self.refusal = ""
        """Why what lies there counts as missing; empty if it does not."""

    def open(self, uid: int = 0) -> list[dict[str, Any]]:
        """Make the hidden folder if it isn't there, and give what the file holds.

        Args:
            uid: The user that the kernel is, where the host is root; 0: the same as the host.

        Returns:
            A dictionary for each line, of 100 000 at most; an empty one for a line that can't be read, or that would
            take too much memory with those before it.
        """
        data, whole, self._uid, self._seals = b"", b"", uid, None
        with (
            contextlib.suppress(OSError),
            SafeFolder(self._folder) as folder,
            hidden_folder(folder, FOLDER, uid) as hidden,
        ):
            with contextlib.suppress(OSError), hidden.open_file(_NAME) as file:
                data = file.read(_MAX_FILE_BYTES)
            self._seals = LineSeals(folder, _CELLS)
            whole = data[: data.rfind(b"\n") + 1]
            self._seals.take_all(whole)
            if not (self._seals.holds or self._trust):
                self._refuse_saved_cells()
                return []
            if not data:  # a copy of the variables belongs to lines before it
                with contextlib.suppress(FileNotFoundError):
                    hidden.remove(PurePath(_COPY).name)
            self._bytes, self.refusal = len(whole), ""
            if len(whole) < len(data):
                with hidden.append_file(_NAME, mode=0o600) as file:
                    file.truncate(len(whole))
        entries, held = [], 0
        for line in itertools.islice(io.BytesIO(whole), _MAX_LINES):
            needed = estimate_parsed_bytes(line)
            fits = held + needed <= MAX_BYTES
            held += needed if fits else 0
            entries.append((bounded_json.load_object(line) or {}) if fits else {})
        self.position, self._held = len(entries), held
        if len(whole) < len(data) and self._has_room_for(_CUT_OFF) and self._append_line(_CUT_OFF):
            entries.append({})
        return entries

    def _refuse_saved_cells(self) -> None:
        """Count what lies there as missing; it stays until something is written in its place."""
        self.position = 0
        if not self.refusal:
            self.refusal = (
                f"{self._folder}: saved variables and cells do not come back, as if there were none: this user did not "
                "write all of them in this folder (it came from elsewhere, was moved or copied, code of another kernel "
                "or session has written there, they are of a version that did not seal them, or there is no home "
                "folder for the key). trust=True (--trust) brings them back; with the next cell they become "
                f"{_OLD}"
            )
            _log.warning("%s", self.refusal)

    def variables_key(self) -> str:
        """Return the key, hexadecimal, with which copies of the variables in this folder are sealed."""
        with SafeFolder(self._folder) as folder:
            return folder_key(folder, _VARIABLES).hex()

    def adopt(self, source: Path) -> None:
        """Seal what was copied from another folder as written here, as far as this user has written it there.

        Args:
            source: The other folder.
        """
        with contextlib.suppress(OSError), SafeFolder(source) as first, SafeFolder(self._folder) as folder:
            data = first.read_file(_FILE, limit_bytes=_MAX_FILE_BYTES)
            before = LineSeals(first, _CELLS)
            whole = data[: data.rfind(b"\n") + 1]
            before.take_all(whole)
            if not before.holds:
                return
            sealed = LineSeals(folder, _CELLS).seal_all(map(unsealed, io.BytesIO(whole)))
            folder.copy_in(io.BytesIO(sealed), _FILE, mode=0o600)
            folder.remove(_COPY)
            with first.open_file(_COPY) as old, folder.create_file(_COPY, mode=0o600) as copy:
                seal_anew(old, copy, folder_key(first, _VARIABLES), folder_key(folder, _VARIABLES))

    def start_over(self) -> None:
        """Move what counts as missing aside."""
        if self.refusal:
            self.set_aside()
            self.open(self._uid)

    def append(self, entry: Mapping[str, Any]) -> bool:
        """Add a line; code that has put something else in the file's place loses the journal, and breaks nothing.

        Returns:
            False for a line that would not be read, and is not written: with it the journal would be too large.
        """
        text = json.dumps(entry)
        self.start_over()
        if self._seals is None:
            self._reopen()
        if not self._has_room_for(text):
            return False
        if not self._append_line(text):
            self._reopen()
            self._append_line(text)
        return True

    def _reopen(self) -> None:
        self.open(self._uid)
        self.start_over()

    def clear(self) -> None:
        """Forget all, checkpoints too; what others keep in a folder of this name stays."""
        self._seals, self.position = None, 0
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            if not folder.has_entry(FOLDER):
                return
            with hidden_folder(folder, FOLDER) as hidden:
                for name in (_NAME, PurePath(_COPY).name, f"{PurePath(_COPY).name}.part"):
                    with contextlib.suppress(OSError):
                        hidden.remove(name)
                others = any(hidden.walk(enter=lambda name: False))
            if not others:
                folder.remove_tree(FOLDER, seconds=_REMOVAL_SECONDS)

    def set_aside(self) -> None:
        """Begin a new one; what there was stays beside it, for people."""
        self._seals, self.position = None, 0
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            if self._uid and folder.has_entry(_OLD) and folder.info(_OLD).st_uid != self._uid:
                return  # code has given this name to what is somebody else's
            with contextlib.suppress(OSError):
                folder.remove_tree(_OLD, seconds=_REMOVAL_SECONDS)
            folder.move(FOLDER, _OLD)

    def _has_room_for(self, text: str) -> bool:
        """Return whether a line will be read with those before it; as long again as it is, its seal may be."""
        needed = estimate_parsed_bytes(text.encode())
        fits = self._bytes + 2 * len(text) <= _MAX_FILE_BYTES and self._held + needed <= MAX_BYTES
        return fits and self.position < _MAX_LINES

    def _append_line(self, text: str) -> bool:
        """Add a line; return False if the file is not as this has left it, or can't be written."""
        if self._seals is None:
            return False
        with contextlib.suppress(OSError), SafeFolder(self._folder) as folder:
            with folder.open_folder(FOLDER, same_mount=True) as hidden, hidden.append_file(_NAME, mode=0o600) as file:
                if file.tell() != self._bytes:
                    return False
                line = self._seals.seal(text).encode() + b"\n"
                file.write(line)
            self._seals.take(line)
            self._bytes += len(line)
            self._held += estimate_parsed_bytes(line)
            self.position += 1
            return True
        self._seals = None
        return False
