"""Files that a request only names: looked for in the user's folder, and brought in as given ones are."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO

from tw_autogen.conversation import file_names, is_data_or_document
from tw_autogen.errors import near_files
from tw_autogen.safe_folder import SafeFolder, is_protected
from tw_autogen.secret_masking import is_secret_file
from tw_autogen.session.answer import Answer
from tw_autogen.session.answer_files import AnswerFiles
from tw_autogen.session.working_copies import Copied, incomplete_copy_reason, stamp, working_names

LARGE_BYTES = 50_000_000
"""A larger file is not copied where code can read it at its own place."""
_MAX_NAMED = 20
_NAME_CHARS = 200
_MAX_LOOKS = 2000
"""How often a folder is looked into for where names of a text begin."""
_WRITABLE = 0o666
"""A copy that code may replace, unlike that of a given file: the request may ask for a new one under this name."""


@dataclass(frozen=True)
class RequestFiles:
    """Files that a request names, or all that it brings.

    Args:
        placed: Their paths: copies in the session's folder, or large files at their own place.
        missing: Names for which there is no file yet.
        note: Words for the prompt about missing ones, and those withheld; empty: there are none, or no folder.
        withheld: Names of files of the user's folder that are left alone because they are named like secrets.
    """

    placed: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()
    note: str = ""
    withheld: tuple[str, ...] = ()


class MentionedFileCopier:
    """Finds the files that a user's words name in the folder that the user works in, and copies them for code.

    Dotfiles, settings and hooks, names of secrets, links and what lies outside the folder are left alone.

    Args:
        users: The user's folder, without links: one that comes later is not followed; empty: there is none.
        folder: The session's.
        show: Lets code read a large file at its own place, and returns whether it can.
        copies: Those in the session's folder, by name; what is brought is added.
    """

    def __init__(self, users: str, folder: Path, show: Callable[[Path], bool], copies: dict[str, Copied]) -> None:
        self._users = Path(os.path.abspath(Path(users).expanduser())) if users else None
        self._folder = folder
        self._show = show
        self._copies = copies

    def bring(self, text: str, given: Mapping[str, Path]) -> RequestFiles:
        """Find and copy the files that a text names.

        Args:
            text: The user's own words.
            given: The files that come with the request anyway, by their names in the session's folder.

        Returns:
            What was found. A file that code has written under the name stays, and is left out; if the user's own has
            changed since it was copied, that comes under another name.
        """
        found: dict[str, Path] = {}
        missing = []
        looks = itertools.count()

        def exists(name: str) -> bool:
            return next(looks) < _MAX_LOOKS and self._exists(name)

        def existing_longer_name(name: str) -> str:
            names = (
                name
                for name in _longer_names(name, text)
                if "/" not in name or self._find_in_user_folder(name) is not None
            )
            return next(filter(exists, names), name)

        there = [name if exists(name) else existing_longer_name(name) for name in file_names(text, exists)[:_MAX_NAMED]]
        known = {*given, *(path.name for path in given.values())}
        paths = {os.path.abspath(path) for path in given.values()}
        wanted = [name for name in there if name not in known]
        sources = {name: source for name in wanted if (source := self._find_in_user_folder(name))}
        wanted = [name for name in wanted if str(sources.get(name)) not in paths]
        different = [fromkey for fromkey in dict.fromkeys(sources.values()) if str(fromkey) not in paths]
        held = [*((path.name, path) for path in given.values()), *given.items()]
        taken = {**self._copies, **{name: _copy_of(os.path.abspath(path)) for name, path in held}}
        working = dict(zip(different, working_names(different, taken), strict=True))
        notes = [self._rename_if_both_changed(source, working, taken) for source in different]
        for name in wanted:
            plain = working[sources[name]] if name in sources else PurePosixPath(name).name
            if plain in known or plain in found:
                continue
            try:
                path = self._brought_in(name, plain)
            except FileNotFoundError:
                missing.append(name)
            except (OSError, ValueError):  # a link, a folder in the way, no permission: as if it were not named
                continue
            else:
                if path is not None:
                    found[plain] = path
        withheld = [name for name in wanted if self._is_withheld(name)]
        notes += [self._missing_note(missing), withheld_words(withheld)]
        return RequestFiles(tuple(found.values()), tuple(missing), "\n".join(filter(None, notes)), tuple(withheld))

    def renew(self, name: str) -> Path | None:
        """Copy a file again that was brought in before; None if it is left alone.

        Args:
            name: Of its copy.

        Raises:
            OSError: it is gone, or can't be read.
            ValueError: no path can be read as its own any more.
        """
        return self._brought_in(self._copies[name].source, name)

    def _exists(self, name: str) -> bool:
        """Return whether code has made a file of this name, or the user's folder holds it."""
        return _folder_has_file(self._folder, PurePosixPath(name).name) or self._find_in_user_folder(name) is not None

    def _find_in_user_folder(self, name: str) -> Path | None:
        """Return the file of the user's folder that a name means; None: there is none."""
        try:
            relative = self._relative_name(name)
        except (ValueError, RuntimeError):  # no text that a path can be
            return None
        if self._users is None or relative is None or not _folder_has_file(self._users, relative):
            return None
        source, copied = self._users / relative, self._copies.get(name)
        if copied is not None and copied.source != str(source) and _folder_has_file(self._folder, name):
            return None  # it means the copy of another file
        return source

    def _rename_if_both_changed(self, source: Path, working: dict[Path, str], taken: Mapping[str, Copied]) -> str:
        """Return words about a file that gets another name: it has changed, and code has written one of its name.

        Args:
            source: The user's.
            working: The name in the session's folder by source.
            taken: As of `working_names`.
        """
        plain = working[source]
        brought = self._copies.get(plain)
        try:
            with SafeFolder(self._folder) as own, SafeFolder.without_links(source.parent) as users:
                written = brought is not None and own.has_file(plain) and stamp(own.info(plain)) != brought.copy
                if not written or brought is None or stamp(users.info(source.name)) == brought.was:
                    return ""
        except OSError:
            return ""
        others = {name: copy for name, copy in taken.items() if copy.source != str(source)}
        (working[source],) = working_names([source], {**others, plain: _copy_of("")})
        return f"{working[source]!r} is the User's own file as it is now; {plain!r} is what code has written."

    def _brought_in(self, name: str, plain: str) -> Path | None:
        """Return the path under which code reads a file of the user's folder; None if it is not to be brought."""
        relative = self._relative_name(name)
        source = self._users / relative if self._users is not None and relative is not None else None
        with SafeFolder(self._folder) as own:
            here = stamp(own.info(plain)) if own.has_file(plain) else None
            brought = self._copies.get(plain)
            if here is not None and (brought is None or (brought.source, brought.copy) != (str(source), here)):
                return None  # code has made it, or it is a copy of another file
            if self._users is None or relative is None:
                if here is None and relative is not None:
                    raise FileNotFoundError(name)
                return None
            with SafeFolder.without_links(self._users) as users:
                info = users.info(relative)
                if not stat.S_ISREG(info.st_mode):
                    return None
                with users.open_file(relative) as file:
                    if incomplete_copy_reason(file, self._users / relative, partial(_open_companion, users, relative)):
                        return None
                if info.st_size > LARGE_BYTES:
                    real = self._users / relative
                    return real if os.access(real, os.R_OK) and self._show(real) else None
                if here is None or brought is None or brought.was != stamp(info):
                    with users.open_file(relative) as file:
                        own.copy_in(file, plain, mode=_WRITABLE, limit_bytes=LARGE_BYTES)
                    was, copy = stamp(info), stamp(own.info(plain))
                    self._copies[plain] = Copied(str(source), was, copy, given=False)
        return self._folder / plain

    def _relative_name(self, name: str) -> str | None:
        """Return a name relative to the user's folder; None if it lies outside, or is one that is left alone."""
        return None if is_secret_file(PurePath(name).name) else self._name_within_folder(name)

    def _is_withheld(self, name: str) -> bool:
        """Return whether a name is that of a file of the user's folder which is left alone as one of secrets."""
        if self._users is None or not is_secret_file(PurePath(name).name):
            return False
        try:
            relative = self._name_within_folder(name)
        except (ValueError, RuntimeError):  # no text that a path can be
            return False
        return relative is not None and _folder_has_file(self._users, relative)

    def _name_within_folder(self, name: str) -> str | None:
        path = Path(os.path.expanduser(name))
        if path.is_absolute():
            if self._users is None or not path.is_relative_to(self._users):
                return None
            path = path.relative_to(self._users)
        parts = path.parts
        private = any(part.startswith(".") or is_protected(part) for part in parts)
        return None if private else self._as_stored(path.as_posix())

    def _as_stored(self, name: str) -> str:
        """Return a name with its accents as the user's folder has them, which may be signs of their own (macOS)."""
        forms = dict.fromkeys([name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD"))])
        if len(forms) == 1 or self._users is None:
            return name
        return next((form for form in forms if _folder_has_file(self._users, form)), name)

    def _missing_note(self, missing: Collection[str]) -> str:
        if self._users is None or not missing:
            return ""
        there: list[str] = []
        with contextlib.suppress(OSError), SafeFolder.without_links(self._users) as users:
            found = itertools.islice(users.walk(enter=lambda name: False), _MAX_LOOKS)
            there = [file.name for file in found if _is_data(file.name)]
        words, folded = [], {name.casefold(): name for name in there}
        for name in missing:
            plain = name.casefold()
            close = difflib.get_close_matches(plain, folded, n=3, cutoff=0.6)
            longer = (name for name in folded if name.endswith(f" {plain}"))
            near = [folded[fromkey] for fromkey in dict.fromkeys([*close, *longer])][:3]
            words.append(f"{name} (similar: {', '.join(near)})" if near else name)
        return f"Not in the User's folder {self._users}: {', '.join(words)}."


def withheld_words(names: Collection[str]) -> str:
    """Return a sentence about files that a request names and that are left alone; empty if there are none."""
    if not names:
        return ""
    listed = ", ".join(map(repr, names))
    return f"Named like files of secrets, so neither copied nor described unless the User attaches them: {listed}."


def _copy_of(source: str) -> Copied:
    """Return a copy that holds its name, whatever has become of it."""
    return Copied(source, (0, 0), (0, 0), given=False)


def _is_data(name: str) -> bool:
    return is_data_or_document(name) and not is_secret_file(name)


def _folder_has_file(folder: Path, name: str) -> bool:
    try:
        with SafeFolder.without_links(folder) as opened:
            return opened.has_file(name)
    except (OSError, ValueError):
        return False


def _longer_names(name: str, request: str) -> Iterator[str]:
    """Yield what may be names with blanks that end with a name in a request, the longest first."""
    for match in itertools.islice(re.finditer(re.escape(name), request), _MAX_NAMED):
        before = request[max(0, match.start() - _NAME_CHARS) : match.start()].rpartition("\n")[2]
        starts = [0, *(index + 1 for index, word in enumerate(before) if word == " ")]
        yield from (f"{before[index:]}{name}".lstrip("@\"'`") for index in starts if before[index:].strip())


def _is_end_of_a_name(name: str, request: str, made: Collection[str], folder: Path | None) -> bool:
    """Return whether a name is the end of one with blanks that a request names: of a file made, or in a folder."""
    longer = _longer_names(name, request)
    return any(name in made or (folder is not None and os.path.lexists(folder / name)) for name in longer)


def files_not_made(missing: Sequence[str], answer: Answer, landing: AnswerFiles | None) -> list[str]:
    """Return a line for each file that a completed request names, that was not there, and that nobody has made.

    Args:
        missing: `Session.missing`, the names for which there was no file.
        answer: What came of the request.
        landing: Where files of answers were copied to; None: nowhere.
    """
    if answer.stop != "Completed":
        return []
    made = {artifact.path.name for artifact in answer.artifacts}
    left = [name for name in missing if PurePath(name).name not in made]
    folder = landing.folder if landing else None
    left = [name for name in left if folder is None or not os.path.lexists(folder / name)]
    left = [name for name in left if not _is_end_of_a_name(name, answer.round.user_query, made, folder)]
    why = "the request names it, but there is no such file, and none was made"
    return [f"{name}: {why}{_suggestion(name, landing)}" for name in left]


def _suggestion(name: str, landing: AnswerFiles | None) -> str:
    for folder in landing.places if landing else ():
        path = folder / name
        if near := near_files(path.parent, path.name, lambda entry: _is_data(entry.name), cutoff=0.8):
            return f"; did you mean {near[0]!r}?"
    return ""


def _open_companion(folder: SafeFolder, name: str, end: str) -> BinaryIO | None:
    """Open the file that has a file's name with an end; None: there is none."""
    return folder.open_file(f"{name}{end}") if folder.has_entry(f"{name}{end}") else None
