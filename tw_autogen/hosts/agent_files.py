"""Files that travel between a session's folder and an agent: named in words, linked in answers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from tw_autogen.conversation import is_mentioned
from tw_autogen.kernel import Artifact
from tw_autogen.safe_folder import SafeFolder, open_unlinked

_HEAD_ROWS = 5
_LINK = re.compile(r"\]\((file://[^()\s]+|/[^()\s]+)\)")


def linked_files(text: str, folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the files that an answer links to in Markdown, each as (the link as it stands there, its path).

    Args:
        text: An agent's words; they may come from anywhere, so they open no other place.
        folders: Where files may lie.
    """
    places = [folder.resolve() for folder in folders]
    for found in _LINK.finditer(text):
        link = found[1]
        try:
            named = url2pathname(unquote(urlsplit(link).path)) if link.startswith("file://") else unquote(link)
            path = Path(named).resolve()
            if any(path.is_relative_to(place) for place in places) and path.is_file():
                yield link, path
        except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, no address, links in a circle
            continue


def named_files(folder: Path, text: str) -> list[Path]:
    """Return the plain files of a folder whose names stand in a text.

    Args:
        folder: Only files directly in it.
        text: In which the names are looked for.
    """
    try:
        with SafeFolder(folder) as opened:
            names = [one.name for one in opened.walk(enter=lambda name: False) if one.is_file]
    except FileNotFoundError:
        return []
    return [folder / one for one in names if is_mentioned(one, text)]


def table_words(table: Any) -> str:
    """Describe a DataFrame in a few lines: rows, columns with types, head."""
    columns = ", ".join(f"{column} ({kind})" for column, kind in table.dtypes.items())
    head = table.head(_HEAD_ROWS).to_csv(index=False).strip()
    return f"{len(table)} rows; columns: {columns}; its head:\n{head}"


def bring(source: Path, folder: Path) -> Path:
    """Copy a file into a session's folder, under its own name if that is free.

    Args:
        source: Absolute, with links resolved.
        folder: The session's.

    Raises:
        OSError: a link has been put in the way meanwhile, or the system refuses.
    """
    with open_unlinked(source) as opened:
        path, target = Artifact.new_file(folder, source.name, "file")
        with target:
            shutil.copyfileobj(opened, target)
    return path
