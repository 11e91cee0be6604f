"""`Answer`: what a user gets for a request."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.conversation import AttachmentType, Round
from tw_autogen.kernel import Artifact, KernelSettings
from tw_autogen.model import Usage
from tw_autogen.session.landing import save_files
from tw_autogen.session.spending import Seconds

USER = "User"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What a user gets for a request.

    Args:
        text: The answer in words, whole; also empty where that is what the request asked for.
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

    def save_files(self, folder: Path | str, *, limit_mb: int = KernelSettings.disk_mb) -> list[Path]:
        """Copy the answer's files to a folder, with mode 0644 less the umask; nothing there is replaced.

        Args:
            folder: Made if it is missing. A file whose name is taken there becomes `name (2).png`.
            limit_mb: How large the files may be together, by their length; 0: no limit.

        Returns:
            The copies, in the order of `artifacts`. Left out, and named in the log: dotfiles, names that programs run
            or obey (`conftest.py`, `Makefile`), what is no plain file any more, and what exceeds `limit_mb`.

        Raises:
            OSError: the folder can't be made or opened.
        """
        saved = save_files(self.artifacts, Path(folder), limit_mb=limit_mb)
        for one in saved:
            if one.problem:
                _log.warning("not saved in %s: %s", folder, one.problem)
        return [one.path for one in saved if one.path is not None]

    @property
    def message(self) -> str:
        """The answer as a chat and a prompt show it: of a long one the beginning, and which file has all of it."""
        return self.round.posts[-1].message if self.text else ""

    @classmethod
    def of(cls, here: Round, usage: Usage, seconds: Seconds | None = None) -> Answer:
        """Read the answer off a round; text and stop are empty if nobody has spoken to the user."""
        last = here.posts[-1]
        text = last.content(AttachmentType.answer, last.message) if last.send_to == USER else ""
        stop = last.content(AttachmentType.stop, "Completed") if last.send_to == USER else ""
        return cls(text, _artifacts(here), stop, usage, here, seconds or Seconds())


def _artifacts(here: Round) -> tuple[Artifact, ...]:
    """Give the files that the round's posts name, the newest description of each path."""
    found: dict[str, Artifact] = {}
    for post in here.posts:
        attachment = post.attachment(AttachmentType.artifact_paths)
        for plain in (attachment.extra if attachment else None) or ():
            found[plain["path"]] = Artifact.from_dict(plain)
    return tuple(found.values())
