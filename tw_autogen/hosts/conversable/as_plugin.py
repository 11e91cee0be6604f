"""`agent_plugin`: any agent of the host as a function that generated code calls."""

from __future__ import annotations

import re
from typing import Any

from tw_autogen.hosts.agent_plugin import asked_plugin
from tw_autogen.hosts.conversable.asking import Asker
from tw_autogen.plugin import Parameters, PluginSpec, Returns


def agent_plugin(
    agent: Any,
    *,
    name: str = "",
    description: str = "",
    parameters: Parameters | None = None,
    returns: Returns = None,
    max_turns: int = 10,
    remember: bool = False,
    calls: int | None = 100,
    seconds: float | None = 300.0,
) -> PluginSpec:
    """Return an agent as a plugin: code calls `answer = name("…")`, and the agent is asked.

    Args:
        agent: Any ConversableAgent; it is used as it is, and stays the caller's. Its own model answers, and what that
            costs stands with its own client.
        name: What code calls it; empty: the agent's name.
        description: For the model; empty: the agent's description.
        parameters: What a call gives; None: one text, `request`. Text and numbers stand in the message; a DataFrame or
            a long text is saved in the session's folder, and the message holds its place, columns and head.
        returns: None: the answer's text. A pydantic model: the agent is asked for JSON that fits it, again if it
            doesn't, and code gets a dictionary that was checked.
        max_turns: How often the agent and its tools may speak for one answer.
        remember: All calls of a session are one conversation; otherwise each call begins a new one.
        calls: How often code may call it for one request.
        seconds: How long one call may take.

    Files that the answer links to in Markdown come back as artifacts of the session, if they lie where the agent
    works. `name.submit(…)` asks several questions side by side. An agent that is called from its own work, however
    indirectly, refuses.

    Raises:
        ConfigError: there is no usable name or description.
    """
    return asked_plugin(
        lambda: Asker(agent, "CodeInterpreter", max_turns=max_turns),
        name=name or re.sub(r"\W", "_", agent.name),
        description=description or agent.description or "",
        parameters=parameters,
        returns=returns,
        remember=remember,
        calls=calls,
        seconds=seconds,
    )
