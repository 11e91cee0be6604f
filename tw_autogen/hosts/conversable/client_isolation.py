"""Clients of a service are kept apart: the code of one reads nothing of another's session."""

from __future__ import annotations

import logging
from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.session import SessionSettings, prune_refusal_reason, prune_sessions
from tw_autogen.settings import Settings

_log = logging.getLogger(__name__)


def check_clients_apart(name: str, read: Settings, workspace: Path | str | None) -> None:
    """Check that no code of an agent may read the folder in which its sessions are kept.

    Args:
        name: The agent's.
        read: Its settings.
        workspace: Where its sessions are kept; None: where the settings say.

    Raises:
        ConfigError: one of its grants, a Python environment, or a folder of the system holds that folder; names it, and
            what to do.
    """
    session, kernel = read.read("session", SessionSettings), read.read("kernel", KernelSettings)
    kept = Path(workspace or session.workspace).resolve()
    if holder := LocalKernel.readable_by_all_reason(kept, kernel, {"session.user_folder": session.user_folder}):
        raise ConfigError(
            f"{name}: {holder} holds the workspace {kept}, so code of one client could read what another has asked and "
            "made; name a workspace elsewhere (workspace=…)"
        )


def remove_old_sessions(read: Settings, workspace: Path | str | None) -> None:
    """Remove what the settings call too old or too large in the folder in which a service's sessions are kept.

    Args:
        read: `session.keep_days`, `variables_days` and `variables_mb` count, as on the command line.
        workspace: Where the sessions are kept; None: where the settings say.
    """
    own = read.read("session", SessionSettings)
    if workspace is None and prune_refusal_reason(read):
        return
    removed, problems = prune_sessions(Path(workspace or own.workspace), settings=own)
    for problem in problems:
        _log.warning("an old session can't be removed: %s", problem)
    if removed:
        _log.info("removed %d sessions older than %g days (session.keep_days)", len(removed), own.keep_days)
