"""Names of files that stand in a text: data, pictures and documents."""

from __future__ import annotations

import os
import re

from tw_autogen.safe_folder import is_protected

_SUFFIXES = frozenset({
    ".arrow", ".avro", ".csv", ".db", ".feather", ".geojson", ".json", ".jsonl", ".ndjson", ".npy", ".npz", ".ods",
    ".orc", ".parquet", ".sqlite", ".sqlite3", ".tsv", ".xlsx", ".zip",
    ".bmp", ".gif", ".jpeg", ".jpg", ".pdf", ".png", ".svg", ".tif", ".tiff", ".webp",
    ".docx", ".html", ".md", ".odt", ".pptx", ".rst", ".tex", ".txt",
})  # fmt: skip
_PACKED = (".bz2", ".gz", ".xz", ".zst")
_QUOTED = re.compile(r"""(?<![\w.])(["'`])(?P<name>[^"'`\n]{1,200}\.\w{1,10})\1""")
_RUN = re.compile(r"""[^\s"'`<>|*?:;,()\[\]{}=]+""")
_SUFFIX = re.compile(r"""\.\w{2,10}(?![\w/\\-]|\.\w)""")


def is_document(name: str) -> bool:
    """Return whether a plain name has a suffix of data, pictures or documents, and is no dotfile or protected name."""
    return split_suffix(name.lower())[1] in _SUFFIXES and not name.startswith(".") and not is_protected(name)


def split_suffix(name: str) -> tuple[str, str, str]:
    """Split a name into its stem, its suffix, and the suffix of a packed file.

    Example:
        >>> split_suffix("a.csv.gz"), split_suffix("b.png")
        (('a', '.csv', '.gz'), ('b', '.png', ''))
    """
    stem, suffix = os.path.splitext(name)
    if suffix.lower() not in _PACKED:
        return stem, suffix, ""
    return (*os.path.splitext(stem), suffix)


def file_names(text: str) -> list[str]:
    r"""Return the names of data, pictures and documents that a text holds, in order, each once; paths as they stand.

    A name with blanks is found in quotes. Addresses with a scheme are left out.

    Example:
        >>> file_names("Join a.csv with 'my data/b c.xlsx', see https://x.org/d.csv and save it as out.csv.")
        ['a.csv', 'my data/b c.xlsx', 'out.csv']
    """
    spans = [(found.start("name"), found["name"]) for found in _QUOTED.finditer(text)]
    quoted = {place for at, name in spans for place in range(at, at + len(name))}
    for run in _RUN.finditer(text):
        ends = [suffix.end() for suffix in _SUFFIX.finditer(run[0], 1)]
        if not ends or run.start() in quoted or run[0].startswith("//") or text.endswith("://", 0, run.start()):
            continue
        spans.append((run.start(), run[0][: ends[-1]].lstrip("@").removeprefix("./")))
    names = dict.fromkeys(name for _, name in sorted(spans))
    return [name for name in names if is_document(re.split(r"[/\\]", name)[-1])]


def is_mentioned(name: str, text: str) -> bool:
    """Return whether a file's plain name stands in a text as a word of its own.

    Args:
        name: Any name, not empty.
        text: Any length; the time is that of a plain search.

    Example:
        >>> is_mentioned("a.csv", "look at data/a.csv, please"), is_mentioned("a.csv", "look at data.csv")
        (True, False)
    """
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (_is_word(before) or before in ("-", ".")) and not (_is_word(after) or after == "-"):
            return True
        at = text.find(name, at + 1)
    return False


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
