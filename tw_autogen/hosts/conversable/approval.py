"""Asks the person behind an agent of the host, by the host's own human input."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from tw_autogen.approval import Approve, Decision, Proposal, read_decision


def approval_by(agents: Iterable[Any]) -> Approve | None:
    """Give a function that asks a person; None if no agent takes human input.

    Args:
        agents: ConversableAgents, or weak proxies of them; the first that takes human input is asked. They are not kept
            alive.
    """
    one = next((agent for agent in agents if getattr(agent, "human_input_mode", "NEVER") != "NEVER"), None)
    if one is None:
        return None
    asked = one if isinstance(one, weakref.ProxyType) else weakref.proxy(one)

    def approve(proposal: Proposal) -> Decision:
        if proposal.kind == "packages":
            words = f"{proposal.question[0].lower()}{proposal.question[1:]} (y/N) "
        else:
            findings = "".join(f"! {one}\n" for one in proposal.findings)
            hint = "y, n, the changed one between ``` lines, or why not"
            words = f"\n```\n{proposal.text}\n```\n{findings}{proposal.question} ({hint}) "
        return read_decision(str(asked.get_human_input(f"{asked.name}: {words}")), proposal)

    return approve
