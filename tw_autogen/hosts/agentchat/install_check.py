"""Says in one sentence what is missing, and which command fixes it."""

from __future__ import annotations

import importlib

from tw_autogen.errors import HostError

INSTALL = 'pip install "tw-autogen[agentchat]"'


def check_installed() -> None:
    """Make sure that autogen-agentchat is there, and that its parts belong together.

    Raises:
        HostError: they don't, or it is missing; with the command that fixes it.
    """
    try:
        importlib.import_module("autogen_agentchat.agents")
    except ImportError as error:
        if not (error.name or "").startswith("autogen_"):
            raise
        missing = isinstance(error, ModuleNotFoundError)
        problem = f"there is no package `{error.name}`" if missing else f"what is installed doesn't fit: {error}"
        raise HostError(f"tw_autogen.hosts.agentchat needs autogen-agentchat, and {problem}", command=INSTALL) from None
