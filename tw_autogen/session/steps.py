"""`Steps`: the rounds of a session, driven by hand: open a round, have one role after another answer, close it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post, Round, RoundState
from tw_autogen.conversation.post import new_id
from tw_autogen.errors import SessionBusyError, TwAutogenError
from tw_autogen.events import BoardWritten, FileUnreadable, HooksMade, PostClosed, PostOpened, RoundClosed, RoundOpened
from tw_autogen.kernel import Artifact
from tw_autogen.model import Usage
from tw_autogen.role import Role, Turn, checked_post, role_error
from tw_autogen.session.answer import USER, Answer
from tw_autogen.session.inputs import FilesWanted, checked_inputs, checked_text, place_inputs, readable_by_path
from tw_autogen.session.life import Life
from tw_autogen.session.limits import refuse_loop, refuse_more
from tw_autogen.session.named_files import Named, NamedFiles
from tw_autogen.session.profile import profile_request
from tw_autogen.session.spending import ASKING

_MOST_DESCRIBED = 3
_AT_WORK: ContextVar[frozenset[str]] = ContextVar("at_work", default=frozenset())
"""The sessions of which a step is being taken; also in threads that work for it."""


class Steps(Life):
    """The rounds of a session, one after another, each driven step by step; arguments and errors as in `Session`."""

    def __init__(self, roles: Sequence[Role], **options: Any) -> None:
        super().__init__(roles, **options)
        self.rounds: list[Round] = []
        self.variables: dict[str, Any] = {}
        self._cancelled = threading.Event()
        self._named = NamedFiles(self._settings.user_folder, self.folder, self.grants.show)
        self.missing: tuple[str, ...] = ()
        """Names in the newest request for which there was no file when it came."""
        self._undescribed: list[str] = []  # files of requests in which nobody ran code

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
        self._refuse_inside()
        with self._lock:
            self._refuse_closed()
            self._refuse_second()
            checked_text(text)
            variables = {} if variables is None else variables
            sources = checked_inputs(files, variables, images)
            self._idle.stop()
            self._cancelled.clear()
            if self.landing is not None:
                self.landing.begin()
            named = Named() if send_to else self._named.bring(text, {path.name for path in sources})
            self.missing = named.missing
            sources += named.found
            placed = place_inputs(sources, self.folder, self.grants.show)
            self.variables.update(variables)
            self.rounds.append(Round(text))
            self._ledger.open_round(self.rounds[-1])
            self.emit(RoundOpened(self.rounds[-1].id, text, [path.name for path in placed]))
            try:
                with readable_by_path(sources, self.folder) as paths:
                    profile = profile_request(
                        paths,
                        variables,
                        self._settings.profile_chars,
                        names=[path.name if path.parent == self.folder else str(path) for path in placed],
                        on_problem=self._report_unreadable,
                    )
                parts = (text, profile, named.note, self._users_folder())
                self.post(USER, "\n\n".join(part for part in parts if part), send_to=send_to, images=images)
            except BaseException as error:
                self.close_round(RoundState.failed, reason=str(error) or type(error).__name__)
                raise
            self._describe_earlier(profile if sources else "")
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
            past: A round; roles see it as any other of this session. What its code left in a kernel is not there. One
                that was cut off before its end is taken in as failed.

        Raises:
            SessionBusyError: a round is open.
        """
        with self._lock:
            self._refuse_closed()
            self._refuse_second()
            if past.state is RoundState.created:
                past = replace(past, state=RoundState.failed, error=past.error or "it was cut off")
            self.rounds.append(past)
            self.emit(RoundOpened(past.id, past.user_query, []))
            for post in past.posts:
                self.emit(PostClosed(past.id, "", post))
            answer = Answer.of(past, Usage())
            self.emit(RoundClosed(past.id, past.state.value, answer.stop, answer.text, past.error, 0.0, {}))

    def next_role(self) -> Role | None:
        """Give the role that the newest post is for; None if it is for the user.

        Raises:
            RoundError: nobody of that name is here.
        """
        return self._team.receiver(self._open_one())

    def step(self, role: Role) -> Post:
        """Have one role answer.

        Raises:
            RoundTooLong, RoundTimedOut, RoundInterrupted: a limit was reached; what was said until then stays.
            RoleError: a role of one's own raised something, or gave no post; what it raised is the `__cause__`.
            Exception: what the client of a model raised.
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
                self._ledger.deadline,
                self._cancelled,
                self.variables,
                functools.partial(self._ledger.round.reserve, here),
            )
            board = here.read_board()
            token, asking = _AT_WORK.set(_AT_WORK.get() | {self.id}), ASKING.set(self._ledger.round)
            try:
                post = checked_post(role, answer(turn), here, self._team.receivers(role, here))
            except TwAutogenError as error:
                self._refuse_more(
                    here, because=error
                )  # an abandoned call is a consequence of the limit, not the reason
                raise
            except Exception as error:
                failed = role_error(role, error, here)
                if failed is None:
                    raise
                self._refuse_more(here, because=error)
                raise failed from error
            finally:
                _AT_WORK.reset(token)
                ASKING.reset(asking)
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
            took = self._ledger.close_round()
            answer = Answer.of(here, self.round_usage, took)
            spent = answer.usage.to_dict()
            self.emit(
                RoundClosed(
                    *(here.id, state.value, answer.stop, answer.text, reason),
                    *(took.total, spent, took.model, took.kernel),
                )
            )
            if hooks := self.grants.take_new_hooks():
                self.emit(HooksMade(here.id, hooks))
            self._idle.start(self._settings.idle_seconds)
            return answer

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Files made in the session's folder in all rounds, in order; each path once."""
        found = {one.path: one for here in self.rounds if here.posts for one in Answer.of(here, Usage()).artifacts}
        return tuple(one for path, one in found.items() if path.is_relative_to(self.folder))

    def interrupt(self, *, kill: bool = False) -> None:
        """Stop the round that is running, from any thread; session, kernel and variables stay.

        Args:
            kill: End the process of a cell that is running, with its variables: for one that reacts to no interrupt.
                `kernel.checkpoint_seconds` says which variables the next cell gets back.
        """
        self._cancelled.set()
        self._team.interrupt(kill=kill)

    def _add(self, post: Post, post_id: str) -> Post:
        here = self._open_one()
        here.posts.append(post)
        self.emit(PostClosed(here.id, post_id, post))
        return post

    def _describe_earlier(self, profile: str) -> None:
        """Pin up the files of earlier requests in which nobody ran code: their descriptions were read by no worker.

        Args:
            profile: Of this request's files; empty if it has none.
        """
        runner = self._team.runner
        if runner is None or not self._team.planned:
            return
        here, before = self.rounds[-1], self.rounds[-2] if len(self.rounds) > 1 else None
        if before and any(post.send_from == runner.name for post in before.posts):
            self._undescribed.clear()
        if self._undescribed:
            words = "\n\n".join(["Earlier requests brought:", *self._undescribed[-_MOST_DESCRIBED:]])
            here.write_board(USER, words)
            self.emit(BoardWritten(here.id, USER, words))
        if profile:
            self._undescribed.append(profile)

    def _users_folder(self) -> str:
        """Say what code may do in the folder that the user works in, and what becomes of files that it makes."""
        folder, said = self._settings.user_folder, []
        if folder:
            may = "read and write it" if self.grants.may_write(folder) else "read it, but not write there"
            said = [f"The User's own folder is {folder}. Code can {may}. Names of files in this request that are not"]
            said[0] += " in the working folder are relative to it."
            real = Path(folder).expanduser().resolve()
            if self.folder.is_relative_to(real) and self.folder != real:
                own = self.folder.relative_to(real).parts[0]
                said.append(f"{own} there holds sessions like this one, no data of theirs: leave it out.")
        if self.landing is not None and self._team.runner is not None:
            said.append(self.landing.sentence)
        return " ".join(said)

    def _report_unreadable(self, problem: str) -> None:
        self.emit(FileUnreadable(self.rounds[-1].id, problem))

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

    def _refuse_more(self, here: Round, because: BaseException | None = None) -> None:
        stopped, seconds = self._cancelled.is_set(), self._ledger.round_seconds
        refuse_more(here, self._settings, stopped=stopped, seconds=seconds, because=because)
