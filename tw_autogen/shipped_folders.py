"""Where the ready-made pieces lie: `roles/`, `plugins/`, `scenarios/`."""

from __future__ import annotations

from pathlib import Path


def shipped_folder(name: str) -> Path:
    """Return the folder of ready-made pieces, in an installed wheel and in a checkout alike.

    Args:
        name: `roles`, `plugins` or `scenarios`.

    Raises:
        FileNotFoundError: this installation brings no such folder.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_shipped" / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"this installation of tw_autogen has no {name!r} folder beside {package}; install it again"
    )
