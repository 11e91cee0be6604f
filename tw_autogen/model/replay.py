"""`ReplayModel`: answers from a recording, and says when the recording and the run have parted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tw_autogen.errors import ModelError, ReplayParted
from tw_autogen.model.chat_model import Completion, Message
from tw_autogen.model.model_request import BaseChatModel, ModelRequest
from tw_autogen.model.prompt_hash import last_message_head, prompt_hash, system_hash
from tw_autogen.model.recording import RecordedReply, Recording

_PIECE_CHARS = 24


class ReplayModel(BaseChatModel):
    """A recording as a `ChatModel`; one for all roles of a session, from any thread.

    Each role gets only the replies that were recorded for it, so that concurrent roles don't take each other's. The
    unused reply to the same messages comes first, wherever it is in the recording, because concurrent calls of a role
    may change their order; `moved` lists those that were not next. If no prompt is the same, the role's next reply is
    used, and `stale` lists the call. A role without replies left is an error. `asked_as` names the role; a request
    without a role gets any reply, and a reply without a role answers any request.

    Args:
        recording: The replies, or the file that holds them.
        delay: Seconds between pieces of text, so that a live display has something to show.
        strict: Fail at the first prompt that has changed since it was recorded.
        hide: Paths that differ from run to run; see `prompt_hash`.

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
        """The calls whose prompt differs from the recorded one, in words."""
        self.moved: list[str] = []
        """The calls whose reply was recorded after others that are not used yet, in words."""
        self._delay = delay
        self._strict = strict
        self._hide = tuple(hide)
        self._left = dict(enumerate(self.recording.replies))
        self._calls = 0
        self._lock = threading.Lock()

    @property
    def objects_only(self) -> bool:
        """As of the model that was recorded."""
        return self.recording.objects_only

    @property
    def unused_words(self) -> str:
        """The roles whose replies were not used, with how many there are for each."""
        return names_of(self.unused)

    @property
    def unused(self) -> tuple[RecordedReply, ...]:
        """The replies that are not used yet."""
        with self._lock:
            return tuple(self._left.values())

    def answer(self, request: ModelRequest) -> Completion:
        """Return the reply that was recorded for the request's role, with the usage that it had.

        Args:
            request: Its `schema`, `tools` and `seconds` do not matter.

        Raises:
            ReplayParted: all replies are used, or, if strict, the prompt has changed.
            ModelError: cancelled.
        """
        halt = request.cancelled or threading.Event()
        if halt.is_set():
            raise ModelError(f"{self._recording_name}: the call was cancelled")
        completion = self._take_reply(request.role, request.messages)
        if request.on_text:
            for piece in pieces(completion.text):
                if halt.wait(self._delay) if self._delay else halt.is_set():
                    raise ModelError(f"{self._recording_name}: the call was cancelled")
                request.on_text(piece)
        return completion

    @property
    def _recording_name(self) -> str:
        return str(self.recording.path or "the recording")

    def _take_reply(self, role: str, messages: Sequence[Message]) -> Completion:
        prompt, last = prompt_hash(messages, hide=self._hide), last_message_head(messages, hide=self._hide)
        with self._lock:
            number, self._calls = self._calls, self._calls + 1
            call = f"call {number + 1}" + (f", {role}" if role else "")
            own = [index for index, one in self._left.items() if _goes_with(one, role)]
            if not own:
                raise ReplayParted(self._parted_message(role, call, last), index=number)
            index = next((index for index in own if self._left[index].prompt == prompt), own[0])
            reply = self._left[index]
            if reply.prompt not in ("", prompt):
                note = f"{call}: recorded after {reply.last!r}, asked now after {last!r}"
                if reply.last == last:
                    note = f"{call}: something before its last message, {last!r}, is not as it was recorded"
                if reply.system and reply.system != system_hash(messages, hide=self._hide):
                    note = f"{call}: its system message is not as it was recorded"
                if self._strict:
                    raise ReplayParted(
                        f"{self._recording_name}: the recording and the run have parted at {note}", index=number
                    )
                self.stale.append(note)
            if index != own[0]:
                self.moved.append(f"{call}: its reply is number {index + 1}, and number {own[0] + 1} waits still")
            del self._left[index]
            return reply.completion

    def _parted_message(self, role: str, call: str, last: str) -> str:
        held = sum(_goes_with(reply, role) for reply in self.recording.replies)
        message = f"{self._recording_name}: the recording and the run have parted at {call}: the recording holds "
        message += f"{held} {'reply' if held == 1 else 'replies'}{f' for {role}' if role else ''}, "
        message += f"and one more was asked for after {last!r}."
        if self._left:
            message += f" Left over are those for {names_of(self._left.values())}."
        if self.stale:
            message += f" The first difference was {self.stale[0]}."
        return f"{message} Record it anew"


def names_of(replies: Iterable[RecordedReply]) -> str:
    """Name the roles for which these replies were recorded, with how many there are for each.

    Example:
        >>> names_of([RecordedReply(Completion("a"), role="Planner"), RecordedReply(Completion("b"), role="Planner")])
        'Planner (2)'
    """
    counts = Counter(reply.role or "anybody" for reply in replies)
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def _goes_with(reply: RecordedReply, role: str) -> bool:
    return not role or reply.role in ("", role)


def pieces(text: str) -> Iterator[str]:
    """Cut text as a streaming server would."""
    return (text[index : index + _PIECE_CHARS] for index in range(0, len(text), _PIECE_CHARS))
