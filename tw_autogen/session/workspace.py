"""The workspace, in which sessions have their folders: which there are, and how old ones are removed."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import math
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from tw_autogen import bounded_json
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings
from tw_autogen.named_folders import checked_path, named_folder
from tw_autogen.private_files import belongs_to_user
from tw_autogen.safe_folder import SafeFolder, open_or_make_folder, real_path
from tw_autogen.session.earlier_session import has_own_mark
from tw_autogen.session.event_journal import is_marked_open
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.trust_review import distrusted_folder
from tw_autogen.session_layout import FILES, JOURNAL
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust

_VARIABLES = f"{FILES}/.checkpoint/variables"
"""The copy of the variables of a session's code, below its folder."""
CODE_RUN = "This code was run as it stands:"
"""What stands above code of the user's own, in the place of a question."""
_PREFIX = "session-"
_SESSION = re.compile(rf"{_PREFIX}[0-9a-f]+")
_MAX_NAMED = 5
_DAY_SECONDS = 86_400.0
_LONGEST_LINE = 1 << 20
_FIRST_LINES, _FIRST_BYTES = 50, 1 << 20
_LONGEST_HEAD, _LONGEST_PARSED = 1000, 1 << 16
"""Bytes of a journal's line: in which its event is named, and which are read as JSON. Code may have made thousands."""
_MAX_SIZED = 1_000_000
_BEGUN = re.compile(
    rb'\{"seq": \d{1,9}, "at": "[^"]{1,40}", "event": "RoundOpened", "round_id": "[^"\\]{0,100}", '
    rb'"user_query": ("[^"\\]{0,1000})'
)
"""The beginning of a line with a question, which may be longer than any line that is read whole."""
_GITIGNORE, _IGNORE_ALL = ".gitignore", b"*\n"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PastSession:
    """A session of a workspace.

    Args:
        id: Name of its folder.
        folder: That folder.
        days: How long ago something happened in it.
        size_bytes: What its files take together; of a million and more, those looked at first.
        question: The first one, or `code: ` and code of the user's own; empty if there was none, or the journal can't
            be read.
        is_open: A process has it open. On Windows that is not known, and False.
    """

    id: str
    folder: Path
    days: float
    size_bytes: int
    question: str
    is_open: bool


def chosen_folder(settings: Settings, named: Path | str | None) -> Path:
    """Return the folder that the user names, else `session.workspace`, absolute and without links; it is not made.

    Args:
        settings: Say where sessions are kept, what code can write to, and whether the current folder is trusted.
        named: For sessions or a kernel; None: nothing is named.

    Raises:
        ConfigError: it is reached over a link that code could have made, or over one out of the current folder, which
            nobody has trusted. An absolute `session.workspace` is the choice of whoever wrote the settings: links out
            of the current folder are followed there.
    """
    writable = settings.read("kernel", KernelSettings).write
    if named is not None:
        return named_folder(checked_path(named, "folder"), writable=writable, distrusted=distrusted_folder(settings))
    workspace = Path(settings.read("session", SessionSettings).workspace)
    if settings.origin("session.workspace") == Settings.DEFAULT:
        refuse_link(settings)
        return named_folder(workspace, writable=writable, distrusted=())
    distrusted = () if workspace.is_absolute() else distrusted_folder(settings)
    return named_folder(workspace, writable=writable, distrusted=distrusted)


def refuse_link(settings: Settings) -> None:
    """Refuse to keep sessions behind a link in a folder that is not trusted; nothing behind it is looked at.

    Args:
        settings: Say where sessions are kept, and whether that is the default.

    Raises:
        ConfigError: the default, `.tw/sessions`, is a link, or lies behind one.
    """
    folder = Path.cwd().resolve()
    trusted = settings.trust is Trust.full and settings.project is not None and settings.project.resolve() == folder
    if trusted or settings.origin("session.workspace") != Settings.DEFAULT:
        return
    for name in Path(settings.read("session", SessionSettings).workspace).parts:
        folder /= name
        if folder.is_symlink():
            raise ConfigError(
                f"{folder} is a link to {os.readlink(folder)}; say where sessions are kept: --workspace, or the "
                "setting session.workspace"
            )


def past_sessions(workspace: Path, *, sized: bool = True) -> list[PastSession]:
    """Return the sessions of a workspace, the newest first.

    Only folders count that are named as sessions are, hold a journal, and belong to this user with it: no links,
    nothing that someone else made.

    Args:
        workspace: Need not exist. Below the current folder no link on the way to it is followed; there are none then.
        sized: Add up their sizes, and read their questions; otherwise these are 0 and empty.
    """
    try:
        with _open_workspace(workspace) as opened:
            return _past_of(opened, sized=sized)
    except OSError:
        return []


def session_folder(wanted: Path | str | None, workspace: Path) -> Path:
    """Return the folder of a session that is named by its name in a workspace, the beginning of it, or its folder.

    Args:
        wanted: `session-3be272b9ccf6`, `3be272b9ccf6`, the first characters of either, or a path, also that of the
            folder of its files (`Session.folder`); None: the one in which something happened last.
        workspace: Where names are looked for.

    Raises:
        ConfigError: there is none, or several names begin so; names those that come near.
    """
    if wanted is None:
        return _last_session(workspace)
    if os.sep in str(wanted) or isinstance(wanted, Path):
        return _folder_at(Path(wanted))
    names = [session.id for session in past_sessions(workspace, sized=False)]
    full = wanted if wanted.startswith(_PREFIX) else f"{_PREFIX}{wanted}"
    if names and _PREFIX.startswith(wanted):
        raise ConfigError(f"{wanted!r}: all {len(names)} sessions begin so: {', '.join(names[:_MAX_NAMED])}")
    matching = [full] if full in names else [name for name in names if name.startswith(full)]
    if len(matching) == 1:
        try:
            with _open_workspace(workspace) as opened:
                return _real_folder(opened, matching[0])
        except OSError as error:
            raise ConfigError(f"{wanted}: not opened: {error.strerror or error}") from error
    if matching:
        raise ConfigError(f"{wanted}: {len(matching)} sessions begin so: {', '.join(matching[:_MAX_NAMED])}")
    known = f"; the newest: {', '.join(names[:_MAX_NAMED])}" if names else ""
    raise ConfigError(f"you have no session {wanted} in {workspace}{known}. `tw-autogen sessions list` lists them")


def _folder_at(named: Path) -> Path:
    """Return the folder of a session whose path, or that of its files, is named; no link below the current folder.

    Args:
        named: The path.

    Raises:
        ConfigError: there is none.
    """
    given = Path(os.path.abspath(os.path.expanduser(named)))
    for one in (given, given.parent) if given.name == FILES else (given,):
        try:
            with _open_workspace(one) as opened:
                if opened.has_file(JOURNAL):
                    return _real_folder(opened, ".")
        except FileNotFoundError:
            continue
        except OSError as error:
            if one.is_file() and not one.is_symlink():
                raise ConfigError(f"{named} is a file; name the folder of the session: {named.parent}") from error
            why = f"{error.strerror or error}; below the current folder no link is followed"
            raise ConfigError(f"{named}: not opened: {why}") from error
    raise ConfigError(f"{named}: there is no session (no {JOURNAL})")


def _last_session(workspace: Path) -> Path:
    """Return the folder of the session of a workspace in which something happened last, and a question was asked.

    One that this user has made there goes before all others: its folder may hold sessions that came from elsewhere.

    Args:
        workspace: Where sessions are.

    Raises:
        ConfigError: there is none, or it is open.
    """
    try:
        with _open_workspace(workspace) as opened:
            last = None
            for one in _past_of(opened, sized=False):
                if _first_question(opened, one.id):
                    own = _made_here(opened, one.id)
                    last = one if own else last or one
                    if own:
                        break
            if last and last.is_open:
                raise ConfigError(
                    f"the last session here, {last.id}, is open in another process; close it there first, or "
                    "name another one with --resume"
                )
            if last:
                return _real_folder(opened, last.id)
    except OSError:
        pass
    raise ConfigError(f"you have no session to resume in {workspace}")


def _real_folder(opened: SafeFolder, name: str) -> Path:
    """Return a folder in an open one as an absolute path without links, which leads to this very folder.

    Raises:
        OSError: it does not any more, since untrusted code has exchanged what is on the way there.
    """
    real = real_path(opened.path / name)
    with opened.open_folder(name) as own, SafeFolder.without_links(real) as found:
        if not os.path.samestat(own.info("."), found.info(".")):
            raise PermissionError(errno.EPERM, "exchanged while it was looked at", os.fspath(opened.path / name))
    return real


def remove_session(folder: Path) -> None:
    """Remove a session with all its files.

    Args:
        folder: The session's, absolute and without links.

    Raises:
        ConfigError: its name is none of a session, a process has it open, or it can't be removed.
    """
    if not _SESSION.fullmatch(folder.name):
        raise ConfigError(f"{folder}: not removed: its name is none of a session ({_PREFIX}…)")
    try:
        with SafeFolder.without_links(folder.parent) as workspace:
            if _past_session(workspace, folder.name, sized=False).is_open:
                raise ConfigError(f"{folder.name} is open in another process; close it there first")
            workspace.remove_tree(folder.name)
    except OSError as error:
        raise ConfigError(f"{folder}: not removed: {error.strerror or error}") from error


def _open_workspace(workspace: Path) -> SafeFolder:
    with SafeFolder(Path.cwd()) as here:
        if name := here.name_of(workspace):
            return here.open_folder(name)
    return SafeFolder(workspace)


def _past_of(workspace: SafeFolder, *, sized: bool, made_here: bool = False) -> list[PastSession]:
    found = []
    for entry in workspace.walk(enter=lambda name: False):
        if entry.is_folder and _SESSION.fullmatch(entry.name) and belongs_to_user(entry.info):
            with contextlib.suppress(OSError):
                if made_here and not _made_here(workspace, entry.name):
                    continue
                found.append(_past_session(workspace, entry.name, sized=sized))
    return sorted(found, key=lambda one: one.days)


def prune_sessions(
    workspace: Path,
    days: float = math.inf,
    *,
    dry_run: bool = False,
    settings: SessionSettings | None = None,
) -> tuple[list[PastSession], list[str]]:
    """Remove the sessions of a workspace that are older, with all their files; open ones stay.

    By settings, of those that stay saved variables are removed that are too old, or too large together with those of
    newer sessions; their cells stay, and can be run again.

    Args:
        workspace: Need not exist; see `past_sessions`.
        days: Those stay in which something happened since so many days ago; infinite: all.
        dry_run: Remove nothing.
        settings: Nobody has asked for anything to be removed: `keep_days`, in place of `days`, `variables_days` and
            `variables_mb` say what goes, and only of sessions that this user's program made in this place.

    Returns:
        What was, or would be, removed, and in a line each what could not be removed.
    """
    gone: list[PastSession] = []
    problems: list[str] = []
    variables_days, variables_mb = 0.0, 0
    if settings is not None:
        days = settings.keep_days if settings.keep_days > 0 else math.inf
        variables_days, variables_mb = settings.variables_days, settings.variables_mb
    try:
        opened = _open_workspace(workspace)
    except FileNotFoundError:
        return gone, problems
    except OSError as error:
        why = f"it is a link, or one is in the way ({error.strerror or error})"
        return gone, [f"{workspace}: {why}; --workspace names the folder that it leads to"]
    kept_bytes = 0
    with opened:
        try:
            past = _past_of(opened, sized=dry_run, made_here=settings is not None)
        except OSError as error:
            return gone, [f"{workspace}: {error.strerror or error}"]
        for one in past:
            if one.is_open or one.days <= days:
                if not (one.is_open or dry_run):
                    kept_bytes += (held := _variables_bytes(opened, one.id))
                    old, large = 0 < variables_days < one.days, 0 < variables_mb << 20 < kept_bytes
                    if held and (old or large):
                        with contextlib.suppress(OSError):
                            opened.remove(f"{one.id}/{_VARIABLES}")
                continue
            try:
                if not dry_run:
                    opened.remove_tree(one.id)
                gone.append(one)
            except FileNotFoundError:  # another process has removed it meanwhile
                continue
            except OSError as error:
                problems.append(f"{one.folder}: {error.strerror or error}")
    return gone, problems


def _variables_bytes(workspace: SafeFolder, name: str) -> int:
    """Return how large the saved variables of a session are; 0 for one that this user has not made there."""
    try:
        return workspace.info(f"{name}/{_VARIABLES}").st_size if _made_here(workspace, name) else 0
    except OSError:
        return 0


def _made_here(workspace: SafeFolder, name: str) -> bool:
    with workspace.open_folder(name) as session:
        return has_own_mark(session)


def prune_refusal_reason(settings: Settings) -> str:
    """Return why nothing is removed from a workspace that a folder's file names outside of that folder; else empty.

    Args:
        settings: Say where sessions are kept.
    """
    folder = settings.folder_of("session.workspace")
    if folder is None:
        return ""
    workspace = Path(settings.read("session", SessionSettings).workspace).resolve()
    if workspace.is_relative_to(folder.resolve()):
        return ""
    return (
        f"{workspace}: {settings.origin('session.workspace')} puts sessions there, outside of its folder; "
        "--workspace names it if you want old ones to be removed"
    )


def ignore_in_git(workspace: Path, *, distrusted: bool) -> None:
    """Write a `.gitignore` that leaves out everything into the folder above a workspace, unless there is one.

    Args:
        workspace: `.tw/sessions`, which need not exist; where it can't be made, or is elsewhere, nothing happens.
        distrusted: Nobody has trusted the folder: a log line says so if another file is there already.
    """
    above = workspace.parent
    if above.name != ".tw":
        return
    with contextlib.suppress(OSError), open_or_make_folder(above) as opened:
        if not opened.has_entry(_GITIGNORE):
            opened.write_file(_GITIGNORE, _IGNORE_ALL)  # whole at once: another session may look at it
        elif distrusted and opened.read_file(_GITIGNORE, limit_bytes=_LONGEST_LINE) != _IGNORE_ALL:
            _log.warning("%s/%s is not ours: git may take sessions up, with all that is asked", above, _GITIGNORE)


def _past_session(workspace: SafeFolder, name: str, *, sized: bool) -> PastSession:
    with workspace.open_file(f"{name}/{JOURNAL}") as journal:
        if not belongs_to_user(os.fstat(journal.fileno())):
            raise PermissionError(errno.EPERM, "another user's", name)
        is_open = is_marked_open(journal.fileno())
        newest = workspace.info(f"{name}/{JOURNAL}").st_mtime
    question = _first_question(workspace, name) if sized else ""
    folder, size = workspace.path / name, 0
    if sized:
        with workspace.open_folder(name) as opened:
            entries = itertools.islice(opened.walk(), _MAX_SIZED)  # its code may run, and make others meanwhile
            size = sum(entry.info.st_size for entry in entries if entry.is_file)
    return PastSession(name, folder, max(0.0, time.time() - newest) / _DAY_SECONDS, size, question, is_open)


def _first_question(workspace: SafeFolder, name: str) -> str:
    """Return the first question of a session; empty if there was none, or the journal can't be read."""
    with workspace.open_file(f"{name}/{JOURNAL}") as journal:
        start = journal.read(_FIRST_BYTES)
    for line in start.splitlines(keepends=True)[:_FIRST_LINES]:
        if b'"event": "RoundOpened"' not in line[:_LONGEST_HEAD]:
            continue
        begun = _BEGUN.match(line) if len(line) > _LONGEST_PARSED else None
        with contextlib.suppress(ValueError, AttributeError):
            if begun:
                return _as_code(str(bounded_json.loads(begun[1].decode("utf-8", "ignore") + '…"')))
            if len(line) <= _LONGEST_PARSED:
                return _as_code(str(bounded_json.loads(line).get("user_query", "")))
    return ""


def _as_code(question: str) -> str:
    """Return the words of `Session.run_code` as `code: ` and the code, without the marks of a block; others as is."""
    head, _, block = question.partition("\n")
    marks, _, code = block.partition("python\n")
    return f"code: {code.removesuffix(marks).rstrip()}" if head == CODE_RUN else question
