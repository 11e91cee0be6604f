"""`SharedSession`: the rounds, the board and the kernel that the members of one group have in common."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tw_autogen.conversation import Post, Round, RoundState
from tw_autogen.errors import ConfigError, RoundError, TwAutogenError
from tw_autogen.events import Handler
from tw_autogen.hosts.conversable.approval import approval_by
from tw_autogen.hosts.conversable.messages import (
    Message,
    images_of,
    past_rounds,
    reply_text,
    request_of,
    split,
    transcript,
)
from tw_autogen.hosts.conversable.talk import InnerTalk
from tw_autogen.planner import Planner
from tw_autogen.session import (
    FRESH_KERNEL,
    USER,
    Answer,
    FilesWanted,
    Seat,
    Session,
    failure_text,
    open_team,
    read_settings,
    several,
)

_ENDED = "the chat ended before an answer"


class Sharing(Protocol):
    """A member, as its shared session sees it."""

    name: str
    seat: Seat
    house_rules: str
    system_message: str

    def is_silent(self, sender: Any) -> bool:
        """Say whether inner talk is to be kept from the user's eyes."""
        ...

    def publish(self, board: Mapping[str, str], next_speaker: str) -> None:
        """Tell the host who is to speak, and what is pinned up."""
        ...


class SharedSession:
    """What the members of one group share.

    Args:
        files: Copied read-only into the session's folder, and described with the first request.
        workspace: Folder in which the session makes its own; None: the setting `session.workspace`.
        settings: Dotted keys, such as `{"session.max_posts": 20}`.
        handlers: Called with each event.
        trust: All that the current folder's settings file sets is wanted; as in `open_session`.

    A round opens with the first message of somebody who is no member, and closes when a member answers; what other
    agents say meanwhile belongs to it. Where several members sit without a Planner, the round stays open until somebody
    else speaks, so that they see one another's bulletins. Clearing the history with a member ends the session behind
    it; the next message opens a new one.

    Example:
        with SharedSession(files=["sales.csv"]) as shared:
            planner = PlannerAgent(llm_config=llm_config, session=shared)
            coder = CodeInterpreterAgent(llm_config=llm_config, session=shared)

    Raises:
        ConfigError: a setting is wrong.
    """

    def __init__(
        self,
        *,
        files: FilesWanted = (),
        workspace: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        handlers: Sequence[Handler] = (),
        trust: bool = False,
    ) -> None:
        read_settings(settings, trust=trust)
        self._trust = trust
        self.opener = ""
        self._files = tuple(Path(one).resolve() for one in several(files))
        self._workspace = workspace
        self._settings = dict(settings or {})
        self._handlers = tuple(handlers)
        self._lock = threading.RLock()
        self._members: dict[str, Sharing] = {}
        self._living: list[Session] = []
        self._partner: Any = None
        self._answered = False
        self._begun = False
        self._end = weakref.finalize(self, _close_all, self._living)

    def join(self, member: Sharing) -> None:
        """Take in a member.

        Raises:
            ConfigError: there is one of that name, or a second Planner, or the session has begun.
        """
        if self._living:
            raise ConfigError(f"{member.name}: this session has begun; make all members before the first message")
        if member.name in self._members:
            raise ConfigError(f"{member.name}: this session has a member of that name already")
        if member.seat.role == "planner" and self.planner:
            raise ConfigError(f"{member.name}: {self.planner} plans here already; a session has one Planner")
        self._members[member.name] = member

    @property
    def planner(self) -> str:
        """The name of the member that plans; empty if none does."""
        return next((name for name, one in self._members.items() if one.seat.role == "planner"), "")

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names, in the order in which they joined."""
        return tuple(self._members)

    @property
    def session(self) -> Session:
        """The session that lives now; opened if there is none."""
        with self._lock:
            if not self._living or self._living[-1].closed:
                self._living[:] = [self._opened()]
                self._begun = False
            return self._living[-1]

    @property
    def round(self) -> Round | None:
        """The newest round, open or not."""
        rounds = self._living[-1].rounds if self._living else []
        return rounds[-1] if rounds else None

    @property
    def board(self) -> dict[str, str]:
        """What is pinned up in the newest round, by member."""
        return self.round.read_board() if self.round else {}

    @property
    def asked(self) -> Post | None:
        """The newest post that waits for an answer; None if no round waits for one."""
        here = self.round
        return here.posts[-1] if here and here.state is RoundState.created and not self._answered else None

    def opener_of(self, messages: Sequence[Message]) -> str:
        """Give the name of the agent that these messages would make the user of a round; empty if they make none."""
        news = split(messages, self._members)[1]
        return str(news[0].get("name") or "") if news else ""

    def answer(
        self,
        member: Sharing,
        messages: Sequence[Message],
        sender: Any,
        workers: Sequence[Any],
        present: Collection[str],
    ) -> str | None:
        """Have a member answer what the chat holds for it.

        Args:
            member: Who has the word.
            messages: The chat as it sees it.
            sender: Its partner: the group's manager, or another agent.
            workers: Agents of the host that a Planner may write to, with `name` and `description`.
            present: Names of all who can be given the word by the host.

        Returns:
            The words; None if nothing was asked.
        """
        with self._lock:
            session = self.session
            past, news = split(transcript(messages, sender, self._members), self._members)
            if not session.rounds:
                for one in past_rounds(past, self._members, session.entry):
                    session.remember(one)
            if not self._hear(session, member, news, sender):
                return None
            asked = self.asked
            if asked is None or not _has_the_word(session.rounds[-1], member.name):
                waits_for = self._agent(asked.send_to) if asked else self.opener
                return f"@{waits_for} I wait for your answer."
            return self._speak(session, member, workers, present)

    def prepare(self, partner: Any, *, clear: bool) -> None:
        """Begin a chat with a member: a round that is left open ends, and with `clear` the session with it.

        A chat aside with a single agent, while a round goes on in a group, changes nothing.
        """
        with self._lock:
            aside = partner is not None and not hasattr(partner, "groupchat") and hasattr(self._partner, "groupchat")
            if self.asked is not None and aside:
                return
            if clear:
                self.close()
            elif self.round and self.round.state is RoundState.created:
                self._close_round(reason="" if self._answered else _ENDED)

    def close(self) -> None:
        """End the session, and its kernel; the next message opens a new one."""
        with self._lock:
            if self.round and self.round.state is RoundState.created and not self._living[-1].closed:
                self._close_round(reason="" if self._answered else _ENDED)
            _close_all(self._living)
            self._answered = False

    def __enter__(self) -> SharedSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _hear(self, session: Session, member: Sharing, news: Sequence[Message], sender: Any) -> bool:
        """Make posts of what was said; say whether there is a round now."""
        here = session.rounds[-1] if session.rounds else None
        is_open = here is not None and here.state is RoundState.created
        if is_open and self._answered and news:
            self._close_round()
            is_open = False
        if not is_open:
            if not news:
                return False
            self._open_round(session, member, news[0], sender)
            news = news[1:]
        elif self._answered and here is not None:  # without a Planner: the next member looks at the same request
            if any(post.send_to == member.name for post in here.posts):
                return False
            self._answered = False
            session.post(USER, here.user_query, send_to=member.name)
        for message in news:
            said_by = self._role(str(message.get("name") or ""))
            newest = session.rounds[-1].posts[-1]
            receiver = newest.send_from if newest.send_to == said_by and newest.send_from != USER else member.name
            session.post(said_by, request_of([message]), send_to=receiver, images=images_of([message]))
        return True

    def _open_round(self, session: Session, member: Sharing, message: Message, sender: Any) -> None:
        self._partner, self._answered = sender, False
        self.opener = str(message.get("name") or getattr(sender, "name", "") or "user")
        request = request_of([message])
        if session.rounds and not self._begun:
            request = f"{request}\n\n{FRESH_KERNEL}"
        files = () if self._begun else self._files
        session.open_round(request, files, images=images_of([message]), send_to=member.name)
        self._begun = True

    def _speak(self, session: Session, member: Sharing, workers: Sequence[Any], present: Collection[str]) -> str:
        roles = {role.name: role for role in session.roles}
        planner = roles.get(self.planner)
        if isinstance(planner, Planner):
            planner.workers = [*(role for role in roles.values() if role is not planner), *workers]
        try:
            post = session.step(roles[member.name])
            talk = InnerTalk(lambda: member.is_silent(self._partner))
            while post.send_to == member.name or (post.send_to in roles and post.send_to not in present):
                talk.show(post)  # whoever the host can't give the word answers here
                post = session.step(roles[post.send_to])
                if post.send_to == member.name:
                    talk.show(post)
                    post = session.step(roles[member.name])
        except RoundError as error:
            self._close_round(reason=str(error))
            return failure_text(error)
        except TwAutogenError as error:
            failed = RoundError(str(error), round=session.rounds[-1])
            self._close_round(reason=str(error))
            return failure_text(failed)
        except BaseException as error:
            self._close_round(reason=str(error) or type(error).__name__)
            raise
        return self._spoken(session, member, post)

    def _spoken(self, session: Session, member: Sharing, post: Post) -> str:
        here = session.rounds[-1]
        for one in self._members.values():
            one.publish(here.read_board(), self._agent(post.send_to))
        if post.send_to != USER:
            return f"@{post.send_to} {post.message}"
        self._answered = True
        if self.planner or len(self._members) == 1:
            return reply_text(self._close_round(), here.user_query, member.system_message)
        return reply_text(Answer.of(here, session.usage), here.user_query, member.system_message)

    def _close_round(self, *, reason: str = "") -> Answer:
        self._answered = False
        return self._living[-1].close_round(RoundState.failed if reason else RoundState.finished, reason=reason)

    def _opened(self) -> Session:
        rules = next((one.house_rules for name, one in self._members.items() if name == self.planner), "")
        return open_team(
            [one.seat for one in self._members.values()],
            folder=self._workspace,
            handlers=self._handlers,
            settings={"planner.instructions": rules, **self._settings},
            approve=approval_by(self._members.values()),
            trust=self._trust,
        )

    def _role(self, agent: str) -> str:
        """Give the name under which an agent stands in posts."""
        return USER if agent in ("", self.opener) else agent

    def _agent(self, role: str) -> str:
        """Give the agent that a post's name stands for."""
        return self.opener if role == USER else role


def _has_the_word(here: Round, name: str) -> bool:
    """Say whether something was said to this member since it spoke last."""
    for post in reversed(here.posts):
        if post.send_from == name:
            return False
        if post.send_to == name:
            return True
    return False


def _close_all(sessions: list[Session]) -> None:
    for session in sessions:
        session.close()
    sessions.clear()
