"""`Answer`: what a user gets for a request."""

from __future__ import annotations

from dataclasses import dataclass

from tw_autogen.conversation import AttachmentType, Round
from tw_autogen.kernel import Artifact
from tw_autogen.model import Usage
from tw_autogen.session.spending import Seconds

USER = "User"


@dataclass(frozen=True)
class Answer:
    """What a user gets for a request.

    Args:
        text: The answer in words.
        artifacts: Files made in this round, in order; each path once.
        stop: The Planner's word for why it stopped, such as `Clarification`; `Completed` without a Planner.
        usage: Calls, tokens and, where the price is known, money of this round, of all models together.
        round: All that was said.
        seconds: Where this round's time went.
    """

    text: str
    artifacts: tuple[Artifact, ...]
    stop: str
    usage: Usage
    round: Round
    seconds: Seconds = Seconds()

    @classmethod
    def of(cls, here: Round, usage: Usage, seconds: Seconds | None = None) -> Answer:
        """Read the answer off a round; its text is empty if nobody has spoken to the user."""
        last = here.posts[-1]
        text = last.message if last.send_to == USER else ""
        stop = last.content(AttachmentType.stop, "Completed") if text else ""
        return cls(text, _artifacts(here), stop, usage, here, seconds or Seconds())


def _artifacts(here: Round) -> tuple[Artifact, ...]:
    """Give the files that the round's posts name, the newest description of each path."""
    found: dict[str, Artifact] = {}
    for post in here.posts:
        attachment = post.attachment(AttachmentType.artifact_paths)
        for plain in (attachment.extra if attachment else None) or ():
            found[plain["path"]] = Artifact.from_dict(plain)
    return tuple(found.values())
