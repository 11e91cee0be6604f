"""`Recall`: examples, lessons and summaries for the prompts of one role."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from tw_autogen.conversation import Round
from tw_autogen.errors import REFUSED, ModelError, ModelUnreadable, Unreadable
from tw_autogen.events import CompactionFailed, Event, HistoryCompacted, LessonsRecalled
from tw_autogen.model import ChatModel, LexicalRanker, ModelRequest, Ranker, ask, is_too_long, read_code
from tw_autogen.recall.chat_history import ChatHistory
from tw_autogen.recall.examples import Example, select_examples
from tw_autogen.recall.experiences import Experience, read_experiences, select_experiences
from tw_autogen.recall.settings import RecallSettings

_ROUNDS_APART = 3  # between a summary that has failed and the next attempt
_MAX_SHRINKS = 6
_LESS = 0.7  # of a prompt that was refused as too long
_MIN_CUT_CHARS = 800
_CUT_CHARS = 2000
_CUT = "(long messages were cut, as the model refused the prompt as too long)"
_WANTED = "summary: write the summary, in plain text"
_REFUSAL = re.compile(
    r"\s{0,9}(?:(?:i['’]m|i am)(?: very)? sorry|sorry|i (?:can['’]?t|cannot|won['’]t|am unable))\b"
    r"[^\n]{0,200}\s{0,9}\Z",
    re.I,
)
"""One line that refuses, in place of a summary."""
T = TypeVar("T")
LESSONS = "# Lessons from earlier work (they may fit or not)"
_SUMMARY_PROMPT = Template(Path(__file__).with_name("summary.md").read_text(encoding="utf-8").strip())
_MIN_SHARE = 0.2  # what would save less than this of the budget is not worth a call
_WORDS_SHARE = 8  # words of a summary: the budget in tokens through this
_SUMMARY_HEAD = "# What was said before, in short\n"


@dataclass
class Recall:
    """Examples, lessons and compression for one role.

    Args:
        settings: Budgets, and the folder of lessons.
        examples: Of this role.
        ranker: Ranks texts by similarity to a request; by words, if none is given.

    Raises:
        ConfigError: a folder that the settings name isn't there.
        ConversationFormatError: a lesson's file is wrong; names it.
        ModelError: the ranker needs a server that could not be asked.
    """

    settings: RecallSettings = field(default_factory=RecallSettings)
    examples: tuple[Example, ...] = ()
    ranker: Ranker = field(default_factory=LexicalRanker)
    _lessons: dict[Any, tuple[Experience, ...]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Read what there is, so that a wrong file shows before the first request."""
        if self.settings.experience:
            self.ranker.prepare([experience.about for experience in self._experiences()])

    def example_rounds(
        self, roles: Iterable[str], request: str, *, plugin_only: bool | None = None
    ) -> tuple[Round, ...]:
        """Return the rounds of the examples that fit a history which begins with this request.

        Args:
            roles: Who takes part.
            request: What the user asks.
            plugin_only: Whether they are for code that is nothing but calls of plugins; None: either.
        """
        fitting = select_examples(
            self.examples,
            roles,
            request,
            tokens=self.settings.example_tokens,
            ranker=self.ranker,
            plugin_only=plugin_only,
        )
        return tuple(one for example in fitting for one in example.conversation.rounds)

    def lessons(self, role: str, request: str, emit: Callable[[Event], None]) -> str:
        """Return the lessons that fit a request, as text for a prompt; empty if there are none.

        Args:
            role: The role whose prompt it is.
            request: What is asked, or what is to be done.
            emit: Takes the event that says which were recalled.

        Raises:
            ConversationFormatError: a file that has come since is wrong; names it.
        """
        if not self.settings.experience:
            return ""
        fitting = select_experiences(
            self._experiences(),
            request,
            top_k=self.settings.experience_top_k,
            min_score=self.settings.experience_min_score,
            ranker=self.ranker,
        )
        if not fitting:
            return ""
        emit(LessonsRecalled(role, [one.id for one in fitting]))
        return "\n".join([LESSONS, *(f"- {' '.join(one.lesson.split())}" for one in fitting)])

    def compress_history(
        self,
        history: ChatHistory,
        model: ChatModel,
        role: str,
        emit: Callable[[Event], None],
        request: ModelRequest,
        *,
        now: bool = False,
    ) -> bool:
        """Shorten a history that has grown too long: results that later ones have superseded, and the older part.

        Where the results are enough, no model is asked. Otherwise the older part becomes a summary, and the results are
        left out of it and of what stays; if no summary comes, the history stays as it is, which is an event, and the
        next attempt comes three rounds later.

        Args:
            history: Changed in place.
            model: Who summarizes.
            role: The role whose history it is.
            emit: Takes the event that says what became of the prompt.
            request: Limits and reports of the call, as for `compress`.
            now: However short the history is, and all before its last round; less than a tenth of it is left alone.

        Returns:
            Whether a part became a summary.

        Raises:
            ModelError: it was cancelled.
            RoundTooCostly: `reserve` allows no call.
        """
        if history.is_postponed and not now:
            return False
        before = history.tokens
        limit = min((one for one in (self.settings.compress_tokens, history.max_tokens) if one > 0), default=0)
        if limit and before > limit and not now:
            prunable = history.prunable_tokens
            if before - prunable <= limit and prunable >= limit * _MIN_SHARE:
                pruned = history.prune()
                emit(HistoryCompacted(role, before, history.tokens, pruned_chars=pruned))
                return False
        try:
            summary = compress(
                history,
                model,
                tokens=before // 2 if now else limit,
                keep_rounds=0 if now else self.settings.keep_rounds,
                request=request,
            )
        except ModelError as error:
            if request.cancelled is not None and request.cancelled.is_set():
                raise
            history.postpone(_ROUNDS_APART)
            emit(CompactionFailed(role, before, str(error), _ROUNDS_APART))
            return False
        if summary:
            pruned = history.prune()
            emit(HistoryCompacted(role, before, history.tokens, summary, pruned))
        return bool(summary)

    def ask_compressing(
        self,
        ask: Callable[[], T],
        history: ChatHistory,
        model: ChatModel,
        role: str,
        emit: Callable[[Event], None],
        request: ModelRequest,
        *,
        shortened: Callable[[], None],
    ) -> T:
        """Ask; if the model refuses the prompt as longer than its context, compress the history and ask again.

        First superseded results are left out, then the messages before the current round become a summary or, if the
        model refuses to make one, a few lines; then the longest messages are cut. From then on the history stays
        shorter than what was refused.

        Args:
            ask: Asks the model with the history's messages.
            history: Changed in place.
            model: Who summarizes.
            role: The role whose history it is.
            emit: Takes the events that say what became of the prompt.
            request: As in `compress`.
            shortened: Called after each time.

        Raises:
            PromptTooLong: nothing is left that could be shortened.
            ModelError: as `ask`.
        """
        for _ in range(_MAX_SHRINKS):
            try:
                return ask()
            except ModelError as error:
                if not is_too_long(error) or not self._shrink(history, model, role, emit, request):
                    raise
            shortened()
        return ask()

    def _shrink(
        self, history: ChatHistory, model: ChatModel, role: str, emit: Callable[[Event], None], request: ModelRequest
    ) -> bool:
        before = history.tokens
        history.max_tokens = min(filter(None, (history.max_tokens, round(before * _LESS))))
        if pruned := history.prune():
            emit(HistoryCompacted(role, before, history.tokens, pruned_chars=pruned))
            return True
        try:
            summary = compress(history, model, tokens=history.max_tokens, keep_rounds=0, request=request)
        except ModelError as error:
            if not (is_too_long(error) or isinstance(error, ModelUnreadable) or REFUSED in str(error)):
                raise  # cancelled, busy or away: a summary can be made later, and what is dropped is gone
            summary = _keep_newest(history)
        if not summary and history.cut_longest(_MIN_CUT_CHARS):
            summary = _CUT
        if summary:
            emit(HistoryCompacted(role, before, history.tokens, summary))
        return bool(summary)

    def _experiences(self) -> tuple[Experience, ...]:
        """Read the lessons; again only if one was added, removed or changed."""
        folder = Path(self.settings.experience)
        there = folder.iterdir() if folder.is_dir() else ()
        files = tuple((one.name, one.stat().st_mtime_ns if one.exists() else 0) for one in there)
        found = self._lessons.get(files)
        if found is None:
            found = read_experiences(folder)
            self._lessons.clear()
            self._lessons[files] = found
        return found


def add_examples(history: ChatHistory, listen: Callable[[tuple[Round, ...]], None], rounds: tuple[Round, ...]) -> None:
    """Append examples to a new history.

    Args:
        history: A new one.
        listen: Appends the posts of rounds to the history.
        rounds: The rounds of the examples.
    """
    if rounds:
        history.append_user("(What follows are examples from other conversations.)")
        listen(rounds)
        history.end_examples("(The examples end here. Nothing of what they made exists.)")


def compress(
    history: ChatHistory,
    model: ChatModel,
    *,
    tokens: int,
    keep_rounds: int,
    request: ModelRequest | None = None,
) -> str:
    """Replace the older rounds of a history by a summary, if its next prompt would exceed a budget.

    Args:
        history: Changed in place; a cached prefix ends there.
        model: Who summarizes.
        tokens: The budget of a prompt; 0: no limit.
        keep_rounds: How many rounds before the current one stay word for word, so that what was asked last and is not
            answered yet is never summarized.
        request: Limits and reports of the call, as for `ask`; its messages and wishes do not matter. None: no limits.

    Returns:
        The summary; empty if none was made, because the prompt is short, or there is too little that is old.

    Raises:
        ModelError: the model could not be asked; the history is as it was.

    Source: TaskWeaver's round compressor. Differs: by tokens and not by rounds.
    """
    if not tokens or history.tokens <= tokens:
        return ""
    old = history.older_messages(keep_rounds)
    if history.estimate_tokens(old) < tokens * _MIN_SHARE:
        return ""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _SUMMARY_PROMPT.substitute(words=max(60, tokens // _WORDS_SHARE))},
        {"role": "user", "content": _transcript(history.pruned(old))},
    ]
    summary, _ = ask(model, replace(request or ModelRequest(), messages=messages), _read, whole=True)
    history.replace_oldest(len(old), f"{_SUMMARY_HEAD}{summary}")
    return summary


def _keep_newest(history: ChatHistory) -> str:
    """Replace all before the current round by its end; return the text that replaces it, empty if nothing is there."""
    old = history.older_messages(0)
    if not old:
        return ""
    summary = f"{_SUMMARY_HEAD}(Most of it is lost. It ended with:)\n{_transcript(old)[-_CUT_CHARS:]}"
    history.replace_oldest(len(old), summary)
    return summary


def _transcript(messages: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):
            content = "\n".join(str(part.get("text", "[image]")) for part in content)
        who = "Told" if message["role"] == "user" else "Answered"
        lines.append(f"## {who}\n{content}")
    return "\n\n".join(lines)


def _read(text: str) -> str:
    """Return a summary without the thoughts around it.

    Raises:
        Unreadable: it has no words, or is a refusal.
    """
    try:
        read = read_code(text)
    except Unreadable:
        raise Unreadable(f"it holds no {_WANTED}") from None
    thought = text.strip() if read.code else read.thought
    if _REFUSAL.match(thought):
        raise Unreadable(f"it is no {_WANTED}")
    return thought
