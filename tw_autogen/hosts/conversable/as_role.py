"""`agent_role`: any agent of the host as somebody whom a Planner may write to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tw_autogen.hosts.agent_role import asked_role
from tw_autogen.hosts.conversable.asking import Asker
from tw_autogen.role import Role


def agent_role(agent: Any, *, name: str = "", intro: str = "", max_turns: int = 10) -> Callable[[], Role]:
    """Return an agent as a role, for `roles=` of a `TaskWeaverAgent` or of `open_session`.

    Args:
        agent: Any ConversableAgent; it is used as it is, and stays the caller's. Its own model answers, and what that
            costs stands with its own client.
        name: How the Planner addresses it; empty: the agent's name.
        intro: What it can do, for the Planner; empty: the agent's description.
        max_turns: How often it and its tools may speak for one answer.

    Returns:
        A function that makes the role for one session, in which it has a conversation of its own with the agent.

    Raises:
        ConfigError: there is nothing that would tell the Planner what it can do.

    Example:
        `TaskWeaverAgent(llm_config=llm_config, roles=["planner", "code_interpreter", agent_role(lawyer)])`
    """
    return asked_role(
        lambda: Asker(agent, "Planner", max_turns=max_turns),
        name=name or agent.name,
        intro=intro or agent.description or "",
    )
