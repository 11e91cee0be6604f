"""`Conversation`: what one partner says to an agent, in sessions one after another."""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.closing import IdleTimer
from tw_autogen.conversation import Post, Round, RoundState
from tw_autogen.errors import ConfigError, RoundError, SessionClosedError
from tw_autogen.events import Event, Handler, RoundOpened
from tw_autogen.model import Usage
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session import USER, Answer, FilesWanted, Session, distrusted_folder, several
from tw_autogen.settings import Settings

CONTINUE = "Go on."
"""The request where it is an agent's turn although nobody has said anything new."""

BROUGHT: ContextVar[str] = ContextVar("brought", default="")
"""What a client of a service sends along with its request, for the prompt; no part of what was said."""

_FRESH_KERNEL = (
    "(This chat is resumed: what was said is known, but variables of earlier requests are gone, and so are files that "
    "earlier code has written.)"
)
"""Said to the model with the first request of a session that has rounds which it has not lived through."""
_SPOKE_FIRST = "(Nothing was asked; you spoke first.)"
_MAX_KNOWN = 1000
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Line:
    """One message of a host's chat, as the agent sees it.

    Args:
        text: The words.
        own: Whether it was said in the agent's name, by the agent itself or by somebody in its place.
        name: Who said it; empty: not known.
        images: URLs of the images in it.
    """

    text: str
    own: bool = False
    name: str = ""
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """The result of a request.

    Args:
        text: The answer with a line for each file, or why there is none; without control characters.
        round: The round of the request.
        stop: The Planner's word for its end; `Failed` if the round failed.
        usage: What the round has cost.
        answer: The session's answer; None if the round failed.
    """

    text: str
    round: Round
    stop: str
    usage: Usage
    answer: Answer | None = None


class GivenFiles:
    """Files that are named now, and copied later: a link that comes meanwhile leads nowhere else.

    Args:
        files: Paths; relative ones mean what they mean now.
        read: The settings, which say whether the current folder is trusted. If it is not, and there are files, it is
            held open for as long as this object lives.
    """

    def __init__(self, files: FilesWanted, read: Settings) -> None:
        self.read = read
        self.paths = tuple(Path(path).absolute() for path in several(files))
        folder = distrusted_folder(read)  # noted also without files: what settings name there is looked up later
        self.distrusted = None if folder is None or not self.paths else SafeFolder(folder)
        if self.distrusted is not None:
            weakref.finalize(self, self.distrusted.close).atexit = False


class PartnerConversation:
    """What one partner says and is answered; from any thread, one request at a time.

    Args:
        make: Opens a session.
        files: Handed over with the first request of each session; those of `hand_over` are named under its settings,
            and handed over with the next request, and with the first one of each session that follows.
        idle_seconds: After so long without a request the session is closed, also if the host has left a round open; 0:
            never.

    A session that was closed, by `close` or for its age, or that is full, is followed by another one that knows what
    was said.
    """

    def __init__(self, make: Callable[[], Session], files: GivenFiles, *, idle_seconds: float = 0.0) -> None:
        self._make = make
        self._files = [files]
        self._files_asked = self._files_sent = 0  # how many went along with the newest request, and have arrived
        self._past: list[Round] = []
        self._session: Session | None = None
        self._rules: str | None = None
        self._known: list[tuple[bool, str]] = []
        self._asked: list[Line] = []
        self._asker = ""
        self._turn = threading.Lock()
        self._guard = threading.RLock()
        self._stopped: threading.Event | None = None
        self._end: weakref.finalize[Any, Any] = weakref.finalize(self, int)
        me = weakref.WeakMethod(self._close_if_idle)
        self._idle_seconds, self._idle = idle_seconds, IdleTimer(lambda: (idled := me()) and idled())
        weakref.finalize(self, self._idle.stop).atexit = False

    @property
    def session(self) -> Session | None:
        """The open session; None if there is none."""
        session = self._session
        return None if session is None or session.closed else session

    @property
    def rounds(self) -> list[Round]:
        """The rounds that have ended, also those of earlier sessions."""
        rounds = self._past if self._session is None else self._session.rounds
        return [round_ for round_ in rounds if round_.state is not RoundState.created]

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        return self._turn.locked()

    def open(self) -> Session:
        """Return the open session; open one if there is none."""
        with self._guard:
            return self.session or self._adopt_session(self._make())

    def hand_over(self, files: FilesWanted) -> None:
        """Keep files for the next request; they are copied read-only into the session's folder and described.

        Raises:
            ConfigError: there is no such file.
        """
        given = GivenFiles(files, self._files[0].read)
        for path in given.paths:
            if not path.is_file():
                raise ConfigError(f"{path}: {'a folder, not a file' if path.is_dir() else 'there is no such file'}")
        with self._guard:
            self._files.append(given)

    def take_unsent(self, other: PartnerConversation) -> bool:
        """Keep what another conversation has kept for its next request; return whether there is anything."""
        unsent = other._files[max(1, other._files_sent) :]
        self._files += unsent
        return bool(unsent)

    def ask(self, news: Sequence[Line], *, stopped: threading.Event, show: Handler | None = None) -> Reply:
        """Answer new lines.

        Args:
            news: What is asked; empty: it is the agent's turn again.
            stopped: Identifies this request for `stop`.
            show: Called with each event of this request.

        Raises:
            SessionClosedError: the request was stopped before its round began.
            Exception: what the model's client raised.
        """
        with self.turn(stopped) as session:
            return self._ask_session(session, news, stopped, show=show)

    def answer(self, chat: Sequence[Line], *, goes_on: bool, rules: str, stopped: threading.Event) -> Reply | None:
        """Answer what is new in a whole chat; words that did not pass through here are remembered as rounds.

        Args:
            chat: The chat so far, oldest first; its beginning may be missing.
            goes_on: Continue where nothing is new, as in a group that selects an agent twice in a row.
            rules: The house rules now; a change since the last request is told with this one.
            stopped: As in `ask`.

        Returns:
            None if nothing is new. After a request that failed or was stopped the same chat asks it again.

        Raises:
            Exception: as in `ask`.
        """
        with self.turn(stopped) as session:
            known = list(self._known)
            news = self.hear(session, chat)
            if not news and not goes_on:
                return None
            count = len(session.rounds)
            try:
                reply = self._ask_session(session, news, stopped, rules=rules)
            except BaseException:
                if len(session.rounds) == count:  # no round has begun, so the lines are still new
                    self._known = known
                raise
            if not stopped.is_set():  # else nobody hears it
                self.said(reply.text)
            return reply

    @contextlib.contextmanager
    def turn(self, stopped: threading.Event) -> Iterator[Session]:
        """Wait for earlier requests, and yield the open session for one request.

        Args:
            stopped: Identifies the request for `stop`.

        Raises:
            SessionClosedError: the request was stopped meanwhile.
        """
        while not self._turn.acquire(timeout=_POLL_SECONDS):
            if stopped.is_set():
                raise _never_begun()
        try:
            with self._guard:
                self._stopped = stopped
            self._idle.stop()
            yield self._open_session(stopped)
        finally:
            with self._guard:
                self._stopped = None
            if self.session is not None:
                self._idle.start(self._idle_seconds)
            self._turn.release()

    def hear(self, session: Session, chat: Sequence[Line]) -> list[Line]:
        """Return what nobody has answered yet, and mark it as known.

        What was said in the agent's name without it (an opening question, a person in its place) becomes a round of
        the session together with what it answers.

        Args:
            session: The session that answers.
            chat: All messages of the host's chat, oldest first.
        """
        rest = self._new_lines(chat)
        if not rest:  # the same chat again: its last request is asked again, unless the agent spoke last
            return [] if not chat or chat[-1].own else list(self._asked)
        last = max((index for index, line in enumerate(rest) if line.own), default=-1) + 1
        for line in rounds_of_lines(rest[:last], session.entry, self._words_of_lines):
            session.remember(line)
        self._note_known_lines([(line.own, line.text) for line in rest])
        self._asked = list(rest[last:])
        return self._asked

    def said(self, text: str) -> None:
        """Mark that the agent has answered; the host may word the answer otherwise."""
        self._note_known_lines([(True, text)])

    def compose_request(self, session: Session, request: str, rules: str) -> tuple[str, list[Path]]:
        """Return a request with what is to be noted at its head, and the files that go along.

        Args:
            session: The session that is asked.
            request: The words of the request.
            rules: The host's instructions for the agent; a change since the last request is noted.
        """
        with self._guard:
            given, self._files_asked = self._files[self._files_sent :], len(self._files)
        for message in given:
            if message.distrusted is not None:
                session.inputs.distrust(message.distrusted)
        resumed = not self._files_sent and any(round_.user_query != _SPOKE_FIRST for round_ in session.rounds)
        notes = [note for note in (BROUGHT.get(), _FRESH_KERNEL if resumed else "") if note]
        if self._rules is not None and self._rules != rules:
            notes.append(f"(House rules from now on: {rules or 'none'})")
        self._rules = rules
        return "\n\n".join([request, *notes]), [path for line in given for path in line.paths]

    def begun(self) -> None:
        """Mark that the round of the newest `compose_request` has begun, and its files have arrived."""
        self._files_sent = self._files_asked

    def stop(self, stopped: threading.Event) -> None:
        """Stop one request, whether it waits, begins or is under way; never blocks.

        Other requests and the session's variables stay.
        """
        stopped.set()
        threading.Thread(target=self._interrupt, args=(stopped,), daemon=True, name="interrupt").start()

    def interrupt(self) -> None:
        """Stop the request that is under way."""
        with self._guard:
            if self._stopped is not None:
                self._stopped.set()
            session = self._session
        if session is not None:
            session.interrupt()

    def close(self) -> None:
        """End the session and the request that is under way; what was said is kept."""
        self.interrupt()
        self._end_session()

    def close_unless_busy(self) -> None:
        """End the session, as `close`, unless a request is under way; one that begins meanwhile gets a new session."""
        if self._turn.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._turn.release()

    def replace_history(self, rounds: Sequence[Round]) -> None:
        """End the session and the request that is under way, and know these rounds in place of what was said."""
        self.interrupt()
        with self._guard:
            session, self._session = self._session, None
            self._end.detach()
            self._past, self._files, self._known, self._asked = list(rounds), self._files[:1], [], []
            self._asker = ""
        if session is not None:
            session.close()

    def _close_if_idle(self) -> None:
        """Close after a long silence, unless a request has begun meanwhile."""
        if self._idle.is_mine(threading.current_thread()):
            self.close_unless_busy()

    def _interrupt(self, stopped: threading.Event) -> None:
        with self._guard:
            session = self._session if self._stopped is stopped else None
        if session is not None:
            session.interrupt()

    def _open_session(self, stopped: threading.Event) -> Session:
        """Return the open session, or open one; not for a request that was stopped meanwhile."""
        if stopped.is_set():
            raise _never_begun()
        if (session := self.session) is not None:
            if not session.full or (session.rounds and session.rounds[-1].state is RoundState.created):
                return session
            self._end_session()
        session = self._make()  # without the guard: it takes a while, and may be stopped
        with self._guard:
            if not stopped.is_set():
                return self._adopt_session(session)
        session.close()
        raise _never_begun()

    def _end_session(self) -> None:
        session = self._session
        self._idle.stop()
        if session is not None:
            session.close()
            with self._guard:
                if self._session is session:
                    self._end.detach()
                    self._past, self._session = self.rounds, None

    def _adopt_session(self, session: Session) -> Session:
        for round_ in self.rounds:
            session.remember(round_)
        self._past, self._session, self._files_sent, self._rules = [], session, 0, None
        self._end.detach()
        self._end = weakref.finalize(self, close_soon, session)
        self._end.atexit = False
        _ALIVE.add(self)
        return session

    def _ask_session(
        self,
        session: Session,
        news: Sequence[Line],
        stopped: threading.Event,
        *,
        rules: str = "",
        show: Handler | None = None,
    ) -> Reply:
        def watch(event: Event) -> None:
            if isinstance(event, RoundOpened):
                self.begun()
                if stopped.is_set():  # the session forgets an interrupt that comes before its round
                    session.interrupt()
            if show is not None:
                show(event)

        request, files = self.compose_request(session, self._words_of_lines(news) if news else CONTINUE, rules)
        session.subscribe(watch)
        try:
            answer = session.ask(request, files, images=[url for line in news for url in line.images])
            return Reply(answer.markdown(), answer.round, answer.stop, session.round_usage, answer)
        except RoundError as error:
            return Reply(error.in_words(), error.round, "Failed", session.round_usage)
        finally:
            session.unsubscribe(watch)

    def _words_of_lines(self, lines: Sequence[Line]) -> str:
        """Return the words of lines; the first who speaks in this conversation is its user, others stand by name."""
        self._asker = self._asker or next((line.name for line in lines if line.name), "")
        return words_of(lines, self._asker)

    def _note_known_lines(self, lines: Sequence[tuple[bool, str]]) -> None:
        self._known = [*self._known, *lines][-_MAX_KNOWN:]

    def _new_lines(self, chat: Sequence[Line]) -> Sequence[Line]:
        """Return the part of a chat after what is known.

        The known lines are looked for at the chat's beginning, which may be missing: as many of them as fit. The host
        may have worded answers otherwise. Where none fits, or what is left holds an answer of the agent's, because the
        host has rewritten the chat, all counts as known up to the agent's last words, and what was heard word for word.
        """
        earlier = set(self._known)
        answered = bool(self._known) and self._known[-1][0]
        for known in (self._known, self._known[:-1] if answered else []):  # the host may have dropped the last answer
            for count in range(min(len(chat), len(known)), 0, -1):
                if _starts_with_known(known[-count:], chat, earlier):
                    return chat[count:]
        if not self._known:
            return chat
        rest = chat[max((index for index, line in enumerate(chat) if line.own), default=-1) + 1 :]
        return [*(line for line in rest[:-1] if (False, line.text) not in earlier), *rest[-1:]]


def _starts_with_known(
    known: Sequence[tuple[bool, str]], chat: Sequence[Line], said: Collection[tuple[bool, str]]
) -> bool:
    """Return whether a chat begins with these lines, a request among them, and goes on with no answer that was said."""
    pairs = zip(known, chat, strict=False)
    alike = all(own == line.own and (own or text == line.text) for (own, text), line in pairs)
    return (
        alike
        and not all(own for own, _ in known)
        and not any(line.own and (True, line.text) in said for line in chat[len(known) :])
    )


def words_of(lines: Sequence[Line], asker: str) -> str:
    """Return the words of lines, each with the name in front if not all are of one who counts as the user.

    Args:
        lines: Oldest first.
        asker: Who that is.
    """
    if all(line.name in ("", asker) for line in lines):
        return "\n\n".join(line.text for line in lines)
    return "\n\n".join(f"{line.name}: {line.text}" if line.name else line.text for line in lines)


def rounds_of_lines(lines: Sequence[Line], entry: str, words: Callable[[Sequence[Line]], str]) -> list[Round]:
    """Return finished rounds for lines that end with words of the agent: each request with its answer.

    Args:
        lines: Oldest first.
        entry: The role that remembers the answers as its own.
        words: Returns those of the lines of a request.
    """
    rounds: list[Round] = []
    asked: list[Line] = []
    said: list[Line] = []
    for index, line in enumerate(lines):
        (said if line.own else asked).append(line)
        if line.own and (index + 1 == len(lines) or not lines[index + 1].own):
            request = words(asked) or _SPOKE_FIRST
            posts = [Post(USER, entry, request), Post(entry, USER, "\n\n".join(each.text for each in said))]
            rounds.append(Round(request, posts=posts, state=RoundState.finished))
            asked, said = [], []
    return rounds


def _never_begun() -> SessionClosedError:
    return SessionClosedError("the request was stopped before it had begun")


def close_soon(closable: Session | PartnerConversation) -> None:
    """Close what nobody can ask any more; on a thread, since this one may hold any lock, or run a loop."""
    threading.Thread(target=closable.close, name="close").start()


_ALIVE: weakref.WeakSet[PartnerConversation] = weakref.WeakSet()


def close_all(conversations: Sequence[PartnerConversation], *, unless_busy: bool = False) -> None:
    """Close conversations, each even if another one's closing fails.

    Args:
        conversations: Which.
        unless_busy: Leave out those in which a request is under way then.
    """
    with contextlib.ExitStack() as stack:
        for conversation in conversations:
            stack.callback(conversation.close_unless_busy if unless_busy else conversation.close)


atexit.register(lambda: close_all(list(_ALIVE)))
