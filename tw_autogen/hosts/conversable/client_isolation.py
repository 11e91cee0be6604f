"""Clients of a service are kept apart: the code of one reads nothing of another's session."""

from __future__ import annotations

from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.session import SessionSettings
from tw_autogen.settings import Settings


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
