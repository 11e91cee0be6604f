"""Asks the person behind an agent of the host, by the host's own human input."""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import weakref
from collections.abc import Iterable
from typing import Any

from tw_autogen.approval import Approve, Decision, Proposal, read_decision
from tw_autogen.hosts.conversable.autogen_import import import_autogen
from tw_autogen.hosts.conversable.running_reply import IOStream
from tw_autogen.hosts.worker_threads import LOOP
from tw_autogen.text_escaping import visible

_HostsAgent: Any = import_autogen().ConversableAgent
_POLL_SECONDS = 0.05
_CHANGE_HINT = "(y, n, the changed one between ``` lines, or why not)"
_FENCES = re.compile(r"^ *(`{3,})", re.MULTILINE)


def approval_by(agents: Iterable[Any]) -> Approve | None:
    """Return a function that asks a person; None if no agent takes human input.

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
            question = f"{proposal.question[0].lower()}{proposal.question[1:]} (y/N) "
        else:
            findings = "".join(f"! {visible(finding)}\n" for finding in proposal.findings)
            fence = _fence(proposal.shown)
            hint = _CHANGE_HINT if proposal.editable else proposal.hint
            question = f"\n{fence}\n{proposal.shown}\n{fence}\n{findings}{proposal.question} {hint} "
        return read_decision(_human_input(asked, f"{asked.name}: {question}"), proposal)

    return approve


def _fence(text: str) -> str:
    """Return a fence that the text itself can't close."""
    return "`" * max([3, *(len(match) + 1 for match in _FENCES.findall(text))])


def _human_input(agent: Any, prompt: str) -> str:
    """Ask as the host does: by `a_get_human_input` in an asynchronous chat, unless only the other one is overridden."""
    loop = LOOP.get()
    if loop is None or not loop.is_running() or _overrides_sync_only(agent):
        return str(agent.get_human_input(prompt))
    stream = IOStream.get_default()

    async def ask() -> str:
        with IOStream.set_default(getattr(stream, "stream", stream)):
            return str(await agent.a_get_human_input(prompt))

    answer = asyncio.run_coroutine_threadsafe(ask(), loop)
    try:
        while not concurrent.futures.wait([answer], timeout=_POLL_SECONDS).done:
            if loop.is_closed():
                raise InterruptedError("the question was taken back: the chat's event loop was closed")
        return answer.result()
    except BaseException:
        answer.cancel()
        raise


def _overrides_sync_only(agent: Any) -> bool:
    own = [
        getattr(getattr(agent, name), "__func__", None) is not getattr(_HostsAgent, name)
        for name in ("get_human_input", "a_get_human_input")
    ]
    return own == [True, False]
