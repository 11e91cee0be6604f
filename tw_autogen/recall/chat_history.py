"""`ChatHistory`: one role's message list in one session, only ever appended to.

Each prompt begins with the last one, so that a server can cache it, and a recording replays.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tw_autogen.conversation import Memory, Post, Round, RoundState
from tw_autogen.errors import REFUSED, ModelError, is_refused_prompt
from tw_autogen.model import TokenEstimate
from tw_autogen.python_source import parsed_cell
from tw_autogen.text_truncation import long_paragraphs, without_known_paragraphs, without_middle

_Content = str | list[dict[str, Any]]
"""Text, or text and image parts."""
_FAILURE_CHARS, _CUT_CHARS = 240, 600
_REPLACED = "(What replaced it ran; this is a part of the report.)"
_SEEN_AGAIN = "(It was looked at again further down; this is a part of it.)"
_MAX_REFUSALS = 3
_GROWN_CHARS, _GROWN_SHARE = 400, 0.05
"""What a prompt must have grown by until its tokens are compared with those before."""
_MIN_OF_BEFORE, _MAX_OF_GROWTH = 0.75, 0.1
"""A server that counts only what it had not cached reports much less; one that cuts, about as much as before."""
_STALLS, _CUT_MARGIN = 2, 0.9
_REFUSED = re.compile(rf"{REFUSED} \((?:400|422)\)")
_WITHDRAWN = (
    "(What was said here is left out, as the model's server refuses it. If it is needed, have it said otherwise.)"
)


class ChatHistory:
    """The messages that one role exchanges with its model.

    Args:
        system: The static text; never changed.

    Texts that have no answer yet are one message, so that the messages of user and assistant alternate, as some models
    demand. Only these methods change a message: `append_user` the last one while it has no answer,
    `withdraw_if_refused`, `replace`, `replace_oldest`, `prune` and `cut_longest`.
    """

    def __init__(self, system: str) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        self._seen: set[str] = set()
        self._static = 1
        self._fixed: _Content = ""
        self._front: _Content = ""
        self._begun: dict[str, int] = {}
        self._postponed_to = 0
        self._refusals = 0
        self.max_tokens = 0
        """The most tokens that a prompt may have, after the server has refused or cut longer ones; 0: none was."""
        self._estimate = TokenEstimate()
        self._counted = (0, 0)
        self._stalls = 0
        self.results = SupersededResults()
        """What `prune` leaves out."""
        self._notes = ""
        """What the session has added to the user's newest words, such as a note on their folder."""

    @property
    def tokens(self) -> int:
        """The estimated tokens of the prompt, calibrated by what the server has reported."""
        return self.estimate_tokens(self.messages)

    def estimate_tokens(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Return the estimated number of tokens of these messages."""
        return round(self._estimate.tokens(TokenEstimate.count_chars(messages)))

    def track_prompt_tokens(self, prompt_tokens: int) -> int:
        """Calibrate the estimate by the tokens that the server counted in the prompt of the newest answer.

        A prompt that has grown twice, while its tokens have not, was cut by the server: that count calibrates nothing,
        and the next prompts are to be shorter than it.

        Args:
            prompt_tokens: As reported; 0: it reported none, and the estimate stays.

        Returns:
            At how many tokens the server has begun to cut prompts; 0: it has not.
        """
        self._refusals = 0
        chars = TokenEstimate.count_chars(self.messages[:-1])
        before_chars, before_tokens = self._counted
        grown = chars - before_chars
        if prompt_tokens and not 0 <= grown <= max(_GROWN_CHARS, before_chars * _GROWN_SHARE):
            least, most = (
                before_tokens * _MIN_OF_BEFORE,
                before_tokens + self._estimate.tokens(grown) * _MAX_OF_GROWTH,
            )
            plain = all(
                isinstance(message["content"], str) for message in self.messages
            )  # nobody knows an image's tokens
            self._stalls = self._stalls + 1 if plain and grown > 0 and least <= prompt_tokens < most else 0
            self._counted = chars, max(prompt_tokens, before_tokens if grown > 0 else 0)
        if not self._stalls:
            self._estimate.track_prompt_tokens(chars, prompt_tokens)
        limit = round(prompt_tokens * _CUT_MARGIN)
        if self._stalls < _STALLS or 0 < self.max_tokens <= limit:
            return 0
        self.max_tokens = limit
        return prompt_tokens

    def end_examples(self, text: str) -> None:
        """Make all messages so far, the examples, part of the static beginning, which is never shortened.

        Args:
            text: What ends the examples; what is appended next follows them.
        """
        self.append_user(text)
        self._static = len(self.messages) - 1
        self._fixed = self._front = self.messages[-1]["content"]
        self._begun = {}

    def begin_round(self, round_id: str) -> None:
        """Note that a round begins here, unless it has begun before."""
        if round_id not in self._begun:
            pending = self.messages[-1]["role"] == "user"
            self._begun[round_id] = max(self._static, len(self.messages) - pending)

    @property
    def is_postponed(self) -> bool:
        """True until as many rounds have begun as `postpone` was given."""
        return len(self._begun) < self._postponed_to

    def postpone(self, rounds: int) -> None:
        """Postpone the next attempt to compress until so many more rounds have begun.

        Args:
            rounds: At least 1; 1 is over as soon as the next one begins.
        """
        self._postponed_to = len(self._begun) + rounds

    def older_messages(self, keep_rounds: int) -> list[dict[str, Any]]:
        """Return the messages of older rounds, without the text that ends the examples.

        Args:
            keep_rounds: How many rounds before the current one are not among them.
        """
        begun = list(self._begun.values())
        end = begun[-1 - keep_rounds] if len(begun) > keep_rounds else self._static
        old = self.messages[self._static : end]
        if old and self._fixed:
            old[0] = {**old[0], "content": _content_after(old[0]["content"], self._fixed)}
        return old

    def replace_oldest(self, count: int, summary: str) -> None:
        """Replace the oldest messages after the static part by a text.

        Args:
            count: How many messages.
            summary: The text that stands in their place.
        """
        start, end = self._static, self._static + count
        for part in (
            part
            for message in self.messages[start:end]
            if message["role"] == "user"
            for part in _content_parts(message["content"])
        ):
            self.results.drop(part.get("text", ""))
        follows = self.messages[end] if end < len(self.messages) else None
        answered = follows is not None and follows["role"] != "user"
        next_text = "" if follows is None or answered else follows["content"]
        self._front = _join_contents(self._fixed, summary)
        self.messages[start : end + bool(next_text)] = [
            {"role": "user", "content": _join_contents(self._front, next_text)}
        ]
        gone = count - 1 if answered else count  # what the user says next is added to the summary
        self._begun = {key: max(start, index - gone) for key, index in self._begun.items()}

    def append_user(self, text: str, images: tuple[str, ...] = ()) -> None:
        """Append a text of the user, to the last message if that has no answer yet.

        Args:
            text: Text; a blank line separates it from a text before it.
            images: URLs (`data:` or `https:`) that become image parts after the text.
        """
        seen = [{"type": "image_url", "image_url": {"url": url}} for url in images]
        last = self.messages[-1]
        if last["role"] == "user":
            last["content"] = _join_contents(last["content"], text, seen)
        else:
            self.messages.append({"role": "user", "content": _join_contents(text, seen)})

    def pruned(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return messages with a part only of each result that a later one has superseded.

        Args:
            messages: Some of this history, from its oldest on.
        """
        shorten = self.results.shortener()
        return [
            {
                **message,
                "content": _join_contents([_with_text(part, shorten) for part in _content_parts(message["content"])]),
            }
            if message["role"] == "user"
            else dict(message)
            for message in messages
        ]

    @property
    def prunable_tokens(self) -> int:
        """The estimated tokens that `prune` would leave out."""
        there = self.messages[self._static : -1]
        return self.estimate_tokens(there) - self.estimate_tokens(self.pruned(there))

    def prune(self) -> int:
        """Leave out most of each superseded result, but for the last message; a cached prefix ends at the first one.

        Returns:
            How many characters were left out.
        """
        before = TokenEstimate.count_chars(self.messages)
        self.messages[self._static : -1] = self.pruned(self.messages[self._static : -1])
        self.results.forget()
        return before - TokenEstimate.count_chars(self.messages)

    def cut_longest(self, min_chars: int) -> bool:
        """Cut the longest message of the user, other than examples, to half of its length.

        Args:
            min_chars: Messages shorter than this stay.

        Returns:
            True if there was one to cut.
        """
        mine = [message for message in self.messages[self._static :] if message["role"] == "user"]
        lengths = [
            (sum(len(part.get("text", "")) for part in _content_parts(message["content"])), message) for message in mine
        ]
        chars, longest = max(lengths, key=lambda length: length[0], default=(0, {}))
        if chars < min_chars:
            return False
        parts = _content_parts(longest["content"])
        longest["content"] = _join_contents([_with_text(part, _halve) for part in parts])
        return True

    def withdraw_if_refused(self, error: ModelError) -> bool:
        """Replace what has no answer yet by a line, if the model's server has refused the prompt for what it holds.

        Otherwise each later prompt would be refused as well. A refusal for another reason, such as an empty account,
        takes nothing out. Examples and a summary stay. `repeat_notes` brings the session's notes again, but not after a
        third time in a row: they may be what is refused.

        Args:
            error: Why there is no answer.

        Returns:
            True if the error is such a refusal.
        """
        last = self.messages[-1]
        if not _is_refusal(str(error)) or last["role"] != "user":
            return False
        self._refusals += 1
        if self._refusals >= _MAX_REFUSALS:
            self._notes = ""
        front = self._front if len(self.messages) - 1 == self._static else ""
        last["content"] = _join_contents(front, _WITHDRAWN)
        return True

    def replace(self, words: str, others: str) -> None:
        """Replace a text in all messages of the user; a cached prefix ends there.

        Args:
            words: The text.
            others: What it becomes.
        """
        for message in self.messages[1:]:
            if message["role"] == "user":
                parts = [
                    _with_text(part, lambda text: text.replace(words, others))
                    for part in _content_parts(message["content"])
                ]
                message["content"] = _join_contents(parts)

    def without_repeated_notes(self, post: Post, rounds: Sequence[Round]) -> str:
        """Return the message of the user's post; long paragraphs of the session that the last one had are only named.

        Args:
            post: The user's.
            rounds: What the role sees; the user's own words are left alone.
        """
        own = next((round_.user_query for round_ in rounds if any(post.id == each.id for each in round_.posts)), "")
        text, notes = (own, post.message[len(own) :]) if post.message.startswith(own) else (post.message, "")
        before, self._notes = self._notes, notes
        return text + without_known_paragraphs(notes, before)

    def repeat_notes(self) -> None:
        """Append the session's notes that a summary has taken out, so far as they still hold."""
        if lost := self.lost(long_paragraphs(self._notes)):
            self.append_user("\n\n".join(lost))

    def lost(self, parts: Sequence[str]) -> list[str]:
        """Return the texts that no message holds any more.

        Args:
            parts: Texts.
        """
        told = [part.get("text", "") for message in self.messages[1:] for part in _content_parts(message["content"])]
        return [part for part in parts if not any(part in text for text in told)]

    def append_assistant(self, text: str) -> None:
        """Append an answer that came without a call: of a stored round, or forwarded."""
        self.messages.append({"role": "assistant", "content": text})

    def unread(self, memory: Memory) -> Iterator[Post | Round]:
        """Yield what is not in this history yet, oldest first; a round begins with its first post.

        Each is marked as read when the next one is asked for: what is appended one by one is read, and no more.

        Args:
            memory: What the role sees.

        Returns:
            Posts, and after the posts of a round that has failed since, that round. Of one in which a prompt was
            refused, as in `withdraw_if_refused`, those after the role's own last one are left out.
        """
        for round_ in memory.rounds:
            answered = [number for number, post in enumerate(round_.posts, 1) if post.send_from == memory.role]
            until = max(answered, default=0) if _is_refusal(round_.error) else None
            for post in round_.posts[:until]:
                if post.id not in self._seen:
                    self.begin_round(round_.id)
                    yield post
                    self._seen.add(post.id)
            if round_.state is RoundState.failed and round_.id not in self._seen:
                yield round_
                self._seen.add(round_.id)

    def mark_read(self, post: Post) -> None:
        """Mark a post as read that is in the history: the role's own as the model's answer, or its task."""
        self._seen.add(post.id)


def _is_refusal(error: str) -> bool:
    return _REFUSED.search(error) is not None and is_refused_prompt(error)


def _halve(text: str) -> str:
    """Return the first and last quarter of a text, with a mark between them."""
    return without_middle(text, kept, tail_percent=50) if (kept := len(text) // 4 * 2) else text


def _content_parts(content: _Content) -> list[dict[str, Any]]:
    return ([{"type": "text", "text": content}] if content else []) if isinstance(content, str) else content


def _join_contents(*contents: _Content) -> _Content:
    """Join contents, texts that meet with a blank line between them; plain text if it is all text."""
    parts: list[dict[str, Any]] = []
    for part in (part for content in contents for part in _content_parts(content)):
        if part.get("text") == "":
            continue
        if parts and "text" in parts[-1] and "text" in part:
            parts[-1] = {**part, "text": f"{parts[-1]['text']}\n\n{part['text']}"}
        else:
            parts.append(part)
    if not parts:
        return ""
    return str(parts[0]["text"]) if len(parts) == 1 and "text" in parts[0] else parts


def _content_after(content: _Content, front: _Content) -> _Content:
    """Return the content after its beginning, the last part of which is text."""
    fixed = _content_parts(front)
    first, *more = _content_parts(content)[len(fixed) - 1 :]
    return _join_contents([_with_text(first, lambda text: text.removeprefix(fixed[-1]["text"]).strip())], more)


def _with_text(part: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    return {**part, "text": change(part["text"])} if "text" in part else part


class SupersededResults:
    """Finds failures that a later cell has fixed, and cut outputs that a later cell has looked at again.

    Texts in a history stay as they are until `shortener` is called for them, when the history is shortened anyway. A
    report may stand in it several times, as the same failure in two tasks: the oldest ones are those superseded.
    """

    def __init__(self) -> None:
        self._failed: list[str] = []
        self._cut = ("", "")
        self._shorter: dict[str, str] = {}
        self._left: Counter[str] = Counter()

    def begin_task(self) -> None:
        """Note that another task begins: what failed before it is not fixed by what it does."""
        self._failed.clear()

    def note(self, report: str, *, code: str, ok: bool, kept_as: str) -> None:
        """Note the next result.

        Args:
            report: As it stands in the history.
            code: What ran, or was to run.
            ok: Whether it ran to its end.
            kept_as: The variable that holds the whole output, of which the report has a part only; empty: it has all.
        """
        if not ok:
            self._failed.append(report)
            return
        for failure in self._failed:
            self._note_shorter(failure, _FAILURE_CHARS, _REPLACED)
        self._failed.clear()
        name, cut = self._cut
        if name and _reads_variable(code, name):
            self._note_shorter(cut, _CUT_CHARS, _SEEN_AGAIN)
            self._cut = ("", "")
        if kept_as:
            self._cut = kept_as, report

    def shortener(self) -> Callable[[str], str]:
        """Return what shortens the texts of a history, to be called for each from the oldest on."""
        return partial(self._shorten, Counter(self._left))

    def drop(self, text: str) -> None:
        """Note that a text, the oldest one, has left the history."""
        self._shorten(self._left, text)

    def forget(self) -> None:
        """Forget the results that are superseded, after they were shortened."""
        self._shorter.clear()
        self._left.clear()

    def _shorten(self, left: Counter[str], text: str) -> str:
        """Return a text in which of each superseded result only a part is left; reduce how many are left."""
        for report, kept in self._shorter.items():
            if count := min(left[report], text.count(report)):
                text = text.replace(report, kept, count)
                left[report] -= count
        return text

    def _note_shorter(self, report: str, limit_chars: int, why: str) -> None:
        tail = limit_chars // 3
        kept = f"{report[: limit_chars - tail]}\n…\n{report[-tail:]}\n{why}"
        if len(kept) < len(report):
            self._shorter[report] = kept
            self._left[report] += 1


def _reads_variable(code: str, name: str) -> bool:
    r"""Return whether code reads a variable; lines of magics do not count.

    Example:
        >>> _reads_variable("%time\nprint(seen[:9])", "seen"), _reads_variable("seen = 5", "seen")
        (True, False)
    """
    tree = parsed_cell(code)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)] if tree else []
    return any(node.id == name and isinstance(node.ctx, ast.Load) for node in names)
