"""`Speaking`: a ConversableAgent whose answers come from us, and which is the host's own in everything else."""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import Any

from tw_autogen.errors import ConfigError, HostError, nearest
from tw_autogen.hosts.conversable.install import import_autogen, installed
from tw_autogen.hosts.conversable.streams import on_thread
from tw_autogen.session import Session

ConversableAgent: Any = import_autogen().ConversableAgent
Messages = list[dict[str, Any]]

SILENT: ContextVar[bool] = ContextVar("silent", default=True)
"""Whether talk behind the reply that is being made is to be kept from the user's eyes."""

_HOSTS_DEFAULT = "You are a helpful AI Assistant."
_RUNNING: ContextVar[list[Session] | None] = ContextVar("running", default=None)
"""The sessions that the current asynchronous reply waits for."""


class Speaking(ConversableAgent):  # type: ignore[misc]  # the host's class is untyped
    """The contract with the host: the names of two methods, and their places in its list of replies.

    Args:
        name: The agent's name.
        *args: As ConversableAgent takes them.
        does: What the agent can do; its description, unless that or a `system_message` is given, which is the
            description of any agent that has no other.
        **host: Any argument of the installed ConversableAgent; `human_input_mode` is `NEVER` unless given.

    Termination, human input, function and tool replies come first, as with any agent, because only the host's own
    entry for model replies is exchanged, at its place. Services that call `a_generate_oai_reply` by name find it too.

    Raises:
        ConfigError: an argument is misspelt.
        HostError: the installed host doesn't know an argument.
    """

    def __init__(self, name: str, *args: Any, does: str = "", **host: Any) -> None:
        known = inspect.signature(ConversableAgent.__init__).parameters
        for word in host:
            if word in known:
                continue
            meant = nearest(word, self._own_arguments())
            if meant.startswith("; did you mean"):
                raise ConfigError(f"{type(self).__name__}: there is no argument {word!r}{meant}")
            raise HostError(
                f"{type(self).__name__}: {installed()} knows no argument {word!r}; leave it out or upgrade",
                command='pip install --upgrade "tw-autogen[autogen]"',
            )
        if not args and host.get("system_message") is None and does:
            host.setdefault("description", does)
        if len(args) < 4:  # or it is among them
            host.setdefault("human_input_mode", "NEVER")
        super().__init__(name, *args, **host)
        self._silent_with: dict[Any, bool] = {}
        base = ConversableAgent  # the reply list holds the base class's functions: overriding alone changes nothing
        self.replace_reply_func(base.generate_oai_reply, type(self).generate_oai_reply)
        self.replace_reply_func(base.a_generate_oai_reply, type(self).a_generate_oai_reply)

    def generate_oai_reply(
        self, messages: Messages | None = None, sender: Any = None, config: Any = None, **kwargs: Any
    ) -> tuple[bool, str | None]:
        """Answer what was said since this agent spoke last.

        Returns:
            (True, the answer); (True, None) where there is nothing to answer, which ends a chat; (False, None) without
            a model, so that the host goes on to the agent's `default_auto_reply`. A round that failed is told in words;
            errors of the host's client go through, as with any agent.

        Raises:
            ConfigError: there is neither a model nor a `default_auto_reply`.
        """
        if not self._can_answer():
            if not self._default_auto_reply:
                raise ConfigError(f"{self.name}: there is no model to ask; give llm_config=, or model=")
            return False, None
        self._refuse_llm_handoffs()
        token = SILENT.set(self.is_silent(sender))
        try:
            return True, self._answer(messages if messages is not None else self._oai_messages[sender], sender)
        finally:
            SILENT.reset(token)

    async def a_generate_oai_reply(
        self, messages: Messages | None = None, sender: Any = None, config: Any = None, **kwargs: Any
    ) -> tuple[bool, str | None]:
        """Answer as `generate_oai_reply` does, on a thread, with this task's context; the loop stays free."""
        call = functools.partial(self.generate_oai_reply, messages, sender, config, **kwargs)
        running: list[Session] = []
        token = _RUNNING.set(running)
        try:
            return await on_thread(call, lambda: _stop(running))
        finally:
            _RUNNING.reset(token)

    def receive(self, message: Any, sender: Any, request_reply: bool | None = None, silent: bool | None = False) -> Any:
        """Take a message as any agent does, and keep in mind whether this chat is a silent one."""
        self._silent_with[sender] = bool(silent)
        return super().receive(message, sender, request_reply, silent)

    async def a_receive(
        self, message: Any, sender: Any, request_reply: bool | None = None, silent: bool | None = False
    ) -> Any:
        """Take a message as `receive` does."""
        self._silent_with[sender] = bool(silent)
        return await super().a_receive(message, sender, request_reply, silent)

    def is_silent(self, sender: Any) -> bool:
        """Say whether inner talk is to be kept from the user's eyes: as the agent says, else as the chat was begun.

        A group's messages are always passed on in silence, so there its manager is asked. Without a partner, as with
        services, nobody looks.
        """
        if self.silent is not None:
            return bool(self.silent)
        if sender is None:
            return True
        if hasattr(sender, "groupchat"):
            return bool(getattr(sender, "_silent", False))
        return self._silent_with.get(sender, False)

    @classmethod
    def _own_arguments(cls) -> set[str]:
        """Give the names of the arguments that our classes add to the host's."""
        ours = (kind for kind in cls.__mro__ if issubclass(kind, Speaking))
        named = {one.name for kind in ours for one in inspect.signature(kind.__init__).parameters.values()}
        return named - {"self", "args", "host", "does", "seat"}

    def _can_answer(self) -> bool:
        raise NotImplementedError

    def _answer(self, messages: Messages, sender: Any) -> str | None:
        raise NotImplementedError

    def _runs(self, session: Session) -> None:
        """Note that this task now waits for a session, which is to be stopped when the task is cancelled."""
        running = _RUNNING.get()
        if running is not None:
            running.append(session)

    def _refuse_llm_handoffs(self) -> None:
        """Refuse handoffs that the host makes tools of an agent's model: its roles would never see these tools."""
        handoffs = getattr(self, "handoffs", None)
        if getattr(handoffs, "llm_conditions", None):
            raise HostError(
                f"{self.name}: handoffs on conditions for a model (OnCondition) can't be followed by this agent; use "
                "OnContextCondition or add_after_work, with the context variables tw_next and tw_board",
                command="agent.handoffs.add_after_work(AgentTarget(other))",
            )


def _stop(running: list[Session]) -> None:
    for session in running:
        session.interrupt()


def rules_of(agent: Any) -> str:
    """Give an agent's `system_message` as house rules; empty if it is the host's default."""
    rules = agent.system_message
    return rules if isinstance(rules, str) and rules != _HOSTS_DEFAULT else ""
