"""Files of a folder that others use: they have another name outside of it, or are of a Python environment."""

from __future__ import annotations

import bisect
import contextlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tw_autogen.safe_folder.directory_calls import PATH_MAX, At, identity, open_folder
from tw_autogen.safe_folder.directory_tree import Descent
from tw_autogen.safe_folder.protected_names import (
    folder_replaced_error,
    is_environment,
    is_environment_entry,
)
from tw_autogen.unlisted_folders import check_unlisted

_Identity = tuple[int, int]
_MAX_ENTRIES = 1_000_000
"""Beyond that code could make new ones as fast as they are looked at."""
_MAX_NAMED_CHARS = 64 << 20
"""In the paths of all that is found, which are held in memory."""


@dataclass(frozen=True)
class _Found:
    """A file or folder, path and identity; with the folders on the way to it, the outermost first."""

    above: Sequence[tuple[str, _Identity]]
    itself: tuple[str, _Identity]

    @property
    def path(self) -> str:
        return self.itself[0]

    @property
    def depth(self) -> int:
        return len(self.above) + 1

    def lies_in(self, places: Collection[str]) -> bool:
        """Return whether it is one of these places, or below one."""
        return self.path in places or any(path in places for path, _ in self.above)

    def upto(self, level: int) -> tuple[str, _Identity]:
        """Return the folder at a level, 1 for the outermost; what was found itself, if that is no lower."""
        return self.above[level - 1] if level < self.depth else self.itself


def used_elsewhere(
    folder: str,
    *,
    known: _Identity | None = None,
    apart: Collection[str] = (),
    protected: Collection[str] = (),
    most: int,
) -> dict[str, dict[str, _Identity]]:
    """Return the files below a folder with a hard link outside of it, or to what is protected; or the folders of these.

    Python environments come too, whole: other programs run and import what lies there. Tools that install packages (uv,
    conda, pnpm) and copies by `cp -l` make such files. Where there are too many, the folders on the lowest levels stand
    for what they hold. A folder that can't be listed comes itself: what it holds is not known.

    Args:
        folder: Absolute, no link itself; links below are not followed. One that is missing has none.
        known: Device and number that the folder must have; None: any.
        apart: Paths below it that are not looked at, and for which no folder above them may stand.
        protected: Paths below it that stay read-only anyway, and do not come: files, and folders with all they hold.
        most: How many paths come at most.

    Returns:
        By path: device and number by path of the folder, of those on the way, and its own.

    Raises:
        OverflowError: there are more in the folder itself, or beside what is apart; or more files and folders than
            can be looked through.
        PermissionError: the folder is not the one that is known, or can't be listed.
    """
    try:
        at = open_folder(None, folder, listed=True)
    except OSError as error:
        check_unlisted(error, folder)
        return {}
    links: dict[_Identity, int] = {}
    files: dict[_Identity, list[_Found]] = {}
    others: list[_Found] = []

    def closed(above: At, name: str, error: OSError) -> None:
        try:
            check_unlisted(error, name, at=above)
        except PermissionError:
            with contextlib.suppress(OSError):
                about = os.stat(name, follow_symlinks=False, **({"dir_fd": above} if isinstance(above, int) else {}))
                above_it = chain[: way.prefix.count("/") + 1]
                path = os.path.join(above_it[-1][0], name)
                others.append(_Found(above_it, (path, (about.st_dev, about.st_ino))))

    with Descent(at, closed=closed) as way:
        if known is not None and identity(at) != known:
            raise folder_replaced_error(folder)
        chain: list[tuple[str, _Identity]] = []
        left, room = _MAX_ENTRIES, _MAX_NAMED_CHARS
        more = True
        while more:
            prefix = way.prefix
            del chain[prefix.count("/") :]
            here = os.path.join(folder, prefix.replace("/", os.sep)).rstrip(os.sep) if prefix else folder
            chain.append((here, identity(way.at)))
            above = tuple(chain)  # one for all that is found here
            inner, linked, packages, looked = _scan_folder(way.at, here, apart, top=not prefix)
            left -= looked
            others += [
                _Found(above, package) if package[0] != here else _Found(above[:-1], package) for package in packages
            ]
            for path, number, count in linked:
                links[number] = count
                files.setdefault(number, []).append(_Found(above, (path, number)))
            if any(len(here) + 1 + len(name) >= PATH_MAX for name in inner):  # what lies there can't be named
                *outermost, last = above[:2]
                others.append(_Found(outermost, last))
                inner = []
            room -= sum(len(path) for path, _ in packages) + sum(len(path) for path, _, _ in linked)
            if left < 0 or room < 0:
                raise OverflowError(f"{folder}: more files and folders than can be looked through")
            more = way.advance(inner)
    places = frozenset(protected)
    shared = [
        place
        for number, names in files.items()
        if len(names) < links[number] or any(name.lies_in(places) for name in names)
        for place in names
    ]
    kept = _at_most([name for name in (*shared, *others) if not name.lies_in(places)], most)
    if len(kept) > most or any(name.startswith(path + os.sep) for name in apart for path in kept):
        raise OverflowError(
            f"{folder}: more than {most} files with another name outside of it, or of Python environments"
        )
    return kept


def _scan_folder(
    at: At, here: str, apart: Collection[str], *, top: bool
) -> tuple[list[str], list[tuple[str, _Identity, int]], list[tuple[str, _Identity]], int]:
    """Return the folders in an open folder by name; its files that have several links; what is of an environment.

    Args:
        at: The folder.
        here: Its path.
        apart: Paths that are passed over.
        top: Whether what is of no environment is looked at in the folder of one, too.

    Returns:
        Names; path, identity and links of files; path and identity, of the folder itself too; how many were looked at.
    """
    folders, linked, packages = [], [], []
    with os.scandir(at) as found:
        entries = list(found)
    environment = is_environment([entry.name for entry in entries])
    if environment and not top:
        return [], [], [(here, identity(at))], len(entries)
    for entry in entries:
        path = os.path.join(here, entry.name) if apart or environment else ""
        if apart and path in apart:
            continue
        if environment and is_environment_entry(entry.name) and not entry.is_symlink():
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                about = entry.stat(follow_symlinks=False)
                packages.append((path, (about.st_dev, about.st_ino)))
        elif entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        elif entry.is_file(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):
                about = entry.stat(follow_symlinks=False)
                if about.st_nlink > 1:
                    linked.append((os.path.join(here, entry.name), (about.st_dev, about.st_ino), about.st_nlink))
    return folders, linked, packages, len(entries)


def _at_most(found: Sequence[_Found], most: int) -> dict[str, dict[str, _Identity]]:
    """Return what was found by path; of what lies too low to be few, the folders on the level where they are."""

    def number(level: int) -> int:
        return len({name.upto(level)[0] for name in found})

    deepest = max((name.depth for name in found), default=1)
    if deepest == 1:
        return {}
    level = max(2, bisect.bisect_right(range(2, deepest + 1), most, key=number) + 1)  # the lower, the more there are
    kept: dict[str, dict[str, _Identity]] = {}
    for one in found:
        path, mark = one.upto(level)
        if path not in kept:
            kept[path] = {**dict(one.above[:level]), path: mark}
        if len(kept) > most:
            break
    return kept
