"""Agents and teams of agentchat as plugins and as roles."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.base import ChatAgent
from autogen_agentchat.messages import BaseChatMessage
from autogen_core import CancellationToken

from tw_autogen.errors import HostCallError
from tw_autogen.hosts.agent_role import partner_role_factory
from tw_autogen.hosts.agentchat.agent import TaskWeaverAgent
from tw_autogen.hosts.agentchat.event_loops import run_on_loop
from tw_autogen.hosts.asked_plugin import asked_plugin
from tw_autogen.hosts.call_chain import asking
from tw_autogen.model import Usage
from tw_autogen.plugin import Parameters, PluginSpec, Returns
from tw_autogen.role import Role
from tw_autogen.session import count_asked

_LOCKS: weakref.WeakKeyDictionary[Any, threading.Lock] = weakref.WeakKeyDictionary()
_LAST: weakref.WeakKeyDictionary[Any, object] = weakref.WeakKeyDictionary()
"""Whose conversation each target is in."""
_MAKING = threading.Lock()
_POLL_SECONDS = 0.05


def agent_plugin(
    target: Any,
    *,
    name: str = "",
    description: str = "",
    parameters: Parameters | None = None,
    returns: Returns = None,
    remember: bool = False,
    calls: int | None = 100,
    seconds: float | None = 300.0,
) -> PluginSpec:
    """Return an agent, or a team, as a plugin: code calls `answer = name("…")`, and it is run with that as its task.

    Args:
        target: An agent or team of the host's; it stays the caller's. Calls wait for each other, because it can't run
            twice at once.
        name: What code calls it; empty: its name.
        description: For the model; empty: its description.
        parameters: As in `tw_autogen.hosts.asked_plugin.asked_plugin`, like all the rest.
        returns: What a call gives.
        remember: Leave it as it is between a session's calls, unless another session has asked it meanwhile; otherwise
            it is reset before each one.
        calls: How often code may call it for one request.
        seconds: How long one call may take.

    Raises:
        ConfigError: there is no usable name or description.
    """
    return asked_plugin(
        lambda: _Asker(target, fresh=not remember),
        name=name or re.sub(r"\W", "_", str(target.name)),
        description=description or str(target.description or ""),
        parameters=parameters,
        returns=returns,
        remember=remember,
        calls=calls,
        seconds=seconds,
    )


def agent_role(target: Any, *, name: str = "", intro: str = "") -> Callable[[], Role]:
    """Return an agent, or a team, as a role, for `roles=`; it remembers through a session.

    It is reset before a session asks it that did not ask it last; give sessions that take turns agents of their own.

    Args:
        target: An agent or team of the host's; it stays the caller's.
        name: How the Planner addresses it; empty: its name.
        intro: What it can do, for the Planner; empty: its description.

    Raises:
        ConfigError: there is nothing that would tell the Planner what it can do.
    """
    return partner_role_factory(
        lambda: _Asker(target, fresh=False),
        name=name or str(target.name),
        intro=intro or str(target.description or ""),
    )


class _Asker:
    """One conversation with an agent or team."""

    def __init__(self, target: Any, *, fresh: bool) -> None:
        self._target = target
        self._fresh = fresh
        self._me = object()
        self._guard = threading.Lock()
        self._asking: set[threading.Event] = set()
        with _MAKING:
            self._lock = _LOCKS.setdefault(target, threading.Lock())

    @property
    def takes_files(self) -> bool:
        """Whether files can be handed over: to an agent with a session of its own."""
        return isinstance(self._target, TaskWeaverAgent)

    def ask(self, message: str, files: Sequence[Path] = ()) -> str:
        """Run it with these words as its task, and give the last message's words.

        Args:
            message: The task.
            files: Handed over where it is a `TaskWeaverAgent`; another one must be told where they lie.

        Raises:
            CallCycleError: it is at work already, for whom this asks.
            HostCallError: it was stopped.
        """
        is_ours = isinstance(self._target, TaskWeaverAgent)
        stopped = threading.Event()
        with self._guard:
            self._asking.add(stopped)
        try:
            with asking(self._target.name, self._target, enters=is_ours), self._wait_for_turn(stopped):
                return self._run(message, files, stopped)
        except asyncio.CancelledError:
            raise HostCallError(f"{self._target.name} was stopped", name=self._target.name) from None
        finally:
            with self._guard:
                self._asking.discard(stopped)

    def folders(self) -> list[Path]:
        """Return where files for this conversation are made; nothing is known of agents that have no session."""
        session = self._target.session if isinstance(self._target, TaskWeaverAgent) else None
        return [session.folder] if session else []

    def interrupt(self) -> None:
        """Cancel what is asked now."""
        with self._guard:
            for stopped in self._asking:
                stopped.set()

    def close(self) -> None:
        """Nothing is kept here: the next conversation resets it."""

    @contextlib.contextmanager
    def _wait_for_turn(self, stopped: threading.Event) -> Iterator[None]:
        """Wait until nobody else asks it, or this is stopped."""
        while not self._lock.acquire(timeout=_POLL_SECONDS):
            if stopped.is_set():
                raise asyncio.CancelledError
        try:
            yield
        finally:
            self._lock.release()

    def _run(self, message: str, files: Sequence[Path], stopped: threading.Event) -> str:
        if self._fresh or _LAST.get(self._target) is not self._me:
            run_on_loop(self._reset(), cancelled=stopped)
            _LAST[self._target] = self._me
        if files and isinstance(self._target, TaskWeaverAgent):
            self._target.hand_over(files)
        token = CancellationToken()
        work = self._target.run(task=message, cancellation_token=token, output_task_messages=False)
        messages = run_on_loop(work, cancelled=stopped, token=token).messages
        calls = [one.models_usage for one in messages if one.models_usage and "round" not in one.metadata]  # ours count
        prompt, completion = sum(call.prompt_tokens for call in calls), sum(call.completion_tokens for call in calls)
        count_asked(Usage(prompt, 0, completion, len(calls)))
        return next((str(one.to_model_text()) for one in reversed(messages) if isinstance(one, BaseChatMessage)), "")

    async def _reset(self) -> None:
        if isinstance(self._target, ChatAgent):
            await self._target.on_reset(CancellationToken())
        else:
            await self._target.reset()
