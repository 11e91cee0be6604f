"""A session as the command line's options say."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.approval import Approve
from tw_autogen.cli.options import Options
from tw_autogen.events import Handler
from tw_autogen.session import Session, SessionSettings, open_session, read_settings

_ROLES = ("planner", "code_interpreter")
_SYSTEM = (
    "/bin",
    "/boot",
    "/dev",
    "/dev/shm",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
)


def open_for(
    options: Options, handlers: Sequence[Handler], say: Callable[[str], None], approve: Approve | None
) -> Session:
    """Open a session whose code may read the current folder.

    Args:
        options: What the shared options said.
        handlers: Called with each event.
        say: Called with a line about what code may read.
        approve: Asked for packages, cells and plans, as the settings say; None: nobody is there.

    Raises:
        ConfigError: anything is wrong with settings, model, roles or plugins.
        SandboxError: no sandbox can stand around the code here.
        ModelError: the server that should say which model it has does not answer.
    """
    settings = read_settings(options.keywords, project=options.project)
    said = ""
    if not settings.read("session", SessionSettings).user_folder:
        folder = Path(options.project or ".").resolve()
        if why := too_much(folder):
            said = f"code can't read {folder}, because it is {why}; name the files, or start in a folder of their own"
        else:
            said = f"code can read {folder}"
            keywords: Mapping[str, Any] = {**options.keywords, "session.user_folder": str(folder)}
            settings = read_settings(keywords, project=options.project)
    session = open_session(
        roles=(*_ROLES, *(role for role in options.roles if role not in _ROLES)),
        plugins=options.plugins,
        folder=options.workspace,
        handlers=handlers,
        settings=settings,
        approve=approve,
    )
    if said:
        say(said)
    return session


def too_much(folder: Path) -> str:
    """Say in words why code may not read a whole folder; empty if it may."""
    home = Path(os.path.expanduser("~")).resolve()
    if folder == home:
        return "your home folder"
    if home.is_relative_to(folder):
        return "above your home folder"
    if folder == Path(tempfile.gettempdir()).resolve() or str(folder) in _SYSTEM:
        return "one of the system's folders"
    return ""
