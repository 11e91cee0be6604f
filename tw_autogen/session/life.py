"""`Life`: what a session has from its opening to its end: roles, a folder, a journal, and whatever it must close."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tw_autogen.conversation.post import new_id
from tw_autogen.errors import SessionClosedError
from tw_autogen.events import Event, Handler, SessionClosed, SessionOpened
from tw_autogen.model import Usage
from tw_autogen.private import make_private_folder
from tw_autogen.role import Role
from tw_autogen.safe_folder import remove_folder, temporary_folder
from tw_autogen.session.grants import Grants
from tw_autogen.session.idle import IdleTimer
from tw_autogen.session.journal import JOURNAL, Journal
from tw_autogen.session.landing import Landing
from tw_autogen.session.ledger import Ledger
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.spending import Seconds
from tw_autogen.session.team import Team


class Life:
    """What a session has from its opening to its end; arguments and errors as in `Session`."""

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
        grants: Grants | None = None,
    ) -> None:
        self.grants = grants or Grants()
        self.grants.take_new_hooks()
        self._team = Team(roles, entry)
        self.id = session_id or new_id("session")
        self.closed = False
        self.landing: Landing | None = None
        """Who copies files of answers to where the user is; None: nobody, as in services and agents."""
        self._settings = settings or SessionSettings()
        self._owned = list(owned)
        self._lock = threading.RLock()
        self._ledger = Ledger(self._settings)
        self._idle = IdleTimer(self._idled)
        self._closing = ""
        self._temporary = None if folder else temporary_folder("tw-session-")
        root = (folder or self._temporary or Path()).resolve()
        self.folder = self._team.folders[0] if self._team.folders else root / "files"
        make_private_folder(root, passable=True)
        make_private_folder(self.folder)
        self._journal = Journal(root / JOURNAL, [self._ledger, *handlers])
        self.emit(SessionOpened(self.id, str(self.folder), self._team.names, self._team.plugin_names, self.where))
        self._idle.start(self._settings.idle_seconds)

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
        """Say in one line where code runs now; `no kernel` if no role runs any."""
        return self._team.where

    @property
    def journal(self) -> Path:
        """The file `events.jsonl`."""
        return self._journal.path

    @property
    def usage(self) -> Usage:
        """What all rounds have cost, the open one included."""
        return self._ledger.usage

    @property
    def round_usage(self) -> Usage:
        """What the newest round has cost until now."""
        return self._ledger.round.usage

    @property
    def seconds(self) -> Seconds:
        """Where the time of all rounds went that are closed."""
        return self._ledger.seconds

    def emit(self, event: Event) -> None:
        """Write an event to the journal and hand it to the handlers; never raises because of a handler."""
        self._journal.write(event)

    def subscribe(self, handler: Handler) -> None:
        """Hand every event from now on to one more handler."""
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
                stack.callback(self._journal.close)
                stack.callback(self.emit, SessionClosed(self.id))
                for one in [*self._owned, *self.roles]:
                    stack.callback(one.close)

    def _refuse_closed(self) -> None:
        if self.closed:
            raise SessionClosedError(f"{self.id} is closed{self._closing}; open a new session")

    def _idled(self) -> None:
        """Close after a long silence, unless a round has begun meanwhile."""
        with self._lock:
            if self._idle.is_mine(threading.current_thread()):
                self._closing = f" ({self._settings.idle_seconds:g} seconds without a request)"
                self.close()
