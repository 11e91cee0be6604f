"""`Answer`: what a user gets for a request; as values, files and Markdown."""

from __future__ import annotations

import logging
import os
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.conversation import AttachmentType, RequestedFormat, Round
from tw_autogen.events import ArtifactSaved, Event
from tw_autogen.kernel import Artifact, KernelSettings
from tw_autogen.model import Usage
from tw_autogen.number_sources import NumberSource, number_sources
from tw_autogen.plural import pluralize
from tw_autogen.session.answer_files import save_files
from tw_autogen.session.answer_html import answer_html, code_cells
from tw_autogen.text_escaping import visible, visible_line

USER = "User"
_log = logging.getLogger(__name__)

AGENT_DESCRIPTION = (
    "Does data work: plans a request, writes Python, checks it, runs it in a kernel that remembers, and answers with "
    "numbers, tables, charts and files."
)
"""What an agent with a session inside can do; for hosts that choose the next speaker by it."""


@dataclass(frozen=True)
class Seconds:
    """Where the time of a round went, wall clock.

    Args:
        total: From request to answer.
        model: In calls of models, added up; calls side by side count each.
        kernel: In cells, added up.
    """

    total: float = 0.0
    model: float = 0.0
    kernel: float = 0.0

    @property
    def own(self) -> float:
        """What is left: checking, routing, copying, starting kernels, waiting for people."""
        return max(0.0, self.total - self.model - self.kernel)

    def __add__(self, other: Seconds) -> Seconds:
        """Sum field by field."""
        return Seconds(self.total + other.total, self.model + other.model, self.kernel + other.kernel)


@dataclass(frozen=True)
class Answer:
    """What a user gets for a request.

    Args:
        text: The answer in words, whole; also empty where that is what the request asked for.
        artifacts: Files made in this round, in order; each path once. Also those of code that failed: the code after it
            may build on them.
        stop: The Planner's word for why it stopped, such as `Clarification`; without a Planner `Completed`, or
            `TaskFailure` where the last code failed or was refused.
        usage: Calls, tokens and, where the price is known, money of this round, of all models together.
        round: All that was said.
        seconds: Where this round's time went.
        earlier: The session's rounds before this one, oldest first; numbers of the answer may come from them.
    """

    text: str
    artifacts: tuple[Artifact, ...]
    stop: str
    usage: Usage
    round: Round
    seconds: Seconds = Seconds()
    earlier: tuple[Round, ...] = ()

    def save_files(self, folder: Path | str, *, limit_mb: int = KernelSettings.disk_mb) -> list[Path]:
        """Copy the answer's files to a folder, with mode 0644 less the umask; nothing there is replaced.

        Args:
            folder: Made if it is missing. A file whose name is taken there becomes `name (2).png`.
            limit_mb: How large the files may be together, by their length; 0: no limit.

        Returns:
            The copies, in the order of `artifacts`. Left out, and named in the log: dotfiles, names that programs run
            or obey (`conftest.py`, `Makefile`), Python modules where the folder is the current one or another that
            this process imports from, what is no plain file any more, and what exceeds `limit_mb`.

        Raises:
            OSError: the folder can't be made or opened.
            ConfigError: a link on the way leads to a hidden folder.
        """
        saved = save_files(self.artifacts, Path(os.path.expanduser(folder)), limit_mb=limit_mb)
        for one in saved:
            if one.problem:
                _log.warning("not saved in %s: %s", folder, visible_line(one.problem))
        return [one.path for one in saved if one.path is not None]

    @property
    def message(self) -> str:
        """The answer as a chat and a prompt show it: of a long one the beginning, and which file has all of it."""
        return self.round.posts[-1].message if self.text else ""

    @classmethod
    def of(cls, here: Round, usage: Usage, seconds: Seconds | None = None, *, earlier: Sequence[Round] = ()) -> Answer:
        """Read the answer off a round; text and stop are empty if nobody has spoken to the user.

        Args:
            here: The round; one that is open has no answer yet.
            usage: What it has cost.
            seconds: Where its time went; None: not known.
            earlier: The session's rounds before it.
        """
        last, text, stop = here.posts[-1] if here.posts else None, "", ""
        if last is not None and last.send_to == USER:
            text = last.content(AttachmentType.answer, last.message)
            failed = last.content(AttachmentType.execution_status) == "FAILURE" or last.content(
                AttachmentType.code_error
            )
            stop = last.content(AttachmentType.stop, "TaskFailure" if failed else "Completed")
        return cls(text, _artifacts(here), stop, usage, here, seconds or Seconds(), tuple(earlier))

    def files_markdown(self) -> str:
        """Return a Markdown list of the files, each with place and preview; empty if there are none.

        Of very many the first are named: the list becomes part of chats.
        """
        return Artifact.list_markdown(self.artifacts)

    @property
    def is_alone(self) -> bool:
        """Whether no list of files may stand beside the text: it is JSON, or has the form that the request asks for."""
        return RequestedFormat.read(self.round.user_query).is_alone(self.message)

    @property
    def sources(self) -> tuple[NumberSource, ...]:
        """Where each number of `text` comes from, in its order: what code has printed, the request, or nowhere.

        No model is asked; see `NumberSource`. One of the kind `not found` may be made up, or computed by the model.
        """
        return number_sources(self.text, [*self.earlier, self.round])

    @property
    def code(self) -> tuple[str, ...]:
        """The code of this round that ran to its end, a text each time a role ran some."""
        return tuple(post.content(AttachmentType.reply_content) for post in code_cells(self.round))

    @property
    def note(self) -> str:
        """One line: why the round stopped, unless it is completed, and what it has cost."""
        calls = pluralize(self.usage.calls, "model call")
        stopped = "" if self.stop in ("", "Completed") else self.stop
        return " · ".join(filter(None, (stopped, calls, f"{self.seconds.total:.1f} s" if self.seconds.total else "")))

    def __repr__(self) -> str:
        """Return a short text; `text`, `artifacts` and `round` have it all."""
        files = f", {pluralize(len(self.artifacts), 'artifact')}" if self.artifacts else ""
        return f"<Answer {reprlib.repr(self.text)}{files}, {self.note}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return what a notebook shows: the answer with pictures, and folded its plan and code; as text, the words."""
        plain = "\n".join(
            part for part in (self.message.rstrip(), *(str(artifact.path) for artifact in self.artifacts)) if part
        )
        return {
            "text/plain": visible(plain or "(The answer is empty.)"),
            "text/html": answer_html(self.round, self.message, self.artifacts, self.sources, self.note),
        }

    def markdown(self) -> str:
        """Return Markdown for a chat, as of `Round.last_words`: the message, then a line for each file if it may."""
        message, files = self.round.last_words if self.text else "", "" if self.is_alone else self.files_markdown()
        return "\n\n".join(part for part in (message, files) if part)


class ArtifactIndex:
    """Files that were made in a session, also in rounds that were stopped or failed; a handler of its events.

    Args:
        events: What happened in it in a process before.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._saved: dict[Path, Artifact] = {}
        for event in events:
            self(event)

    def __call__(self, event: Event) -> None:
        """Take note of a file."""
        if isinstance(event, ArtifactSaved):
            self._saved[Path(event.path)] = Artifact(event.name, event.kind, Path(event.path), event.preview)

    def below(self, folder: Path, rounds: Sequence[Round]) -> tuple[Artifact, ...]:
        """Return the files of a folder, each path once: those that are still there, and all that posts name.

        Args:
            folder: The session's.
            rounds: The session's.
        """
        artifacts = {artifact.path: artifact for here in rounds for artifact in _artifacts(here)}
        saved = {path: one for path, one in self._saved.items() if path in artifacts or os.path.lexists(path)}
        return tuple(one for path, one in {**saved, **artifacts}.items() if path.is_relative_to(folder))


def _artifacts(here: Round) -> tuple[Artifact, ...]:
    """Return the files that the round's posts name, the newest description of each path."""
    found: dict[str, Artifact] = {}
    for post in here.posts:
        attachment = post.attachment(AttachmentType.artifact_paths)
        for plain in (attachment.extra if attachment else None) or ():
            found[plain["path"]] = Artifact.from_dict(plain)
    return tuple(found.values())
