"""`UnreadDescriptions`: descriptions of files of requests in which nobody ran code, for the first worker who does."""

from __future__ import annotations

from collections.abc import Sequence

from tw_autogen.conversation import Round

_MOST_DESCRIBED = 3


class UnreadDescriptions:
    """Descriptions of files that were read by no worker yet."""

    def __init__(self) -> None:
        self._undescribed: list[str] = []

    def for_board(self, rounds: Sequence[Round], runner: str, profile: str) -> str:
        """Return what the board says of earlier requests' files; empty if there is nothing to say.

        Args:
            rounds: All rounds, the open one last.
            runner: Name of the role that runs code.
            profile: The description of the open round's files, kept for later; empty if it has none.
        """
        before = rounds[-2] if len(rounds) > 1 else None
        if before and any(post.send_from == runner for post in before.posts):
            self._undescribed.clear()
        words = ["Earlier requests brought:", *self._undescribed[-_MOST_DESCRIBED:]] if self._undescribed else []
        if profile:
            self._undescribed.append(profile)
        return "\n\n".join(words)
