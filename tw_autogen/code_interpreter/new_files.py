"""Which files a cell made in its folder, whoever wrote them: `to_csv`, `savefig`, `open`."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Mapping
from pathlib import Path

from tw_autogen.escaped_text import is_unicode
from tw_autogen.kernel import Artifact, size_words
from tw_autogen.safe_folder import SafeFolder

_KINDS: Mapping[str, str] = {
    ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".svg": "svg",
    ".csv": "df", ".tsv": "df", ".parquet": "df", ".feather": "df", ".xlsx": "df",
    ".html": "html", ".json": "json", ".txt": "txt", ".md": "txt", ".log": "txt",
}  # fmt: skip
_MOST_FILES = 2000
_MOST_ENTRIES = 20_000

Snapshot = Mapping[Path, tuple[int, int]]


def snapshot(folder: Path) -> Snapshot:
    """Take down when each file below the folder was last written, and its size.

    Hidden ones, links, and names that are no UTF-8 are left out.
    """
    found: dict[Path, tuple[int, int]] = {}
    with contextlib.suppress(FileNotFoundError), SafeFolder(folder) as opened:
        entries = opened.walk(enter=lambda name: not name.startswith((".", "__")))
        for one in itertools.islice(entries, _MOST_ENTRIES):
            if one.is_file and not one.name.rpartition("/")[2].startswith(".") and is_unicode(one.name):
                found[folder / one.name] = (one.info.st_mtime_ns, one.info.st_size)
                if len(found) > _MOST_FILES:  # somebody else's tree: not worth the time of every cell
                    break
    return found


def new_files(before: Snapshot, after: Snapshot, known: Collection[Path]) -> tuple[Artifact, ...]:
    """Return the files that are new or changed, as artifacts, in order of their names.

    Args:
        before: Taken before the cell.
        after: Taken behind it.
        known: Files that are artifacts already.
    """
    changed = [path for path, stamp in after.items() if before.get(path) != stamp and path not in known]
    return tuple(
        Artifact(path.name, _KINDS.get(path.suffix.lower(), "file"), path, size_words(after[path][1]))
        for path in changed
    )
