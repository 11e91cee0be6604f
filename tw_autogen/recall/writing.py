"""What a person asked to have written down: without private paths, and written or refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.safe_folder import SafeFolder


def without_paths(text: str, private: Sequence[str]) -> str:
    """Take paths out of a text: what lies in a folder is named from there, the folder itself is `.`.

    Example:
        >>> without_paths("read /tmp/a/files/x.csv in /tmp/a", ["/tmp/a/files", "/tmp/a"])
        'read x.csv in .'
    """
    for one in sorted(filter(None, private), key=len, reverse=True):
        text = text.replace(f"file://{one}/", "").replace(f"{one}/", "").replace(one, ".")
    return text


def write_text(path: Path, text: str) -> Path:
    """Write a new file, and make the folders that it lies in.

    Raises:
        ConfigError: something has this name, even a dangling link, or it can't be written; says why.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with SafeFolder(path.parent.resolve()) as folder, folder.create_file(path.name) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror or error}") from error
    return path
