"""`ReplayModel`: answers from a recording, and says when the recording and the run have parted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.errors import ModelError, ReplayParted
from tw_autogen.model.chat import Completion, Message
from tw_autogen.model.prompt_hash import last_words, prompt_hash
from tw_autogen.model.recording import RecordedReply, Recording

_PIECE_CHARS = 24


class ReplayModel:
    """A recording as a `ChatModel`; one for all roles of a session, from any thread.

    The reply to the very messages that are asked now is given, wherever it stands among those not yet used, so that
    calls side by side may come in another order. If there is none, the next in order is given, and `stale` says so.

    Args:
        recording: The replies, or the file that holds them.
        delay: Seconds between pieces of text, so that a live display has something to show.
        strict: Fail at the first prompt that has changed since it was recorded.
        hide: Paths that are others in each run; see `prompt_hash`.

    Raises:
        ScenarioError: the file is wrong.
    """

    def __init__(
        self,
        recording: Recording | Path | str,
        *,
        delay: float = 0.0,
        strict: bool = False,
        hide: Sequence[str] = (),
    ) -> None:
        self.recording = recording if isinstance(recording, Recording) else Recording.read(recording)
        self.stale: list[str] = []
        """What was asked otherwise than it was recorded, call by call, in words."""
        self._delay = delay
        self._strict = strict
        self._hide = tuple(hide)
        self._left = dict(enumerate(self.recording.replies))
        self._calls = 0
        self._lock = threading.Lock()

    @property
    def unused(self) -> tuple[RecordedReply, ...]:
        """The replies that nobody has asked for yet."""
        with self._lock:
            return tuple(self._left.values())

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        on_text: Callable[[str], None] | None = None,
        seconds: float | None = None,
        cancelled: threading.Event | None = None,
    ) -> Completion:
        """Give the recorded reply, with the usage that it had; see `ChatModel.complete`.

        Raises:
            ReplayParted: all replies are used, or, if strict, the prompt has changed.
            ModelError: cancelled.
        """
        halt = cancelled or threading.Event()
        if halt.is_set():
            raise ModelError(f"{self._name}: the call was cancelled")
        completion = self._take(messages)
        if on_text:
            for piece in pieces(completion.text):
                if halt.wait(self._delay) if self._delay else halt.is_set():
                    raise ModelError(f"{self._name}: the call was cancelled")
                on_text(piece)
        return completion

    @property
    def _name(self) -> str:
        return str(self.recording.path or "the recording")

    def _take(self, messages: Sequence[Message]) -> Completion:
        prompt, last = prompt_hash(messages, hide=self._hide), last_words(messages, hide=self._hide)
        with self._lock:
            number, self._calls = self._calls, self._calls + 1
            if not self._left:
                raise ReplayParted(self._parted(number, last), index=number)
            following = next(iter(self._left))
            index = next((at for at, one in self._left.items() if one.prompt == prompt), following)
            reply = self._left[index]
            if reply.prompt not in ("", prompt):
                note = f"call {number + 1}: recorded after {reply.last!r}, asked now after {last!r}"
                if reply.last == last:
                    note = f"call {number + 1}: something before its last message, {last!r}, is not as it was recorded"
                if self._strict:
                    raise ReplayParted(f"{self._name}: the recording and the run have parted at {note}", index=number)
                self.stale.append(note)
            del self._left[index]
            return reply.completion

    def _parted(self, number: int, last: str) -> str:
        held = len(self.recording.replies)
        said = f"{self._name}: the recording and the run have parted at call {number + 1}: the recording holds "
        said += f"{held} {'reply' if held == 1 else 'replies'}, and one more was asked for after {last!r}."
        if self.stale:
            said += f" The first difference was {self.stale[0]}."
        return f"{said} Record it anew"


def pieces(text: str) -> Iterator[str]:
    """Cut text as a streaming server would."""
    return (text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS))
