"""`write_text`: a file that a person asked for, written or refused with the reason."""

from __future__ import annotations

from pathlib import Path

from tw_autogen.errors import ConfigError


def write_text(path: Path, text: str) -> Path:
    """Write a file, and make the folders that it lies in.

    Raises:
        ConfigError: it can't be written; says why.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror or error}") from error
    return path
