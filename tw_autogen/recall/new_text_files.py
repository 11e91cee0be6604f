"""Write examples and lessons as new files, without private paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.safe_folder import open_or_make_folder


def without_paths(text: str, private: Sequence[str]) -> str:
    """Replace paths in a text: those in a folder become relative to it, the folder itself becomes `.`.

    Args:
        text: Any.
        private: Absolute paths of folders.

    Example:
        >>> without_paths("read /tmp/a/files/x.csv in /tmp/a", ["/tmp/a/files", "/tmp/a"])
        'read x.csv in .'
    """
    for one in sorted((one for one in private if len(one) > 1), key=len, reverse=True):  # not the root folder
        text = re.sub(rf"(?:file://)?{re.escape(one)}/", "", text)
        text = re.sub(rf"{re.escape(one)}(?![\w-]|\.\w)", ".", text)
    return text


def create_text_file(path: Path, text: str) -> Path:
    """Write a new file, and create its folders.

    Args:
        path: Where nothing exists yet. Its folder is opened as `open_or_make_folder` does.
        text: The content, written as UTF-8.

    Raises:
        ConfigError: something has this name, even a dangling link, a link of the current folder leads there, or it
            can't be written; says why.
    """
    try:
        with open_or_make_folder(path.parent) as folder, folder.create_file(path.name) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror or error}") from error
    return path
