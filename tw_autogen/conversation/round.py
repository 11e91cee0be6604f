"""`Round`: what was said for one request of the user, and the board that its roles shared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, overload

from tw_autogen.conversation.post import AttachmentType, Post, new_id
from tw_autogen.conversation.untrusted_fields import text_field
from tw_autogen.text_escaping import escape_controls, inert_output


class RoundState(str, Enum):
    """How far a round is: still open, answered, or ended without an answer."""

    created = "created"
    finished = "finished"
    failed = "failed"


@dataclass
class Round:
    """One request of the user until its answer.

    Args:
        user_query: The user's words.
        id: Unique within the session.
        posts: What was said, in order.
        state: How far it is.
        error: Why it failed; empty unless `state` is failed.
        board: What roles wrote for one another, one bulletin a role; the next round begins with an empty board.
        spent: What counts towards the limits of a session: `calls`, `tokens` and `dollars`; empty: nothing is known.
    """

    user_query: str
    id: str = field(default_factory=lambda: new_id("round"))
    posts: list[Post] = field(default_factory=list)
    state: RoundState = RoundState.created
    error: str = ""
    board: dict[str, str] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)

    def write_board(self, role_alias: str, bulletin: str) -> None:
        """Write this role's bulletin on the board; a new one replaces the old.

        Args:
            role_alias: The role's name.
            bulletin: Its text.
        """
        self.board[role_alias] = bulletin

    @overload
    def read_board(self, role_alias: None = None) -> dict[str, str]: ...
    @overload
    def read_board(self, role_alias: str) -> str | None: ...
    def read_board(self, role_alias: str | None = None) -> dict[str, str] | str | None:
        """Return one role's bulletin (None if it has none), or a copy of the whole board by role.

        Source: TaskWeaver's article on roles. Differs: the whole board is a copy, so that only `write_board` writes.
        """
        return dict(self.board) if role_alias is None else self.board.get(role_alias)

    @property
    def last_words(self) -> str:
        """The newest post's words for a chat of agents: without control characters, and as of `inert_output`.

        Words that a model alone has written keep their blocks of code: a Planner's own, and an answer without code
        (`reply_type` is `text`). All others may hold what code has printed, or what stands in files.

        Raises:
            IndexError: nothing was said.
        """
        newest = self.posts[-1]
        stop = newest.attachment(AttachmentType.stop)
        ran = newest.attachment(AttachmentType.execution_status)
        in_words = newest.content(AttachmentType.reply_type) == "text" and not (ran and ran.extra)
        is_own = in_words if stop is None else stop.extra != {"forwarded": True}
        return (escape_controls if is_own else inert_output)(newest.message.rstrip())

    def to_dict(self) -> dict[str, Any]:
        """Return TaskWeaver's dictionary form; `board`, `error` and `spent`, which it lacks, only if not empty."""
        plain: dict[str, Any] = {
            "id": self.id,
            "user_query": self.user_query,
            "state": self.state.value,
            "post_list": [post.to_dict() for post in self.posts],
        }
        if self.board:
            plain["board"] = dict(self.board)
        if self.error:
            plain["error"] = self.error
        if self.spent:
            plain["spent"] = dict(self.spent)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Round:
        """Read TaskWeaver's dictionary form. Differs from TaskWeaver: an id that is there is kept.

        Raises:
            KeyError: `user_query`, `state` or `post_list` is missing.
            ValueError: the state, or an attachment's type, is unknown, what should be text is none, or `spent` is no
                mapping of names to amounts.
        """
        spent = {str(key): float(value) for key, value in dict(plain.get("spent") or {}).items()}
        if not all(0 <= one < math.inf for one in spent.values()):
            raise ValueError("spent: expected amounts, zero or more")
        board = dict(plain.get("board") or {})
        return cls(
            text_field(plain, "user_query", needed=True),
            text_field(plain, "id") or new_id("round"),
            [Post.from_dict(post) for post in plain["post_list"] or ()],
            RoundState(plain["state"]),
            text_field(plain, "error"),
            {str(role): text_field(board, role) for role in board},
            spent,
        )
