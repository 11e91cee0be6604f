"""What of the file system this kernel's code can read and write, found by looking at it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_BESIDE = ("landlock", "seatbelt")
"""Levels at which code sees the host's folders, and may not open all of them."""
_MAX_STEPS = 64


class ReachableFiles:
    """What this kernel's code can reach. Of the interpreter and of projects only parts may be granted.

    Args:
        folder: Where cells run.
        sandbox: As of `Hints`, with a `level`.
    """

    def __init__(self, folder: str, sandbox: Mapping[str, Any]) -> None:
        self._sandbox = sandbox
        self.granted = (folder, *sandbox.get("read", ()), *sandbox.get("write", ()))
        self.beside = sandbox.get("level") in _BESIDE
        self._home = os.path.expanduser("~")
        self._written = (folder, *sandbox.get("write", ()))

    def is_reachable_by_code(self, path: str) -> bool:
        """Return whether code can read a path, or could if it were there.

        Args:
            path: Absolute.
        """
        found = os.path.realpath(path)
        if is_below(found, (*self.granted, *self._sandbox["system"], "/dev", "/proc")):
            return True
        near = _nearest_existing(found)
        if self.beside:
            return can_read(near)
        if near == found and not os.path.isdir(found):
            return True
        empty = ["/", *(() if is_below("/tmp", self.granted) or near == found else ("/tmp",))]
        return os.stat(near).st_dev not in {os.stat(one).st_dev for one in empty}

    def is_writable(self, path: str) -> bool:
        """Return whether code may write to a path, or make it.

        Args:
            path: Absolute.
        """
        if is_below(path, self._written):
            return True
        places = ("/dev", "/proc") if self.beside else ("/tmp", "/dev", "/proc")
        return is_below(path, (*places, *_private_folders())) and not is_below(path, self._sandbox["read"])

    def link_out(self, path: str) -> tuple[str, str] | None:
        """Return the first link on the way to a path that leads to what code can't read, and where it leads.

        Args:
            path: Absolute.
        """
        at = ""
        for name in path.split("/")[1:_MAX_STEPS]:
            at = f"{at}/{name}"
            if os.path.islink(at) and not is_below(at, ("/dev", "/proc")):
                target = os.path.realpath(at)
                if not self.is_reachable_by_code(target):
                    return at, target
        return None

    def hidden_user_path(self, path: str) -> tuple[str, str] | None:
        """Return which empty folder of code's own a path lies in, in words, and what settings call the user's path.

        Args:
            path: Absolute.
        """
        if is_below(path, self.granted) or (not self.beside and self.is_reachable_by_code(path)):
            return None
        home, tmp = (self._home, "home folder", "~"), ("/tmp", "/tmp", "/tmp")
        for own, what, theirs in (home,) if self.beside else (home, tmp):
            if is_below(path, (own,)):
                return what, theirs + os.path.realpath(path)[len(os.path.realpath(own)) :]
        return None

    def granted_home(self, below: str) -> str:
        """Return the path of a file in the user's home folder that is granted; empty if none is.

        Args:
            below: Where it lies in that folder, which code is not told: begins with a slash.
        """
        ends = [below]
        while len(ends) < _MAX_STEPS and (above := os.path.dirname(ends[-1])) != "/":
            ends.append(above)
        found = (one + below[len(end) :] for end in ends for one in self.granted if one.endswith(end))
        return next(filter(os.path.exists, found), "")


def can_read(path: str) -> bool:
    """Return whether a file or folder can be opened; what is neither counts by its rights.

    Args:
        path: Absolute.
    """
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            os.scandir(path).close()
        elif stat.S_ISREG(mode):
            os.close(os.open(path, os.O_RDONLY))
        else:
            return os.access(path, os.R_OK)
    except OSError:
        return False
    return True


def is_absent(path: str) -> bool:
    """Return whether there is nothing at a path, as far as that can be seen.

    Args:
        path: Absolute.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def closed_part(path: str) -> str:
    """Return what of a path this user may not read: the first folder on the way, or the path; empty if none.

    Args:
        path: Absolute.
    """
    names = path.split("/")
    for depth in range(2, len(names) + 1):
        above = "/".join(names[:depth])
        mode = os.R_OK if above == path else os.X_OK
        if os.path.exists(above) and not os.access(above, mode):
            return above
    return ""


def is_below(path: str, places: Iterable[str]) -> bool:
    """Return whether a path, or what it leads to, is one of these places or lies in one.

    Args:
        path: Absolute.
        places: Absolute paths.
    """
    found = {path, os.path.realpath(path)}
    return any(one == top or one.startswith(top.rstrip("/") + "/") for top in places for one in found)


def _nearest_existing(path: str) -> str:
    """Return a path or, if there is nothing, the lowest folder above it that is there."""
    while path != "/" and is_absent(path):
        path = os.path.dirname(path)
    return path


def _private_folders() -> Iterator[str]:
    names = ("TMPDIR", "HOME", "MPLCONFIGDIR", "IPYTHONDIR", "XDG_CACHE_HOME", "JUPYTER_RUNTIME_DIR")
    return (os.environ[name] for name in names if os.environ.get(name))
