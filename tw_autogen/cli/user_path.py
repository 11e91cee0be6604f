"""`UserPath`: a path in an option or argument; `~` is the home, also where the shell has left it (`--out=~/x`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class UserPath(click.Path):
    """As `click.Path`, with `~` replaced before anything is looked at."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; raises as `click.Path` does.

        Args:
            value: As it was typed, or the default.
            param: Which option or argument it is of; None: not known.
            ctx: The command's; None: not known.
        """
        return super().convert(str(from_home(value)), param, ctx)


def from_home(name: str | Path) -> Path:
    """Return a path with the home for `~`, unless it is there as it stands: `*/*.csv` gives what a folder `~` holds.

    Raises:
        RuntimeError: no user is called so.
    """
    path = Path(name)
    try:
        return path if os.path.lexists(path) else path.expanduser()
    except ValueError:  # a NUL in it
        return path
