"""Clients of a service are kept apart: the code of one reads nothing of another's session."""

from __future__ import annotations

from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings
from tw_autogen.session import SessionSettings
from tw_autogen.settings import Settings

_ENVIRONMENTS = ("site-packages", "dist-packages", "venv", ".venv")
"""Folders by their names of which code may read all."""


def check_clients_apart(name: str, read: Settings, workspace: Path | str | None) -> None:
    """Check that no code of an agent may read the folder in which its sessions are kept.

    Args:
        name: The agent's.
        read: Its settings.
        workspace: Where its sessions are kept; None: where the settings say.

    Raises:
        ConfigError: one of its grants, or a Python environment, holds that folder; names it, and what to do.
    """
    session, kernel = read.read("session", SessionSettings), read.read("kernel", KernelSettings)
    kept = Path(workspace or session.workspace).resolve()
    environments = [str(one) for one in kept.parents if one.name in _ENVIRONMENTS]
    granted = {
        "a Python environment": environments,
        "session.user_folder": [session.user_folder],
        "kernel.read": kernel.read,
        "kernel.write": kernel.write,
    }
    for key, folders in granted.items():
        for folder in filter(None, folders):
            if kept.is_relative_to(Path(folder).resolve()):
                raise ConfigError(
                    f"{name}: {key} ({folder}) holds the workspace {kept}, so code of one client could read what "
                    "another has asked and made; name a workspace elsewhere (workspace=…)"
                )
