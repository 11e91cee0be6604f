"""Copies of the user's files in the working folder: under which names, of what, and what a copy would lack."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import struct
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from tw_autogen import bounded_json
from tw_autogen.errors import ConfigError
from tw_autogen.owner_marks import LineSeals, unsealed
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session_layout import COPIES, LONGEST_NAME_BYTES

_SQLITE = b"SQLite format 3\0"
_RECORD_BYTES = 4_000_000

Stamp = tuple[int, int]


@dataclass(frozen=True)
class Copied:
    """Of which file one in the working folder is a copy.

    Args:
        source: Path of the file, absolute.
        was: The file's time and size when it was copied.
        copy: Those of the copy: where it has others now, code has written it.
        given: Whether a request gave the file; False: its words only named it, and it is read over no link.
    """

    source: str
    was: Stamp
    copy: Stamp
    given: bool


def read_copies(root: Path, name: str = COPIES) -> dict[str, Copied]:
    """Return what `write_copies` has written in a session's folder; empty if it can't be read, or anyone else wrote it.

    Args:
        root: The session's folder.
        name: Of the record.
    """
    try:
        with SafeFolder(root) as opened:
            seals, line = LineSeals(opened, COPIES), opened.read_file(name, limit_bytes=_RECORD_BYTES)
        seals.take(line)
        if not seals.holds:
            return {}
        plain = bounded_json.loads(unsealed(line))
        return {
            copy: Copied(str(one["source"]), _read_stamp(one["was"]), _read_stamp(one["copy"]), one["given"] is True)
            for copy, one in plain.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return {}


def write_copies(root: Path, copies: Mapping[str, Copied], name: str = COPIES) -> None:
    """Write down of which files those in the working folder are copies, for when the session is resumed.

    Args:
        root: The session's folder.
        copies: By name.
        name: Of the record.
    """
    text = json.dumps({copy: asdict(one) for copy, one in copies.items()})
    with contextlib.suppress(OSError), SafeFolder(root) as opened:  # a full disk: what is there counts as code's then
        # sealed: files of the host are copied to code by this record
        line = LineSeals(opened, COPIES).seal_all([text.encode()])
        opened.copy_in(io.BytesIO(line), name, mode=0o600)


def _read_stamp(plain: Sequence[int]) -> Stamp:
    time, size = plain
    return int(time), int(size)


def given_copies(paths: Sequence[Path], placed: Sequence[Path], folder: Path) -> dict[str, Copied]:
    """Return of which of the given files there are copies in the working folder, by name.

    Args:
        paths: The files.
        placed: What `place_inputs` returned for them.
        folder: The working folder.
    """
    copies = {}
    with SafeFolder(folder) as opened:
        for path, copy in zip(paths, placed, strict=True):
            if copy.parent == folder and not opened.name_of(path):
                with contextlib.suppress(OSError):  # it has gone meanwhile
                    was, now = stamp(path.stat()), stamp(opened.info(copy.name))
                    copies[copy.name] = Copied(os.path.abspath(path), was, now, given=True)
    return copies


def refuse_replacing(paths: Sequence[Path], folder: Path, copies: Mapping[str, Copied]) -> None:
    """Refuse files whose copies would replace a file of the User's own folder.

    Args:
        paths: The files, as `checked_inputs` returned them.
        folder: Where code will run.
        copies: What was copied there before; a copy that is unchanged may be replaced.

    Raises:
        ConfigError: names the file and the other one.
    """
    with SafeFolder(folder) as opened:
        for path, name in zip(paths, working_names(paths), strict=True):
            with contextlib.suppress(FileNotFoundError):
                info, copied = opened.info(name), copies.get(name)
                if opened.name_of(path) != name and not (copied and stamp(info) == copied.copy):
                    raise ConfigError(
                        f"{path}: its copy would replace another file, {folder / name}; rename one, or let code "
                        "work in another folder"
                    )


def working_names(paths: Sequence[Path], copies: Mapping[str, Copied] = MappingProxyType({})) -> list[str]:
    """Return the names of files in the working folder: their own, with those of their folders in front where needed.

    What is too long for a file's name is cut in front.

    Args:
        paths: Each once.
        copies: Those that are there, by name; none is replaced by another file's, and each keeps its name.

    Raises:
        ConfigError: folders don't keep two apart.

    Example:
        >>> working_names([Path("/north/a.csv"), Path("/south/a.csv"), Path("/south/b.csv")])
        ['north_a.csv', 'south_a.csv', 'b.csv']
    """
    full = [os.path.abspath(path) for path in paths]
    parts = [Path(unicodedata.normalize("NFC", one)).parts[1:] for one in full]  # as people and models type it
    depths = [1] * len(paths)
    kept = {one.source: name for name, one in reversed(list(copies.items()))}
    while True:
        names = [
            kept.get(path) or _end_of("_".join(part[-depth:]))
            for path, part, depth in zip(full, parts, depths, strict=True)
        ]
        holders = {name: {copies[name].source} if name in copies else set() for name in names}
        for one, name in zip(full, names, strict=True):
            holders[name].add(one)
        alike: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            if len(holders[name]) > 1:
                alike.setdefault(name, []).append(index)
        if not alike:
            return names
        for twice, places in alike.items():
            longer = [place for place in places if depths[place] < len(parts[place]) and full[place] not in kept]
            if not longer:
                one, other, *_ = sorted(holders[twice])
                raise ConfigError(
                    f"{one!r} and {other!r} would both be {twice!r} in the working folder; rename one, or let code "
                    "read their folder (kernel.read)"
                )
            deepest = max(depths[place] for place in longer)
            for index in longer:
                depths[index] += depths[index] == deepest


def _end_of(name: str) -> str:
    while len(os.fsencode(name)) > LONGEST_NAME_BYTES:
        name = name[1:]
    return name


def incomplete_copy_reason(file: BinaryIO, path: Path, beside: Callable[[str], BinaryIO | None]) -> str:
    """Return why a copy of a file would lack what was written to it; empty: it would not.

    Args:
        file: The file, at its beginning; it is read from.
        path: Where it lies, for the words.
        beside: Opens what has its name with an end such as `-wal`, over no link; None: there is nothing of that name.

    Raises:
        OSError: what lies beside it can't be opened, such as a link.
    """
    if file.read(len(_SQLITE)) != _SQLITE or not (log := beside("-wal")):
        return ""
    with log:
        if not os.fstat(log.fileno()).st_size:
            return ""
    if index := beside("-shm"):  # the log's index says how much of it is written back
        with index, contextlib.suppress(struct.error):
            frames, written = struct.unpack("=16xI76xI", index.read(100))
            if frames == written:
                return ""
    return (
        f"{path}: what was written last is still in {path}-wal, and would be missing without a word; close the "
        "programs that use it, or give a copy that SQLite makes: "
        f"sqlite3 {shlex.quote(path.name)} \"VACUUM INTO 'copy.db'\""
    )


def is_outdated(name: str, copied: Copied, folder: Path) -> bool:
    """Return whether a file was written since it was copied, and its copy is still the one that was made of it.

    Args:
        name: Of the copy.
        copied: What was copied.
        folder: The working folder.
    """
    try:
        with SafeFolder(folder) as opened:
            return stamp(opened.info(name)) == copied.copy and stamp(os.stat(copied.source)) != copied.was
    except (OSError, ValueError):  # one of them is gone
        return False


def outdated_note(again: Sequence[str], outdated: Sequence[str]) -> str:
    """Return words about files that were written since an earlier request; empty: there are none.

    Args:
        again: Names of those that were copied again.
        outdated: Names of those that could not be.
    """
    head = "Written since an earlier request"
    words = [f"{head}, and copied again: {', '.join(map(repr, again))}. What code read before is older."] * bool(again)
    return " ".join([*words, *[f"{head}, but here as before: {', '.join(map(repr, outdated))}."] * bool(outdated)])


def stamp(info: os.stat_result) -> Stamp:
    """Return a file's time and size."""
    return (info.st_mtime_ns, info.st_size)
