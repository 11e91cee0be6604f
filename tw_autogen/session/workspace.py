"""The workspace, in which sessions have their folders: which there are, and how old ones are removed."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass
from pathlib import Path

from tw_autogen import bounded_json
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session.journal import JOURNAL
from tw_autogen.session.open_mark import is_marked_open

_SESSION = re.compile(r"session-[0-9a-f]+")
_DAY_SECONDS = 86_400.0
_LONGEST_LINE = 1 << 20
_FIRST_LINES = 50
_IGNORE_ALL = "*\n"


@dataclass(frozen=True)
class PastSession:
    """A session of a workspace.

    Args:
        id: Name of its folder.
        folder: That folder.
        days: How long ago something happened in it.
        size_bytes: What its files take together.
        question: The first one; empty if there was none, or the journal can't be read.
        is_open: A process has it open. On Windows that is not known, and False.
    """

    id: str
    folder: Path
    days: float
    size_bytes: int
    question: str
    is_open: bool


def past_sessions(workspace: Path, *, sized: bool = True) -> list[PastSession]:
    """Return the sessions of a workspace, the newest first.

    Only folders count that are named as sessions are, and hold a journal: no links, nothing that someone else made.

    Args:
        workspace: Need not exist.
        sized: Add up their sizes, and read their questions; otherwise these are 0 and empty.
    """
    found = []
    try:
        opened = SafeFolder(workspace)
    except OSError:
        return []
    with opened:
        for entry in opened.walk(enter=lambda name: False):
            if entry.is_folder and _SESSION.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    found.append(_past(opened, entry.name, sized=sized))
    return sorted(found, key=lambda one: one.days)


def prune_sessions(workspace: Path, days: float, *, dry_run: bool = False) -> tuple[list[PastSession], list[str]]:
    """Remove the sessions of a workspace that are older, with all their files; open ones stay.

    Args:
        workspace: Need not exist.
        days: Those stay in which something happened since so many days ago.
        dry_run: Remove nothing.

    Returns:
        What was, or would be, removed, and in a line each what could not be removed.
    """
    gone, problems = [], []
    for one in past_sessions(workspace, sized=dry_run):
        if one.is_open or one.days <= days:
            continue
        try:
            if not dry_run:
                with SafeFolder(workspace) as opened:
                    opened.remove_tree(one.id)
            gone.append(one)
        except OSError as error:
            problems.append(f"{one.folder}: {error.strerror or error}")
    return gone, problems


def ignore_in_git(workspace: Path) -> None:
    """Write a `.gitignore` that leaves out everything into the folder above a workspace, unless there is one.

    Args:
        workspace: `.tw/sessions`, which need not exist; where it can't be made, or is elsewhere, nothing happens.
    """
    above = workspace.parent
    if above.name != ".tw":
        return
    with contextlib.suppress(OSError):
        above.mkdir(exist_ok=True)
        with SafeFolder(above) as opened, opened.create_file(".gitignore") as file:
            file.write(_IGNORE_ALL.encode())


def _past(workspace: SafeFolder, name: str, *, sized: bool) -> PastSession:
    with workspace.open_file(f"{name}/{JOURNAL}") as journal:
        is_open = is_marked_open(journal.fileno())
        newest = workspace.info(f"{name}/{JOURNAL}").st_mtime
        question = ""
        for _ in range(_FIRST_LINES if sized else 0):
            with contextlib.suppress(ValueError, AttributeError):
                event = bounded_json.loads(journal.readline(_LONGEST_LINE))
                if event.get("event") == "RoundOpened":
                    question = str(event.get("user_query", ""))
                    break
    folder, size = workspace.path / name, 0
    if sized:
        with SafeFolder(folder) as opened:
            size = sum(entry.info.st_size for entry in opened.walk() if entry.is_file)
    return PastSession(name, folder, max(0.0, time.time() - newest) / _DAY_SECONDS, size, question, is_open)
