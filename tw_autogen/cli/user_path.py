"""`UserPath`: a path in an option or argument; `~` is the home, also where the shell has left it (`--out=~/x`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class UserPath(click.Path):
    """As `click.Path`, with `~` replaced before anything is looked at."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; raises as `click.Path` does, also for what a folder `~` of the current folder holds.

        The shell replaces `~`, but not behind `=`; and it gives such names for `*/*`.

        Args:
            value: As it was typed, or the default.
            param: Which option or argument it is of; None: not known.
            ctx: The command's; None: not known.
        """
        if str(value).startswith("~") and is_there(value):
            self.fail(f"{value}: there is a folder of this name here; write ./{value}, or the whole path", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)


def from_home(name: str | Path) -> Path:
    """Return a path with the home for `~`, unless it is there as it stands: `*/*.csv` gives what a folder `~` holds.

    Raises:
        RuntimeError: no user is called so.
    """
    return Path(name) if is_there(name) else Path(name).expanduser()


def is_there(name: str | Path) -> bool:
    """Return whether a path leads to anything as it stands."""
    try:
        return os.path.lexists(name)
    except ValueError:  # a NUL in it
        return False
