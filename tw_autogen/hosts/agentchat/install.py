"""Says in one sentence what is missing, and which command mends it."""

from __future__ import annotations

import importlib

from tw_autogen.errors import HostError

INSTALL = 'pip install "tw-autogen[agentchat]"'


def check_installed() -> None:
    """Make sure that autogen-agentchat is there.

    Raises:
        HostError: it is not; with the command that mends it.
    """
    try:
        importlib.import_module("autogen_agentchat.agents")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("autogen_"):
            raise
        raise HostError(
            f"tw_autogen.hosts.agentchat needs autogen-agentchat, and there is no package `{error.name}`",
            command=INSTALL,
        ) from None
