"""`UserPath`: a path in an option or argument; `~` is the home, also where the shell has left it (`--out=~/x`)."""

from __future__ import annotations

import os
from typing import Any

import click

from tw_autogen.errors import url_problem


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
        if str(value).startswith("~") and os.path.lexists(value):
            self.fail(f"{value}: there is a folder of this name here; write ./{value}, or the whole path", param, ctx)
        if problem := url_problem(str(value)):
            self.fail(f"{value} is {problem}", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)
