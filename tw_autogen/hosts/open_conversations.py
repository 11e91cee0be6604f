"""`Conversations`: those of one agent, by partner or by a service's key; so many sessions stay open and no more."""

from __future__ import annotations

import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from tw_autogen.hosts.partner_conversation import PartnerConversation, close_all, close_soon
from tw_autogen.session import SessionSettings
from tw_autogen.settings import Settings

Kept = TypeVar("Kept", bound=PartnerConversation)
_IDLE_SECONDS = 3600.0
_MAX_KNOWN = 1000
"""So many conversations of services are known, of those that were used last; most of them have no open session."""


def idle_seconds(read: Settings, *, endless: bool) -> float:
    """Return after how long without a request a conversation's session is closed; 0: never.

    Args:
        read: The setting `session.idle_seconds` counts where it is set.
        endless: No one says when the conversation ends, as with groups and services; without a setting that is an hour.
    """
    is_set = read.origin("session.idle_seconds") != Settings.DEFAULT
    return _IDLE_SECONDS if endless and not is_set else read.read("session", SessionSettings).idle_seconds


class Conversations(Generic[Kept]):
    """The conversations of one agent: one for each partner, and those of services, which have no partner.

    Args:
        new: Makes the conversation with a partner; None stands for a service.
        most_open: How many sessions stay open; the session that was unused for longest is closed for a new one, unless
            a request is under way in it. What was said in it is known to the next one of its conversation.

    Partners are held weakly, so that an agent that nobody holds can be collected. A service's conversation is found by
    a key that its host vouches for, or by the unguessable one of its last answer; never by what was said.
    """

    def __init__(self, new: Callable[[Any], Kept], *, most_open: int) -> None:
        self._new = new
        self.most_open = max(1, most_open)
        self._guard = threading.RLock()
        self._partners: weakref.WeakKeyDictionary[Any, Kept] = weakref.WeakKeyDictionary()
        self._services: OrderedDict[Hashable, Kept] = OrderedDict()
        self._used: OrderedDict[int, weakref.ref[Kept]] = OrderedDict()

    def of(self, partner: Any) -> Kept:
        """Return the conversation with a partner; a new one if there is none."""
        with self._guard:
            if partner not in self._partners:
                self._partners[partner] = self._new(partner)
            conversation = self._partners[partner]
        self.limit(conversation)
        return conversation

    def served(self, key: Hashable = None) -> Kept:
        """Return a service's conversation; a new one if the key is None or unknown.

        Args:
            key: Given by the host for as long as the conversation lasts, or by `keep` for one more request.
        """
        with self._guard:
            conversation = self._services.pop(key, None) or self._new(None)
            if key is not None and not isinstance(key, AnswerKey):
                self._services[key] = conversation
        self.limit(conversation)
        return conversation

    def keep(self, conversation: Kept) -> AnswerKey:
        """Return a new key with which a service's conversation can be continued once."""
        key = AnswerKey(secrets.token_urlsafe(24))
        with self._guard:
            self._services[key] = conversation
        return key

    def find(self, partner: Any) -> Kept | None:
        """Return the conversation with a partner, if there is one."""
        return self._partners.get(partner) if partner is not None else None

    def partner_items(self) -> list[tuple[Any, Kept]]:
        """Return the partners with their conversations."""
        with self._guard:
            return list(self._partners.items())

    def rename(self, partner: Any, new: Any) -> None:
        """Continue the conversation with one partner as that with another.

        Args:
            partner: Who was talked with until now.
            new: Who takes that place, which may be the same; no other partner with a conversation of its own.
        """
        with self._guard:
            self._partners[new] = self._partners.pop(partner)

    def drop(self, partner: Any, *, wait: bool) -> None:
        """Forget the conversation with a partner, and end its session; files that no session has got yet stay.

        Args:
            partner: Whose.
            wait: Return once the session has ended; otherwise it ends on a thread.
        """
        with self._guard:
            conversation = self._partners.pop(partner, None)
            if conversation is not None:
                new = self._new(partner)
                if new.take_unsent(conversation):
                    self._partners[partner] = new
        if conversation is not None and wait:
            conversation.close()
        elif conversation is not None:
            close_soon(conversation)

    def close(self) -> None:
        """Forget all conversations; new ones may begin afterwards."""
        with self._guard:
            conversations = [*self._partners.values(), *self._services.values(), *self._open_conversations()]
            self._partners.clear()
            self._services.clear()
            self._used.clear()
        close_all(conversations)

    def __len__(self) -> int:
        """Return how many sessions are open."""
        return len(self._open_conversations())

    def _open_conversations(self) -> list[Kept]:
        """Return the conversations with an open session, that unused for longest first."""
        conversations = (one() for one in list(self._used.values()))
        return [one for one in conversations if one is not None and one.session is not None]

    def limit(self, used: Kept) -> None:
        """Mark a conversation as used, and close the sessions that are too many with it, oldest use first.

        To be called before a request and after it: those that are at work are not closed.
        """
        with self._guard:
            self._used[id(used)] = weakref.ref(used)
            self._used.move_to_end(id(used))
            for index in [key for key, one in self._used.items() if one() is None]:
                del self._used[index]
            others = [one for one in self._open_conversations() if one is not used]
            surplus = [other for other in others if not other.busy][: max(0, len(others) + 1 - self.most_open)]
            for one in surplus:  # where two requests end at once, each closes others; a next request marks it again
                del self._used[id(one)]
            forgotten = [self._services.popitem(last=False)[1] for _ in range(len(self._services) - _MAX_KNOWN)]
        close_all([*surplus, *forgotten], unless_busy=True)


class AnswerKey(str):
    """The key that one answer of a service's conversation carries."""

    __slots__ = ()
