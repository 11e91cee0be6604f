"""What kind a file is: by its name, and by how its content begins, which counts where the two differ."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping

from .csv_dialect import COMPRESSED, compression_of
from .file_size import size_words

_ALIASES = {"pq": "parquet", "parq": "parquet", "ipc": "arrow", "ldjson": "ndjson", "tgz": "tar"}
_SIGNS: Mapping[bytes, str] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "feather",
    b"SQLite format 3\0": "sqlite",
    b"%PDF-": "pdf",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "xls",
    b"PK\3\4": "zip",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
}
_PARTS = {"xl/workbook.xml": "xlsx", "xl/workbook.bin": "xlsb", "word/document.xml": "docx"}
_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument.spreadsheet"
_TAR_SIGN, _TAR_AT = b"ustar", 257
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s{0,100}(?:\[\s{0,100})?\{\s{0,100}"')
_PAGE = re.compile(rb"\s{0,100}<(?:!doctype html|html|table)\b", re.I)
_START = 1024
WORKBOOKS = ("xlsx", "xlsm", "xls", "xlsb", "ods")
PICTURES = ("PNG", "JPEG", "GIF")
_BINARY = (*WORKBOOKS, "parquet", "feather", "arrow", "pdf", "docx", "zip", *PICTURES)
_SAME = {"xlsm": "xlsx", "feather": "arrow", "db": "sqlite", "sqlite3": "sqlite"}
_TEXTS = ("csv", "tsv", "json", "geojson", "jsonl", "ndjson", "txt", "md", "rst", "log", "html", "htm", "xml")
_MAY_BE_EMPTY = ("", *_TEXTS[3:], "db", "sqlite", "sqlite3")
"""An empty database of SQLite is one without tables."""
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\r?\n(?:[^\n]{1,200}\n){0,9}?size (\d{1,18})\r?\n")
"""What lies in a clone of Git in the place of a large file that was not fetched."""


def kind_of(path: str) -> str:
    """Return the kind that a file's suffix names, that of a compressed one without the compression's."""
    stem, suffix = os.path.splitext(os.path.basename(path).lower())
    packed = suffix in COMPRESSED
    kind = (os.path.splitext(stem)[1] if packed else suffix).lstrip(".")
    kind = _ALIASES.get(kind, kind)
    return kind if not packed or kind in ("csv", "tsv", "json", "geojson", "jsonl", "ndjson", "tar") else ""


def content_kind(path: str) -> str:
    """Return the kind that a file's content shows: a binary one, `html`, `xml`, or a compression; empty: none."""
    found = start_kind(_read_start(path))
    if found == "zip":
        return _archive_kind(path)
    return found or compression_of(path).lstrip(".")


def _read_start(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_START)


def start_kind(start: bytes) -> str:
    """Return the kind that the first kilobyte of a content shows; empty: none that has a sign."""
    found = next((kind for sign, kind in _SIGNS.items() if start.startswith(sign)), "")
    if found and (found == "pdf" or not _is_text(start)):  # a column may be called PAR1
        return found
    if start[_TAR_AT:].startswith(_TAR_SIGN):
        return "tar"
    if _PAGE.match(start):
        return "html"
    return "xml" if start.removeprefix(b"\xef\xbb\xbf").startswith(b"<?xml ") else ""


def _archive_kind(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if names[:1] == ["mimetype"] and archive.open("mimetype").read(100).startswith(_OPEN_DOCUMENT):
                return "ods"
            return next((kind for part, kind in _PARTS.items() if part in names), "zip")
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError):
        return "zip"


def other_kind(path: str, kind: str) -> str:
    """Return the kind of a file whose content is not what its name says: `text`, or as of `content_kind`; empty: it is.

    Args:
        path: Of the file.
        kind: As its name says, see `kind_of`.

    Raises:
        ValueError: it is empty, or what its name says and cut off or damaged.
    """
    if not os.path.getsize(path) and kind not in _MAY_BE_EMPTY:
        raise ValueError("it is empty")
    if os.path.splitext(path)[1].lower() in (*COMPRESSED, ".zip", ".tgz"):
        return ""
    found = content_kind(path)
    known, looks = _SAME.get(kind, kind), _SAME.get(found, found)
    if known in _TEXTS:
        if kind in ("csv", "tsv") and _JSON.match(_read_start(path)):
            return "json"
        return found if found in (*_BINARY, "sqlite", "tar", *(one[1:] for one in COMPRESSED)) else ""
    if kind not in _BINARY:
        return ""
    if known == looks or kind in WORKBOOKS and found in WORKBOOKS or found == "zip" and kind in (*WORKBOOKS, "docx"):
        _refuse_torn(path, looks)
        return ""
    start = _read_start(path)
    if found or kind == "pdf" or not _is_text(start) or start.startswith((b"PK", b"PAR")):
        return found
    return "text"


def why_in_git_lfs(path: str) -> str:
    """Return that a file is not here but a pointer of Git LFS to it, and what fetches it; empty for any other file."""
    if not 0 < os.path.getsize(path) <= _START:
        return ""
    match = _POINTER.match(_read_start(path))
    if not match:
        return ""
    size = size_words(int(match[1]))
    return f"not here: Git LFS keeps it ({size}), and this is a pointer to it; `git lfs pull` fetches it"


def _refuse_torn(path: str, kind: str) -> None:
    """Raise an error about a file whose end is missing."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 16))
        end = file.read()
    zipped = kind in ("zip", "docx", "xlsx", "xlsb", "ods")
    if (zipped and not zipfile.is_zipfile(path)) or (kind == "parquet" and not end.endswith(b"PAR1")):
        raise ValueError("it is cut off or damaged: its end is not that of such a file")


def _is_text(start: bytes) -> bool:
    return not any(one < 9 or 13 < one < 27 for one in start)
