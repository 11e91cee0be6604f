"""`Session`: rounds between a user and roles, with a folder, a journal, and an end to everything."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.closing import Closing, IdleTimer
from tw_autogen.conversation import Attachment, AttachmentType, Definitions, Memory, Post, Round, RoundState, new_id
from tw_autogen.deadline import until_given_up
from tw_autogen.errors import (
    ConfigError,
    JournalError,
    RoundError,
    RoundInterrupted,
    SessionBusyError,
    SessionClosedError,
    TwAutogenError,
)
from tw_autogen.events import (
    BoardWritten,
    Event,
    FileUnreadable,
    Handler,
    PostOpened,
    RoundClosed,
    RoundOpened,
    SessionClosed,
    SessionOpened,
    post_events,
)
from tw_autogen.kernel import Artifact, Variable
from tw_autogen.model import ChatModel, ModelRequest, Usage
from tw_autogen.named_folders import named_folder
from tw_autogen.planner import Planner
from tw_autogen.private_files import create_held_folder, make_private_folder
from tw_autogen.recall import Learner, keep_example
from tw_autogen.role import Role, Turn, checked_post, failed_post, report_model_call
from tw_autogen.safe_folder import remove_folder, temporary_folder
from tw_autogen.session.answer import USER, Answer, ArtifactIndex, Seconds
from tw_autogen.session.answer_files import AnswerFiles
from tw_autogen.session.budget import CURRENT_BUDGET, SessionBudget
from tw_autogen.session.earlier_session import CUT_OFF, EarlierSession
from tw_autogen.session.event_journal import Journal
from tw_autogen.session.markdown_text import fenced
from tw_autogen.session.notebook_access import NotebookAccess
from tw_autogen.session.notebook_progress import shown_progress
from tw_autogen.session.path_grants import Grants
from tw_autogen.session.request_inputs import FilesWanted, SessionInputs
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.team import Team, allowed_receivers, next_speaker
from tw_autogen.session.workspace import CODE_RUN
from tw_autogen.session_layout import FILES, JOURNAL

_LEARNER = "Learner"
_STOPPED = "it was stopped by the user"
_ACTIVE_SESSIONS: ContextVar[frozenset[str]] = ContextVar("active_sessions", default=frozenset())
"""The sessions of which a step is being taken; also in threads that work for it."""


class Session(NotebookAccess, Closing):
    """Rounds between a user and roles.

    Args:
        roles: Who answers. They live in this session, and are closed with it.
        folder: The session's own folder for journal and files; made if it isn't there. None: a temporary one, which is
            removed at the end. A CodeInterpreter that was given a live kernel keeps working in that kernel's folder.
        settings: See `SessionSettings`.
        handlers: Called with each event.
        owned: Closed with the session, last one first.
        session_id: Unique name; made if None.
        grants: What code may read and write besides; None: nothing.
        learner: Who words lessons from this session, and where they are kept.
        entry: Name of the role that gets the user's requests; None: the one named `Planner`, else the first.
        distrusted: A folder that somebody else may have made, held open: a given file there must be no link out of it.
        earlier: The session that is resumed, in its folder; None: a new one.

    Raises:
        ConfigError: there is no role, two have the same name, or `folder` is reached over a link of code's.
        SessionBusyError: a process has the earlier session open.

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
        grants: Grants | None = None,
        distrusted: Path | None = None,
        earlier: EarlierSession | None = None,
    ) -> None:
        self.earlier = earlier
        self.id = session_id or new_id("session")
        self.closed = False
        self.grants = grants or Grants()
        self.grants.take_new_hooks()
        self.landing: AnswerFiles | None = None
        """Who copies files of answers to where the user is; None: nobody, as in services and agents."""
        self.rounds: list[Round] = list(earlier.rounds) if earlier else []
        self.variables: dict[str, Any] = {}
        self.missing: tuple[str, ...] = ()
        """Names in the newest request for which there was no file when it came."""
        self._settings = settings or SessionSettings()
        self._team = Team(roles, entry)
        self._owned = list(owned)
        self._learner = learner or Learner()
        self._budget = SessionBudget(self._settings)
        self._budget.count_earlier(self.rounds)
        self._cut_off = self.rounds[-1] if self._is_busy else None
        self._idle = IdleTimer(self._close_idle)
        self._lock = threading.RLock()
        self._cancelled, self._awaited = threading.Event(), None
        self._stop_reason = self._why_closed = ""
        self._set: dict[str, Any] = {}
        self._held_by: dict[str, list[object]] = {}
        self._made = ArtifactIndex(earlier.events if earlier else ())
        self._temporary = None if folder else temporary_folder("tw-session-")
        root = named_folder(folder or self._temporary or Path())
        self._kept = create_held_folder(root)  # code of another session may be allowed to write above it
        self.folder = self._team.folder or root / FILES
        make_private_folder(self.folder)
        self.inputs = SessionInputs(
            *(self.folder, root, self._settings, self.grants, self._team),
            distrusted=distrusted,
            on_problem=lambda problem: self.emit(FileUnreadable(self.rounds[-1].id, problem)),
            earlier=self.rounds,
        )
        self._journal = Journal(
            root / JOURNAL, [self._budget, self._made, self.inputs.hear, *handlers], goes_on=earlier is not None
        )
        team = self._team
        self.emit(
            SessionOpened(
                self.id, str(self.folder), team.names, team.plugin_names, self.where, plugin_files=team.plugin_files
            )
        )
        self._idle.start(self._settings.idle_seconds)

    def ask(
        self,
        text: str,
        files: FilesWanted = (),
        variables: Mapping[str, Any] | None = None,
        *,
        images: Sequence[str] = (),
    ) -> Answer:
        """Answer a request: a thin driver over `open_round`, `next_role`, `step` and `close_round`.

        Args:
            text: The user's words.
            files: Paths, or a single one; copied read-only into the session's folder, and described to the Planner.
                Files over 50 MB stay where they are if code can read them there, and are named by their full path.
                Data, pictures and documents that the words name and that lie in `session.user_folder` are handled in
                the same way, but code may write new ones under their names.
            variables: JSON values, tables, numpy arrays, bytes, sets, Decimal and Path by name: variables for the code,
                session variables for plugins. Prompts describe them, without values whose names are those of secrets.
            images: URLs (`data:` or `https:`) that the Planner's model is shown.

        Raises:
            RoundError: the round ended without an answer; `error.round` holds what was said.
            JournalError: the round could not be opened or closed: the disk is full, or the journal (see `full`).
            ConfigError: the request has over a million characters, a file doesn't exist, or a variable's name is no
                identifier or one of Python's own; nothing has run yet.
            SessionBusyError: called from inside a round of this session.
            SessionClosedError: the session is closed.
        """
        wanted = self._settings.notebook_progress
        with self._alone(), shown_progress(self.subscribe, self.unsubscribe, wanted=wanted):
            self.open_round(text, files, variables, images=images)
            return self._take_steps()

    @property
    def cut_off(self) -> Round | None:
        """The request that an earlier process left in the middle; None: there is none, or it was closed."""
        return self._cut_off

    def go_on(self) -> Answer:
        """Answer the request that was cut off, from the post that was the last one, with its plan and board.

        Raises:
            ConfigError: none was cut off.
            RoundError, SessionBusyError, SessionClosedError: as in `ask`.
        """
        with self._alone():
            here, self._cut_off = self._cut_off, None
            if here is None:
                raise ConfigError(f"{self.id}: no request was cut off; ask one")
            self._begin_request()
            self._budget.open_round(here, goes_on=True)
            return self._take_steps()

    def _take_steps(self) -> Answer:
        with self._closing_what_fails():
            while (role := self.next_role()) is not None:
                self.step(role)
        return self.close_round()

    def _begin_request(self) -> None:
        self._idle.stop()
        self._cancelled = self._awaited or threading.Event()  # a question that nobody waits for any more keeps its own
        self._stop_reason = ""
        if self.landing is not None:
            self.landing.begin_request()

    def run_code(self, code: str, files: FilesWanted = ()) -> Answer:
        """Run code of the user's own beside what the model has written: the same check, kernel, variables and journal.

        Args:
            code: Python. It is a round without a model; what it printed, or why it failed, is the answer, and the
                status is the attachment `execution_status` of the round's last post.
            files: As in `ask`.

        Raises:
            ConfigError: no role here runs code.
            RoundError, SessionBusyError, SessionClosedError: as in `ask`.
        """
        runner = self._team.runner
        if runner is None:
            raise ConfigError(f"{self.id}: no role of this session runs code; it has {', '.join(self._team.names)}")
        if not isinstance(code, str):
            raise ConfigError(f"run_code: expected code as str, got {type(code).__name__}")
        with self._alone():
            words = f"{CODE_RUN}\n{fenced(code, 'python')}"
            self.open_round(words, files, send_to=runner.name)
            with self._closing_what_fails():
                self._step(runner, lambda turn: runner.run_code(code, turn=turn, send_to=USER))
            return self.close_round()

    def code_variables(self) -> tuple[Variable, ...]:
        """Return the variables that code of this session has made and that exist now."""
        runner = self._team.runner
        return runner.variables() if runner else ()

    def save_example(self, path: Path | str, role: str = Planner.name) -> Path:
        """Write what a role said and read in this session as an example for later prompts; cleaned, and readable.

        Args:
            path: The YAML file to write, for instance in the folder that `recall.planner_examples` names.
            role: `Planner` or `CodeInterpreter`.

        Raises:
            ConfigError: no finished round has a post of this role, or the file is there already.
        """
        return keep_example(self.rounds, path, role, private=[str(self.folder), str(self.folder.parent)])

    def save_experience(self, folder: Path | str | None = None, *, model: ChatModel | None = None) -> Path:
        """Write down a lesson of this session, of what went well and what went wrong, worded by a model.

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
            request=ModelRequest(on_call=functools.partial(report_model_call, turn, _LEARNER)),
        )

    def open_round(
        self,
        text: str,
        files: FilesWanted = (),
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
        with self._alone():
            self._refuse_second()
            variables = {} if variables is None else variables
            given = self.inputs.checked_files(text, files, variables, images)
            self._begin_request()
            here = Round(text)
            with contextlib.ExitStack() as undo:  # files can't be copied, or the journal not be written
                undo.callback(self._idle.start, self._settings.idle_seconds)
                brought = self.inputs.place(text, given, named=not send_to)
                self._close_cut_off()
                self.rounds.append(here)
                undo.callback(self.rounds.pop)
                self._budget.open_round(here)
                self.emit(RoundOpened(here.id, text, [path.name for path in brought.placed]))
                undo.pop_all()
            self.missing = brought.missing
            self.variables.update(variables)
            self._held_by.update({name: [] for name in variables})
            with self._closing_what_fails(), self.inputs.telling():
                profile = self.inputs.describe(text, brought, {**self._set, **variables})
                note = self.inputs.folder_note("" if send_to else text, len(profile), self.landing)
                parts = (text, profile, brought.note, note)
                self.post(USER, "\n\n".join(part for part in parts if part), send_to=send_to, images=images)
            self._set.clear()
            if words := self.inputs.board(profile if brought.placed else "", self.rounds):
                here.write_board(USER, words)
                self.emit(BoardWritten(here.id, USER, words))
            return here

    def post(self, send_from: str, text: str, *, send_to: str | None = None, images: Sequence[str] = ()) -> Post:
        """Add a post that no role of this session wrote: the user's, or a foreign agent's.

        Args:
            send_from: `User`, or the agent's name.
            text: The words.
            send_to: Who is to read it; None: whoever gets the user's requests.
            images: URLs of images that go along.
        """
        seen = tuple(Attachment(AttachmentType.image_url, url) for url in images)
        return self._add_post(Post(send_from, send_to or self.entry, text, seen), "")

    def remember(self, past: Round) -> None:
        """Take in a round that was lived elsewhere: in a chat that is resumed, or in an earlier session.

        Args:
            past: A round; roles see it as any other of this session. What its code left in a kernel is not there. One
                that was cut off before its end is taken in as failed. What it has spent, if that is known, counts
                towards the limits of this session, but not in `usage`.

        Raises:
            ConfigError: it is no round.
            SessionBusyError: a round is open.
        """
        if not isinstance(past, Round):
            raise ConfigError(f"remember: expected a Round, got {type(past).__name__}")
        with self._lock:
            self._refuse_closed()
            self._refuse_second()
            self._close_cut_off()
            if past.state is RoundState.created:
                past = replace(past, state=RoundState.failed, error=past.error or CUT_OFF)
            self.rounds.append(past)
            self._budget.count_earlier([past])
            self.emit(RoundOpened(past.id, past.user_query, []))
            for number, post in enumerate(past.posts):
                for event in post_events(self.rounds, post, past.posts[:number]):
                    self.emit(event)
            for bulletin in past.read_board().items():
                self.emit(BoardWritten(past.id, *bulletin))
            answer = Answer.of(past, Usage())
            ended = past.id, past.state.value, answer.stop, answer.text, past.error
            self.emit(RoundClosed(*ended, 0.0, spent=past.spent))

    def next_role(self) -> Role | None:
        """Return the role that the newest post is for; None if it is for the user.

        Raises:
            RoundError: nobody of that name is here.
            ConfigError: no round is open; so in `step`, `post` and `close_round`.
        """
        return next_speaker(self._team, self._open_one())

    def step(self, role: Role) -> Post:
        """Ask one role for its post.

        Raises:
            RoundTooLong, RoundTimedOut, RoundInterrupted: a limit was reached; what was said until then stays.
            RoleError: a role of one's own raised something (the `__cause__`), or gave no post. Where a Planner asked
                it, this is its post instead.
            Exception: what the client of a model raised.
        """
        return self._step(role, lambda turn: role.reply(Memory.of(role.name, self.rounds, self.id), turn=turn))

    def close_round(self, state: RoundState = RoundState.finished, *, reason: str = "") -> Answer:
        """End the round, and give its answer; one that was cut off is ended too, and is not resumed.

        Args:
            state: finished, or failed with a reason.
            reason: Why it failed; in words for the Planner.
        """
        with self._lock:
            here = self._open_one()
            if self._cut_off is not None:
                self._budget.open_round(here, goes_on=True)
                self._cut_off = None
            here.state, here.error, here.spent = state, reason, self._budget.round.spent.to_dict()
            self._idle.start(self._settings.idle_seconds)
            took = self._budget.close_round()
            answer = Answer.of(here, self.round_usage, took, earlier=self.rounds[:-1])
            usage = answer.usage.to_dict()
            self.emit(
                RoundClosed(
                    *(here.id, state.value, answer.stop, answer.text, reason),
                    *(took.total, usage, took.model, took.kernel, here.spent),
                    unanswered=self._budget.round.unanswered,
                )
            )
            self.grants.emit_new_hooks(here.id, self.emit)
            return answer

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Files made in the session's folder in all rounds, in order; those of one that failed, if they are there."""
        return self._made.below(self.folder, self.rounds)

    @property
    def definitions(self) -> Definitions:
        """What the user has defined in this session, and what of it is in force."""
        return Definitions.of(self.rounds)

    def interrupt(self, *, kill: bool = False, reason: str = "") -> None:
        """Stop the round that is running, from any thread; session, kernel and variables stay.

        Args:
            kill: End the process of a cell that is running, with its variables: for one that reacts to no interrupt.
                `kernel.checkpoint_seconds` says which variables the next cell gets back.
            reason: Why the round ends, for the journal and the Planner, as a clause: "it was ended by a signal".
                Empty: the user has stopped it.
        """
        self._stop_reason = reason or self._stop_reason
        self._cancelled.set()
        self._team.interrupt(kill=kill)

    @property
    def entry(self) -> str:
        """Name of the role that gets the user's requests."""
        return self._team.entry

    @property
    def roles(self) -> tuple[Role, ...]:
        """Who answers, in the order given."""
        return self._team.roles

    @property
    def where(self) -> str:
        """Describe in one line where code runs now; `no kernel` if no role runs any."""
        return self._team.where

    @property
    def journal(self) -> Path:
        """The file `events.jsonl`."""
        return self._journal.path

    @property
    def usage(self) -> Usage:
        """What all rounds have cost, the open one included."""
        return self._budget.usage

    @property
    def round_usage(self) -> Usage:
        """What the newest round has cost until now."""
        return self._budget.round.usage

    @property
    def seconds(self) -> Seconds:
        """Where the time of all rounds went that are closed."""
        return self._budget.seconds

    def emit(self, event: Event) -> None:
        """Write an event to the journal and hand it to the handlers; never raises because of a handler."""
        self._journal.write(event)

    def subscribe(self, handler: Handler) -> None:
        """Hand every event from now on to one more handler; a ConfigError if it can't be called."""
        self._journal.subscribe(handler)

    def unsubscribe(self, handler: Handler) -> None:
        """Leave a handler in peace."""
        self._journal.unsubscribe(handler)

    def close(self) -> None:
        """End the session: close its roles and what it owns; a second time nothing happens."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._idle.stop()
            with contextlib.ExitStack() as stack:  # each is closed even if another one's closing fails
                if self._temporary:
                    stack.callback(remove_folder, self._temporary)
                stack.callback(self._kept.close)
                stack.callback(self._journal.close)
                stack.callback(self.emit, SessionClosed(self.id))
                if self.rounds:  # a thread of code may have made some after the last one; none runs any more
                    stack.callback(self.grants.emit_new_hooks, self.rounds[-1].id, self.emit)
                for one in [self.inputs, *self._owned, *self.roles]:
                    stack.callback(one.close)

    def _step(self, role: Role, answer: Callable[[Turn], Post]) -> Post:
        with self._lock:
            here = self._open_one()
            self._check_limits(here)
            post_id = new_id("post")
            self.emit(PostOpened(here.id, post_id, role.name))
            turn = Turn(
                *(here, self.folder, post_id, self.emit, self._budget.deadline, self._cancelled, self.variables),
                reserve=functools.partial(self._budget.round.reserve, here),
                held_by=self._held_by,
            )
            board = here.read_board()
            token = _ACTIVE_SESSIONS.set(_ACTIVE_SESSIONS.get() | {self.id})
            asking = CURRENT_BUDGET.set(self._budget.round)
            receivers = allowed_receivers(self._team, role, here)
            try:
                with until_given_up(self._cancelled):
                    post = checked_post(role, answer(turn), here, receivers)
            except Exception as error:  # noqa: BLE001 - a role may be anybody's
                self._check_limits(here, because=error)  # an abandoned call is a consequence of the limit
                post = failed_post(role, error, here, receivers)
            finally:
                _ACTIVE_SESSIONS.reset(token)
                CURRENT_BUDGET.reset(asking)
            for name, bulletin in here.read_board().items():
                if board.get(name) != bulletin:
                    self.emit(BoardWritten(here.id, name, bulletin))
            if role.name == self.entry:
                self._budget.check_loop(here, post)
            return self._add_post(post, post_id)

    @contextlib.contextmanager
    def _closing_what_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            with contextlib.suppress(JournalError):  # the disk is full: what failed before is the reason
                self.close_round(RoundState.failed, reason=self._reason_of(error))
            if isinstance(error, TwAutogenError) and not isinstance(error, RoundError):
                raise RoundError(f"{self.rounds[-1].id}: {error}", round=self.rounds[-1]) from error
            raise

    def _reason_of(self, error: BaseException) -> str:
        if isinstance(error, RoundInterrupted):
            return self._stop_reason or _STOPPED
        return str(error) or (_STOPPED if isinstance(error, KeyboardInterrupt) else type(error).__name__)

    def _add_post(self, post: Post, post_id: str) -> Post:
        here = self._open_one()
        here.posts.append(post)
        for event in post_events(self.rounds, post, here.posts[:-1], post_id=post_id):
            self.emit(event)
        return post

    def _open_one(self) -> Round:
        self._refuse_closed()
        if not self._is_busy:
            raise ConfigError(f"{self.id}: no round is open; begin one with open_round")
        return self.rounds[-1]

    def _refuse_inside(self) -> None:
        """Refuse what would wait for ever: a request from the work on a request, on whatever thread it is done."""
        if self.id in _ACTIVE_SESSIONS.get():
            raise SessionBusyError(f"{self.id}: asked from inside its own round; a session answers one at a time")

    def _refuse_second(self) -> None:
        """Refuse what needs that no round is open; one that was cut off can still be resumed, and is none."""
        if self._cut_off is None and self._is_busy:
            raise SessionBusyError(f"{self.id}: a round is open; close it before the next one begins")

    def _close_cut_off(self) -> None:
        if self._cut_off is not None:
            self.close_round(RoundState.failed, reason=CUT_OFF)
            self._idle.stop()  # the next round is about to begin

    def _check_limits(self, here: Round, because: BaseException | None = None) -> None:
        stopped = (self._stop_reason or "stopped by interrupt()") if self._cancelled.is_set() else ""
        self._budget.check_limits(here, stopped=stopped, because=because)

    def _refuse_closed(self) -> None:
        if self.closed:
            raise SessionClosedError(f"{self.id} is closed{self._why_closed}; open a new session")

    def _close_idle(self) -> None:
        """Close after a long silence, unless a round has begun meanwhile."""
        with self._lock:
            if self._idle.is_mine(threading.current_thread()):
                self._why_closed = f" ({self._settings.idle_seconds:g} seconds without a request)"
                self.close()
