"""Suffixes of data, documents and pictures: the one list for whatever tells files apart by their names.

The kernel's own lists (`kernel/guest/files`), which stand alone, name what is described; a test keeps them within this.
"""

from __future__ import annotations

DATA = frozenset({
    ".arrow", ".avro", ".csv", ".db", ".dta", ".feather", ".geojson", ".ipc", ".json", ".jsonl", ".ldjson", ".ndjson",
    ".npy", ".npz", ".ods", ".orc", ".parq", ".parquet", ".pq", ".sas7bdat", ".sav", ".sqlite", ".sqlite3", ".tar",
    ".tgz", ".tsv", ".xls", ".xlsb", ".xlsm", ".xlsx", ".xml", ".xpt", ".zip",
})  # fmt: skip
DOCUMENTS = frozenset({".docx", ".htm", ".html", ".md", ".odt", ".pdf", ".pptx", ".rst", ".tex", ".txt"})
PICTURES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".tif", ".tiff", ".webp"})
PACKED = (".bz2", ".gz", ".xz", ".zst")
MACROS = (".xls", ".xlsb", ".xlsm")
"""Of data that may hold programs which the user's own programs run."""
