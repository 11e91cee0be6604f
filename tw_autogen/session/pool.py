"""`SessionPool`: live sessions by key, so many and no more."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager

from tw_autogen.session.session import Session


class SessionPool:
    """Keeps one session for each key; for a new one beyond the limit it closes the one that was unused for longest.

    Args:
        most_open: How many stay open. Sessions that are in use are never closed for another one, so there may be more
            for as long as more are in use.

    From any thread. It owns its sessions: `close` ends them all.
    """

    def __init__(self, most_open: int = 16) -> None:
        self._most_open = max(1, most_open)
        self._guard = threading.Lock()
        self._sessions: OrderedDict[Hashable, Session] = OrderedDict()
        self._users: dict[str, int] = {}

    @contextmanager
    def use(self, key: Hashable, make: Callable[[], Session]) -> Iterator[Session]:
        """Give the key's session, made if there is none that is open; while it is in use it stays.

        Args:
            key: Whose session.
            make: Opens one; whatever it raises goes to the caller, and nothing has changed.
        """
        with self._guard:
            session = self._sessions.get(key)
            if session is None or session.closed:
                session = self._sessions[key] = make()
            self._sessions.move_to_end(key)
            self._users[session.id] = self._users.get(session.id, 0) + 1
            surplus = self._surplus()
        _close(surplus)
        try:
            yield session
        finally:
            with self._guard:
                self._users[session.id] -= 1
                if not self._users[session.id]:
                    del self._users[session.id]
                surplus = self._surplus()
            _close(surplus)

    def find(self, key: Hashable) -> Session | None:
        """Give the key's session if it is open."""
        with self._guard:
            session = self._sessions.get(key)
            return None if session is None or session.closed else session

    def rename(self, key: Hashable, new: Hashable) -> None:
        """Let a session be known under another key from now on."""
        with self._guard:
            if key in self._sessions:
                self._sessions[new] = self._sessions.pop(key)

    def drop(self, key: Hashable) -> None:
        """End the key's session; a round that it is in is stopped first."""
        with self._guard:
            session = self._sessions.pop(key, None)
        _close([session] if session is not None else [])

    def close(self) -> None:
        """End all sessions; new ones may be opened afterwards."""
        with self._guard:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        _close(sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def _surplus(self) -> list[Session]:
        """Take out what is too much: the oldest that nobody uses."""
        idle = [key for key, session in self._sessions.items() if session.id not in self._users]
        count = max(0, len(self._sessions) - self._most_open)
        return [self._sessions.pop(key) for key in idle[:count]]


def _close(sessions: list[Session]) -> None:
    with ExitStack() as stack:  # each is closed even if another one's closing fails
        for session in sessions:
            stack.callback(session.close)
            stack.callback(session.interrupt)
