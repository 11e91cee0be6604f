"""`SharedSession`: what the members of a group have in common; `SharedChat`: rounds, board and kernel of one chat."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tw_autogen.closing import Closing
from tw_autogen.conversation import Post, Round, RoundState
from tw_autogen.errors import ConfigError, RoundError, TwAutogenError
from tw_autogen.events import Handler
from tw_autogen.hosts.conversable.client_isolation import check_clients_apart, remove_old_sessions
from tw_autogen.hosts.conversable.human_approval import approval_by
from tw_autogen.hosts.conversable.inner_messages import InnerMessages
from tw_autogen.hosts.conversable.messages import render_reply, without_end
from tw_autogen.hosts.conversable.running_reply import asking_words, failed_words
from tw_autogen.hosts.open_conversations import Conversations, idle_seconds
from tw_autogen.hosts.partner_conversation import CONTINUE, GivenFiles, Line, PartnerConversation
from tw_autogen.named_folders import checked_path
from tw_autogen.planner import Planner
from tw_autogen.session import (
    USER,
    Answer,
    FilesWanted,
    RoleConfig,
    Session,
    SessionSettings,
    open_team,
    read_settings,
)
from tw_autogen.setting_values import relative_to_folder
from tw_autogen.settings_trust import FolderTrust

_ENDED = "the chat ended before an answer"
_HELPERS = ("_User", "_Group_Tool_Executor", "chat_manager", "checking_agent", "speaker_selection_agent")


@dataclass(frozen=True)
class _AgentWorker:
    """An agent of the user's, as a Planner's worker."""

    name: str
    intro: str


class SessionMember(Protocol):
    """A member, as its shared session sees it."""

    name: str
    role_config: RoleConfig
    house_rules: str
    system_message: str

    def is_silent(self, sender: Any) -> bool:
        """Return whether inner messages are to be hidden from the user."""
        ...

    def write_context_variables(self, board: Mapping[str, str], next_speaker: str) -> None:
        """Write the next speaker and the board where the host reads them.

        Args:
            board: Bulletins by role.
            next_speaker: Name of the role that the newest post is for.
        """
        ...


class SharedChat(PartnerConversation):
    """One chat of the members: a session of their own, driven step by step as the host selects speakers.

    Args:
        shared: Whose members; not kept alive.
        partner: The group's manager, or another agent; None: a service. Not kept alive.
        files: As in `SharedSession`, with the settings that say how long it may be idle.
    """

    opener = ""
    """Name of the agent that is the user of the newest round."""

    def __init__(self, shared: SharedSession, partner: Any, files: GivenFiles) -> None:
        group = getattr(partner, "groupchat", None)
        age = idle_seconds(files.read, endless=partner is None or group is not None)
        super().__init__(shared.opened, files, idle_seconds=age)
        self._shared = shared
        self._answered = False
        self.others = weakref.WeakSet(non_members(group.agents, shared) if group is not None else ())

    @property
    def round(self) -> Round | None:
        """The newest round, open or not."""
        rounds = self._session.rounds if self._session is not None else self._past
        return rounds[-1] if rounds else None

    @property
    def open_round(self) -> Round | None:
        """The newest round if it is open."""
        here = self.round
        return here if here and here.state is RoundState.created else None

    @property
    def asked(self) -> Post | None:
        """The newest post that waits for an answer; None if no round waits for one."""
        here = self.open_round
        return here.posts[-1] if here and not self._answered else None

    def reply(self, member: SessionMember, chat: Sequence[Line], sender: Any, stopped: threading.Event) -> str | None:
        """Return a member's answer to what the chat holds for it; None if it has none.

        Args:
            member: Whose turn it is.
            chat: The chat as it sees it.
            sender: Its partner: the group's manager, or another agent.
            stopped: Identifies this request for `stop`.

        Returns:
            The words; None if nothing was asked.
        """
        group = getattr(sender, "groupchat", None)
        with self.turn(stopped) as session:
            if not self._post_new_lines(session, member, chat, goes_on=group is not None):
                return None
            if stopped.is_set():  # the session forgets an interrupt that comes before its round
                session.interrupt()
            asked = self.asked
            if asked is not None and _is_asked(session.rounds[-1], member.name):
                message = self._reply_as_member(session, member, sender, group)
            elif asked is not None:
                message = f"@{self._agent_of_role(asked.send_to)} I wait for your answer."
            else:
                message = f"@{self.opener} Nothing was asked of me."
            if not stopped.is_set():
                self.said(message)
            return message

    def end_round(self) -> None:
        """Close a round that a chat has left open."""
        session = self.session
        if session is not None and self.open_round:
            self._close_round(session, reason="" if self._answered else _ENDED)

    def close(self) -> None:
        """End the round, the session and its kernel."""
        self.interrupt()
        self.end_round()
        super().close()

    def _post_new_lines(self, session: Session, member: SessionMember, chat: Sequence[Line], *, goes_on: bool) -> bool:
        """Make posts of what was said; return whether there is something to say to it."""
        here, unknown = self.open_round, self._new_lines(chat)
        if here and self._answered and unknown:
            self._close_round(session)
            here = None
        if here is None:
            news = self.hear(session, chat)
            entry = member.name in (self._shared.planner, *self._shared.names[: not self._shared.planner])
            if not news and not (goes_on and entry):
                return goes_on
            self._open_round(session, member, news[0] if news else Line(CONTINUE, name=self.opener))
            unknown = news[1:]
        elif self._answered:  # without a Planner: the next member looks at the same request
            if any(post.send_to == member.name for post in here.posts):
                return goes_on
            self._answered = False
            session.post(USER, here.user_query, send_to=member.name)
        else:
            self._note_known_lines([(one.own, one.text) for one in unknown])
        for one in unknown:
            said_by = self._role_of_agent(one.name or (member.name if one.own else ""))
            newest = session.rounds[-1].posts[-1]
            receiver = newest.send_from if newest.send_to == said_by and newest.send_from != USER else member.name
            session.post(said_by, one.text, send_to=receiver, images=one.images)
        return True

    def _open_round(self, session: Session, member: SessionMember, line: Line) -> None:
        self._answered = False
        self.opener = line.name or "user"
        request, files = self.compose_request(session, line.text, self._shared.house_rules)
        session.open_round(request, files, images=line.images, send_to=member.name)
        self.begun()

    def _reply_as_member(self, session: Session, member: SessionMember, sender: Any, group: Any) -> str:
        roles = {role.name: role for role in session.roles}
        agents = list(group.agents) if group is not None else []
        present = self._shared.present([*agents, sender])
        planner = roles.get(self._shared.planner)
        if isinstance(planner, Planner):
            workers = [
                _AgentWorker(one.name, one.description or "(no description)")
                for one in non_members(agents, self._shared)
                if one.name != self.opener
            ]
            planner.workers = [*(role for role in roles.values() if role is not planner), *workers]
        inner = InnerMessages(lambda: member.is_silent(sender))
        try:
            post = session.step(roles[member.name])
            while post.send_to == member.name or (post.send_to in roles and post.send_to not in present):
                inner.show(post)  # whom the host can't select answers here
                post = session.step(roles[post.send_to])
        except TwAutogenError as error:
            failed = error if isinstance(error, RoundError) else RoundError(str(error), round=session.rounds[-1])
            self._close_round(session, reason=str(error) or type(error).__name__)
            return failed_words(without_end(failed.in_words()))
        except BaseException as error:
            self._close_round(session, reason=str(error) or type(error).__name__)
            raise
        return self._message_of_post(session, member, post)

    def _message_of_post(self, session: Session, member: SessionMember, post: Post) -> str:
        here = session.rounds[-1]
        self._shared.write_context_variables(here.read_board(), self._agent_of_role(post.send_to))
        if post.send_to != USER:
            return without_end(f"@{post.send_to} {here.last_words}")
        self._answered = True
        ends = self._shared.planner or len(self._shared.names) == 1
        answer = self._close_round(session) if ends else Answer.of(here, session.usage)
        return asking_words(render_reply(answer, here.user_query, member.system_message), answer.stop)

    def _close_round(self, session: Session, *, reason: str = "") -> Answer:
        self._answered = False
        return session.close_round(RoundState.failed if reason else RoundState.finished, reason=reason)

    def _role_of_agent(self, agent: str) -> str:
        """Return the name under which an agent stands in posts."""
        return USER if agent in ("", self.opener) else agent

    def _agent_of_role(self, role: str) -> str:
        """Return the agent that a post's name stands for."""
        return self.opener if role == USER else role


class SharedSession(Closing):
    """What the members of one group share.

    Args:
        files: Copied read-only into a session's folder, and described with its first request.
        workspace: Folder in which a session makes its own; None: the setting `session.workspace`.
        settings: Dotted keys, such as `{"session.max_posts": 20}`.
        handlers: Called with each event.
        trust: All that the current folder's settings file sets is wanted; as in `open_session`.

    A round opens with the first message of somebody who is no member, and closes when a member answers; what other
    agents say meanwhile belongs to it. Where several members sit without a Planner, the round stays open until somebody
    else speaks, so that they see one another's bulletins.

    Each chat has a session of its own: a group with the same agents is the same chat, whatever its manager, and any
    other partner one of its own. Clearing the history with a member ends the session behind it; the next message opens
    a new one. At most `session.most_open` stay open, and those of groups and services end after an hour without a
    request, unless `session.idle_seconds` says otherwise. Services are served as by a `TaskWeaverAgent`.

    Example:
        with SharedSession(files=["sales.csv"]) as shared:
            planner = PlannerAgent(llm_config=llm_config, session=shared)
            coder = CodeInterpreterAgent(llm_config=llm_config, session=shared)

    Raises:
        ConfigError: a setting is wrong.
    """

    newest: SharedChat | None = None
    """The chat in which a member spoke last."""

    def __init__(
        self,
        *,
        files: FilesWanted = (),
        workspace: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        handlers: Sequence[Handler] = (),
        trust: bool = False,
    ) -> None:
        self._trust = FolderTrust.of(trust=trust)
        self._workspace = None if workspace is None else checked_path(workspace, "workspace").absolute()
        self._settings, self._made_in = dict(settings or {}), Path.cwd()
        self._handlers = tuple(handlers)
        self._members: dict[str, SessionMember] = {}
        self._lock = threading.RLock()
        read = read_settings(settings, trust=trust)
        self._files = GivenFiles(files, read)
        most_open = read.read("session", SessionSettings).most_open
        me = weakref.proxy(self)
        self.chats = Conversations(lambda partner: SharedChat(me, partner, me._files), most_open=most_open)

    def join(self, member: SessionMember) -> None:
        """Take in a member.

        Raises:
            ConfigError: there is one of that name, or a second Planner, or a session has begun.
        """
        if len(self.chats):
            raise ConfigError(f"{member.name}: this session has begun; make all members before the first message")
        if member.name in self._members:
            raise ConfigError(f"{member.name}: this session has a member of that name already")
        if member.role_config.role == "planner" and self.planner:
            raise ConfigError(f"{member.name}: {self.planner} plans here already; a session has one Planner")
        self._members[member.name] = member

    def check_clients_apart(self, name: str) -> None:
        """Check that code of one client of a service can't read what another one has asked and made.

        Args:
            name: Of the member that is served.

        Raises:
            ConfigError: the workspace lies in a folder that code may read.
        """
        if any(member.role_config.kernel is None for member in self._members.values()):
            with relative_to_folder(self._made_in):
                read = read_settings(self._settings, trust=self._trust.holds())
            check_clients_apart(name, read, self._workspace)

    def remove_old_sessions(self) -> None:
        """Remove old sessions of a service, and their saved variables, as the settings say."""
        with relative_to_folder(self._made_in):
            remove_old_sessions(read_settings(self._settings, trust=self._trust.holds()), self._workspace)

    @property
    def planner(self) -> str:
        """The name of the member that plans; empty if none does."""
        return next((name for name, member in self._members.items() if member.role_config.role == "planner"), "")

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names, in the order in which they joined."""
        return tuple(self._members)

    @property
    def house_rules(self) -> str:
        """The Planner's house rules; empty without one."""
        return self._members[self.planner].house_rules if self.planner else ""

    @property
    def session(self) -> Session:
        """The session of the newest chat; opened if there is none."""
        return (self.newest or self.chats.of(self)).open()

    @property
    def round(self) -> Round | None:
        """The newest round of the newest chat, open or not."""
        return self.newest.round if self.newest else None

    @property
    def board(self) -> dict[str, str]:
        """What is on the board of the newest round, by member."""
        return self.round.read_board() if self.round else {}

    def present(self, agents: Iterable[Any]) -> set[str]:
        """Return the names of the members among these agents."""
        return {name for name, member in self._members.items() if any(member is agent for agent in agents)}

    def write_context_variables(self, board: Mapping[str, str], next_speaker: str) -> None:
        """Make each member write board and next speaker where the host reads them.

        Args:
            board: Bulletins by role.
            next_speaker: Name of the role that the newest post is for.
        """
        for member in self._members.values():
            member.write_context_variables(board, next_speaker)

    def chat_of(self, groupchat: Any) -> SharedChat | None:
        """Return the chat of a group of the host's; None if no member has been in it yet."""
        groups = [(getattr(one, "groupchat", None), chat) for one, chat in self.chats.partner_items()]
        for group, chat in groups:
            if group is not None and group.messages is groupchat.messages:  # the host works on a copy of the group
                return chat
        others = set(non_members(groupchat.agents, self))
        same = [chat for group, chat in groups if group is not None and set(chat.others) == others]
        return same[-1] if same else None

    def begin_chat(self, partner: Any) -> None:
        """Begin a chat with members: a round that was left open in it ends.

        Args:
            partner: The group's manager, or another agent.
        """
        with self._lock:
            before = self._known_partner(partner)
            chat = self.chats.find(before)
            if chat is not None:
                self.chats.rename(before, partner)
                chat.end_round()

    def end_chat(self, partner: Any, *, wait: bool) -> None:
        """End a chat with members, its round and its session.

        Args:
            partner: The group's manager, or another agent; None: all of them.
            wait: Return once the session has ended.
        """
        with self._lock:
            if partner is None:
                self.close()
            elif (before := self._known_partner(partner)) is not None:
                self.chats.drop(before, wait=wait)

    def close(self) -> None:
        """End the sessions, and their kernels; the next message opens a new one."""
        self.chats.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedSession:
        """Return what copies of the members share: the same arguments, and sessions of its own."""
        made = memo[id(self)] = SharedSession(
            workspace=self._workspace,
            settings=self._settings,
            handlers=self._handlers,
            trust=self._trust.holds(),
        )
        made._files, made._made_in = self._files, self._made_in
        made._members = {name: copy.deepcopy(member, memo) for name, member in self._members.items()}
        return made

    def opened(self) -> Session:
        """Open a session with all members."""
        with relative_to_folder(self._made_in):
            return open_team(
                [member.role_config for member in self._members.values()],
                folder=self._workspace,
                handlers=self._handlers,
                settings={"planner.instructions": self.house_rules, **self._settings},
                approve=approval_by(self._members.values()),
                trust=self._trust.holds(),
            )

    def _known_partner(self, partner: Any) -> Any:
        """Return a partner that has a chat, or the manager of an earlier group with the same agents that has ended."""
        if self.chats.find(partner) is not None:
            return partner
        group = getattr(partner, "groupchat", None)
        others = set(non_members(group.agents, self)) if group is not None else set()
        for one, chat in self.chats.partner_items():
            if others and set(chat.others) == others and not (chat.busy or chat.asked and not _is_over(one.groupchat)):
                return one
        return None


def non_members(agents: Iterable[Any], shared: SharedSession) -> list[Any]:
    """Return the agents of a group that are no members, and no helpers of the host's.

    Args:
        agents: All agents of the group.
        shared: The session with the members.
    """
    return [
        agent
        for agent in agents
        if agent.name not in (*shared.names, *_HELPERS) and not agent.name.startswith("wrapped_")
    ]


def _is_over(groupchat: Any) -> bool:
    return bool(len(groupchat.messages) >= groupchat.max_round)


def _is_asked(here: Round, name: str) -> bool:
    """Return whether something was said to this member since it spoke last."""
    for post in reversed(here.posts):
        if post.send_from == name:
            return False
        if post.send_to == name:
            return True
    return False
