"""Files of an answer, copied to where the user is: never over a file, through a link, or under a protected name."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from tw_autogen.conversation import folders_named, is_data_or_document, names_in_text, split_suffix
from tw_autogen.events import Event, FileCopied
from tw_autogen.kernel import Artifact, KernelSettings
from tw_autogen.named_folders import named_folder, refuse_private
from tw_autogen.safe_folder import (
    KERNEL_FOLDERS,
    SafeFolder,
    is_protected,
    open_or_make_folder,
)
from tw_autogen.session_layout import LONGEST_NAME_BYTES
from tw_autogen.text_escaping import visible_line
from tw_autogen.trusted_files import loads_code_of

_Stamp = tuple[int, ...]
_MAX_OF_A_NAME = 1000
_MODULES = (".py", ".pyc", ".pyd", ".so")


@dataclass(frozen=True)
class Saved:
    """What came of copying a file.

    Args:
        source: Where it lies in the session's folder.
        path: The copy; None: there is none.
        problem: Why there is none; empty if there is one.
    """

    source: Path
    path: Path | None
    problem: str = ""


def _place_in(text: str, source: Path, folder: Path) -> str:
    """Return where below the user's folder a text wants a file: `chart.png`, `out/chart.png`; empty: it names none.

    A place in a subfolder counts if the file lies in a subfolder of that name, or if there is no such file yet.
    """
    for named in folders_named(source.name, text):
        place = named + source.name
        lies = "/".join(source.parts[-len(PurePosixPath(place).parts) :])
        if not named or lies.casefold() == place.casefold() or not os.path.lexists(folder / place):
            return place
    return ""


def save_files(artifacts: Iterable[Artifact], folder: Path, *, limit_mb: int = KernelSettings.disk_mb) -> list[Saved]:
    """Copy files of an answer to a folder, each under its own name, or `name (2).png` where that one is taken.

    Args:
        artifacts: Whose files are copied. Dotfiles and names that programs run or obey, such as `conftest.py` and
            `Makefile`, or what begins with a dash, are not; nor is what has signs in its name that can't be seen, what
            has become a link, nor a Python module to the current folder, or to another one that this process imports
            from.
        folder: Where to; made if it is missing, and no link, as `open_or_make_folder` says. Copies have mode 0644, less
            the umask.
        limit_mb: How large the files may be together, by their length: holes in them take room in the copies. What
            exceeds it is not copied; 0: no limit.

    Returns:
        What came of each, in order; a path that stands there twice is copied once.

    Raises:
        OSError: the folder can't be made or opened, or a link is in the way, which the message names.
        ConfigError: a link leads to a hidden folder, as `private_reason` says.
    """
    refuse_private(folder)
    with open_or_make_folder(folder) as target:
        room = _Room(limit_mb)
        return [
            _save_copy(path, target, room, path.name) for path in dict.fromkeys(artifact.path for artifact in artifacts)
        ]


def _place_of(path: Path, writable: Iterable[Path]) -> Path:
    """Return an absolute path as one without links, but for those that `open_or_make_folder` refuses to follow.

    Args:
        path: Of a folder, which may be missing.
        writable: Folders that untrusted code may write to: links below are left as they are.
    """
    above = named_folder(path.parent, distrusted=())
    name, base = SafeFolder.outermost(path, writable)
    return base / name if name else above / path.name


class _Room:
    """How much may still be copied; `limit_mb` as of `save_files`."""

    def __init__(self, limit_mb: int) -> None:
        self._limit_mb = limit_mb
        self._left = limit_mb << 20

    def take(self, size: int) -> None:
        """Count a file that is to be copied.

        Raises:
            OSError: there is no room for it.
        """
        if self._limit_mb and size > self._left:
            why = (
                f"{-(-size >> 20)} MB, and of the {self._limit_mb} MB that an answer's files may take together "
                f"(kernel.disk_mb) {self._left >> 20} are left"
            )
            raise OSError(errno.EFBIG, why)
        self._left -= size


@dataclass(frozen=True)
class _Copy:
    """A file that was copied: its stamp then, where the copy is, and the copy's stamp."""

    source: _Stamp
    path: Path
    stamp: _Stamp


class AnswerFiles:
    """Copies files of answers to the folder that the user is in: those that the request names, or all after a grant.

    Args:
        folder: Where named files go.
        out: Where all files of an answer go instead; None: nobody has said so. Links above the current folder and
            `project` are followed once, now.
        project: A folder that somebody else may have made: below it, no link on the way to `out` is followed.
        limit_mb: As of `save_files`, for one answer.
        earlier: Events of a resumed session: what was copied to this place is known from them.
        emit: Called with an event for each copy.

    Raises:
        ConfigError: `out` is reached over a link to a hidden folder, as `private_reason` says.
    """

    def __init__(
        self,
        folder: Path,
        *,
        out: Path | None = None,
        project: Path | None = None,
        limit_mb: int = KernelSettings.disk_mb,
        earlier: Iterable[Event] = (),
        emit: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.folder = folder.resolve()
        self._emit = emit
        self._limit_mb = limit_mb
        own = [project.expanduser().resolve()] if project else []
        self.places = (*own, self.folder)
        """Where the user's files may lie."""
        self._out = Path(os.path.abspath(out)) if out else None
        if self._out is not None:
            refuse_private(self._out)
        self._place = _place_of(self._out, [Path.cwd(), *own, *KERNEL_FOLDERS]) if self._out else self.folder
        self.granted = self._for_good = False
        """Whether all files of this answer are copied."""
        self.refused = ""
        """Why the user does not allow all files of this answer to be copied; empty: nobody was asked, or they do."""
        self._done: dict[Path, _Copy] = {
            Path(one.source): _Copy(tuple(one.source_stamp), Path(one.path), tuple(one.stamp))
            for one in earlier
            if isinstance(one, FileCopied) and Path(one.path).is_relative_to(self._out or self.folder)
        }

    @property
    def sentence(self) -> str:
        """Words for the prompt about what becomes of files that code writes in the working folder."""
        place = visible_line(str(self._out or self.folder))
        if self._out:
            return f"All files that code makes in the working folder are copied to {place} with the answer."
        if self.granted:
            return (
                f"The User allows files to be saved in {place}: all files that code makes in the working folder "
                "are copied there with the answer, so write them there under their plain names."
            )
        return (
            f"Files that a request names to be saved are written to the working folder under their plain names; "
            f"they are copied to {place} with the answer if they are data, pictures or documents."
        )

    def covers(self, path: str) -> bool:
        """Return whether a path lies in the folder, or is it."""
        return Path(path).is_relative_to(self.folder)

    def grant(self, *, always: bool) -> str:
        """Copy all files of this answer, or of this and all later ones; return the sentence for the model."""
        self.granted, self._for_good = True, self._for_good or always
        return self.sentence

    def begin_request(self) -> None:
        """A request begins: a grant for the one before has ended."""
        self.granted, self.refused = self._for_good, ""

    def land(self, artifacts: Iterable[Artifact], text: str, *, earlier: Iterable[Artifact] = ()) -> list[Saved]:
        """Copy what belongs to an answer; a file that was copied before and has not changed since is left alone.

        One that has changed since replaces its copy; if the user has changed or removed that, it is copied anew to the
        same folder, beside theirs.

        Args:
            artifacts: Files of the answer.
            text: The user's own words; a file that they name in a subfolder (`out/a.csv`) is copied there.
            earlier: Files of earlier answers, which are copied if they are named, or were copied and have changed.

        Returns:
            What came of each file that was to be copied, or that the text names although it is no document.
        """
        artifacts = list(artifacts)
        everything = self.granted or self._out is not None
        places: dict[Path, str] = {}
        for one, always in [*((artifact, everything) for artifact in artifacts), *((one, False) for one in earlier)]:
            place = _place_in(text, one.path, self.folder)
            if one.path not in places and (place or always or one.path in self._done):
                places[one.path] = place if place and self._out is None else self._earlier_place(one.path)
        stamps = {path: _stamp(path) for path in places}
        fresh = {path: place for path, place in places.items() if self._is_fresh(path, place, stamps[path])}
        others = {artifact.path.name: artifact.path for artifact in artifacts if artifact.path not in places}
        others = {name: path for name, path in others.items() if not is_data_or_document(name)}
        why = f"only data, pictures and documents are copied to {self.folder}, and none that may hold macros"
        named = sorted(names_in_text(others, text))
        unsaved = [
            Saved(
                others[name], None, _obeyed_name_reason(name) or f"{name}: {why}; name a folder for all files (--out)"
            )
            for name in named
        ]
        if not fresh:
            return unsaved
        room = _Room(self._limit_mb)
        try:
            with self._open_target() as target:
                saved = [_save_copy(path, target, room, at, self._own_copy(path, at)) for path, at in fresh.items()]
                for copied in saved:
                    if (made := copied.path) is not None:
                        stamp, own = stamps[copied.source], _copy_stamp(target, made)
                        self._done[copied.source] = _Copy(stamp, made, own)
                        self._emit(FileCopied(str(copied.source), str(made), list(stamp), list(own)))
        except OSError as error:
            why = f"{self._out or self.folder}: {error.strerror or error}"
            return [*(Saved(path, None, why) for path in fresh), *unsaved]
        return [*saved, *unsaved]

    def _earlier_place(self, path: Path) -> str:
        """Return the name of a file's copy, below the folder, if it is to lie where an earlier one was written."""
        if path not in self._done or self._out is not None:
            return path.name
        return (self._done[path].path.parent.relative_to(self.folder) / path.name).as_posix()

    def _is_fresh(self, path: Path, place: str, stamp: _Stamp) -> bool:
        done = self._own_copy(path, place)
        return done is None or (done.source != stamp and stamp != _GONE)

    def _own_copy(self, path: Path, place: str) -> _Copy | None:
        """Return the copy of a file; None: there is none, or the user now names another subfolder than that of it."""
        done = self._done.get(path)
        elsewhere = done is not None and "/" in place and (self.folder / place).parent != done.path.parent
        return None if elsewhere else done

    def _open_target(self) -> SafeFolder:
        """Open where the copies go over no link, since a link that leads there now has come since the start."""
        if self._out is None:
            return SafeFolder.without_links(self._place)
        opened = open_or_make_folder(self._place, below=[self._place.anchor])
        opened.path = self._out
        return opened

    def saved_as(self, path: Path) -> Path | None:
        """Return where a file of the session's folder was copied to last; None if it was not."""
        return self._done[path].path if path in self._done else None


def _save_copy(source: Path, target: SafeFolder, room: _Room, place: str, done: _Copy | None = None) -> Saved:
    """Copy a file.

    Args:
        source: In the session's folder.
        target: The user's folder.
        room: What may still be copied.
        place: The name of the copy below the user's folder; if it is taken, a number is added.
        done: An earlier copy, which is replaced if it is still as it was written.
    """
    name = source.name
    parts = PurePosixPath(place).parts
    if obeyed := _obeyed_name_reason(place):
        return Saved(source, None, obeyed)
    if visible_line(place) != place:
        return Saved(source, None, f"{visible_line(place)}: its name has signs that can't be seen, so it is not copied")
    if name.casefold().endswith(_MODULES) and _imports_from(target):
        why = f"Python imports modules from {target.path}, so it is not copied there; name another folder"
        return Saved(source, None, f"{place}: {why}")
    try:
        with SafeFolder.without_links(source.parent) as beside, beside.open_file(source.name) as given:
            left = os.fstat(given.fileno()).st_size
            room.take(left)
            old = target.name_of(done.path) if done is not None else ""
            if done is not None and old and _copy_stamp(target, done.path) == done.stamp:
                part = str(PurePosixPath(old).with_name(f".{secrets.token_hex(8)}.part"))
                _copy(given, target, part, left)
                if _copy_stamp(target, done.path) == done.stamp:
                    target.move(part, old)
                    return Saved(source, done.path)
                target.remove(part)  # the user has written there meanwhile
                given.seek(0)
            if len(parts) > 1:
                target.make_folder("/".join(parts[:-1]), parents=True)
            for number in range(1, _MAX_OF_A_NAME):
                chosen = "/".join([*parts[:-1], _numbered_name(parts[-1], number)])
                with contextlib.suppress(FileExistsError):
                    _copy(given, target, chosen, left)
                    return Saved(source, target.path / chosen)
            raise FileExistsError(errno.EEXIST, f"{_MAX_OF_A_NAME - 1} files have this name already", name)
    except OSError as error:
        return Saved(source, None, f"{name}: {error.strerror or error}")


def _obeyed_name_reason(place: str) -> str:
    """Return why a file is copied nowhere under its name; empty: nothing speaks against the name."""
    obeyed = any(part.startswith((".", "-")) or is_protected(part) for part in PurePosixPath(place).parts)
    return f"{place}: programs run or obey files of this name, so it is not copied" if obeyed else ""


def _imports_from(target: SafeFolder) -> bool:
    """Return whether this process, or a script or notebook in the current folder, imports modules from a folder."""
    if loads_code_of(target.path):
        return True
    here = target.info(".")
    for one in (os.curdir, *sys.path):
        with contextlib.suppress(OSError, ValueError):
            if os.path.samestat(os.stat(one or os.curdir), here):
                return True
    return False


def _copy(given: BinaryIO, target: SafeFolder, name: str, size: int) -> None:
    """Copy the first `size` bytes to a new file, not what code writes meanwhile."""
    with target.create_file(name) as copy:
        try:
            while data := given.read(min(size, 1 << 20)):
                size -= copy.write(data)
        except BaseException:
            with contextlib.suppress(OSError):
                target.remove(name)
            raise


def _numbered_name(name: str, number: int) -> str:
    """Return `name (2).png` for the second of a name; of `a.csv.gz` both suffixes stay together."""
    if number == 1:
        return name
    stem, *suffixes = split_suffix(name)
    end = f" ({number}){''.join(suffixes)}"
    while stem and len(os.fsencode(stem + end)) > LONGEST_NAME_BYTES:
        stem = stem[:-1]
    return stem + end


_GONE: _Stamp = (0, -1)


def _stamp(path: Path) -> _Stamp:
    try:
        with SafeFolder.without_links(path.parent) as beside:
            found = beside.info(path.name)
    except OSError:
        return _GONE
    return (found.st_mtime_ns, found.st_size)


def _copy_stamp(target: SafeFolder, path: Path) -> _Stamp:
    """Return what changes when the user writes or replaces a copy; `_GONE` if there is none."""
    try:
        found = target.info(target.name_of(path))
    except (OSError, ValueError):
        return _GONE
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
