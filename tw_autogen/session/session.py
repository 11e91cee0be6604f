"""`Session`: rounds between a user and roles, with a folder, a journal, and an end to everything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any

from tw_autogen.conversation import Round, RoundState
from tw_autogen.errors import ConfigError, RoundError, RoundInterrupted, TwAutogenError
from tw_autogen.events import Handler
from tw_autogen.kernel import Variable
from tw_autogen.model import ChatModel
from tw_autogen.role import Role, Turn, report_call
from tw_autogen.session.answer import USER, Answer
from tw_autogen.session.grants import Grants
from tw_autogen.session.inputs import FilesWanted
from tw_autogen.session.learning import Learner, keep_example
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.steps import Steps
from tw_autogen.session.team import PLANNER

_LEARNER = "Learner"
_STOPPED = "it was stopped by the user"


class Session(Steps):
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
        grants: Grants | None = None,
    ) -> None:
        self._learner = learner or Learner()
        super().__init__(
            roles,
            folder=folder,
            settings=settings,
            handlers=handlers,
            owned=owned,
            session_id=session_id,
            entry=entry,
            grants=grants,
        )

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
                session variables for plugins.
            images: URLs (`data:` or `https:`) that the Planner's model is shown.

        Raises:
            RoundError: the round ended without an answer; `error.round` holds what was said.
            ConfigError: a file doesn't exist, or a variable's name is no identifier or one of Python's own; nothing has
                run yet.
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
        runner = self._team.runner
        if runner is None:
            raise ConfigError(f"{self.id}: no role of this session runs code; it has {', '.join(self._team.names)}")
        if not isinstance(code, str):
            raise ConfigError(f"run_code: expected code as str, got {type(code).__name__}")
        self._refuse_inside()
        with self._lock:
            words = f"This code was run as it stands:\n```python\n{code}\n```"
            self.open_round(words, send_to=runner.name)
            with self._closing_what_fails():
                self._step(runner, lambda turn: runner.run_code(code, turn=turn, send_to=USER))
            return self.close_round()

    def code_variables(self) -> tuple[Variable, ...]:
        """Give the variables that code of this session has made and that exist now."""
        runner = self._team.runner
        return runner.variables() if runner else ()

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

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _closing_what_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.close_round(RoundState.failed, reason=self._reason_of(error))
            if isinstance(error, TwAutogenError) and not isinstance(error, RoundError):
                raise RoundError(f"{self.rounds[-1].id}: {error}", round=self.rounds[-1]) from error
            raise

    def _reason_of(self, error: BaseException) -> str:
        if isinstance(error, RoundInterrupted):
            return self._stop_reason or _STOPPED
        if isinstance(error, KeyboardInterrupt):
            return str(error) or _STOPPED
        return str(error) or type(error).__name__


def unmade(session: Session, answer: Answer) -> list[str]:
    """Return a line for each file that a completed request names, that was not there, and that nobody has made."""
    made = {one.path.name for one in answer.artifacts}
    here = session.landing.folder if session.landing else None
    missing = [name for name in session.missing if PurePath(name).name not in made]
    missing = [name for name in missing if here is None or not os.path.lexists(here / name)]
    if answer.stop != "Completed":
        return []
    return [f"{name}: the request names it, but there is no such file, and none was made" for name in missing]
