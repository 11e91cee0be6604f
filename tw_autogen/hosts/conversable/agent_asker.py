"""Any agent of the host as a plugin or as a role: `AgentConversation` puts the question and runs the agent's tools."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.deadline import threaded
from tw_autogen.errors import HostCallError
from tw_autogen.hosts.agent_role import partner_role_factory
from tw_autogen.hosts.asked_plugin import asked_plugin
from tw_autogen.hosts.call_chain import Link, asking, chain, continued
from tw_autogen.hosts.conversable.agent import TaskWeaverAgent
from tw_autogen.hosts.conversable.autogen_import import import_autogen
from tw_autogen.hosts.conversable.messages import calls_tool, text_of
from tw_autogen.hosts.conversable.speaking_agent import SILENT, SpeakingAgent
from tw_autogen.model import Usage
from tw_autogen.plugin import Parameters, PluginSpec, Returns
from tw_autogen.role import Role
from tw_autogen.session import count_asked

_KEPT_BY_PARTNER = (
    "_oai_messages",
    "_consecutive_auto_reply_counter",
    "_max_consecutive_auto_reply_dict",
    "_silent_with",
)
ConversableAgent: Any = import_autogen().ConversableAgent


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
    works: in its session, or in its code executor's `work_dir`, of which only files that were made or changed since
    the call come, since it may hold files of yours and of other askers. `name.submit(…)` asks several questions side by
    side. An agent that is called from its own work, however indirectly, refuses.

    Raises:
        ConfigError: there is no usable name or description.
    """
    spending = _Spending(agent)
    return asked_plugin(
        lambda: AgentConversation(agent, "CodeInterpreter", spending, max_turns=max_turns),
        name=name or re.sub(r"\W", "_", agent.name),
        description=description or agent.description or "",
        parameters=parameters,
        returns=returns,
        remember=remember,
        calls=calls,
        seconds=seconds,
    )


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
    spending = _Spending(agent)
    return partner_role_factory(
        lambda: AgentConversation(agent, "Planner", spending, max_turns=max_turns),
        name=name or agent.name,
        intro=intro or agent.description or "",
    )


class AgentConversation:
    """One partner of an agent: what it asks in a row is one conversation.

    Args:
        agent: Whom to ask; any ConversableAgent. It is used as it is: nothing is registered with it.
        name: How the agent sees who asks.
        spending: Counts what the agent spends for all its askers.
        max_turns: How often the two may speak until the answer stands; each use of a tool takes one.

    The conversation is shown where the one around it is shown. Close it, and the agent forgets it.
    """

    def __init__(self, agent: Any, name: str, spending: _Spending, *, max_turns: int) -> None:
        self._agent = agent
        self._spending = spending
        self._max_turns = max_turns
        self._partner = ConversableAgent(name, llm_config=False, human_input_mode="NEVER", default_auto_reply="")
        self._lock = threading.Lock()
        self._asked = False
        self._chain: tuple[Link, ...] = ()
        own = dict(agent.function_map)
        if own:
            self._partner.register_function(own)
        for tool in getattr(agent, "tools", ()):
            if tool.name not in own:
                tool.register_for_execution(self._partner)
        for name, function in list(self._partner.function_map.items()):
            self._partner.function_map[name] = self._with_call_chain(function)

    @property
    def takes_files(self) -> bool:
        """Whether files can be handed over: to an agent with a session of its own."""
        return isinstance(self._agent, TaskWeaverAgent)

    def ask(self, message: str, files: Sequence[Path] = ()) -> str:
        """Return the agent's answer; it remembers what this asker has asked before.

        Args:
            message: The question.
            files: Handed over where the agent is a `TaskWeaverAgent`; another one must be told where they lie.

        Raises:
            CallCycleError: the agent is at work already for whom this asks; also where one of its tools asks it.
            HostCallError: the agent has given no answer.
            Exception: what the agent raised.
        """
        with self._lock, asking(self._agent.name, self._agent, enters=isinstance(self._agent, SpeakingAgent)) as link:
            if files and isinstance(self._agent, TaskWeaverAgent):
                self._agent.hand_over(self._partner, files)
            self._asked = True
            self._chain = chain()
            known = len(self._agent.chat_messages.get(self._partner, ()))
            self._agent.reset_consecutive_auto_reply_counter(self._partner)
            with self._spending.counted():
                if _needs_loop(self._agent):
                    # on a thread of its own: this one may have a running loop
                    threaded(lambda: asyncio.run(self._ask_async(message, link)), name="agent").result()
                else:
                    self._ask(message, link)
            messages = self._agent.chat_messages[self._partner][known:]
        answers = [text_of(one) for one in messages if one.get("role") == "assistant" and text_of(one).strip()]
        if not answers or calls_tool(messages[-1]):
            turns = sum(one.get("role") == "user" or one.get("role") == "tool" for one in messages)
            used_up = f" in {turns} turns (max_turns)" if turns >= self._max_turns else ""
            raise HostCallError(f"{self._agent.name} gave no answer{used_up}", name=self._agent.name)
        return answers[-1]

    def _ask(self, message: Any, link: Link) -> None:
        silent = SILENT.get()
        for _ in range(self._max_turns):
            self._partner.send(message, self._agent, request_reply=True, silent=silent)
            messages = self._partner.chat_messages[self._agent]
            if not calls_tool(messages[-1]):
                return
            message = self._partner.generate_reply(messages=messages, sender=self._agent)
            if message is None or link.refused is not None:
                return

    async def _ask_async(self, message: Any, link: Link) -> None:
        silent = SILENT.get()
        for _ in range(self._max_turns):
            await self._partner.a_send(message, self._agent, request_reply=True, silent=silent)
            messages = self._partner.chat_messages[self._agent]
            if not calls_tool(messages[-1]):
                return
            message = await self._partner.a_generate_reply(messages=messages, sender=self._agent)
            if message is None or link.refused is not None:
                return

    def _with_call_chain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a tool that knows for whom it is called, on whatever thread the host runs it."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: Any, **kwargs: Any) -> Any:
                with continued(self._chain):
                    return await function(*args, **kwargs)

            return later

        @functools.wraps(function)
        def now(*args: Any, **kwargs: Any) -> Any:
            with continued(self._chain):
                return function(*args, **kwargs)

        return now

    def folders(self) -> list[Path]:
        """Return the folders in which the agent makes files for this asker: its session's, or its code executor's."""
        if isinstance(self._agent, TaskWeaverAgent):
            return [self._agent.session(self._partner).folder]
        work_dir = getattr(getattr(self._agent, "code_executor", None), "work_dir", None)
        return [Path(work_dir)] if work_dir else []

    def interrupt(self) -> None:
        """Stop the agent's work for this asker, where it can be stopped; from any thread."""
        if isinstance(self._agent, TaskWeaverAgent):
            self._agent.interrupt(self._partner)

    def close(self) -> None:
        """Forget this asker, and what the agent kept for it."""
        if not self._asked:
            return
        self._agent.clear_history(self._partner)
        for kept in _KEPT_BY_PARTNER:
            getattr(self._agent, kept, {}).pop(self._partner, None)
        self._agent.reply_at_receive.pop(self._partner, None)


class _Spending:
    """Counts what an agent spends towards the limits of the rounds that ask it, once also where several ask at once.

    Nothing is counted of an agent without a client, or of one of ours.
    """

    def __init__(self, agent: Any) -> None:
        self._agent, self._lock, self._asking = agent, threading.Lock(), 0
        self._counted = Usage(dollars=0.0)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count what was spent since the last count, at the end of this block; others may ask meanwhile."""
        with self._lock:
            self._counted = self._counted if self._asking else self._usage_so_far()
            self._asking += 1
        try:
            yield
        finally:
            with self._lock:
                before, self._counted = self._counted, (after := self._usage_so_far())
                self._asking -= 1
            prompt, completion, dollars = (
                max(0, getattr(after, kind) - getattr(before, kind))  # less: it was reset
                for kind in ("prompt_tokens", "completion_tokens", "dollars")
            )
            if after.calls:
                count_asked(Usage(prompt, 0, completion, 1, dollars))

    def _usage_so_far(self) -> Usage:
        client = None if isinstance(self._agent, SpeakingAgent) else getattr(self._agent, "client", None)
        summary = getattr(client, "actual_usage_summary", None) or {}
        models = [one for one in summary.values() if isinstance(one, dict)]
        prompt, completion = (
            sum(model.get(f"{kind}_tokens") or 0 for model in models) for kind in ("prompt", "completion")
        )
        return Usage(prompt, 0, completion, int(client is not None), summary.get("total_cost") or 0.0)


def _needs_loop(agent: Any) -> bool:
    """Return whether the agent has replies that the host runs in asynchronous chats only."""
    return any(
        inspect.iscoroutinefunction(one["reply_func"]) and not one.get("ignore_async_in_sync_chat")
        for one in agent._reply_func_list
    )
