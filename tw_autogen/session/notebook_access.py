"""`NotebookAccess`: what a session offers in a notebook: `await`, variables by name, and how it is shown."""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tw_autogen.conversation import Round, RoundState
from tw_autogen.deadline import awaited_thread
from tw_autogen.errors import ConfigError, RoundInterrupted
from tw_autogen.lazy_module import LazyModule
from tw_autogen.notebook_traceback import users_frames
from tw_autogen.plural import pluralize
from tw_autogen.session.answer import Answer
from tw_autogen.session.answer_html import folded_html, note_html, output_html
from tw_autogen.session.event_journal import Journal
from tw_autogen.session.request_inputs import FilesWanted, checked_inputs
from tw_autogen.session.team import Team
from tw_autogen.text_escaping import NO_FORMULAS, visible
from tw_autogen.text_truncation import shortened

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = LazyModule("asyncio")  # takes 10 ms, and only `await` needs it

_HEAD_CHARS = 120
_WAKE_SECONDS = 0.1
"""ipykernel cancels an awaiting cell by a callback that its idle event loop runs only when something else wakes it."""


@runtime_checkable
class KeepsVariables(Protocol):
    """A role that runs code, and whose variables the host may read and set between rounds."""

    def get_variable(self, name: str) -> Any:
        """Return a copy of a variable.

        Raises:
            KeyError: there is none of that name.
            TypeError: it is of a type that doesn't cross.
        """
        ...

    def put_variable(self, name: str, value: Any, *, folder: Path) -> None:
        """Make a variable.

        Args:
            name: An identifier.
            value: JSON values, tables, and what else `Session.ask` takes.
            folder: The session's, for a kernel that is not there yet.
        """
        ...


class NotebookAccess(ABC):
    """The part of `Session` that notebooks use, on top of the rest of it."""

    id: str
    closed: bool
    rounds: list[Round]
    folder: Path
    variables: dict[str, Any]
    _lock: threading.RLock
    _awaited: threading.Event | None
    """Set when the request that `aask` is making is cancelled; None: it makes none."""
    _team: Team
    _journal: Journal
    _set: dict[str, Any]
    """Variables that were set by name since the newest request, which the next one describes."""
    _held_by: dict[str, list[object]]
    """As of `Turn`."""

    @abstractmethod
    def _refuse_inside(self) -> None: ...
    @abstractmethod
    def _refuse_closed(self) -> None: ...
    @abstractmethod
    def _refuse_second(self) -> None: ...

    @property
    def full(self) -> bool:
        """Whether the journal has no room for another round: `ask` raises `JournalError` then."""
        return self._journal.full

    @property
    @abstractmethod
    def where(self) -> str:
        """Describe in one line where code runs."""

    @abstractmethod
    def ask(
        self,
        text: str,
        files: FilesWanted = (),
        variables: Mapping[str, Any] | None = None,
        *,
        images: Sequence[str] = (),
    ) -> Answer:
        """Answer a request; errors as of `Session.ask`.

        Args:
            text: The user's words.
            files: Paths, or a single one.
            variables: Values by name; None for none.
            images: URLs (`data:` or `https:`).
        """

    async def aask(
        self,
        text: str,
        files: FilesWanted = (),
        variables: Mapping[str, Any] | None = None,
        *,
        images: Sequence[str] = (),
    ) -> Answer:
        """Answer a request as `ask` does, on a thread of its own; a notebook may `await` it.

        Where the awaiting task is cancelled, the round is interrupted; session and variables stay. A request that still
        waits for another one's end is not asked then, and the other one goes on.

        Args:
            text: As in `ask`.
            files: As in `ask`.
            variables: As in `ask`.
            images: As in `ask`.

        Raises:
            RoundError: as in `ask`, and so for its other errors.
        """
        given_up = threading.Event()

        def answer() -> Answer:
            self._refuse_inside()
            with self._lock:
                self._awaited = given_up
                try:
                    if given_up.is_set():  # looked at last: whoever sets it looks at `_awaited` then
                        raise RoundInterrupted(f"{self.id}: cancelled before it began", round=Round(text))
                    return self.ask(text, files, variables, images=images)
                finally:
                    self._awaited = None

        work = awaited_thread(answer, name=f"{self.id} answers")
        try:
            while not work.done():
                await asyncio.wait([work], timeout=_WAKE_SECONDS)
            return work.result()
        except asyncio.CancelledError:
            given_up.set()
            if self._awaited is given_up:
                self._team.interrupt()
            else:
                work.cancel()
            with contextlib.suppress(Exception):  # what an interrupted round raises is known
                await work
            raise

    def __getitem__(self, name: str) -> Any:
        """Return a copy of a variable that code has made or a request has given.

        It may be of JSON values, tables, Series, and what else `ask` takes.

        Raises:
            KeyError: there is no variable of this name.
            TypeError: it is of a type that doesn't cross.
            ConfigError: no role here keeps variables.
            SessionBusyError, SessionClosedError: as in `ask`.
        """
        with users_frames(), self._between_rounds() as keeper:
            if name in self.variables and not self._held_by.get(name):  # given, and no cell has run since
                keeper.put_variable(name, self.variables[name], folder=self.folder)
                self._held_by[name] = [self._team.kernel_in(self.folder)]
            return keeper.get_variable(name)

    def __setitem__(self, name: str, value: Any) -> None:
        """Make a variable for the code, as those that `ask` takes; the next request describes it to the Planner.

        Raises:
            ConfigError: as in `ask` of variables, or no role here keeps variables.
            SessionBusyError, SessionClosedError: as in `ask`.
        """
        checked_inputs((), {name: value})
        with users_frames(), self._between_rounds() as keeper:
            keeper.put_variable(name, value, folder=self.folder)
            self._set[name] = self.variables[name] = value
            self._held_by[name] = [self._team.kernel_in(self.folder)]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse what comes from inside a round, wait for other threads, and refuse it if the session is closed."""
        self._refuse_inside()
        with self._lock:
            self._refuse_closed()
            yield

    @contextlib.contextmanager
    def _between_rounds(self) -> Iterator[KeepsVariables]:
        """Yield the role that keeps variables, while no round is open."""
        with self._alone():
            self._refuse_second()
            runner = self._team.runner
            if not isinstance(runner, KeepsVariables):
                raise ConfigError(f"{self.id}: no role here keeps variables; it has {', '.join(self._team.names)}")
            yield runner

    def __repr__(self) -> str:
        """Return a short text: id, state, requests, and where code runs."""
        state = "closed" if self.closed else "busy" if self._is_busy else "full" if self.full else "open"
        count = len(self.rounds)
        asked = pluralize(count, "request")
        return f"<Session {self.id}, {state}, {asked}, code runs in: {self.where}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return what a notebook shows: one line, and folded the requests with their answers."""
        parts = [note_html(repr(self))]
        for here in self.rounds:
            last = here.posts[-1].message if here.posts and here.state is not RoundState.created else ""
            parts.append(
                folded_html(shortened(" ".join(here.user_query.split()), _HEAD_CHARS), output_html(here.error or last))
            )
        return {"text/plain": visible(repr(self)), "text/html": f"<div {NO_FORMULAS}>{''.join(parts)}</div>"}

    @property
    def _is_busy(self) -> bool:
        return bool(self.rounds) and self.rounds[-1].state is RoundState.created
