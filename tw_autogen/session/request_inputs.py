"""What requests bring: files and variables, checked first, then copied into the session's folder and described.

`SessionInputs` does all of it for a session; the functions are for a kernel without one.
"""

from __future__ import annotations

import errno
import os
import reprlib
import stat
import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from tw_autogen.closing import Closing
from tw_autogen.conversation import Definitions, Round
from tw_autogen.errors import ConfigError, path_suggestion, url_problem
from tw_autogen.events import Event, HistoryCompacted
from tw_autogen.kernel import KernelSettings
from tw_autogen.kernel.guest import untransferable_reason
from tw_autogen.named_folders import current_folder, is_code_folder, leads_out_reason, private_reason
from tw_autogen.picture_files import is_image_url
from tw_autogen.safe_folder import KERNEL_FOLDERS, SafeFolder, walk_links
from tw_autogen.session.answer import USER
from tw_autogen.session.answer_files import AnswerFiles
from tw_autogen.session.mentioned_files import LARGE_BYTES, MentionedFileCopier, RequestFiles, withheld_words
from tw_autogen.session.path_grants import Grants
from tw_autogen.session.request_descriptions import RequestDescriptions
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.team import Team
from tw_autogen.session.working_copies import (
    Copied,
    given_copies,
    incomplete_copy_reason,
    is_outdated,
    outdated_note,
    read_copies,
    stamp,
    working_names,
    write_copies,
)
from tw_autogen.settings_trust import FolderTrust
from tw_autogen.trust_store import open_regular
from tw_autogen.variable_names import name_problem

FilesWanted = Iterable[Path | str] | Path | str
"""Files by their paths; a single one needs no list."""
MAX_REQUEST_CHARS = 1_000_000
_SHOWN_CHARS = 200
_LARGEST_COPY_BYTES = 1 << 30
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_READ_ONLY = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_MAX_UNREAD = 3
"""How many descriptions of earlier requests' files, and of the user's folder, the board has."""


def several(wanted: Any) -> tuple[Any, ...]:
    """Return what is wanted as a tuple; a single thing, such as a path or a name, needs no list around it.

    Example:
        >>> several("sales.csv"), several(["a.csv", "b.csv"])
        (('sales.csv',), ('a.csv', 'b.csv'))
    """
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        return (wanted,)
    return tuple(wanted)


def _check_request(text: Any) -> None:
    if not isinstance(text, str):
        raise ConfigError(f"the request: expected str, got {type(text).__name__}: {reprlib.repr(text)}")
    if len(text) > MAX_REQUEST_CHARS:
        raise ConfigError(f"the request has {len(text):,} characters, over {MAX_REQUEST_CHARS:,}; give data as a file")


def _check_images(images: Sequence[str]) -> None:
    if (
        isinstance(images, str)
        or not isinstance(images, Sequence)
        or not all(isinstance(image, str) for image in images)
    ):
        raise ConfigError(f"images: expected a list of URLs, got {reprlib.repr(images)}")
    for image in images:
        if not is_image_url(image):
            raise ConfigError(
                f"images: {reprlib.repr(image)} is no URL of an image: `data:image/…;base64,…` or `https:`"
            )


def checked_inputs(
    files: FilesWanted,
    variables: Mapping[str, Any],
    images: Sequence[str] = (),
    *,
    distrusted: Sequence[SafeFolder] = (),
) -> list[Path]:
    """Return the files as paths, each once.

    Args:
        files: Paths, or a single one.
        variables: Values by name.
        images: URLs, `data:` or `https:`.
        distrusted: Folders that somebody else may have made, open since then: a file there that is a link, or is
            reached over one, must lie in that folder too, wherever it is by now. Elsewhere links are followed, but to
            nothing that is hidden or named like a secret, which the path that was given doesn't show.

    Raises:
        ConfigError: a file doesn't exist, is no path or a URL, two can't be kept apart by name, a variable's name is no
            identifier or one of Python's own, its value can't cross to the kernel, an image is no URL, a link leads
            out of one of `distrusted` or to something hidden, or a file's path leads elsewhere since such a folder was
            moved.
    """
    if not isinstance(variables, Mapping):
        raise ConfigError(f"variables: expected a mapping of names to values, got {type(variables).__name__}")
    _check_images(images)
    wanted = several(files)
    for given in wanted:
        if isinstance(given, str) and (problem := url_problem(given)):
            raise ConfigError(f"{given[:_SHOWN_CHARS]}: {problem}")
    try:
        paths = [Path(path) for path in wanted]
    except TypeError as error:
        raise ConfigError(f"files: expected paths, got {reprlib.repr(files)}") from error
    for path in paths:
        try:
            problem = "" if path.is_file() else _no_file(path)
        except (OSError, ValueError) as error:  # too long for a name, or a NUL in it
            raise ConfigError(f"{reprlib.repr(str(path))}: no path of a file ({error})"[:300]) from error
        if problem or (problem := _leads_out(path, distrusted) or private_reason(path, *walk_links(path), "file")):
            raise ConfigError(f"{path}: {problem}")
    paths = list({os.path.abspath(path): path for path in paths}.values())
    working_names(paths)
    for name, value in variables.items():
        if problem := name_problem(name):
            raise ConfigError(f"{name!r} can't be a variable: {problem}")
        if why := untransferable_reason(value):
            raise ConfigError(f"variable {name!r}: {why}")
    return paths


def _leads_out(path: Path, distrusted: Sequence[SafeFolder]) -> str:
    for folder in distrusted:
        if _name_below(path, folder) == "":
            below = Path(os.path.abspath(path)).is_relative_to(folder.path)
            if folder.name_of(path) or not below and _leads_over_link_in(path, folder.path):
                return leads_out_reason(folder.path, path.resolve(), "file")
            what = "is another folder than at the start, which was moved"
            return f"{folder.path} {what}; start again where the file lies"
    return ""


def _name_below(path: Path, distrusted: SafeFolder) -> str | None:
    """Return the name of a file in a folder, links followed; None: it lies elsewhere.

    It is empty for a link out of the folder, and for a path that led there once, but no longer, since the folder or one
    above was moved.
    """
    if name := distrusted.name_of(path.resolve()):
        return name
    here = os.path.samestat(os.stat(os.curdir), distrusted.info("."))  # what a relative path says then needs no look
    named = os.path.normpath(os.path.join(distrusted.path if here else os.getcwd(), path))
    if Path(named).is_relative_to(distrusted.path) or distrusted.name_of(path):
        return ""
    return "" if _leads_over_link_in(path, distrusted.path) else None


def _leads_over_link_in(path: Path, folder: Path) -> bool:
    """Return whether a link on a path's way lies in a folder; a link of the user's may lead to one there."""
    return any(Path(link).parent.is_relative_to(folder) for link in walk_links(path).links)


def _no_file(path: Path) -> str:
    if path.is_dir():
        return f"a folder; settings={{'kernel.read': [{str(path)!r}]}} lets code read a whole folder"
    return "not a file" if path.exists() else f"there is no such file{path_suggestion(path)}"


def place_inputs(
    paths: Sequence[Path],
    folder: Path,
    show: Callable[[Path], bool],
    *,
    distrusted: Sequence[SafeFolder] = (),
    show_if_granted: Callable[[Path], bool] = lambda path: False,
    limit_mb: int = KernelSettings.disk_mb,
    copies: Mapping[str, Copied] = MappingProxyType({}),
) -> list[Path]:
    """Copy files read-only into a folder, but for large ones that code can read at their own place.

    Args:
        paths: The files, as `checked_inputs` returned them.
        folder: The session's.
        show: Lets code read a file at its own place, and returns whether it can.
        distrusted: As in `checked_inputs`; whoever made them may change what a name there means, at any time.
        show_if_granted: The same as `show` for files in one of `distrusted`, if code can read their folder already.
        limit_mb: What the copies may have together, counted by length, since holes in a file take room in its copy;
            0: no limit.
        copies: As of `working_names`; what is unchanged is not copied again.

    Returns:
        For each file the path that code opens: the copy, or the file itself, absolute.

    Raises:
        ConfigError: the copies would be larger, and nothing is copied; or as of `_copy`.
    """
    placed: list[Path] = []
    sizes: dict[str, int] = {}
    for path, name in zip(paths, working_names(paths, copies), strict=True):
        real = path.resolve()
        with opened_as_given(path, folder, distrusted=distrusted) as given:
            info = os.fstat(given.fileno())
            size = info.st_size
            if reason := incomplete_copy_reason(given, real, partial(_open_companion, real, folder, distrusted)):
                raise ConfigError(reason)
        known = all(_name_below(path, folder) is None for folder in distrusted)
        here = _name_in(path, folder)
        large = size > LARGE_BYTES and _place_of_code(path)[0] is None and not here
        shown = large and os.access(real, os.R_OK) and (show if known else show_if_granted)(real)
        placed.append(real if shown else folder / name)
        if not shown and not _is_copied(path, info, folder, name, copies.get(name)):
            sizes[name] = 0 if here == name else size
            if sizes[name] > _LARGEST_COPY_BYTES:  # a sparse one may take no time to make
                raise _not_copied(path, OSError(errno.EFBIG, os.strerror(errno.EFBIG)))
    left = (limit_mb << 20) or sys.maxsize
    if (total := sum(sizes.values())) > left:
        raise ConfigError(
            f"{', '.join(map(repr, sizes))}: {-(-total >> 20)} MB together, and at most {limit_mb} MB (kernel.disk_mb) "
            "are copied into the working folder for one request; give fewer, or let code read them at their place "
            "(kernel.read)"
        )
    for path, target in zip(paths, placed, strict=True):
        if target.name in sizes and target == folder / target.name:
            left -= _copy(path, folder, target.name, distrusted, min(left, _LARGEST_COPY_BYTES))
    return placed


def _copy(path: Path, folder: Path, name: str, distrusted: Sequence[SafeFolder], limit_bytes: int) -> int:
    """Copy a file read-only into a folder; one that lies there already stays as it is.

    What code may have left under that name is replaced; a link of its making is not followed.

    Args:
        path: The file.
        folder: The session's.
        name: Of the copy.
        distrusted: As in `checked_inputs`.
        limit_bytes: How large it may be.

    Returns:
        How many bytes were copied.

    Raises:
        ConfigError: a folder of that name is in the way, the file is larger, or it can't be read; see
            `opened_as_given`.
    """
    with _open_folder(folder) as opened:
        if opened.name_of(path) == name:
            opened_as_given(path, folder, distrusted=distrusted).close()
            return 0
        try:
            if stat.S_ISDIR(opened.info(name).st_mode):
                raise ConfigError(f"{path}: can't be put into the working folder, which has a folder {name!r}")
        except FileNotFoundError:
            pass
        with opened_as_given(path, folder, distrusted=distrusted) as given:
            try:
                if os.fstat(given.fileno()).st_size > limit_bytes:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
                opened.copy_in(given, name, mode=_READ_ONLY, limit_bytes=limit_bytes)
            except OSError as error:
                raise _not_copied(path, error) from error
            return given.tell()


def _is_copied(path: Path, info: os.stat_result, folder: Path, name: str, copied: Copied | None) -> bool:
    """Return whether a file has a read-only copy of this name, and neither has changed since it was made."""
    if copied is None or copied.source != os.path.abspath(path):
        return False
    try:
        with SafeFolder(folder) as opened:
            now = opened.info(name)
            same = (copied.was, copied.copy) == (stamp(info), stamp(now))
            return same and stat.S_ISREG(now.st_mode) and not now.st_mode & _WRITABLE
    except OSError:
        return False


def _open_companion(path: Path, folder: Path, distrusted: Sequence[SafeFolder], end: str) -> BinaryIO | None:
    """Open the file that has a file's name with an end, over no link; None: there is none."""
    other = Path(f"{path}{end}")
    if other.is_symlink():
        raise ConfigError(f"{other}: a link, where SQLite has its own files")
    return opened_as_given(other, folder, distrusted=distrusted) if os.path.lexists(other) else None


def _not_copied(path: Path, error: OSError) -> ConfigError:
    hint = f"; let code read it at its place: kernel.read=[{str(path.parent)!r}]" if error.errno == errno.EFBIG else ""
    return ConfigError(f"{path}: can't be put into the working folder: {error.strerror}{hint}")


def opened_as_given(path: Path, folder: Path, *, distrusted: Sequence[SafeFolder] = ()) -> BinaryIO:
    """Open a file that a request brings; in a folder where code runs or ran, no link is followed.

    Args:
        path: The file.
        folder: The session's.
        distrusted: As in `checked_inputs`: what is opened lies there, whatever becomes of its names meanwhile.

    Raises:
        ConfigError: it is no plain file of such a folder; names the reason.
    """
    try:
        names = [(folder, _name_below(path, folder)) for folder in distrusted]
        if any(name == "" for _, name in names):
            raise ConfigError(f"{path}: {_leads_out(path, distrusted) or 'it changes while it is read'}")
        found = next(((folder, name) for folder, name in names if name), None)
        for here, there in ((folder, path), _place_of_code(path)):
            if here is not None:
                held = found is not None and found[0].path.is_relative_to(here)  # what lies there now may be another
                begin = SafeFolder.without_links if here in KERNEL_FOLDERS else SafeFolder  # those are without links
                with nullcontext(found[0]) if found and held else begin(here) as opened:
                    if name := opened.name_of(there):
                        return opened.open_file(name)
                    if here is not folder:
                        raise ConfigError(
                            f"{path}: it leads elsewhere than where code works, {here}: by a link, or since it moved"
                        )
        return os.fdopen(open_regular(path)[0], "rb") if found is None else found[0].open_file(found[1])
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from error


def _open_folder(folder: Path) -> SafeFolder:
    try:
        return SafeFolder(folder)
    except OSError as error:
        raise ConfigError(f"{folder}: can't be opened: {error.strerror or error}; was it removed?") from error


def _name_in(path: Path, folder: Path) -> str:
    with _open_folder(folder) as opened:
        return opened.name_of(path)


def _place_of_code(path: Path) -> tuple[Path | None, Path]:
    """Return the outermost folder of a session or kernel in which a file lies, and the path by which to open it there.

    That is one out of which a link leads, in which it is not found then; or the folder in which it lies as the path is
    written, because code may have put a link in the place of the folder itself; or where it leads. Each link is read
    once: what was looked at is what is opened. None: no such folder is on the way.
    """
    found, links, _ = walk_links(path)
    target = Path(found)
    ways = filter(is_code_folder, (parent for link in links for parent in reversed(Path(link).parents)))
    left = next((way for way in ways if not target.is_relative_to(way)), None)
    if left is not None:
        return left, target
    for parent in reversed(Path(os.path.abspath(path)).parents):
        if is_code_folder(parent):
            return parent, path
    return next(filter(is_code_folder, reversed(target.parents)), None), target


class SessionInputs(Closing):
    """Places the files of a session's requests in its folder, and describes them.

    Args:
        folder: The session's, in which code works.
        root: The session's, with its journal.
        settings: The session's.
        grants: What code may read besides.
        team: The session's roles.
        distrusted: A folder that somebody else may have made: a given file there must not be a link out of it. It is
            held open until `close`.
        on_problem: Called with a line about a file that can't be read as what its name says, or is left alone.
        earlier: Rounds of the same session in a process before; what they were told of files is not told again.
    """

    def __init__(
        self,
        folder: Path,
        root: Path,
        settings: SessionSettings,
        grants: Grants,
        team: Team,
        *,
        distrusted: Path | None,
        on_problem: Callable[[str], None],
        earlier: Sequence[Round] = (),
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._grants = grants
        self._team = team
        self._distrusted: list[SafeFolder] = []
        self._open_folders = ExitStack()
        self._end = weakref.finalize(self, self._open_folders.close)
        if distrusted is not None:
            self._distrusted.append(self._open_folders.enter_context(SafeFolder(distrusted.resolve())))
        self._here = FolderTrust.of(trust=True)
        posts = [post for round_ in earlier for post in round_.posts]
        told = "\n".join(post.message for post in posts if post.send_from == USER)
        self._on_problem = on_problem
        self._descriptions = RequestDescriptions(settings, folder, lambda: team.describer(folder), on_problem, told)
        self._root = root
        self._copies = read_copies(root)
        self._named = MentionedFileCopier(settings.user_folder, folder, grants.show_if_granted, self._copies)
        self._unread: list[str] = []
        self._unread_folder: list[str] = []
        self._folder_holds = ""
        self._held: frozenset[str] = frozenset()

    def close(self) -> None:
        """Close the folders that are held open; a second time nothing happens."""
        self._end()

    def distrust(self, folder: SafeFolder) -> None:
        """Treat one more folder as one that somebody else may have made.

        Args:
            folder: Open since files were named there; it stays the caller's.
        """
        here = folder.info(".")
        # A path that it had before counts too.
        known = (earlier for earlier in self._distrusted if earlier.path == folder.path)
        if self._end.alive and not any(os.path.samestat(here, folder.info(".")) for folder in known):
            self._distrusted.append(self._open_folders.enter_context(folder.open_folder(".")))

    def checked_files(
        self, text: str, files: FilesWanted, variables: Mapping[str, Any], images: Sequence[str]
    ) -> tuple[Path, ...]:
        """Return the files that a request gives.

        Args:
            text: The request.
            files: Paths, or a single one.
            variables: Values by the names under which code will have them.
            images: URLs (`data:` or `https:`).

        Raises:
            ConfigError: as `Session.ask`.
        """
        _check_request(text)
        files = several(files)  # a generator gives them once
        if files and not self._here.holds():  # nobody has named the folder in which the program stands now
            with _open_folder(current_folder()) as current:
                self.distrust(current)
        return tuple(checked_inputs(files, variables, images, distrusted=self._distrusted))

    def place(self, text: str, given: tuple[Path, ...], *, named: bool) -> RequestFiles:
        """Place the files that a request gives, and those that its words name.

        Args:
            text: The request.
            given: As `check` returned them.
            named: Look for files that the words name.
        """
        known, others = dict(self._copies), dict(self._copies)
        for path in given:  # one that lies there stays as it is
            others.pop(_name_in(path, self._folder), None)
        names = dict(zip(working_names(given, others), given, strict=True))
        try:
            files = self._named.bring(text, names) if named else RequestFiles()  # over no link: not looked at again
            placed = self._place_files(given, others)
            renewed, outdated = self._renew_copies({*placed, *files.placed})
        finally:
            if self._copies != known:
                write_copies(self._root, self._copies)
        again = [name for name, copy in self._copies.items() if name in known and known[name].was != copy.was]
        again = [name for name in again if known[name].source == self._copies[name].source]
        note = "\n".join(filter(None, [files.note, outdated_note(again, outdated)]))
        return replace(files, placed=(*placed, *files.placed, *renewed), note=note)

    def _renew_copies(self, placed: Collection[Path]) -> tuple[list[Path], list[str]]:
        """Copy files of earlier requests again that were written since, if code has not changed their copies.

        Args:
            placed: What this request brings anyway.

        Returns:
            Paths of the new copies, and names of copies that are older than the file and could not be renewed.
        """
        renewed, outdated = list[Path](), list[str]()
        for name, copy in list(self._copies.items()):
            if self._folder / name not in placed and is_outdated(name, copy, self._folder):
                path = None
                with suppress(ConfigError, OSError, ValueError):
                    path = self._copied_again(name, Path(copy.source))
                renewed += filter(None, [path])
                outdated += [name] if path is None else []
        return renewed, outdated

    def _copied_again(self, name: str, source: Path) -> Path | None:
        if not self._copies[name].given:
            return self._named.renew(name)
        given = self.checked_files("", source, {}, ())
        return self._place_files(given, self._copies)[0]

    def _place_files(self, given: Sequence[Path], copies: Mapping[str, Copied]) -> list[Path]:
        placed = place_inputs(
            given,
            self._folder,
            self._grants.show,
            distrusted=self._distrusted,
            show_if_granted=self._grants.show_if_granted,
            limit_mb=self._grants.settings.disk_mb,
            copies=copies,
        )
        self._copies.update(given_copies(given, placed, self._folder))
        return placed

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Forget what this block has described if it fails: no model has read it."""
        before = self._descriptions.told, self._held
        try:
            yield
        except BaseException:
            self._descriptions.told, self._held = before
            raise

    def hear(self, event: Event) -> None:
        """Take note that descriptions have left the prompt of the role that gets the requests; a handler of events."""
        if isinstance(event, HistoryCompacted) and event.summary and event.role == self._team.entry:
            self._descriptions.forget_files()

    def describe(self, text: str, brought: RequestFiles, variables: Mapping[str, Any]) -> str:
        """Return a description of what a request brings, for models; empty if it brings nothing.

        Args:
            text: The request, which says what is relevant.
            brought: Its files.
            variables: Its data.
        """
        if brought.withheld:
            self._on_problem(withheld_words(brought.withheld))
        held = [
            str(variable) for variable in self._team.users_variables(self._folder) if variable.name not in variables
        ]
        new = [line for line in held if line not in self._held]
        self._held = frozenset(held)
        return self._descriptions.of_request(text, brought.placed, variables, new)

    def folder_note(self, text: str, used_chars: int, landing: AnswerFiles | None) -> str:
        """Return what code may do in the folder that the user works in, what becomes of new files, and what it holds.

        Args:
            text: The request; empty: what the folder holds is left out.
            used_chars: How long the description of the request's own files is.
            landing: Who copies files to where the user is; None: nobody.
        """
        users = self._settings.user_folder
        note = self._grants.describe(users, self._folder) if users else ""
        sentence = landing.sentence if landing is not None and self._team.runner is not None else ""
        holds = self._descriptions.of_folder(text, users, used_chars) if users and text else ""
        self._folder_holds = holds
        return "\n\n".join(part for part in (f"{note} {sentence}".strip(), holds) if part)

    def board(self, profile: str, rounds: Sequence[Round]) -> str:
        """Return what workers lack of earlier requests, for the board; empty if that is nothing.

        That is what describes files while nobody ran code, and the user's definitions where no Planner passes them on,
        because the request goes to another role.

        Args:
            profile: Description of this request's files; empty if it has none.
            rounds: The session's, this one included, with the user's post.
        """
        if not self._team.planned:
            return ""
        words = self._unread_descriptions(profile, rounds)
        if rounds[-1].posts[0].send_to != self._team.entry:
            words.append(Definitions.of(rounds).describe())
        return "\n\n".join(part for part in words if part)

    def _unread_descriptions(self, profile: str, rounds: Sequence[Round]) -> list[str]:
        runner = self._team.runner
        if runner is None:
            return []
        if len(rounds) > 1 and any(post.send_from == runner.name for post in rounds[-2].posts):
            self._unread.clear()
            self._unread_folder.clear()
        unread = [*self._unread[-_MAX_UNREAD:], *self._unread_folder[-_MAX_UNREAD:]]
        self._unread += filter(None, [profile])
        self._unread_folder += filter(None, [self._folder_holds])
        return ["Earlier requests brought:", *unread] if unread else []
