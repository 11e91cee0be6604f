"""`Memory`: what one role may see of the rounds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tw_autogen.conversation.post import Post
from tw_autogen.conversation.round import Round

_TEMPORAL = re.compile(r"\{\{DELIMITER_START_TEMPORAL\}\}(.*?)(?:(\{\{DELIMITER_END_TEMPORAL\}\})|\Z)", re.DOTALL)


def wrap_temporal(text: str) -> str:
    """Mark text that later rounds need not see: it is left out of every round but the last."""
    return f"{{{{DELIMITER_START_TEMPORAL}}}}{text}{{{{DELIMITER_END_TEMPORAL}}}}"


@dataclass(frozen=True)
class Memory:
    """What one role may see: every round, and in it the posts that it wrote or received.

    Args:
        role: The name of the role that looks.
        rounds: The rounds that it sees, oldest first; copies, so that writing on them changes nothing.
        session_id: Which session the rounds belong to.

    Source: TaskWeaver's `Memory.get_role_rounds`. Differs: a failed round stays, with its `error`, where TaskWeaver
    forgets the user's words.
    """

    role: str
    rounds: tuple[Round, ...]
    session_id: str = ""

    @classmethod
    def of(cls, role: str, rounds: Iterable[Round], session_id: str = "") -> Memory:
        """Return what one role may see of rounds.

        Args:
            role: The role's name.
            rounds: All rounds of the session, oldest first; not changed.
            session_id: Which session they belong to.
        """
        every = list(rounds)
        seen = [_round_for_role(one, role, is_last=one is every[-1]) for one in every]
        return cls(role, tuple(seen), session_id)

    @property
    def last_post(self) -> Post:
        """The newest post that this role wrote or received.

        Raises:
            LookupError: there is none yet.
        """
        for one in reversed(self.rounds):
            if one.posts:
                return one.posts[-1]
        raise LookupError(f"{self.role} has neither written nor received a post yet")


def _round_for_role(one: Round, role: str, *, is_last: bool) -> Round:
    mine = [post for post in one.posts if role in (post.send_from, post.send_to)]

    def unwrapped(match: re.Match[str]) -> str:
        if match[2] is None:  # never closed: words like any others
            return match[0]
        return match[1] if is_last else ""

    shown = [replace(post, message=_TEMPORAL.sub(unwrapped, post.message)) for post in mine]
    return replace(one, posts=shown, board=dict(one.board))
