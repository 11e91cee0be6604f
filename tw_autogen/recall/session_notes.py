"""`SessionNotes`: what a session adds to the user's words, once in each prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tw_autogen.conversation import Post, Round
from tw_autogen.escaped_text import without_known_paragraphs


@dataclass
class SessionNotes:
    """What a session has added to the user's newest words, such as a note on their folder, for a prompt to hold once.

    Args:
        told: As it was told last.
    """

    told: str = ""

    def without_repeats(self, post: Post, rounds: Sequence[Round]) -> str:
        """Return the message of the user's post, with long paragraphs named that stood in the last one as well.

        Args:
            post: The user's.
            rounds: What the role sees; the user's own words are left alone.
        """
        own = next((one.user_query for one in rounds if any(post.id == each.id for each in one.posts)), "")
        words, notes = (own, post.message[len(own) :]) if post.message.startswith(own) else (post.message, "")
        before, self.told = self.told, notes
        return words + without_known_paragraphs(notes, before)
