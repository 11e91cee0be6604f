"""`Recall`: what one role's prompts are given from elsewhere and from before: examples, lessons, summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tw_autogen.conversation import AttachmentType, Round
from tw_autogen.errors import ModelError
from tw_autogen.events import Event, LessonsRecalled, TalkNotShortened, TalkShortened
from tw_autogen.model import ChatModel, LexicalRanker, ModelRequest, Ranker, is_too_long
from tw_autogen.recall.compress import compress, cut_down
from tw_autogen.recall.examples import Example, fitting_examples
from tw_autogen.recall.experience import Experience, fitting_experiences, read_experiences
from tw_autogen.recall.settings import RecallSettings
from tw_autogen.recall.talk import Talk

_SUB_PATH = "experience_sub_path"
_ROUNDS_APART = 3  # between a summary that has failed and the next attempt
_MOST_SHRINKS = 6
_LESS = 0.7  # of a prompt that was refused as too long
_LEAST_CUT_CHARS = 800
_CUT_CHARS = 2000
_CUT = "(long messages were cut, as the model refused the prompt as too long)"
T = TypeVar("T")
LESSONS = "# Lessons from earlier work (they may fit or not)"


@dataclass
class Recall:
    """What one role is reminded of.

    Args:
        settings: Budgets, and where lessons lie.
        examples: Of this role.
        ranker: Says what is like a request; by words, if none is given.

    Raises:
        ConfigError: a folder that the settings name isn't there.
        ConversationFormatError: a lesson's file is wrong; names it.
        ModelError: the ranker needs a server that could not be asked.
    """

    settings: RecallSettings = field(default_factory=RecallSettings)
    examples: tuple[Example, ...] = ()
    ranker: Ranker = field(default_factory=LexicalRanker)
    _read: dict[Path, tuple[Any, tuple[Experience, ...]]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Read what there is, so that a wrong file shows before the first request."""
        if self.settings.experience:
            self.ranker.prepare([one.about for one in self._experiences(Path(self.settings.experience))])

    def rounds(self, roles: Iterable[str], request: str, *, plugin_only: bool | None = None) -> tuple[Round, ...]:
        """Return the rounds of the examples that belong into a talk which begins with this request.

        Args:
            roles: Who takes part.
            request: What the user asks.
            plugin_only: Whether they are for code that is nothing but calls of plugins; None: either.
        """
        fitting = fitting_examples(
            self.examples,
            roles,
            request,
            tokens=self.settings.example_tokens,
            ranker=self.ranker,
            plugin_only=plugin_only,
        )
        return tuple(one for example in fitting for one in example.conversation.rounds)

    def lessons(self, role: str, here: Round, request: str, emit: Callable[[Event], None]) -> str:
        """Return the lessons that fit a request, in words for a prompt; empty if there are none.

        Args:
            role: Who is reminded.
            here: The current round; a post of it may name a folder of lessons inside the one of the settings, by an
                attachment `shared_memory_entry` of type `experience_sub_path`.
            request: What is asked, or what is to be done.
            emit: Takes the event that says which were recalled.

        Raises:
            ConversationFormatError: a file that has come since is wrong; names it.
        """
        if not self.settings.experience:
            return ""
        folder = Path(self.settings.experience) / _sub_path(here)
        fitting = fitting_experiences(
            self._experiences(folder),
            request,
            top_k=self.settings.experience_top_k,
            min_score=self.settings.experience_min_score,
            ranker=self.ranker,
        )
        if not fitting:
            return ""
        emit(LessonsRecalled(role, [one.id for one in fitting]))
        return "\n".join([LESSONS, *(f"- {' '.join(one.lesson.split())}" for one in fitting)])

    def shorten(
        self,
        talk: Talk,
        model: ChatModel,
        role: str,
        emit: Callable[[Event], None],
        request: ModelRequest,
    ) -> bool:
        """Summarize the older part of a talk that has grown too long; where that fails, the talk goes on as it is.

        After a failure, which is told by an event, it is tried again in the third round from then on, and not before.

        Args:
            talk: Whose next prompt it is about.
            model: Who summarizes.
            role: Whose talk it is.
            emit: Takes the event that says what became of the prompt.
            request: Limits and reports of the call, as for `compress`.

        Returns:
            Whether it was done.

        Raises:
            ModelError: it was cancelled.
            RoundTooCostly: `reserve` allows no call.
        """
        if talk.put_off:
            return False
        before = talk.tokens
        try:
            summary = compress(
                talk,
                model,
                tokens=min(filter(None, (self.settings.compress_tokens, talk.most_tokens)), default=0),
                keep_rounds=self.settings.keep_rounds,
                request=request,
            )
        except ModelError as error:
            if request.cancelled is not None and request.cancelled.is_set():
                raise
            talk.put_off_for(_ROUNDS_APART)
            emit(TalkNotShortened(role, before, str(error), _ROUNDS_APART))
            return False
        if summary:
            emit(TalkShortened(role, before, talk.tokens, summary))
        return bool(summary)

    def ask_within(
        self,
        ask: Callable[[], T],
        talk: Talk,
        model: ChatModel,
        role: str,
        emit: Callable[[Event], None],
        request: ModelRequest,
        *,
        shortened: Callable[[], None],
    ) -> T:
        """Ask; where the model refuses the prompt as longer than its context, shorten the talk and ask again.

        First what was said before the current round becomes a summary, or, where none can be made, a few lines; then
        the longest messages are cut. The talk stays below what was refused from then on.

        Args:
            ask: Asks the model with the talk's messages.
            talk: Whose prompt it is.
            model: Who summarizes.
            role: Whose talk it is.
            emit: Takes the events that say what became of the prompt.
            request: As in `shorten`.
            shortened: Called after each time.

        Raises:
            PromptTooLong: nothing is left that could be shortened.
            ModelError: as `ask`.
        """
        for _ in range(_MOST_SHRINKS):
            try:
                return ask()
            except ModelError as error:
                if not is_too_long(error) or not self._shrink(talk, model, role, emit, request):
                    raise
            shortened()
        return ask()

    def _shrink(
        self, talk: Talk, model: ChatModel, role: str, emit: Callable[[Event], None], request: ModelRequest
    ) -> bool:
        before = talk.tokens
        talk.most_tokens = min(filter(None, (talk.most_tokens, round(before * _LESS))))
        old = talk.older(0)
        try:
            summary = compress(talk, model, tokens=talk.most_tokens, keep_rounds=0, request=request)
        except ModelError:
            if request.cancelled is not None and request.cancelled.is_set():
                raise
            summary = cut_down(talk, old, _CUT_CHARS)
        if not summary and talk.cut_longest(_LEAST_CUT_CHARS):
            summary = _CUT
        if summary:
            emit(TalkShortened(role, before, talk.tokens, summary))
        return bool(summary)

    def _experiences(self, folder: Path) -> tuple[Experience, ...]:
        """Read a folder's lessons, again only if one was added, taken out or mended."""
        changed = [(one.name, one.stat().st_mtime_ns) for one in folder.iterdir()] if folder.is_dir() else []
        known = self._read.get(folder)
        if known is None or known[0] != changed:
            known = self._read[folder] = changed, read_experiences(folder)
        return known[1]


def remember(talk: Talk, listen: Callable[[tuple[Round, ...]], None], rounds: tuple[Round, ...]) -> None:
    """Begin a talk with examples.

    Args:
        talk: A new one.
        listen: Brings the talk up to date with rounds, as if they had been lived.
        rounds: Those of the examples.
    """
    if rounds:
        talk.tell("(What follows are examples from other conversations.)")
        listen(rounds)
        talk.settle("(The examples end here. Nothing of what they made exists.)")


def _sub_path(here: Round) -> str:
    """Return the folder inside the folder of lessons that a role has asked for, the newest; empty if none has."""
    for post in reversed(here.posts):
        entry = post.attachment(AttachmentType.shared_memory_entry)
        extra = entry.extra if entry is not None and isinstance(entry.extra, dict) else {}
        if extra.get("type") == _SUB_PATH:
            wanted = Path(str(extra.get("content") or ""))
            return "" if wanted.is_absolute() or ".." in wanted.parts else str(wanted)
    return ""
