"""Asks the person behind an agent of the host, by the host's own human input."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from tw_autogen.kernel import Approve


def approval_by(agents: Iterable[Any]) -> Approve | None:
    """Give a function that asks whether packages may be installed, or a command run.

    None if no agent takes human input.

    Args:
        agents: ConversableAgents, or weak proxies of them; the first that takes human input is asked. They are not kept
            alive.
    """
    one = next((agent for agent in agents if getattr(agent, "human_input_mode", "NEVER") != "NEVER"), None)
    if one is None:
        return None
    asked = one if isinstance(one, weakref.ProxyType) else weakref.proxy(one)

    def approve(names: Sequence[str]) -> bool:
        wanted = ", ".join(names)
        wants = f"a role wants to run {wanted[2:]}" if wanted.startswith("$ ") else f"code wants to install {wanted}"
        said = asked.get_human_input(f"{asked.name}: {wants}. Allow it? (y/N) ")
        return str(said).strip().lower() in ("y", "yes")

    return approve
