"""The way through a tree of directories by descriptors, at any depth; what removes a tree."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tw_autogen.safe_folder.directory_calls import (
    At,
    close,
    identity,
    open_above,
    open_again,
    open_folder,
    open_to_empty,
    refuse_kept,
    rmdir,
    unlink,
)

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

_MAX_HELD = 32
"""How many levels of a tree are held open at once; deeper ones are left by `..`, which is verified."""


_DEEPEST = 50_000
"""Levels below the first one: code that moves folders meanwhile could lead a walk down for ever."""


class Descent:
    """A walk through the directories of a tree, depth first, with a bounded number of open descriptors.

    Args:
        at: The directory to begin with; closed with this.
        leave: Called with the directory above and the name of each that was left for good; such directories are opened
            to be emptied. None: they are only read.
        closed: Called with the directory above, the name and the error of each that can't be opened; may raise.
        once: A directory is entered once, whatever names it gets: code could move it on to names still to come, for
            ever.
    """

    def __init__(
        self,
        at: At,
        *,
        leave: Callable[[At, str], None] | None = None,
        closed: Callable[[At, str, OSError], None] = lambda above, name, error: None,
        once: bool = False,
    ) -> None:
        self.at = at
        """The directory that is open now."""
        self._leave = leave
        self._closed = closed
        self._above: list[tuple[At | None, tuple[int, int]]] = []
        self._entered: set[tuple[int, int]] | None = set() if once else None
        self._names: list[str] = []
        self._to_enter: list[list[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close(self.at)
        for at, _ in self._above:
            if at is not None:
                close(at)

    @property
    def prefix(self) -> str:
        """Name of the open directory relative to the first one, with a `/` at its end; empty for the first one."""
        return "/".join([*self._names, ""])

    def advance(self, folders: list[str]) -> bool:
        """Go on to the next directory.

        Args:
            folders: Names of those below the open one that are to be entered. One that can't be opened is left out.

        Returns:
            Whether there is another one.
        """
        self._to_enter.append(folders[::-1])
        while True:
            while self._to_enter[-1]:
                name = self._to_enter[-1].pop()
                try:
                    self._descend(name)
                except OSError as error:
                    self._closed(self.at, name, error)
                else:
                    return True
            if not self._above:
                return False
            self._ascend()

    def _descend(self, name: str) -> None:
        if len(self._names) >= _DEEPEST:
            raise OSError(errno.ELOOP, f"more than {_DEEPEST} folders in one another", name)
        if self._leave:
            inner = open_to_empty(self.at, name)
        else:
            refuse_kept(self.at, name)
            inner = open_folder(self.at, name, listed=True)
        if self._entered is not None:
            found = identity(inner)
            if found in self._entered:
                close(inner)
                raise OSError(errno.ESTALE, "it was moved while it was looked at", name)
            self._entered.add(found)
        above = identity(self.at)
        if isinstance(self.at, int) and len(self._above) >= _MAX_HELD:
            close(self.at)
            self._above.append((None, above))
        else:
            self._above.append((self.at, above))
        self.at = inner
        self._names.append(name)

    def _ascend(self) -> None:
        """Go back to the directory above; to the next that is held open, if this one was moved away meanwhile."""
        at, above = self._above.pop()
        name = self._names.pop()
        self._to_enter.pop()
        if at is None:
            at = _verified_above(self.at, above)
        moved = at is None
        while at is None:
            at, _ = self._above.pop()
            self._names.pop()
            self._to_enter.pop()
        close(self.at)
        self.at = at
        if self._leave and not moved:
            self._leave(at, name)


def _verified_above(at: At, expected: tuple[int, int]) -> At | None:
    with contextlib.suppress(OSError):
        above = open_above(at)
        if identity(above) == expected:
            return above
        close(above)
    return None


def empty(at: At, *, seconds: float = math.inf) -> None:
    """Remove all that is in a directory, however deep.

    Args:
        at: Its descriptor, which allows it to be listed; or its path.
        seconds: How long it may take: code that lives can make folders faster than they are removed.

    Raises:
        OSError: something could not be removed; the first error, once the rest is removed.
        TimeoutError: it has taken too long.
    """
    errors: list[OSError] = []
    ends = time.monotonic() + seconds

    def attempt(remove: Callable[[At, str], None], here: At, name: str) -> None:
        try:
            remove(here, name)
        except FileNotFoundError:
            pass
        except OSError as error:
            errors.append(error)

    with Descent(open_again(at), leave=lambda above, name: attempt(rmdir, above, name)) as way:
        more = True
        while more:
            folders = []
            for one in _list_entries(way.at):
                if time.monotonic() > ends:
                    raise TimeoutError(errno.ETIMEDOUT, "its removal takes too long: something goes on writing there")
                if one.is_dir(follow_symlinks=False):
                    folders.append(one.name)
                else:
                    attempt(unlink, way.at, one.name)
            more = way.advance(folders)
    if errors:
        raise errors[0]
    if _list_entries(at):
        raise OSError(errno.ENOTEMPTY, "not all of it could be removed")


def _list_entries(at: At) -> list[os.DirEntry[str]]:
    with os.scandir(at) as entries:
        return list(entries)
