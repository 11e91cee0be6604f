"""`Recording`: a model's replies in a YAML file with readable diffs, and `RecordingModel`, which writes it.

format: 1
model: gpt-5.4-mini
date: '2026-11-21'
objects_only: true                # only where a reply to a schema can hold nothing else: prompts say less then
replies:
- role: Planner                   # who asked
  system: 0a41…                   # of the system message alone, to say what has changed
  prompt: 5f1c…                   # sha256 of the messages, without what differs from run to run
  last: 'user: From: User Message: what is 6*7?'
  reply: |-
    {"reasoning": "…"}
  usage: {prompt: 1200, cached: 1024, completion: 80}
  finish_reason: stop
  model: gpt-5.4-mini
"""

from __future__ import annotations

import contextlib
import datetime
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.errors import ScenarioError, unknown_key
from tw_autogen.model.chat_model import ChatModel, Completion, ToolCall, Usage
from tw_autogen.model.model_request import BaseChatModel, ModelRequest, complete, objects_only
from tw_autogen.model.prompt_hash import last_message_head, prompt_hash, system_hash
from tw_autogen.private_files import FILE_MODE
from tw_autogen.safe_folder import SafeFolder, open_or_make_folder
from tw_autogen.yaml_files import Block, OneLineMapping, read_yaml, readable_yaml

FORMAT = 1
_MAX_BYTES = 64 << 20
_WIDTH = 1_000_000  # no line is folded, so that a diff shows what has changed
_KEYS = ("role", "system", "prompt", "last", "reply", "tool_calls", "usage", "finish_reason", "model")


@dataclass(frozen=True)
class RecordedReply:
    """One call.

    Args:
        completion: What the model answered.
        prompt: Hash of the messages that it answered; empty if any will do.
        last: A readable head of the last of them, for errors.
        role: Who asked; empty if that isn't known, and it answers whoever asks.
        system: Short hash of the system message; empty if there was none, or that isn't known.
    """

    completion: Completion
    prompt: str = ""
    last: str = ""
    role: str = ""
    system: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values of the file's entry."""
        completion, usage = self.completion, self.completion.usage
        tokens = {"prompt": usage.prompt_tokens, "cached": usage.cached_tokens, "completion": usage.completion_tokens}
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in completion.tool_calls]
        return {
            **({"role": self.role} if self.role else {}),
            **({"system": self.system} if self.system else {}),
            "prompt": self.prompt,
            "last": self.last,
            "reply": Block(completion.text),
            **({"tool_calls": calls} if calls else {}),
            "usage": OneLineMapping(tokens),
            "finish_reason": completion.finish_reason,
            "model": completion.model,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RecordedReply:
        """Read one entry; all but `reply` may be missing, as in a file written by hand.

        Raises:
            KeyError: there is no `reply`.
            ValueError: a key is unknown, the `reply` is no text, or a number is none.
        """
        if not isinstance(plain, Mapping):
            raise ValueError(f"expected `reply: …`, found {type(plain).__name__}")
        if problem := unknown_key(plain, _KEYS):
            raise ValueError(problem)
        if not isinstance(plain["reply"], str):  # YAML reads No and 3.10 as something else
            kind = type(plain["reply"]).__name__
            raise ValueError(f"`reply`: expected text, found {kind}; put it in quotes, or below `reply: |-`")
        tokens = plain.get("usage") or {}
        prompt, cached, written = (int(tokens.get(key, 0)) for key in ("prompt", "cached", "completion"))
        completion = Completion(
            text=plain["reply"],
            tool_calls=tuple(
                ToolCall(**{k: str(v) for k, v in call.items()}) for call in plain.get("tool_calls") or ()
            ),
            usage=Usage(prompt, cached, written, calls=1),
            finish_reason=str(plain.get("finish_reason") or "stop"),
            model=str(plain.get("model") or ""),
        )
        return cls(completion, *(str(plain.get(key) or "") for key in ("prompt", "last", "role", "system")))


@dataclass(frozen=True)
class Recording:
    """Replies in the order in which they came.

    Args:
        replies: One a call.
        model: Who gave the first of them.
        date: Of the first call, as `2026-11-21`.
        path: The file that it was read from.
        objects_only: As of the model that was recorded: prompts depend on it.
    """

    replies: tuple[RecordedReply, ...]
    model: str = ""
    date: str = ""
    path: Path | None = None
    objects_only: bool = False

    @classmethod
    def of(cls, replies: Iterable[str | Completion]) -> Recording:
        """Return a recording in memory, with replies to any prompts."""
        whole = (Completion(reply, model="recording") if isinstance(reply, str) else reply for reply in replies)
        return cls(tuple(map(RecordedReply, whole)), "recording")

    @classmethod
    def read(cls, path: Path | str, *, folder: SafeFolder | None = None) -> Recording:
        """Read a file.

        Args:
            path: The file.
            folder: The folder in which it lies, where that is open already.

        Raises:
            ScenarioError: naming the file and what is wrong in it.
        """
        path = Path(path)
        missing = "there is no such recording"
        plain = read_yaml(path, ScenarioError, missing=missing, limit_bytes=_MAX_BYTES, folder=folder)
        if not isinstance(plain, Mapping) or plain.get("format") != FORMAT:
            found = plain.get("format") if isinstance(plain, Mapping) else type(plain).__name__
            raise ScenarioError(f"expected a recording with `format: {FORMAT}`, found {found!r}", path=path)
        replies, entries = [], plain.get("replies") or []
        for number, entry in enumerate(entries if isinstance(entries, list) else [entries], start=1):
            try:
                replies.append(RecordedReply.from_dict(entry))
            except KeyError as error:
                raise ScenarioError(f"reply {number}: missing key {error.args[0]!r}", path=path) from error
            except (AttributeError, TypeError, ValueError) as error:
                raise ScenarioError(f"reply {number}: {error}", path=path) from error
        head = str(plain.get("model") or ""), str(plain.get("date") or ""), path, plain.get("objects_only") is True
        return cls(tuple(replies), *head)

    def write(self, path: Path, *, folder: SafeFolder | None = None) -> None:
        """Write a file in place of the file or link that is there, which stays whole until the new one is.

        Args:
            path: The file.
            folder: The folder in which it lies, where that is open already; None: `open_or_make_folder` opens it.
        """
        whole = [
            _file_head(self.model, self.date, self.objects_only),
            *(readable_yaml([reply.to_dict()], width=_WIDTH) for reply in self.replies),
        ]
        with contextlib.nullcontext(folder) if folder else open_or_make_folder(path.parent) as opened:
            opened.write_file(path.name, "".join(whole).encode())


class RecordingModel(BaseChatModel):
    """A model whose replies are appended to a file; each is on disk before it is returned.

    Concurrent calls are recorded in the order of their answers. Calls that fail are not recorded.

    Args:
        model: Answers.
        path: The file; made anew with the first reply, so that what was there survives if there is none. Its folder is
            opened as `open_or_make_folder` does, and the file must be no link either: a call is a `ScenarioError` then.
        hide: Paths that differ from run to run; see `prompt_hash`.
        known: Replies of an earlier attempt; a prompt that one of them answers for the same role is not sent again.
    """

    def __init__(
        self, model: ChatModel, path: Path | str, *, hide: Sequence[str] = (), known: Sequence[RecordedReply] = ()
    ) -> None:
        self.path = Path(path)
        self._known = list(known)
        self._hide = tuple(hide)
        self._model = model
        self._lock = threading.Lock()
        self._begun = False
        self._objects_only = objects_only(model)

    @property
    def objects_only(self) -> bool:
        """As of the model that is recorded."""
        return self._objects_only

    @property
    def left(self) -> tuple[RecordedReply, ...]:
        """The replies of `known` that were not used."""
        with self._lock:
            return tuple(self._known)

    def answer(self, request: ModelRequest) -> Completion:
        """Complete the request with the model, and write the reply with the role that asked."""
        messages, role = request.messages, request.role
        prompt, last = prompt_hash(messages, hide=self._hide), last_message_head(messages, hide=self._hide)
        completion = self._take_known_reply(role, prompt) or complete(self._model, request)
        self._save_reply(RecordedReply(completion, prompt, last, role, system_hash(messages, hide=self._hide)))
        return completion

    def _take_known_reply(self, role: str, prompt: str) -> Completion | None:
        """Take what an earlier try was told on this very prompt."""
        with self._lock:
            position = next(
                (index for index, one in enumerate(self._known) if (one.role, one.prompt) == (role, prompt)), None
            )
            return None if position is None else self._known.pop(position).completion

    def _save_reply(self, reply: RecordedReply) -> None:
        with self._lock:
            try:
                self._append(reply)
            except OSError as error:
                raise ScenarioError(f"replies can't be written there: {error.strerror}", path=self.path) from error

    def _append(self, reply: RecordedReply) -> None:
        with (
            open_or_make_folder(self.path.parent) as folder,
            folder.append_file(self.path.name, mode=FILE_MODE) as file,
        ):
            if not self._begun:  # one that is shared already stays so
                file.truncate(0)
                head = _file_head(reply.completion.model, datetime.date.today().isoformat(), self._objects_only)
                file.write(head.encode())
                self._begun = True
            file.write(readable_yaml([reply.to_dict()], width=_WIDTH).encode())


def _file_head(model: str, date: str, only: bool) -> str:
    head = {"format": FORMAT, "model": model, "date": date, **({"objects_only": True} if only else {})}
    return f"{readable_yaml(head)}replies:\n"
