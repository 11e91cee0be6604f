"""`TaskWeaverAgent`: one ConversableAgent with a whole Session inside."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tw_autogen.approval import Approve, checked_approve
from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.errors import ConfigError, RoundError
from tw_autogen.events import Handler
from tw_autogen.hosts.conversable.approval import approval_by
from tw_autogen.hosts.conversable.conversations import Conversations
from tw_autogen.hosts.conversable.messages import images_of, reply_text, request_of, split, transcript
from tw_autogen.hosts.conversable.model import HostModel
from tw_autogen.hosts.conversable.speaking import Messages, Speaking, rules_of
from tw_autogen.hosts.conversable.talk import InnerTalk
from tw_autogen.planner import Planner
from tw_autogen.plugin.chain import calling
from tw_autogen.plugin.mcp import McpWanted, read_mcp_servers
from tw_autogen.session import (
    DOES_DATA_WORK,
    FRESH_KERNEL,
    FilesWanted,
    KernelWanted,
    ModelWanted,
    PluginsWanted,
    PolicyWanted,
    RolesWanted,
    Session,
    SessionSettings,
    check_plugins,
    check_roles,
    checked_models,
    checked_policy,
    failure_text,
    open_session,
    read_settings,
    several,
)


class TaskWeaverAgent(Speaking):
    """One agent that does data work: a Planner, a CodeInterpreter and a kernel behind one name.

    Args:
        name: The agent's name.
        *args: As for any ConversableAgent, in the same order.
        plugins: Names, paths of files or folders, functions, or specs, also of other agents; as in `open_session`.
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
    most `session.most_open` stay open. A partner that comes back with an earlier transcript is remembered by it.

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
        super().__init__(name, *args, does=DOES_DATA_WORK, **host)
        checked_models(model)
        self._model = model
        self._role_llm_config = dict(role_llm_config or {})
        if self._role_llm_config and self.client is None:
            raise ConfigError(f"{name}: role_llm_config needs an llm_config too: calls are counted as this agent's")
        self._files = tuple(Path(one).resolve() for one in several(files))
        self._handed: dict[Any, list[Path]] = {}
        self._settings = dict(settings or {})
        self._handlers = tuple(handlers)
        read = read_settings(self._settings, project=project, trust=trust)
        self._open = functools.partial(
            open_session,
            roles=check_roles(roles, read, project),
            plugins=check_plugins(plugins),
            kernel=kernel,
            policy=checked_policy(policy),
            folder=workspace,
            project=project,
            mcp_servers=mcp_servers,
            trust=trust,
        )
        if mcp_servers is not None:
            read_mcp_servers(mcp_servers)  # what is wrong is told now, not with the first message
        self._approve = checked_approve(approve)
        most_open = read.read("session", SessionSettings).most_open
        make = functools.partial(_make, weakref.ref(self))
        self._talks = Conversations(make, names=(name,), most_open=most_open)
        self._rules: weakref.WeakKeyDictionary[Session, str] = weakref.WeakKeyDictionary()
        self._guard = threading.Lock()
        self._end = weakref.finalize(self, self._talks.close)

    def hand_over(self, partner: Any, files: FilesWanted) -> None:
        """Give files to go along with the next message of a partner, beside those of the constructor.

        Args:
            partner: The agent that will send the message.
            files: Copied read-only into the session's folder, and described to the Planner.
        """
        with self._guard:
            self._handed.setdefault(partner, []).extend(Path(one).resolve() for one in several(files))

    def session(self, partner: Any = None) -> Session:
        """Give the Session with this conversation partner; opened if there is none."""
        return self._talks.open(partner)

    def interrupt(self, partner: Any) -> None:
        """Stop what is being done for this partner, from any thread; session, kernel and variables stay."""
        session = self._talks.find(partner)
        if session is not None:
            session.interrupt()

    @property
    def open_sessions(self) -> int:
        """How many sessions are open now."""
        return len(self._talks)

    def clear_history(self, recipient: Any = None, nr_messages_to_preserve: int | None = None) -> None:
        """Clear the host's history, and end the Session with this partner (with all partners if None)."""
        super().clear_history(recipient, nr_messages_to_preserve)
        if nr_messages_to_preserve:
            return
        if recipient is None:
            self._talks.close()
        else:
            self._talks.drop(recipient)

    def close(self) -> None:
        """End all Sessions, and their kernels; a second time nothing happens."""
        self._talks.close()

    def __enter__(self) -> TaskWeaverAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _can_answer(self) -> bool:
        return self._model is not None or self.client is not None

    def _answer(self, messages: Messages, sender: Any) -> str | None:
        past, news = split(transcript(messages, sender, (self.name,)), (self.name,))
        if not news:
            return None
        with calling(self.name, self), self._talks.use(sender, past) as (session, key):
            self._runs(session)
            text = self._ask(session, sender, request_of(news), images_of(news))
        if sender is None:
            self._talks.answered(key, messages, text)
        return text

    def _ask(self, session: Session, sender: Any, request: str, images: Sequence[str]) -> str:
        with self._guard:
            files = self._handed.pop(sender, [])
        begins = session not in self._rules
        rules, known = rules_of(self), self._rules.get(session)
        self._rules[session] = rules
        notes = [FRESH_KERNEL] if begins and session.rounds else []
        if known is not None and known != rules:
            notes.append(f"(House rules from now on: {rules or 'none'})")
        try:
            answer = session.ask(
                "\n\n".join([request, *notes]), [*(self._files if begins else ()), *files], images=images
            )
        except RoundError as error:
            return failure_text(error)
        return reply_text(answer, request, self.system_message)

    def _opened(self, partner: Any) -> Session:
        """Open a session whose parts hold this agent weakly: forgotten with open sessions it still ends."""
        me = weakref.proxy(self)
        talk = InnerTalk(lambda: me.is_silent(partner))
        model: ModelWanted = self._model
        if model is None:
            names = {Planner.name, CodeInterpreter.name, *self._role_llm_config}
            model = {
                name: HostModel(
                    me, speaker=functools.partial(talk.speaker, name), llm_config=self._role_llm_config.get(name)
                )
                for name in names
            }
            model[""] = HostModel(me, speaker=functools.partial(talk.speaker, self.name))
        settings = {"planner.instructions": rules_of(self), **self._settings}
        return self._open(
            model, handlers=(talk, *self._handlers), settings=settings, approve=self._approve or approval_by([me])
        )


def _make(agent: weakref.ref[TaskWeaverAgent], partner: Any) -> Session:
    """Open a session for an agent that its sessions must not keep alive."""
    alive = agent()
    assert alive is not None  # noqa: S101 - only the agent itself asks for sessions; for the type checker
    return alive._opened(partner)
