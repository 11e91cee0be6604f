"""Files of an answer, copied to where the user is: never over a file, through a link, or under a protected name."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.conversation import is_document, split_suffix
from tw_autogen.kernel import Artifact, KernelSettings
from tw_autogen.safe_folder import SafeFolder, held_folder, is_protected, open_unlinked

_MOST_OF_A_NAME = 1000


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


def is_named_in(name: str, text: str) -> bool:
    """Return whether a text names a file by its plain name, as a word of its own and with no folder before it.

    Args:
        name: The file's, with a suffix of data, pictures or documents; any other is never named.
        text: The user's words.

    Example:
        >>> is_named_in("chart.png", "save it as chart.png."), is_named_in("chart.png", "see barchart.png")
        (True, False)
    """
    if not is_document(name):
        return False
    pattern = rf"(?<![\w./\\-])(?:\./)?{re.escape(name)}(?![\w\\/-]|\.\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def save_files(artifacts: Iterable[Artifact], folder: Path, *, limit_mb: int = KernelSettings.disk_mb) -> list[Saved]:
    """Copy files of an answer to a folder, each under its own name, or `name (2).png` where that one is taken.

    Args:
        artifacts: Whose files are copied. Dotfiles and names that programs run or obey, such as `conftest.py` and
            `Makefile`, are not; nor is what has become a link.
        folder: Where to; it is made if it is missing, and no link, as `held_folder` says. Copies have mode 0644, less
            the umask.
        limit_mb: How large the files may be together, by their length: holes in them take room in the copies. What
            exceeds it is not copied; 0: no limit.

    Returns:
        What came of each, in order; a path that stands there twice is copied once.

    Raises:
        OSError: the folder can't be made or opened, or a link is in the way, which the message names.
    """
    with held_folder(folder) as target:
        return _save_in(target, artifacts, limit_mb)


def _save_in(target: SafeFolder, artifacts: Iterable[Artifact], limit_mb: int) -> list[Saved]:
    found: dict[Path, Saved] = {}
    room = _Room(limit_mb)
    for one in artifacts:
        if one.path not in found:
            found[one.path] = _saved(one.path, target, room)
    return list(found.values())


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


class AnswerFiles:
    """Copies files of answers to the folder that the user is in: those that the request names, or all after a grant.

    Args:
        folder: Where named files go.
        out: Where all files of an answer go instead; None: nobody has said so.
        project: A folder that somebody else may have made: below it, no link on the way to `out` is followed.
        limit_mb: As of `save_files`, for one answer.
    """

    def __init__(
        self,
        folder: Path,
        *,
        out: Path | None = None,
        project: Path | None = None,
        limit_mb: int = KernelSettings.disk_mb,
    ) -> None:
        self.folder = folder.resolve()
        self._limit_mb = limit_mb
        self._distrusted = [Path.cwd(), *([project.expanduser().resolve()] if project else [])]
        self._out = out.absolute() if out else None
        self._granted = self._for_good = False
        self.refused = ""
        """Why the user does not allow all files of this answer to be copied; empty: nobody was asked, or they do."""
        self._done: dict[Path, tuple[tuple[int, int], Path]] = {}

    @property
    def sentence(self) -> str:
        """Words for the prompt about what becomes of files that code writes in the working folder."""
        if self._out:
            return f"All files that code makes in the working folder are copied to {self._out} with the answer."
        if self._granted:
            return (
                f"The User allows files to be saved in {self.folder}: all files that code makes in the working folder "
                "are copied there with the answer, so write them there under their plain names."
            )
        return (
            f"Files that this request names to be saved are written to the working folder under their plain names; "
            f"they are copied to {self.folder} with the answer."
        )

    def covers(self, path: str) -> bool:
        """Return whether a path lies in the folder, or is it."""
        return Path(path).is_relative_to(self.folder)

    def grant(self, *, always: bool) -> str:
        """Copy all files of this answer, or of this and all later ones; return the sentence for the model."""
        self._granted, self._for_good = True, self._for_good or always
        return self.sentence

    @property
    def granted(self) -> bool:
        """Whether all files of this answer are copied."""
        return self._granted

    def begin(self) -> None:
        """A request begins: a grant for the one before has ended."""
        self._granted, self.refused = self._for_good, ""

    def land(self, artifacts: Iterable[Artifact], text: str, *, earlier: Iterable[Artifact] = ()) -> list[Saved]:
        """Copy what belongs to an answer; a file that was copied before and has not changed since is left alone.

        Args:
            artifacts: Files of the answer.
            text: The user's own words.
            earlier: Files of earlier answers, which are copied if they are named.

        Returns:
            What came of each file that was to be copied.
        """
        everything = self._granted or self._out is not None
        wanted = [one for one in artifacts if everything or is_named_in(one.path.name, text)]
        wanted += [one for one in earlier if is_named_in(one.path.name, text)]
        stamps = {one.path: _stamp(one.path) for one in wanted}
        fresh = [one for one in wanted if self._done.get(one.path, ((0, 0), None))[0] != stamps[one.path]]
        if not fresh:
            return []
        try:
            with self._open() as target:
                saved = _save_in(target, fresh, self._limit_mb)
        except OSError as error:
            why = f"{self._out or self.folder}: {error.strerror or error}"
            return [Saved(one.path, None, why) for one in fresh]
        for one in saved:
            if one.path is not None:
                self._done[one.source] = (stamps[one.source], one.path)
        return saved

    def _open(self) -> SafeFolder:
        if self._out:
            return held_folder(self._out, below=self._distrusted)
        if self.folder == self.folder.parent:
            return SafeFolder(self.folder)
        with SafeFolder(self.folder.anchor) as root:  # it was resolved at first: a link in it now has come since
            return root.open_folder(self.folder.relative_to(self.folder.anchor).as_posix())

    def saved_as(self, path: Path) -> Path | None:
        """Return where a file of the session's folder was copied to last; None if it was not."""
        return self._done[path][1] if path in self._done else None


def _saved(source: Path, target: SafeFolder, room: _Room) -> Saved:
    name = source.name
    if name.startswith(".") or is_protected(name):
        return Saved(source, None, f"{name}: programs run or obey files of this name, so it is not copied")
    try:
        with open_unlinked(source) as given:
            left = os.fstat(given.fileno()).st_size
            room.take(left)
            for number in range(1, _MOST_OF_A_NAME):
                chosen = _numbered(name, number)
                with contextlib.suppress(FileExistsError):
                    with target.create_file(chosen) as copy:
                        try:
                            while data := given.read(min(left, 1 << 20)):  # not what code writes meanwhile
                                left -= copy.write(data)
                        except BaseException:
                            with contextlib.suppress(OSError):
                                target.remove(chosen)
                            raise
                    return Saved(source, target.path / chosen)
            raise FileExistsError(errno.EEXIST, f"{_MOST_OF_A_NAME - 1} files have this name already", name)
    except OSError as error:
        return Saved(source, None, f"{name}: {error.strerror or error}")


def _numbered(name: str, number: int) -> str:
    """Return `name (2).png` for the second of a name; of `a.csv.gz` both suffixes stay together."""
    if number == 1:
        return name
    stem, suffix, packed = split_suffix(name)
    return f"{stem} ({number}){suffix}{packed}"


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = os.lstat(path)
    except OSError:
        return (0, -1)
    return (found.st_mtime_ns, found.st_size)
