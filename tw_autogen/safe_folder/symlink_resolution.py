"""`walk_links`: where a path leads, each link on its way read once."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

_MAX_LINKS = 40
_SHARED = {".config", ".cache", ".local", "share", "state"}
"""Hidden folders in which programs that have nothing to do with one another keep what is theirs."""


class Walk(NamedTuple):
    """Where a path leads.

    Args:
        target: Absolute, without links.
        links: Those on the way, each with its real folder.
        brought: Of the target and the folders above it those whose name a link says, and not the path.
    """

    target: str
    links: list[str]
    brought: set[str]


def walk_links(path: Path | str) -> Walk:
    """Follow a path, link by link.

    Each link is read once, so that what is checked is what is followed.

    Args:
        path: Absolute, or relative to the current folder; it need not exist.

    Raises:
        OSError: there are more links than a system follows, as in a circle; the message says where.
    """
    drive, rest = os.path.splitdrive(path if os.path.isabs(path) else os.path.join(os.getcwd(), path))
    here, left, links, brought = drive + os.sep, rest.split(os.sep), list[str](), set[str]()
    typed = len(left)
    while left:
        named = len(left) <= typed
        typed -= named
        name = left.pop(0)
        step = os.path.join(here, name)
        if name == os.pardir:
            here = os.path.dirname(here)
            if not named and os.path.basename(here) in _SHARED:
                brought.update(map(str, (Path(here), *Path(here).parents)))
        elif name not in ("", os.curdir):
            try:
                target = os.readlink(step)
            except OSError:  # no link, or nothing there
                target = ""
            if target:
                links.append(step)
                if len(links) > _MAX_LINKS:
                    why = f"it leads over more than {_MAX_LINKS} links, or in a circle, at {step}"
                    raise OSError(errno.ELOOP, why, os.fspath(path))
                here = drive + os.sep if os.path.isabs(target) else here
                left = [*target.split(os.sep), *left]
            else:
                here = step
                (brought.discard if named else brought.add)(here)
    found = here if os.name == "posix" else os.path.realpath(path)
    return Walk(found, links, brought & {found, *map(str, Path(found).parents)})
