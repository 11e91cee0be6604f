"""`TaskWeaverAgent`: one ConversableAgent with a whole Session inside."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tw_autogen.code_interpreter import Policy
from tw_autogen.errors import RoundError
from tw_autogen.events import Handler
from tw_autogen.hosts.conversable.install import import_autogen
from tw_autogen.hosts.conversable.messages import failure_text, news, reply_text
from tw_autogen.hosts.conversable.model import HostModel
from tw_autogen.plugin import PluginSpec
from tw_autogen.session import KernelWanted, ModelWanted, RoleWanted, Session, check_plugins, open_session

ConversableAgent: Any = import_autogen().ConversableAgent
DESCRIPTION = (
    "Does data work: plans a request, writes Python, checks it, runs it in a kernel that remembers, and answers with "
    "numbers, tables, charts and files."
)


class TaskWeaverAgent(ConversableAgent):  # type: ignore[misc]  # the host's class is untyped
    """One agent that does data work: a Planner, a CodeInterpreter and a kernel behind one name.

    Args:
        name: The agent's name.
        llm_config: As for any ConversableAgent; all roles ask through its client.
        plugins: Names of shipped plugins, paths of YAML files or folders of them, or specs.
        roles: Names of shipped roles, folders of one's own, or functions that make one.
        files: Copied read-only into each session's folder, and described to the Planner with the first message.
        model: A `ChatModel` (or one by role name) instead of the host's client.
        kernel: A function that makes a kernel for a folder; None: a `LocalKernel`.
        policy: What generated code may do.
        workspace: Folder in which each session makes its own; None: the setting `session.workspace`.
        settings: Dotted keys, such as `{"session.max_posts": 20}`.
        handlers: Called with each event of each session.
        **host: Any other argument of ConversableAgent; `human_input_mode` is `NEVER` unless given.

    Each conversation partner has a Session of its own, with its own kernel: it begins with the first message, remembers
    through the conversation, and ends when the history with that partner is cleared, with `reset()` or `close()`.

    Raises:
        ConfigError: a plugin, role or setting is wrong.
    """

    def __init__(
        self,
        name: str = "TaskWeaver",
        *args: Any,
        plugins: Sequence[str | Path | PluginSpec] = (),
        roles: Sequence[RoleWanted] = ("planner", "code_interpreter"),
        files: Sequence[str | Path] = (),
        model: ModelWanted = None,
        kernel: KernelWanted = None,
        policy: Policy | None = None,
        workspace: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        handlers: Sequence[Handler] = (),
        **host: Any,
    ) -> None:
        host.setdefault("human_input_mode", "NEVER")
        host.setdefault("description", DESCRIPTION)
        super().__init__(name, *args, **host)
        self._model = model
        self._files = tuple(Path(one).resolve() for one in files)
        self._open = functools.partial(
            open_session,
            roles=tuple(roles),
            plugins=check_plugins(plugins),
            kernel=kernel,
            policy=policy,
            folder=workspace,
            handlers=tuple(handlers),
            settings=dict(settings or {}),
        )
        self._sessions: dict[Any, Session] = {}
        self._guard = threading.Lock()
        self._end = weakref.finalize(self, _close_all, self._sessions)
        base = ConversableAgent  # the reply list holds the base class's functions: overriding alone changes nothing
        self.replace_reply_func(base.generate_oai_reply, type(self).generate_oai_reply)
        self.replace_reply_func(base.a_generate_oai_reply, type(self).a_generate_oai_reply)

    def generate_oai_reply(
        self, messages: list[dict[str, Any]] | None = None, sender: Any = None, config: Any = None, **kwargs: Any
    ) -> tuple[bool, str | None]:
        """Answer what was said since this agent spoke last, with its Session for this partner.

        Returns:
            (True, the answer), or (False, None) without a model, so that the host goes on to its default reply. A
            round that failed is told in words; errors of the host's client go through, as with any agent.
        """
        if self._model is None and self.client is None:
            return False, None
        text = news(messages if messages is not None else self._oai_messages[sender], self.name)
        session = self.session(sender)
        try:
            return True, reply_text(session.ask(text, files=() if session.rounds else self._files))
        except RoundError as error:
            return True, failure_text(error)

    async def a_generate_oai_reply(
        self, messages: list[dict[str, Any]] | None = None, sender: Any = None, config: Any = None, **kwargs: Any
    ) -> tuple[bool, str | None]:
        """Answer as `generate_oai_reply` does, on a thread, with this task's context; the loop stays free."""
        call = functools.partial(self.generate_oai_reply, messages, sender, config, **kwargs)
        context = contextvars.copy_context()
        task = asyncio.get_running_loop().run_in_executor(None, context.run, call)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self.session(sender).interrupt()
            raise

    def session(self, sender: Any = None) -> Session:
        """Give the Session with this conversation partner; opened if there is none."""
        with self._guard:
            found = self._sessions.get(sender)
            if found is None or found.closed:
                found = self._open(self._model if self._model is not None else HostModel(self))
                self._sessions[sender] = found
            return found

    def clear_history(self, recipient: Any = None, nr_messages_to_preserve: int | None = None) -> None:
        """Clear the host's history, and end the Session with this partner (with all partners if None)."""
        super().clear_history(recipient, nr_messages_to_preserve)
        if not nr_messages_to_preserve:
            self._end_sessions(recipient)

    def close(self) -> None:
        """End all Sessions, and their kernels."""
        self._end_sessions(None)

    def __enter__(self) -> TaskWeaverAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _end_sessions(self, partner: Any) -> None:
        with self._guard:
            ended = [partner] if partner is not None else list(self._sessions)
            sessions = [self._sessions.pop(one) for one in ended if one in self._sessions]
        for session in sessions:
            session.close()


def _close_all(sessions: dict[Any, Session]) -> None:
    for session in list(sessions.values()):
        session.close()
    sessions.clear()
