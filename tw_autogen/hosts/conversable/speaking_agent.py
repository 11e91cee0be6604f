"""`SpeakingAgent`: a ConversableAgent whose answers come from us, and which is the host's own in everything else."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tw_autogen.errors import ConfigError, HostError, did_you_mean
from tw_autogen.hosts.call_chain import calling
from tw_autogen.hosts.conversable.autogen_import import import_autogen, installed
from tw_autogen.hosts.conversable.group_functions import TARGETS, hand_on, with_context
from tw_autogen.hosts.conversable.llm_config import refuse_settings, without_cache
from tw_autogen.hosts.conversable.messages import ServiceAnswer, calls_tool, images_of, key_of, text_of
from tw_autogen.hosts.conversable.running_reply import RUNNING, RunningReply, with_io_stream
from tw_autogen.hosts.worker_threads import on_thread
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    from tw_autogen import plugin
    from tw_autogen.hosts.open_conversations import Conversations
    from tw_autogen.plugin import PluginSpec
else:
    plugin = LazyModule("tw_autogen.plugin")

ConversableAgent: Any = import_autogen().ConversableAgent
Messages = list[dict[str, Any]]

SILENT: ContextVar[bool] = ContextVar("silent", default=True)
"""Whether inner messages of the reply that is being made are to be hidden from the user."""

_HOSTS_DEFAULT = "You are a helpful AI Assistant."
_REPLY_FUNCTIONS = ("generate_oai_reply", "a_generate_oai_reply")
_REGISTERING: ContextVar[bool] = ContextVar("registering", default=False)
_log = logging.getLogger(__name__)


class SpeakingAgent(ConversableAgent):  # type: ignore[misc]  # the host's class is untyped
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
        ConfigError: an argument is misspelt, or would have no effect, as settings of an `llm_config` that shape an
            agent's own conversation, such as `tools` or `response_format`.
        HostError: the installed host doesn't know an argument.
    """

    def __init__(self, name: str, *args: Any, does: str, **host: Any) -> None:
        known = inspect.signature(ConversableAgent.__init__).parameters
        for word in host:
            if word in known:
                continue
            if meant := did_you_mean(word, {*self._own_arguments(), *known}):
                raise ConfigError(f"{type(self).__name__}: there is no argument {word!r}{meant}")
            raise HostError(
                f"{type(self).__name__}: {installed()} knows no argument {word!r}; leave it out or upgrade",
                command='pip install --upgrade "tw-autogen[autogen]"',
            )
        functions = host.pop("functions", None)
        self._given_functions = [functions] if callable(functions) else list(functions or ())
        if not args and host.get("system_message") is None and does:
            host.setdefault("description", does)
        if len(args) < 4:  # or it is among them
            host.setdefault("human_input_mode", "NEVER")
        index = [*known].index("llm_config") - 2  # after `self` and `name`
        if "llm_config" in host:
            host["llm_config"] = without_cache(host["llm_config"])
        elif index < len(args):
            args = (*args[:index], without_cache(args[index]), *args[index + 1 :])
        super().__init__(name, *args, **host)
        refuse_settings(name, self.llm_config)
        self._silent_with: dict[Any, bool] = {}
        for function in _REPLY_FUNCTIONS:  # the reply list holds the base class's: overriding alone changes nothing
            super().replace_reply_func(getattr(ConversableAgent, function), getattr(type(self), function))

    def generate_oai_reply(
        self, messages: Messages | None = None, sender: Any = None, config: Any = None, **kwargs: Any
    ) -> tuple[bool, str | None]:
        """Answer what was said since this agent spoke last.

        Args:
            messages: The chat, oldest first; None: the host's own history with `sender`.
            sender: Who speaks with this agent; None: nobody, as in a service.
            config: The host's; not used.
            **kwargs: `conversation`, a key that a service vouches for (see `a2a_server`, `ag_ui_stream`).

        Returns:
            (True, the answer); (True, None) where there is nothing to answer, which ends a chat; (False, None) without
            a model, so that the host goes on to the agent's `default_auto_reply`, as with any agent. A round that
            failed is told in words; errors of the host's client go through.
        """
        if not self._can_answer():
            if not self._default_auto_reply:
                _log.warning("%s: there is no model to ask; give llm_config=, or model=", self.name)
            return False, None
        self._refuse_llm_handoffs()
        token = SILENT.set(self.is_silent(sender))
        messages = messages if messages is not None else self._oai_messages[sender]
        key = kwargs.get("conversation")
        targets: list[Any] = []
        handing_on = TARGETS.set(targets)
        try:
            with calling(self.name, self):
                conversations = self._conversations_of()  # a service's is found by a key, never by what was said
                conversation = (
                    conversations.served(key or key_of(messages)) if sender is None else conversations.of(sender)
                )
                try:
                    text = self._answer(conversation, messages, sender)
                finally:
                    conversations.limit(conversation)
        finally:
            TARGETS.reset(handing_on)
            SILENT.reset(token)
        if text is not None:
            hand_on(getattr(sender, "groupchat", None), targets)
        if sender is None and key is None and text is not None:
            text = answer = ServiceAnswer(text)
            answer.key = conversations.keep(conversation)
        return True, text

    async def a_generate_oai_reply(
        self, messages: Messages | None = None, sender: Any = None, config: Any = None, **kwargs: Any
    ) -> tuple[bool, str | None]:
        """Answer as `generate_oai_reply` does, on a thread, with this task's context; the loop stays free.

        Args:
            messages: As in `generate_oai_reply`.
            sender: As in `generate_oai_reply`.
            config: As in `generate_oai_reply`.
            **kwargs: As in `generate_oai_reply`.
        """
        call = functools.partial(self.generate_oai_reply, messages, sender, config, **kwargs)
        running = RunningReply()
        token = RUNNING.set(running)
        try:
            return await on_thread(with_io_stream(call), name=f"{self.name} at work")
        except asyncio.CancelledError:
            running.stop()
            raise
        finally:
            RUNNING.reset(token)

    def generate_reply(self, messages: Messages | None = None, sender: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Reply as any agent does; `exclude` may name the host's reply functions, in whose place ours are.

        Args:
            messages: The chat, oldest first; None: the host's own history with `sender`.
            sender: Who speaks with this agent.
            *args: As in the host.
            **kwargs: As in the host.
        """
        args, kwargs = self._add_own_to_excluded(args, kwargs)
        return super().generate_reply(messages, sender, *args, **kwargs)

    async def a_generate_reply(
        self, messages: Messages | None = None, sender: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Reply as `generate_reply` does.

        Args:
            messages: As in `generate_reply`.
            sender: As in `generate_reply`.
            *args: As in the host.
            **kwargs: As in the host.
        """
        args, kwargs = self._add_own_to_excluded(args, kwargs)
        return await super().a_generate_reply(messages, sender, *args, **kwargs)

    def replace_reply_func(self, old_reply_func: Any, new_reply_func: Any) -> None:
        """Replace a reply function; the host's own for model replies stands for ours.

        Args:
            old_reply_func: As in the host.
            new_reply_func: As in the host.
        """
        super().replace_reply_func(self._own_reply_function(old_reply_func), new_reply_func)

    def register_for_llm(self, *, name: str | None = None, description: str | None = None, **how: Any) -> Any:
        """Register a function as any agent does; generated code of the sessions that follow can call it as a plugin.

        It runs in this process, as the functions in `plugins=` do, and not by the agent that it is registered with for
        execution.

        Args:
            name: The plugin's name; None: the function's.
            description: What it does, for the model; None: the function's docstring.
            **how: The host's other arguments.

        Raises:
            ConfigError: the agent runs no code, has open sessions, or the function can't be a plugin.
        """
        register = super().register_for_llm(name=name, description=description, **how)

        def decorated(function: Any) -> Any:
            before = self._plugins_of()
            known_as = name or getattr(function, "name", None) or getattr(function, "_name", None)
            about = description or getattr(function, "description", None) or getattr(function, "_description", None)
            source = with_context(getattr(function, "func", function))
            if callable(source) and (about or source.__doc__):  # otherwise the host refuses it
                spec = plugin.callable_plugin(source, name=known_as, description=about)
                self._refuse_open()
                self._set_plugins([*(one for one in before if one.name != spec.name), spec])
            token = _REGISTERING.set(True)
            try:
                return register(function)
            except BaseException:
                if self._plugins_of() is not before:
                    self._set_plugins(before)
                raise
            finally:
                _REGISTERING.reset(token)

        return decorated

    def last_message(self, agent: Any = None) -> dict[str, Any] | None:
        """Return the newest message with a partner that says something, which is what the host makes a summary of.

        A partner without a model replies with an empty message. This agent has no answer to it, so its last answer
        stays the outcome of the chat.

        Args:
            agent: The partner; None: the only one there is.
        """
        newest: dict[str, Any] | None = super().last_message(agent)
        if newest is None or _says_something(newest):
            return newest
        messages = self._oai_messages[agent] if agent is not None else next(iter(self._oai_messages.values()))
        return next((message for message in reversed(messages) if _says_something(message)), newest)

    def update_tool_signature(self, tool_sig: Any, is_remove: bool, *args: Any, **kwargs: Any) -> None:
        """Update a tool of the agent's model, as with any agent, if its roles can call it.

        One that is taken away stays in sessions that are open.

        Args:
            tool_sig: The tool, or its name.
            is_remove: Take it away.
            *args: As in the host.
            **kwargs: As in the host.

        Raises:
            ConfigError: only its schema is given; code can't call that.
        """
        self._change_tool(tool_sig, is_remove)
        super().update_tool_signature(tool_sig, is_remove, *args, **kwargs)

    def update_function_signature(self, func_sig: Any, is_remove: Any, *args: Any, **kwargs: Any) -> None:
        """Update a function of the agent's model as `update_tool_signature` does.

        Args:
            func_sig: The function, or its name.
            is_remove: Take it away.
            *args: As in the host.
            **kwargs: As in the host.
        """
        self._change_tool(func_sig, bool(is_remove))
        super().update_function_signature(func_sig, is_remove, *args, **kwargs)

    def receive(self, message: Any, sender: Any, request_reply: bool | None = None, silent: bool | None = False) -> Any:
        """Take a message as any agent does, and keep in mind whether this chat is a silent one.

        Args:
            message: The host's message, a text or a dictionary.
            sender: Who has sent it.
            request_reply: Whether an answer is wanted; None: as the agent is set up.
            silent: Whether the host prints nothing of it.
        """
        self._silent_with[sender] = bool(silent)
        return super().receive(message, sender, request_reply, silent)

    async def a_receive(
        self, message: Any, sender: Any, request_reply: bool | None = None, silent: bool | None = False
    ) -> Any:
        """Take a message as `receive` does.

        Args:
            message: As in `receive`.
            sender: As in `receive`.
            request_reply: As in `receive`.
            silent: As in `receive`.
        """
        self._silent_with[sender] = bool(silent)
        return await super().a_receive(message, sender, request_reply, silent)

    def is_silent(self, sender: Any) -> bool:
        """Return whether inner messages are hidden from the user: as the agent says, else as the chat was begun.

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
        """Return the names of the arguments that our classes add to the host's."""
        ours = (kind for kind in cls.__mro__ if issubclass(kind, SpeakingAgent))
        named = {parameter.name for kind in ours for parameter in inspect.signature(kind.__init__).parameters.values()}
        return named - {"self", "args", "host", "does", "role_config"}

    def _add_own_to_excluded(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments of `generate_reply` whose `exclude` names our reply functions too."""
        excluded = [*(args[0] if args else kwargs.get("exclude") or ())]
        excluded += [self._own_reply_function(one) for one in excluded]
        return ((excluded, *args[1:]), kwargs) if args else ((), {**kwargs, "exclude": excluded})

    def _own_reply_function(self, function: Any) -> Any:
        """Return our reply function for the host's, and any other one as it is."""
        name = next((one for one in _REPLY_FUNCTIONS if function is getattr(ConversableAgent, one)), None)
        return getattr(type(self), name) if name else function

    def __copy__(self) -> Any:
        raise HostError(
            f"{self.name}: a shallow copy would work in the same sessions; make a deep one",
            command="copy.deepcopy(agent)",
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return an agent with the same arguments and chats, and sessions of its own; partners stay the same.

        Raises:
            ConfigError: an attribute can't be copied.
        """
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        ours = {**{id(message): message for message in self._oai_messages}, **memo}
        for name, value in vars(self).items():
            if name in self._shared_with_copies:
                made.__dict__[name] = value
            elif name == "client":
                made.__dict__[name] = _copied_client(value)
            else:
                try:
                    made.__dict__[name] = copy.deepcopy(value, ours)
                except TypeError as error:
                    raise ConfigError(f"{self.name}: can't be copied, because of {name}: {error}") from error
        made._silent_with = {}
        made._own_sessions(memo, self)
        return made

    _shared_with_copies: tuple[str, ...] = ()
    """Names of attributes that a copy takes as they are."""

    def _own_sessions(self, memo: dict[int, Any], copied: Any) -> None:
        """Take no session over from the agent that this is a copy of."""
        raise NotImplementedError

    def _change_tool(self, signature: Any, is_remove: bool) -> None:
        """Refuse a tool that roles would never see, and take one that is removed from them."""
        if not is_remove and not _REGISTERING.get():
            raise ConfigError(
                f"{self.name}: its roles can't call a tool of which only the schema is given; give functions as "
                "plugins=[...]"
            )
        if is_remove:
            gone = signature if isinstance(signature, str) else signature.get("function", signature).get("name")
            kept = [one for one in self._plugins_of() if one.name != gone]
            if len(kept) < len(self._plugins_of()):
                self._set_plugins(kept)

    def _plugins_of(self) -> Sequence[PluginSpec]:
        """Return what code of the sessions that follow may call."""
        return ()

    def _set_plugins(self, plugins: Sequence[PluginSpec]) -> None:
        raise ConfigError(
            f"{self.name}: this agent runs no code that could call a tool; register it with another agent"
        )

    def _register_functions(self) -> None:
        """Register the functions of the argument `functions`, as the host does; called when the agent is made.

        Raises:
            ConfigError: as `register_for_llm`; one without docstring can't be described.
        """
        for function in self._given_functions:
            if not callable(function):
                raise ConfigError(f"{self.name}: functions= takes functions, got {type(function).__name__}")
            about = getattr(function, "_description", "") or (function.__doc__ or "").strip()
            if not about:
                raise ConfigError(f"{self.name}: {function.__name__} has no docstring that says what it does")
            self.register_for_llm(name=getattr(function, "_name", None), description=about)(with_context(function))

    def _refuse_open(self) -> None:
        """Refuse new plugins while sessions are open, which keep those that they have."""
        if len(self._conversations_of()):
            raise ConfigError(
                f"{self.name}: has open sessions; register tools before the first message, or after close()"
            )

    @property
    def most_open(self) -> int:
        """How many sessions stay open, and how many requests of a service are under way at once."""
        return self._conversations_of().most_open

    def _can_answer(self) -> bool:
        raise NotImplementedError

    def _answer(self, conversation: Any, messages: Messages, sender: Any) -> str | None:
        raise NotImplementedError

    def _conversations_of(self) -> Conversations[Any]:
        raise NotImplementedError

    def _refuse_llm_handoffs(self) -> None:
        """Refuse handoffs that the host makes tools of an agent's model: its roles would never see these tools."""
        handoffs = getattr(self, "handoffs", None)
        if getattr(handoffs, "llm_conditions", None):
            raise HostError(
                f"{self.name}: handoffs on conditions for a model (OnCondition) can't be followed by this agent; use "
                "set_after_work, or add_after_work with an OnContextCondition on context variables",
                command="agent.handoffs.set_after_work(AgentTarget(other))",
            )


def _copied_client(client: Any) -> Any:
    """Return a client that asks as this one does, and counts for itself."""
    made = copy.copy(client)
    if hasattr(made, "clear_usage_summary"):
        made.clear_usage_summary()
    return made


def _says_something(message: dict[str, Any]) -> bool:
    return bool(calls_tool(message) or message.get("tool_responses") or images_of(message) or text_of(message).strip())


def house_rules_of(agent: Any) -> str:
    """Return an agent's `system_message` as house rules; empty if it is the host's default."""
    rules = agent.system_message
    return rules if isinstance(rules, str) and rules != _HOSTS_DEFAULT else ""
