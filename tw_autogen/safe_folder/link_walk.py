"""`walk_links`: where a path leads, each link on its way read once."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_MOST_LINKS = 40


def walk_links(path: Path | str) -> tuple[str, list[str]]:
    """Return where a path leads, and the links on the way, each with its real folder.

    Each link is read once, so that what is checked is what is followed.

    Args:
        path: Absolute, or relative to the current folder; it need not exist.

    Raises:
        OSError: there are more links than a system follows, as in a circle; the message says where.
    """
    drive, rest = os.path.splitdrive(path if os.path.isabs(path) else os.path.join(os.getcwd(), path))
    here, left, links = drive + os.sep, rest.split(os.sep), list[str]()
    while left:
        name = left.pop(0)
        step = os.path.join(here, name)
        if name == os.pardir:
            here = os.path.dirname(here)
        elif name not in ("", os.curdir):
            try:
                target = os.readlink(step)
            except OSError:  # no link, or nothing there
                target = ""
            if target:
                links.append(step)
                if len(links) > _MOST_LINKS:
                    why = f"it leads over more than {_MOST_LINKS} links, or in a circle, at {step}"
                    raise OSError(errno.ELOOP, why, os.fspath(path))
                here = drive + os.sep if os.path.isabs(target) else here
                left = [*target.split(os.sep), *left]
            else:
                here = step
    return here if os.name == "posix" else os.path.realpath(path), links
