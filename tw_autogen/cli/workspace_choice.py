"""Where the command line keeps sessions, also if the current folder can't be written to."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tw_autogen.cli.options import Options
from tw_autogen.cli.standard_streams import words_of_os_error
from tw_autogen.errors import ConfigError
from tw_autogen.private_files import cache_folder
from tw_autogen.safe_folder import open_or_make_folder, walk_links
from tw_autogen.session import SessionSettings, refuse_link
from tw_autogen.settings import Settings


def fallback_workspace(settings: Settings, *, unwanted: str = "") -> tuple[Path | None, str]:
    """Return a folder for sessions where the default one, below the current folder, can't be written to or is unwanted.

    Args:
        settings: `session.workspace` that somebody has set is taken as it is, so that its error is seen.
        unwanted: Why the default one is not used, as a clause; empty: it is.

    Returns:
        The folder in the user's cache, and one line that says so; None and an empty text if it is not needed.

    Raises:
        ConfigError: the cache can't be written to either, or the default one is a link out of a folder that is not
            trusted; nothing is made there.
    """
    if settings.origin("session.workspace") != Settings.DEFAULT:
        return None, ""
    if not (why := unwanted or _unwritable_reason(_default_place(settings))):
        return None, ""
    instead = _in_cache()
    if also := _unwritable_reason(instead):
        raise ConfigError(f"no folder for sessions: {why}; {also}. Name one that you can write to with --workspace DIR")
    return instead, f"sessions are kept in {instead}, because {why}"


def workspace_of(options: Options, settings: Settings) -> Path:
    """Return the folder in which sessions are: the option's, else the setting's, else that in the user's cache.

    Args:
        options: Whose `workspace` is what `--workspace` names, or None.
        settings: Read for `session.workspace`; the cache counts only if that is the default and does not exist.

    Raises:
        ConfigError: the default one is a link out of a folder that is not trusted; nothing there is looked at.
    """
    wanted = options.workspace or Path(settings.read("session", SessionSettings).workspace)
    if options.workspace or settings.origin("session.workspace") != Settings.DEFAULT:
        return wanted
    instead = _in_cache()
    return instead if not _default_place(settings).exists() and instead.exists() else wanted


def _default_place(settings: Settings) -> Path:
    """Return where the default folder for sessions is, links followed, which nothing looks behind before.

    Raises:
        ConfigError: it is a link out of a folder that is not trusted.
    """
    refuse_link(settings)
    wanted = Path(settings.read("session", SessionSettings).workspace).absolute()
    return Path(walk_links(wanted / "session").target).parent


def _in_cache() -> Path:
    """Return the place in the user's cache for sessions of the current folder; those of others lie beside it."""
    disk = os.statvfs(os.curdir).f_fsid if hasattr(os, "statvfs") else 0  # of another medium, not at each mount
    here = os.fsencode(f"{Path.cwd()}\0{disk}\0{os.stat(os.curdir).st_ino}")
    return cache_folder(os.environ) / "sessions" / hashlib.sha256(here).hexdigest()[:16]


def _unwritable_reason(folder: Path) -> str:
    """Return in one line why a folder can't be made or written to; empty if it can."""
    try:
        open_or_make_folder(folder).close()
    except OSError as error:
        return words_of_os_error(OSError(error.errno, error.strerror, str(folder))).partition(";")[0]
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder}: it can't be written to"
