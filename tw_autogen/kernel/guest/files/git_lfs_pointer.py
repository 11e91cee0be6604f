"""Pointers of Git LFS, which lie in a clone instead of large files that were not fetched."""

from __future__ import annotations

import os
import re

from .file_size import size_words

_POINTER_BYTES = 1024
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\r?\n(?:[^\n]{1,200}\n){0,9}?size (\d{1,18})\r?\n")


def why_in_git_lfs(path: str) -> str:
    """Return that a file is not here but a pointer of Git LFS to it, and what fetches it; empty for any other file."""
    if not 0 < os.path.getsize(path) <= _POINTER_BYTES:
        return ""
    with open(path, "rb") as file:
        found = _POINTER.match(file.read(_POINTER_BYTES))
    if not found:
        return ""
    size = size_words(int(found[1]))
    return f"not here: Git LFS keeps it ({size}), and this is a pointer to it; `git lfs pull` fetches it"
