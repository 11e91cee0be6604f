"""`TaskWeaverAgent`: one ConversableAgent with a whole Session inside."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.closing import Closing
from tw_autogen.errors import ConfigError
from tw_autogen.hosts.conversable.group_functions import with_context
from tw_autogen.hosts.conversable.llm_config import refuse_settings
from tw_autogen.hosts.conversable.messages import lines_of, render_reply, without_end
from tw_autogen.hosts.conversable.running_reply import asking_words, failed_words, on_loop, register_with_running_reply
from tw_autogen.hosts.conversable.speaking_agent import Messages, SpeakingAgent, house_rules_of
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    from tw_autogen.approval import Approve
    from tw_autogen.events import Handler
    from tw_autogen.hosts.conversable import session_parts as parts
    from tw_autogen.hosts.open_conversations import Conversations
    from tw_autogen.hosts.partner_conversation import GivenFiles, PartnerConversation
    from tw_autogen.plugin import PluginSpec
    from tw_autogen.plugin.mcp import McpWanted
    from tw_autogen.session import (
        FilesWanted,
        KernelWanted,
        ModelWanted,
        PluginsWanted,
        PolicyWanted,
        RolesWanted,
        Session,
    )
    from tw_autogen.settings import Settings
else:
    parts = LazyModule("tw_autogen.hosts.conversable.session_parts")


class TaskWeaverAgent(SpeakingAgent, Closing):
    """One agent that does data work: a Planner, a CodeInterpreter and a kernel behind one name.

    Args:
        name: The agent's name.
        *args: As for any ConversableAgent, in the same order.
        plugins: Names, paths of files or folders, functions, or specs, also of other agents; as in `open_session`.
            Functions that are registered by `register_for_llm` before the first message are added, and so are those of
            the host's argument `functions`. One that takes `context_variables` gets the agent's own, as in AG2.
        roles: Names of shipped roles, folders of one's own, or functions that make one; None: the setting
            `session.roles`, as in `open_session`.
        files: Copied read-only into each session's folder, and described to the Planner with the first message.
        model: A `ChatModel` (or one by role name) instead of the host's client.
        role_llm_config: An `llm_config` of its own for a role, by the role's name (`Planner`, `CodeInterpreter`, …);
            what its calls cost is counted as this agent's.
        kernel: A function that makes a kernel for a folder; None: a `LocalKernel`.
        policy: What generated code may do: a policy, its name, or the path of its YAML; as in `open_session`.
        workspace: Folder in which each session makes its own; None: the setting `session.workspace`.
        settings: Dotted keys, such as `{"session.max_posts": 20}`.
        handlers: Called with each event of each session.
        approve: Asked for packages, cells, plans and commands, as in `open_session`; None: the agent's human input.
        project: A folder with settings, plugins, roles and examples, as in `open_session`.
        mcp_servers: MCP servers whose tools are plugins, as in `open_session`; each session starts its own.
        trust: All that the settings file of `project`, or of the current folder, sets is wanted; as in `open_session`.
        **host: Any other argument of ConversableAgent. `human_input_mode` is `NEVER` unless given; `llm_config` is what
            all roles ask through; a `system_message` becomes the Planner's house rules.

    Each conversation partner has a Session of its own, with its own kernel: it begins with the first message, remembers
    through the conversation, and ends when the history with that partner is cleared, with `reset()` or `close()`. At
    most `session.most_open` stay open; those of groups and services end after an hour without a request, unless
    `session.idle_seconds` says otherwise. A partner that comes back with an earlier transcript is remembered by it.
    A service, which has no partner, has a session for each conversation that its host names (see `a2a_server`,
    `ag_ui_stream`) or continues by handing back the very object that was answered; any other request of a service has
    a fresh one, which knows the transcript.

    What the roles say to one another is shown as the host's own messages, between agents of their names, unless the
    chat is silent.

    Raises:
        ConfigError: a plugin, role, setting or argument is wrong.
    """

    def __init__(
        self,
        name: str = "TaskWeaver",
        *args: Any,
        plugins: PluginsWanted = (),
        roles: RolesWanted | None = None,
        files: FilesWanted = (),
        model: ModelWanted = None,
        role_llm_config: Mapping[str, Any] | None = None,
        kernel: KernelWanted = None,
        policy: PolicyWanted | None = None,
        workspace: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        handlers: Sequence[Handler] = (),
        approve: Approve | None = None,
        project: Path | str | None = None,
        mcp_servers: McpWanted | None = None,
        trust: bool = False,
        **host: Any,
    ) -> None:
        super().__init__(name, *args, does=parts.AGENT_DESCRIPTION, **host)
        self._model = model
        self._role_llm_config = dict(role_llm_config or {})
        if self._role_llm_config and self.client is None:
            raise ConfigError(f"{name}: role_llm_config needs an llm_config too: calls are counted as this agent's")
        for role, config in self._role_llm_config.items():
            refuse_settings(f"{name}, role_llm_config of {role}", config)
        self._settings = dict(settings or {})
        self._handlers = tuple(handlers)
        read = parts.read_settings(self._settings, project=project, trust=trust)
        given = parts.GivenFiles(files, read)
        opening = functools.partial(
            parts.open_session,
            model=model,
            roles=roles,
            plugins=[*map(with_context, parts.several(plugins))],
            kernel=kernel,
            policy=policy,
            folder=workspace,
            approve=approve,
            project=project,
            mcp_servers=mcp_servers,
            trust=trust,
        )
        self._open = parts.checked_opening(opening, read)
        self._plugins: tuple[PluginSpec, ...] = self._open.keywords["plugins"]
        self._approve: Approve | None = self._open.keywords["approve"]
        self._read, self._files = read, given
        self._conversations = self._new_conversations()
        self._register_functions()

    def hand_over(self, partner: Any, files: FilesWanted) -> None:
        """Queue files to go along with the next message of a partner, beside those of the constructor.

        Args:
            partner: The agent that will send the message.
            files: Copied read-only into the session's folder, and described to the Planner; also into the folder of a
                session that follows this one, unless the history with the partner was cleared meanwhile.

        Raises:
            ConfigError: there is no such file.
        """
        self._conversations.of(partner).hand_over(files)

    def session(self, partner: Any) -> Session:
        """Return the Session with this conversation partner; opened if there is none."""
        return self._conversations.of(partner).open()

    def interrupt(self, partner: Any) -> None:
        """Stop what is being done for this partner, from any thread; session, kernel and variables stay."""
        conversation = self._conversations.find(partner)
        if conversation is not None:
            conversation.interrupt()

    @property
    def open_session_count(self) -> int:
        """How many sessions are open now."""
        return len(self._conversations)

    def clear_history(self, recipient: Any = None, nr_messages_to_preserve: int | None = None) -> None:
        """Clear the host's history, and end the Session with this partner (with all partners if None).

        Args:
            recipient: The partner; None: all.
            nr_messages_to_preserve: As in the host: how many messages stay; with any, the session stays too.
        """
        super().clear_history(recipient, nr_messages_to_preserve)
        if nr_messages_to_preserve:
            return
        if recipient is None:
            self._conversations.close()
        else:
            self._conversations.drop(recipient, wait=not on_loop())

    def close(self) -> None:
        """End all Sessions, and their kernels; a second time nothing happens."""
        self._conversations.close()

    _shared_with_copies = (
        *("_model", "_role_llm_config", "_settings", "_handlers", "_open", "_plugins", "_approve", "_read", "_files"),
        "_conversations",  # until it has its own
    )

    def _own_sessions(self, memo: dict[int, Any], copied: Any) -> None:
        self._conversations = self._new_conversations()

    def _new_conversations(self) -> Conversations[PartnerConversation]:
        most_open = self._read.read("session", parts.SessionSettings).most_open
        return parts.Conversations(
            _conversation_factory(weakref.ref(self), self._read, self._files), most_open=most_open
        )

    def _plugins_of(self) -> Sequence[PluginSpec]:
        return self._plugins

    def _set_plugins(self, plugins: Sequence[PluginSpec]) -> None:
        self._plugins = tuple(plugins)

    def _can_answer(self) -> bool:
        return self._model is not None or self.client is not None

    def _conversations_of(self) -> Conversations[PartnerConversation]:
        return self._conversations

    def check_clients_apart(self) -> None:
        """Check that code of one client of a service can't read what another one has asked and made.

        Raises:
            ConfigError: the workspace lies in a folder that code may read.
        """
        if self._open.keywords["kernel"] is None:
            parts.check_clients_apart(self.name, self._read, self._open.keywords["folder"])

    def remove_old_sessions(self) -> None:
        """Remove old sessions of a service, and their saved variables, as the settings say."""
        parts.remove_old_sessions(self._read, self._open.keywords["folder"])

    def _answer(self, conversation: PartnerConversation, messages: Messages, sender: Any) -> str | None:
        chat = lines_of(messages, sender, (self.name,))
        goes_on = hasattr(sender, "groupchat")
        reply = conversation.answer(
            chat, goes_on=goes_on, rules=house_rules_of(self), stopped=register_with_running_reply(conversation)
        )
        if reply is None or reply.answer is None:
            return failed_words(without_end(reply.text)) if reply else None
        return asking_words(render_reply(reply.answer, reply.round.user_query, self.system_message), reply.stop)

    def _open_session(self, partner: Any) -> Session:
        """Open a session whose parts hold this agent weakly: forgotten with open sessions it still ends."""
        me, seen_by = weakref.proxy(self), _weak_reference(partner)
        inner = parts.InnerMessages(lambda: me.is_silent(seen_by()))
        model: ModelWanted = self._model
        if model is None:
            names = {parts.Planner.name, parts.CodeInterpreter.name, *self._role_llm_config}
            model = {
                name: parts.HostModel(
                    me, speaker=functools.partial(inner.speaker, name), llm_config=self._role_llm_config.get(name)
                )
                for name in names
            }
            model[""] = parts.HostModel(me, speaker=functools.partial(inner.speaker, self.name))
        settings = {"planner.instructions": house_rules_of(self), **self._settings}
        return self._open(
            model=model,
            plugins=self._plugins,
            handlers=(inner, *self._handlers),
            settings=settings,
            approve=self._approve or parts.approval_by([me]),
        )


def _conversation_factory(
    agent: weakref.ref[TaskWeaverAgent], read: Settings, files: GivenFiles
) -> Callable[[Any], PartnerConversation]:
    """Return what begins a conversation with a partner."""

    def start(partner: Any) -> PartnerConversation:
        age = parts.idle_seconds(read, endless=partner is None or hasattr(partner, "groupchat"))
        other = _weak_reference(partner)  # neither of the two is kept alive

        def make() -> Session:
            alive = agent()
            assert alive is not None  # noqa: S101 - only the agent itself asks for sessions; for the type checker
            return alive._open_session(other())

        return parts.PartnerConversation(make, files, idle_seconds=age)

    return start


def _weak_reference(partner: Any) -> Callable[[], Any]:
    return weakref.ref(partner) if partner is not None else lambda: None
