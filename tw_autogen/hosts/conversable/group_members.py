"""Planner, CodeInterpreter and other roles as agents of their own, for a group that the user puts together."""

from __future__ import annotations

import copy
import dataclasses
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError, HostError
from tw_autogen.hosts.conversable.group_functions import VARIABLES, with_context
from tw_autogen.hosts.conversable.messages import calls_tool, lines_of
from tw_autogen.hosts.conversable.model import HostModel
from tw_autogen.hosts.conversable.running_reply import on_loop, register_with_running_reply
from tw_autogen.hosts.conversable.shared_session import SharedChat, SharedSession
from tw_autogen.hosts.conversable.speaking_agent import Messages, SpeakingAgent, house_rules_of
from tw_autogen.hosts.open_conversations import Conversations
from tw_autogen.model import ChatModel
from tw_autogen.plugin import PluginSpec
from tw_autogen.role import find_role
from tw_autogen.session import (
    KernelWanted,
    PluginsWanted,
    PolicyWanted,
    RoleConfig,
    RoleWanted,
    check_plugins,
    checked_policy,
    several,
)

_PLANS = "Plans data work, hands its steps to the others by name, looks at what they bring, and answers."
_CODES = "Writes Python for one task, checks it, runs it in a kernel that remembers, and reports numbers and files."


class GroupMember(SpeakingAgent):
    """An agent that plays one role of a session which it shares with the other members of its group.

    Args:
        name: Its name in the group and in the session.
        role_config: What the role is made of; its model is the host's client unless it brings one.
        session: Shared with other members; None: one of its own.
        does: What it can do, as its description unless the user gives another.
        **host: As for any ConversableAgent.
    """

    def __init__(
        self, name: str, *args: Any, role_config: RoleConfig, session: SharedSession | None, does: str, **host: Any
    ) -> None:
        super().__init__(name, *args, does=does, **host)
        self._model = role_config.model
        self.shared = session or SharedSession()
        policy = checked_policy(role_config.policy)  # afterwards: the session has noted whether the folder is trusted
        self.role_config = dataclasses.replace(role_config, name=name, model=self._own_model(), policy=policy)
        self.shared.join(self)
        self._register_functions()

    @property
    def house_rules(self) -> str:
        """The user's own words on how to work, from `system_message`; empty if it is the host's default."""
        return house_rules_of(self)

    def write_context_variables(self, board: Mapping[str, str], next_speaker: str) -> None:
        """Write board and next speaker where the host's conditions and templates read them, if it has such a place.

        In a service that is the place of the client whose request is being answered.

        Args:
            board: Bulletins by role.
            next_speaker: Name of the role that the newest post is for.
        """
        of_client = VARIABLES.get()
        variables = getattr(self, "context_variables", None) if of_client is None else of_client
        if variables is not None:
            variables["tw_board"] = dict(board)
            variables["tw_next"] = next_speaker

    def clear_history(self, recipient: Any = None, nr_messages_to_preserve: int | None = None) -> None:
        """Clear the host's history, and end the session of that chat, as a fresh chat begins with an empty one.

        Args:
            recipient: As in the host.
            nr_messages_to_preserve: As in the host.
        """
        super().clear_history(recipient, nr_messages_to_preserve)
        if not nr_messages_to_preserve:
            self.shared.end_chat(recipient, wait=not on_loop())

    def close(self) -> None:
        """End the shared sessions, and their kernels."""
        self.shared.close()

    def _prepare_chat(self, recipient: Any, clear_history: bool, *args: Any, **kwargs: Any) -> None:
        super()._prepare_chat(recipient, clear_history, *args, **kwargs)
        self.shared.begin_chat(recipient)

    _shared_with_copies = ("_model", "role_config", "shared")

    def check_clients_apart(self) -> None:
        """Check that code of one client of a service can't read what another one has asked and made.

        Raises:
            ConfigError: the workspace lies in a folder that code may read.
        """
        self.shared.check_clients_apart(self.name)

    def remove_old_sessions(self) -> None:
        """Remove old sessions of a service, and their saved variables, as the settings say."""
        self.shared.remove_old_sessions()

    def _own_sessions(self, memo: dict[int, Any], copied: GroupMember) -> None:
        self.role_config = dataclasses.replace(copied.role_config, model=self._own_model())
        self.shared = copy.deepcopy(copied.shared, memo)

    def _own_model(self) -> ChatModel | None:
        if self._model is not None or self.client is None:
            return self._model
        return HostModel(weakref.proxy(self), speaker=weakref.ref(self))

    def _can_answer(self) -> bool:
        return self.role_config.model is not None

    def _conversations_of(self) -> Conversations[SharedChat]:
        return self.shared.chats

    def _answer(self, conversation: SharedChat, messages: Messages, sender: Any) -> str | None:
        self.shared.newest = conversation
        chat = lines_of(messages, sender, self.shared.names)
        return conversation.reply(self, chat, sender, register_with_running_reply(conversation))


class PlannerAgent(GroupMember):
    """The Planner as an agent: plans, writes to the others in the group by name, and answers.

    Args:
        name: The agent's name.
        *args: As for any ConversableAgent, in the same order.
        session: Shared with other members; None: one of its own.
        model: A `ChatModel` instead of the host's client.
        **host: Any other argument of ConversableAgent. A `system_message` becomes house rules; `human_input_mode` is
            `NEVER` unless given.

    Everybody in the group is its worker, by name and description. A worker that shares its session but doesn't sit in
    the chat is asked behind the scenes.

    Raises:
        ConfigError: the session has a Planner, or a member of that name.
    """

    def __init__(
        self,
        name: str = "Planner",
        *args: Any,
        session: SharedSession | None = None,
        model: ChatModel | None = None,
        **host: Any,
    ) -> None:
        super().__init__(
            name, *args, role_config=RoleConfig("planner", model=model), session=session, does=_PLANS, **host
        )


class CodeInterpreterAgent(GroupMember):
    """The CodeInterpreter as an agent: answers each message with code that it has run.

    Args:
        name: The agent's name.
        *args: As for any ConversableAgent, in the same order.
        session: Shared with other members; None: one of its own.
        plugins: Names, paths of files or folders, functions, or specs, also of other agents; as in `open_session`. A
            function that takes `context_variables` gets the agent's own, as in AG2.
        kernel: A function that makes a kernel for a folder; None: the `LocalKernel` of the session.
        policy: What generated code may do, as in `open_session`.
        model: A `ChatModel` instead of the host's client.
        **host: Any other argument of ConversableAgent.

    Raises:
        ConfigError: a plugin is wrong, or the session has a member of that name.
    """

    def __init__(
        self,
        name: str = "CodeInterpreter",
        *args: Any,
        session: SharedSession | None = None,
        plugins: PluginsWanted = (),
        kernel: KernelWanted = None,
        policy: PolicyWanted | None = None,
        model: ChatModel | None = None,
        **host: Any,
    ) -> None:
        specs = check_plugins(map(with_context, several(plugins)))
        named = f" Its plugins: {', '.join(spec.name for spec in specs)}." if specs else ""
        role_config = RoleConfig("code_interpreter", model=model, plugins=specs, kernel=kernel, policy=policy)
        super().__init__(name, *args, role_config=role_config, session=session, does=_CODES + named, **host)

    def _plugins_of(self) -> Sequence[PluginSpec]:
        return self.role_config.plugins

    def _set_plugins(self, plugins: Sequence[PluginSpec]) -> None:
        self.role_config = dataclasses.replace(self.role_config, plugins=tuple(plugins))


class RoleAgent(GroupMember):
    """Any other role as an agent.

    Args:
        role: The name of a shipped role, the folder of one's own, or a function that makes one.
        name: The agent's name; empty: the role's own.
        *args: As for any ConversableAgent, from `system_message` on.
        session: Shared with other members; None: one of its own.
        model: A `ChatModel` instead of the host's client, for a role that asks one.
        **host: Any other argument of ConversableAgent.

    Raises:
        ConfigError: the role is unknown or wrong, or a function makes it and no name is given.
    """

    def __init__(
        self,
        role: RoleWanted,
        name: str = "",
        *args: Any,
        session: SharedSession | None = None,
        model: ChatModel | None = None,
        **host: Any,
    ) -> None:
        does = ""
        if isinstance(role, str | Path | type):
            spec = find_role(role)
            name = name or spec.alias
            does = spec.intro
        elif not name:
            raise ConfigError("RoleAgent: a role that a function makes needs a name: RoleAgent(make, name=...)")
        super().__init__(name, *args, role_config=RoleConfig(role, model=model), session=session, does=does, **host)

    def _can_answer(self) -> bool:
        return True  # not every role asks a model


def route_by_post(last_speaker: Any, groupchat: Any) -> Any:
    """Return the agent that the newest post is written to; for `GroupChat(speaker_selection_method=route_by_post)`.

    Args:
        last_speaker: Who has just spoken.
        groupchat: The host's group; one of its agents is a `GroupMember`.

    A call of a tool goes to an agent that can run it, and its result back to who has called.

    Returns:
        An agent of the group; None, which ends the chat, when the request is answered and whoever asked has neither
        human input nor a model.

    Raises:
        HostError: no member of a session sits in the group.
    """
    agents = {agent.name: agent for agent in groupchat.agents}
    shared = next((agent.shared for agent in agents.values() if isinstance(agent, GroupMember)), None)
    if shared is None:
        raise HostError(
            "route_by_post: none of these agents shares a session; the group needs a PlannerAgent or its like",
            command="GroupChat(agents=[user, PlannerAgent(...), CodeInterpreterAgent(...)], ...)",
        )
    newest = groupchat.messages[-1] if groupchat.messages else {}
    calls = [
        *(newest.get("tool_calls") or ()),
        *([{"function": call}] if (call := newest.get("function_call")) else ()),
    ]
    if calls:
        wanted = [one["function"]["name"] for one in calls]
        runs = [one for one in agents.values() if one.can_execute_function(wanted)]
        return last_speaker if last_speaker in runs or not runs else runs[0]
    if newest.get("role") in ("tool", "function") or newest.get("tool_responses"):
        return _last_tool_caller(groupchat, agents) or last_speaker
    chat = shared.chat_of(groupchat)
    asked = chat.asked if chat is not None else None
    if chat is not None and asked is not None:
        speaker_answered = asked.send_to == last_speaker.name and last_speaker.name not in shared.names
        return agents.get(asked.send_from if speaker_answered else asked.send_to)
    if last_speaker.name not in shared.names:
        return agents.get(shared.planner) or next(agents[name] for name in shared.names if name in agents)
    opener = agents.get(chat.opener) if chat is not None else None
    can_speak = opener is not None and (opener.human_input_mode != "NEVER" or opener.llm_config)
    return opener if can_speak else None


def _last_tool_caller(groupchat: Any, agents: Mapping[str, Any]) -> Any:
    """Return the agent whose call of a tool was answered last."""
    for message in reversed(groupchat.messages):
        if calls_tool(message):
            return agents.get(str(message.get("name")))
    return None
