"""Asks the person behind an agent of the host, by the host's own human input."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable
from typing import Any

from tw_autogen.approval import Approve, Decision, Proposal, read_decision
from tw_autogen.visible import visible

_CHANGE_HINT = "y, n, the changed one between ``` lines, or why not"
_TOOL_HINT = "y, n, a for all calls of this tool in this session, or why not"
_FENCES = re.compile(r"^ *(`{3,})", re.MULTILINE)


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
            findings = "".join(f"! {visible(one)}\n" for one in proposal.findings)
            fence = _fence(proposal.shown)
            hint = _CHANGE_HINT if proposal.editable else _TOOL_HINT
            words = f"\n{fence}\n{proposal.shown}\n{fence}\n{findings}{proposal.question} ({hint}) "
        return read_decision(str(asked.get_human_input(f"{asked.name}: {words}")), proposal)

    return approve


def _fence(text: str) -> str:
    """Return a fence that the text itself can't close."""
    return "`" * max([3, *(len(one) + 1 for one in _FENCES.findall(text))])
