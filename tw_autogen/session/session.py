"""`Session`: rounds between a user and roles, with a folder, a journal, and an end to everything."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any

from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post, Round, RoundState
from tw_autogen.conversation.post import new_id
from tw_autogen.errors import (
    ConfigError,
    RoundError,
    RoundInterrupted,
    SessionBusyError,
    SessionClosedError,
    TwAutogenError,
    nearest,
)
from tw_autogen.events import (
    BoardWritten,
    Event,
    Handler,
    PostClosed,
    PostOpened,
    RoundClosed,
    RoundOpened,
    SessionClosed,
    SessionOpened,
)
from tw_autogen.kernel import Variable
from tw_autogen.model import ChatModel, Usage
from tw_autogen.role import CodeRunner, Interruptible, Placed, Role, Turn, report_call
from tw_autogen.session.answer import USER, Answer
from tw_autogen.session.idle import IdleTimer
from tw_autogen.session.inputs import checked_inputs, copy_in
from tw_autogen.session.journal import Journal
from tw_autogen.session.learning import Learner, keep_example
from tw_autogen.session.limits import refuse_loop, refuse_more
from tw_autogen.session.profile import profile_request
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.spending import Seconds, Spending

PLANNER = "Planner"
_LEARNER = "Learner"
_AT_WORK: ContextVar[frozenset[str]] = ContextVar("at_work", default=frozenset())
"""The sessions of which a step is being taken; also in threads that work for it."""


class Session:
    """Rounds between a user and roles.

    Args:
        roles: Who answers. They live in this session, and are closed with it.
        folder: The session's own folder for journal and files; made if it isn't there. None: a temporary one, which is
            removed at the end. A CodeInterpreter that was given a live kernel keeps working in that kernel's folder.
        settings: See `SessionSettings`.
        handlers: Called with each event.
        owned: Closed with the session, last one first.
        session_id: Unique name; made if None.
        learner: Who words lessons from this session, and where they are kept.
        entry: Name of the role that gets the user's requests; None: the one named `Planner`, else the first.

    Raises:
        ConfigError: there is no role, or two have the same name.

    One thread at a time; `interrupt()` may come from any.

    Example:
        `with open_session() as session: print(session.ask("what is 6 * 7?").text)`
    """

    def __init__(
        self,
        roles: Sequence[Role],
        *,
        folder: Path | None = None,
        settings: SessionSettings | None = None,
        handlers: Sequence[Handler] = (),
        owned: Sequence[Any] = (),
        session_id: str | None = None,
        entry: str | None = None,
        learner: Learner | None = None,
    ) -> None:
        names = [role.name for role in roles]
        if not roles or len(set(names)) < len(names) or USER in names:
            raise ConfigError(f"a session needs roles with names of their own, none of them {USER!r}; got {names}")
        self.id = session_id or new_id("session")
        self.rounds: list[Round] = []
        self.closed = False
        self.variables: dict[str, Any] = {}
        self._settings = settings or SessionSettings()
        self._roles = {role.name: role for role in roles}
        self.entry = entry or (PLANNER if PLANNER in names else names[0])
        self._owned = list(owned)
        self._learner = learner or Learner()
        self._lock = threading.RLock()
        self._cancelled = threading.Event()
        self._spending = Spending(self._settings)
        self._spent, self._took = Usage(), Seconds()
        self._opened_at = time.monotonic()
        self._idle = IdleTimer(self._idled)
        self._closing = ""
        self._temporary = None if folder else Path(tempfile.mkdtemp(prefix="tw-session-"))
        root = (folder or self._temporary or Path()).resolve()
        placed = [role for role in roles if isinstance(role, Placed)]
        folders = [role.folder for role in placed if role.folder]
        self.folder = folders[0] if folders else root / "files"
        for one in (root, self.folder):
            one.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(root / "events.jsonl", [self._count, *handlers])
        plugins = [name for role in placed for name in role.plugin_names]
        where = placed[0].where if placed else "no kernel"
        self.emit(SessionOpened(self.id, str(self.folder), names, plugins, where))
        self._idle.start(self._settings.idle_seconds)

    @property
    def journal(self) -> Path:
        """The file `events.jsonl`."""
        return self._journal.path

    @property
    def roles(self) -> tuple[Role, ...]:
        """Who answers, in the order given."""
        return tuple(self._roles.values())

    @property
    def usage(self) -> Usage:
        """What all rounds have cost, the open one included."""
        return self._spent + self._spending.usage

    @property
    def round_usage(self) -> Usage:
        """What the newest round has cost until now."""
        return self._spending.usage

    @property
    def seconds(self) -> Seconds:
        """Where the time of all rounds went that are closed."""
        return self._took

    def emit(self, event: Event) -> None:
        """Write an event to the journal and hand it to the handlers; never raises because of a handler."""
        self._journal.write(event)

    def subscribe(self, handler: Handler) -> None:
        """Hand every event from now on to one more handler."""
        self._journal.subscribe(handler)

    def unsubscribe(self, handler: Handler) -> None:
        """Leave a handler in peace."""
        self._journal.unsubscribe(handler)

    def ask(
        self,
        text: str,
        files: Sequence[Path | str] = (),
        variables: Mapping[str, Any] | None = None,
        *,
        images: Sequence[str] = (),
    ) -> Answer:
        """Answer a request: a thin driver over `open_round`, `next_role`, `step` and `close_round`.

        Args:
            text: The user's words.
            files: Copied read-only into the session's folder, and described to the Planner.
            variables: JSON values and DataFrames by name: variables for the code, session variables for plugins.
            images: URLs (`data:` or `https:`) that the Planner's model is shown.

        Raises:
            RoundError: the round ended without an answer; `error.round` holds what was said.
            ConfigError: a file doesn't exist, or a variable's name is no identifier; nothing has run yet.
            SessionBusyError: called from inside a round of this session.
            SessionClosedError: the session is closed.
        """
        self._refuse_inside()
        with self._lock:
            self.open_round(text, files, variables, images=images)
            with self._closing_what_fails():
                while (role := self.next_role()) is not None:
                    self.step(role)
            return self.close_round()

    def run_code(self, code: str) -> Answer:
        """Run code of the user's own beside what the model has written: the same check, kernel, variables and journal.

        Args:
            code: Python. It is a round without a model; what it printed, or why it failed, is the answer, and the
                status is the attachment `execution_status` of the round's last post.

        Raises:
            ConfigError: no role here runs code.
            RoundError, SessionBusyError, SessionClosedError: as in `ask`.
        """
        runner = self._runner()
        if runner is None:
            raise ConfigError(f"{self.id}: no role of this session runs code; it has {', '.join(self._roles)}")
        self._refuse_inside()
        with self._lock:
            words = f"This code was run as it stands:\n```python\n{code}\n```"
            self.open_round(words, send_to=runner.name)
            with self._closing_what_fails():
                self._step(runner, lambda turn: runner.run_code(code, turn=turn, send_to=USER))
            return self.close_round()

    def code_variables(self) -> tuple[Variable, ...]:
        """Give the variables that code of this session has made and that exist now."""
        runner = self._runner()
        return runner.variables() if runner else ()

    def open_round(
        self,
        text: str,
        files: Sequence[Path | str] = (),
        variables: Mapping[str, Any] | None = None,
        *,
        images: Sequence[str] = (),
        send_to: str | None = None,
    ) -> Round:
        """Begin a round with the user's post; arguments and errors as in `ask`.

        Args:
            text: The user's words.
            files: As in `ask`.
            variables: As in `ask`.
            images: As in `ask`.
            send_to: The role that the user addresses; None: whoever gets the user's requests.
        """
        self._refuse_inside()
        with self._lock:
            self._refuse_closed()
            self._refuse_second()
            sources = checked_inputs(files, variables or {})
            self._idle.stop()
            self._cancelled.clear()
            self._spent += self._spending.usage
            self._spending, self._opened_at = Spending(self._settings), time.monotonic()
            copies = [copy_in(path, self.folder) for path in sources]
            self.variables.update(variables or {})
            self.rounds.append(Round(text))
            self.emit(RoundOpened(self.rounds[-1].id, text, [path.name for path in copies]))
            profile = profile_request(sources, variables or {}, self._settings.profile_chars)
            parts = (text, profile, self._users_folder())
            self.post(USER, "\n\n".join(part for part in parts if part), send_to=send_to, images=images)
            return self.rounds[-1]

    def post(self, send_from: str, text: str, *, send_to: str | None = None, images: Sequence[str] = ()) -> Post:
        """Add a post that no role of this session wrote: the user's, or a foreign agent's.

        Args:
            send_from: `User`, or the agent's name.
            text: The words.
            send_to: Who is to read it; None: whoever gets the user's requests.
            images: URLs of images that go along.
        """
        seen = tuple(Attachment(AttachmentType.image_url, url) for url in images)
        return self._add(Post(send_from, send_to or self.entry, text, seen), "")

    def remember(self, past: Round) -> None:
        """Take in a round that was lived elsewhere: in a chat that is resumed, or in an earlier session.

        Args:
            past: A round that has ended; roles see it as any other of this session. What its code left in a kernel is
                not there.

        Raises:
            SessionBusyError: a round is open.
        """
        with self._lock:
            self._refuse_closed()
            self._refuse_second()
            self.rounds.append(past)
            self.emit(RoundOpened(past.id, past.user_query, []))
            for post in past.posts:
                self.emit(PostClosed(past.id, "", post))
            answer = Answer.of(past, Usage())
            self.emit(RoundClosed(past.id, past.state.value, answer.stop, answer.text, past.error, 0.0, {}))

    def save_example(self, path: Path | str, role: str = PLANNER) -> Path:
        """Write what a role said and read in this session as an example for later prompts; cleaned, and readable.

        Args:
            path: The YAML file to write, for instance in the folder that `recall.planner_examples` names.
            role: `Planner` or `CodeInterpreter`.

        Raises:
            ConfigError: no finished round has a post of this role, or the file is there already.
        """
        return keep_example(self.rounds, path, role, private=[str(self.folder), str(self.folder.parent)])

    def save_experience(self, folder: Path | str | None = None, *, model: ChatModel | None = None) -> Path:
        """Have a model word what this session teaches, of what went well and what went wrong, and write it down.

        Args:
            folder: Where to; None: the folder that `recall.experience` names.
            model: Who words it; None: the session's.

        Returns:
            The file, which a person can read and mend; later requests that it fits are given its lesson.

        Raises:
            ConfigError: there is no round yet, no folder, or no model.
            ModelError: the model could not be asked.
        """
        turn = Turn(self.rounds[-1] if self.rounds else Round(""), self.folder, emit=self.emit)
        return self._learner.learn(
            self.rounds,
            folder,
            model,
            private=[str(self.folder), str(self.folder.parent)],
            on_call=lambda reply, took: report_call(turn, _LEARNER, reply, took),
        )

    def next_role(self) -> Role | None:
        """Give the role that the newest post is for; None if it is for the user.

        Raises:
            RoundError: nobody of that name is here.
        """
        receiver = self._open_one().posts[-1].send_to
        if receiver == USER:
            return None
        if receiver not in self._roles:
            raise RoundError(
                f"{self.rounds[-1].id}: {self.rounds[-1].posts[-1].send_from} wrote to {receiver!r}, and nobody here "
                f"is called that{nearest(receiver, [*self._roles, USER])}",
                round=self.rounds[-1],
            )
        return self._roles[receiver]

    def step(self, role: Role) -> Post:
        """Have one role answer.

        Raises:
            RoundTooLong, RoundTimedOut, RoundInterrupted: a limit was reached; what was said until then stays.
            Exception: whatever the role raised.
        """
        return self._step(role, lambda turn: role.reply(Memory.of(role.name, self.rounds, self.id), turn=turn))

    def _step(self, role: Role, answer: Callable[[Turn], Post]) -> Post:
        with self._lock:
            here = self._open_one()
            self._refuse_more(here)
            post_id = new_id("post")
            self.emit(PostOpened(here.id, post_id, role.name))
            turn = Turn(
                here,
                self.folder,
                post_id,
                self.emit,
                self._opened_at + self._settings.round_seconds,
                self._cancelled,
                self.variables,
                lambda: self._spending.refuse_more(here),
            )
            board = here.read_board()
            token = _AT_WORK.set(_AT_WORK.get() | {self.id})
            try:
                post = answer(turn)
            except TwAutogenError as error:
                self._refuse_more(
                    here, because=error
                )  # an abandoned call is a consequence of the limit, not the reason
                raise
            finally:
                _AT_WORK.reset(token)
            for name, bulletin in here.read_board().items():
                if board.get(name) != bulletin:
                    self.emit(BoardWritten(here.id, name, bulletin))
            if role.name == self.entry:
                refuse_loop(here, post)
            return self._add(post, post_id)

    def close_round(self, state: RoundState = RoundState.finished, *, reason: str = "") -> Answer:
        """End the round, and give its answer.

        Args:
            state: finished, or failed with a reason.
            reason: Why it failed; in words for the Planner.
        """
        with self._lock:
            here = self._open_one()
            here.state, here.error = state, reason
            took = self._spending.seconds(time.monotonic() - self._opened_at)
            self._took += took
            answer = Answer.of(here, self._spending.usage, took)
            spent = answer.usage.to_dict()
            self.emit(
                RoundClosed(
                    *(here.id, state.value, answer.stop, answer.text, reason),
                    *(took.total, spent, took.model, took.kernel),
                )
            )
            self._idle.start(self._settings.idle_seconds)
            return answer

    def interrupt(self) -> None:
        """Stop the round that is running, from any thread; session, kernel and variables stay."""
        self._cancelled.set()
        for role in self._roles.values():
            if isinstance(role, Interruptible):
                role.interrupt()

    def close(self) -> None:
        """End the session: close its roles and what it owns; a second time nothing happens."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._idle.stop()
            with contextlib.ExitStack() as stack:  # each is closed even if another one's closing fails
                if self._temporary:
                    stack.callback(shutil.rmtree, self._temporary, ignore_errors=True)
                stack.callback(self._journal.close)
                stack.callback(self.emit, SessionClosed(self.id))
                for one in [*self._owned, *self._roles.values()]:
                    stack.callback(one.close)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _add(self, post: Post, post_id: str) -> Post:
        here = self._open_one()
        here.posts.append(post)
        self.emit(PostClosed(here.id, post_id, post))
        return post

    def _users_folder(self) -> str:
        folder = self._settings.user_folder
        told = (
            f"The User's own folder is {folder}. Code can read it, but not write there. Names of files in this request"
        )
        return f"{told} that are not in the working folder are relative to it." if folder else ""

    def _runner(self) -> Any:
        """Give the role that runs code, which is a `CodeRunner` too; None if there is none."""
        return next((role for role in self._roles.values() if isinstance(role, CodeRunner)), None)

    @contextlib.contextmanager
    def _closing_what_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.close_round(RoundState.failed, reason=_reason(error))
            if isinstance(error, TwAutogenError) and not isinstance(error, RoundError):
                raise RoundError(f"{self.rounds[-1].id}: {error}", round=self.rounds[-1]) from error
            raise

    def _open_one(self) -> Round:
        self._refuse_closed()
        if not self.rounds or self.rounds[-1].state is not RoundState.created:
            raise SessionBusyError(f"{self.id}: no round is open; begin one with open_round")
        return self.rounds[-1]

    def _refuse_inside(self) -> None:
        """Refuse what would wait for ever: a request from the work on a request, on whatever thread it is done."""
        if self.id in _AT_WORK.get():
            raise SessionBusyError(f"{self.id}: asked from inside its own round; a session answers one at a time")

    def _refuse_second(self) -> None:
        if self.rounds and self.rounds[-1].state is RoundState.created:
            raise SessionBusyError(f"{self.id}: a round is open; close it before the next one begins")

    def _refuse_closed(self) -> None:
        if self.closed:
            raise SessionClosedError(f"{self.id} is closed{self._closing}; open a new session")

    def _refuse_more(self, here: Round, because: BaseException | None = None) -> None:
        stopped, seconds = self._cancelled.is_set(), time.monotonic() - self._opened_at
        refuse_more(here, self._settings, stopped=stopped, seconds=seconds, because=because)

    def _count(self, event: Event) -> None:
        self._spending(event)

    def _idled(self) -> None:
        """Close after a long silence, unless a round has begun meanwhile."""
        with self._lock:
            if self._idle.is_mine(threading.current_thread()):
                self._closing = f" ({self._settings.idle_seconds:g} seconds without a request)"
                self.close()


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt | RoundInterrupted):
        return "it was stopped by the user"
    return str(error) or type(error).__name__
