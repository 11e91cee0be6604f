"""`EarlierSession`: what a resumed session brings from its folder: rounds, names of variables, plugins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tw_autogen.conversation import AttachmentType, Post, Round, RoundState
from tw_autogen.errors import ENDED_BY_SIGNAL, ConfigError, TwAutogenError
from tw_autogen.events import ArtifactSaved, CellRan, Event, FileCopied, PostClosed, RoundOpened, SessionOpened
from tw_autogen.owner_marks import has_owner_mark, write_owner_mark
from tw_autogen.private_files import belongs_to_user
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session.event_journal import (
    LARGEST_BYTES,
    events_in,
    is_marked_open,
    is_sealed,
    rounds_of,
    whole_lines,
)
from tw_autogen.session_layout import CELLS, FILES, JOURNAL

_MARK = "made_here"
_PURPOSE = "session"


@dataclass(frozen=True)
class EarlierSession:
    """A session that has ended, however it ended, and is resumed in its folder.

    Args:
        id: The session's.
        folder: That with its journal.
        rounds: What was asked and answered, oldest first; the last one is open if it was cut off.
        variables: Names of those that the last cell left.
        plugins: Names of those that it had.
        roles: Names of those who answered.
        keeps_cells: Whether there is a journal of its cells, by which they can be run again.
        made_by_user: This user has made it there, and all of its journal is this program's.
        events: What happened. Where this user has not written all of it, it names no file outside of the session's
            folder: what stands there leads the host to none.
    """

    id: str
    folder: Path
    rounds: tuple[Round, ...] = ()
    variables: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    keeps_cells: bool = False
    made_by_user: bool = True
    events: Sequence[Event] = field(default=(), repr=False)

    @classmethod
    def read(cls, folder: Path, *, trust: bool = False) -> EarlierSession:
        """Read what a session's folder holds; nothing in it is changed, and nothing of it is run or unpickled.

        Args:
            folder: The session's, absolute and without links.
            trust: Read also what this user did not make in this folder.

        Raises:
            ConfigError: no session is there, a process has it open, its journal can't be read, or this user did not
                make it there.
        """
        try:
            with SafeFolder.without_links(folder) as opened:
                with opened.open_file(JOURNAL) as journal:
                    if is_marked_open(journal.fileno()):
                        raise ConfigError(f"{folder.name} is open in another process; close it there first")
                data = whole_lines(opened.read_file(JOURNAL, limit_bytes=LARGEST_BYTES))
                own = is_made_by_user(opened, data)
                keeps_cells = opened.has_file(f"{FILES}/{CELLS}")
        except FileNotFoundError:
            raise ConfigError(f"{folder}: there is no session (no {JOURNAL})") from None
        except OSError as error:
            raise ConfigError(f"{folder}: {error.strerror or error}") from error
        found = events_in(data)
        events = _read_all_events(folder, found if own else _without_files(found, folder / FILES))
        if not (own or trust):
            raise ConfigError(
                f"{folder}: this user did not make this session in this folder (it came from elsewhere, was moved or "
                "copied, its journal has lines that this program did not write or that are from before it marked its "
                "own, or there is no home folder for the key that would show it), so it is not resumed: its words "
                "would be read by the model, its variables by a kernel. `sessions show` and `sessions export` only "
                "read it; --trust (in Python trust=True) resumes it"
            )
        opened_as = next((event for event in reversed(events) if isinstance(event, SessionOpened)), None)
        last = next((event for event in reversed(events) if isinstance(event, CellRan)), None)
        return cls(
            folder.name,
            folder,
            tuple(_close_cut_off_rounds(rounds_of(events))),
            tuple(line.partition(":")[0] for line in last.variables) if last else (),
            tuple(opened_as.plugins) if opened_as else (),
            tuple(opened_as.roles) if opened_as else (),
            keeps_cells,
            own,
            events,
        )


def read_events(folder: Path) -> list[Event]:
    """Return the events of a session's journal, oldest first.

    Args:
        folder: The session's; it leads over no link, as `session_folder` returns it.

    Raises:
        ConfigError: it is missing, reached over a link, or damaged before its last line; names the file, the line and
            what is wrong.
    """
    try:
        with SafeFolder.without_links(os.path.abspath(folder)) as opened:
            data = opened.read_file(JOURNAL, limit_bytes=LARGEST_BYTES)
    except OSError as error:
        real = folder.resolve()
        hint = "" if real == Path(os.path.abspath(folder)) else f"; if you know that link, name {real}"
        raise ConfigError(f"{folder / JOURNAL}: {error.strerror or error}{hint}") from error
    return _read_all_events(folder, events_in(data))


def _read_all_events(folder: Path, events: Iterator[Event]) -> list[Event]:
    path = folder / JOURNAL
    try:
        return list(events)
    except (ValueError, TypeError, KeyError, AttributeError, TwAutogenError) as error:
        raise ConfigError(f"{path}: the journal is damaged: {error}. Nothing was changed") from error


def mark_own_session(root: Path) -> None:
    """Mark a session's folder as made by this user here."""
    with SafeFolder(root) as opened:
        write_owner_mark(opened, _MARK, _PURPOSE)


def has_own_mark(opened: SafeFolder) -> bool:
    """Return whether this user has made the session of an open folder there; others may have written in it since."""
    return has_owner_mark(opened, _MARK, _PURPOSE)


def is_made_by_user(opened: SafeFolder, journal: bytes) -> bool:
    """Return whether this user has made the session of an open folder there, and written all of its journal.

    Args:
        opened: The session's.
        journal: What its journal holds.
    """
    return belongs_to_user(opened.info(JOURNAL)) and has_own_mark(opened) and is_sealed(opened, journal)


def _without_files(events: Iterable[Event], files: Path) -> Iterator[Event]:
    """Yield events without what would lead the host to a file that is not in the session's own folder.

    Args:
        events: Somebody else may have written them: code that can write to the journal, or who made the session.
        files: That folder.
    """
    for event in events:
        if isinstance(event, RoundOpened):
            yield replace(event, files=[name for name in event.files if not os.path.isabs(name)])
        elif isinstance(event, PostClosed):
            yield replace(event, post=_without_artifacts(event.post, files))
        elif isinstance(event, ArtifactSaved):
            yield from [event] if _is_in(event.path, files) else ()
        elif not isinstance(event, FileCopied):
            yield event


def _without_artifacts(post: Post, files: Path) -> Post:
    found = post.attachment(AttachmentType.artifact_paths)
    if found is None:
        return post
    own = [one for one in found.extra or () if _is_in(one["path"], files)]
    kept = (replace(found, extra=own) if attachment is found else attachment for attachment in post.attachments)
    return replace(post, attachments=tuple(kept))


def _is_in(path: str, files: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(files)


def _close_cut_off_rounds(rounds: list[Round]) -> list[Round]:
    """Close rounds as failed that were cut off, but for the last one, which is resumed if it has begun."""
    last = rounds[-1] if rounds else None
    if last and last.state is RoundState.failed and last.error.startswith(ENDED_BY_SIGNAL):
        last.state, last.error = RoundState.created, ""
    for number, one in enumerate(rounds):
        if one.state is RoundState.created and (number < len(rounds) - 1 or not one.posts):
            one.state, one.error = RoundState.failed, one.error or CUT_OFF
    return rounds


CUT_OFF = "it was cut off"
"""Why a round failed whose process ended before it did."""
