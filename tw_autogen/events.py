"""What happens in a session, as values; a handler is a function that takes one.

Everything said and run is an event. The journal, the command line, traces and exports read the same events.
Posts and plain values only: every event becomes one line of JSON with `to_dict`. A new event that has a `line` or a
`warning` is shown by whatever shows events; only one that is shown in another way needs code there.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
import os
import reprlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Protocol, get_type_hints

from tw_autogen import bounded_json
from tw_autogen.conversation import AttachmentType, Definitions, Plan, Post, Round, RoundState
from tw_autogen.deprecated import old_names
from tw_autogen.errors import ConfigError, nearest
from tw_autogen.plural import pluralize
from tw_autogen.secret_masking import redacted_json, redactor
from tw_autogen.text_escaping import json_controls_escaped

_OUTCOMES = ((True, "passed"), (False, "failed"), (None, "not carried out"))


def _keys_metadata(*names: str) -> dict[str, Any]:
    """Return metadata of a field: what each dictionary of its list has."""
    return {"keys": frozenset(names)}


@dataclass(frozen=True)
class Event:
    """Something that happened; what it was is the class."""

    def to_dict(self) -> dict[str, Any]:
        """Return `{"event": "CellRan", …}` with plain values only."""
        plain: dict[str, Any] = {"event": type(self).__name__}
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            plain[spec.name] = value.to_dict() if isinstance(value, Post | Plan) else value
        return plain

    @property
    def line(self) -> str:
        """What a person is shown of the event in one line; empty: nothing, or more than a line can hold."""
        return ""

    @property
    def warning(self) -> str:
        """What a person must know though the answer may not say it: `problem`, of an event with one. Empty: nothing."""
        return str(getattr(self, "problem", ""))


Handler = Callable[[Event], None]
_log = logging.getLogger(__name__)


def checked_handlers(handlers: Iterable[Handler]) -> tuple[Handler, ...]:
    """Return handlers that can be called.

    Args:
        handlers: What a caller gave as such.

    Raises:
        ConfigError: they are no list of functions.
    """
    if not isinstance(handlers, Iterable):
        raise ConfigError(f"handlers: expected a list of functions that take an event, got {handlers!r}")
    found = tuple(handlers)
    for handler in found:
        if not callable(handler):
            raise ConfigError(f"handlers: expected functions that take an event, got {handler!r}")
    return found


def deliver(event: Event, handlers: Iterable[Handler]) -> None:
    """Call handlers with an event; one that fails is logged, so that foreign code breaks nothing that it hears of.

    Args:
        event: What happened.
        handlers: In the order in which they are called.
    """
    for handler in handlers:
        try:
            handler(event)
        except Exception:  # noqa: BLE001 - foreign code: it may raise anything, and must break nothing that it hears of
            _log.exception("a handler failed on %s", type(event).__name__)


@dataclass(frozen=True)
class SessionOpened(Event):
    """A session is ready; `kernel` says in one line where its code will run; `plugin_files` are files by plugin."""

    session_id: str
    folder: str
    roles: list[str]
    plugins: list[str]
    kernel: str
    plugin_files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundOpened(Event):
    """The user asked; `files` are the names in the session's folder."""

    round_id: str
    user_query: str
    files: list[str]


@dataclass(frozen=True)
class FileUnreadable(Event):
    """A file of the request can't be read as what its name says, or is left alone as one of secrets.

    `problem` names it, the reason, and what to do.
    """

    round_id: str
    problem: str


@dataclass(frozen=True)
class PostOpened(Event):
    """A role has begun to answer; `post_id` is only this answer's while it grows (see `PostClosed`)."""

    round_id: str
    post_id: str
    send_from: str


@dataclass(frozen=True)
class PostGrew(Event):
    """A part of the growing post has more text; `part` is a field's name: `message`, `plan`, `thought`, …."""

    post_id: str
    part: str
    text: str


@dataclass(frozen=True)
class PostClosed(Event):
    """A post is whole and belongs to the round; `post_id` is the id that `PostOpened` gave, empty if nothing grew."""

    round_id: str
    post_id: str
    post: Post


@dataclass(frozen=True)
class PlanChanged(Event):
    """A role's post, whose `PostClosed` follows, brings another plan than the last one, or moves its steps."""

    round_id: str
    role: str
    plan: Plan


@dataclass(frozen=True)
class DefinitionsChanged(Event):
    """A role's post, whose `PostClosed` follows, changes what the User has defined.

    `changes` are as `Definitions.changed` takes them, `in_force` the fields of each `Definition` after them; `stale`
    are variables of those that are no longer in force.
    """

    round_id: str
    role: str
    changes: list[dict[str, Any]]
    in_force: list[dict[str, Any]]
    stale: list[str]


@dataclass(frozen=True)
class BoardWritten(Event):
    """A role wrote its bulletin on the board."""

    round_id: str
    role: str
    bulletin: str


@dataclass(frozen=True)
class ModelCalled(Event):
    """A model answered a role (or a plugin).

    Tokens are what the server reported, 0 where it reported none; `dollars` is None where no price is known.
    """

    caller: str
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    finish_reason: str
    seconds: float
    dollars: float | None = None


@dataclass(frozen=True)
class ModelDelayed(Event):
    """A role's model has to be asked again; `reason` says why: a busy server, or a reply that can't be read or used."""

    caller: str
    reason: str


@dataclass(frozen=True)
class LessonsRecalled(Event):
    """Lessons from earlier work were put into a role's prompt, by their ids, best first."""

    role: str
    lessons: list[str]


@dataclass(frozen=True)
class HistoryCompacted(Event):
    """The older part of a role's history became this summary; about so many tokens its prompt had, and has now.

    `pruned_chars` of results that a later one has superseded (failures that were corrected, cut output that was
    looked at again) were left out; where that was enough, `summary` is empty.
    """

    role: str
    tokens_before: int
    tokens_after: int
    summary: str = ""
    pruned_chars: int = 0


@dataclass(frozen=True)
class CompactionFailed(Event):
    """The older part of a role's history should have become a summary, and none came; its prompt stays that long.

    It is tried again in the `again_in`th round from now on.
    """

    role: str
    tokens: int
    error: str
    again_in: int


@dataclass(frozen=True)
class PromptTruncatedByServer(Event):
    """The server seems to cut a role's prompt at about so many tokens; from now on the prompt is kept shorter."""

    role: str
    tokens: int

    @property
    def line(self) -> str:
        """What to do about it."""
        return (
            f"{self.role}: the server seems to cut prompts at about {self.tokens} tokens, without a word; raise its "
            "context (Ollama: `num_ctx`, or OLLAMA_CONTEXT_LENGTH)"
        )

    @property
    def warning(self) -> str:
        """The same."""
        return self.line


@dataclass(frozen=True)
class PluginsSelected(Event):
    """A role chose, of its `plugins` in all, those that fit a task.

    `task_type` is what the task looks like, empty if like nothing; `selected` was chosen now, best first; `pool` is
    what the model is shown in full, with those used before; `told_anew` says that the prompt begins with other words
    than the last one, because stubs that nobody needed were taken out of it.
    """

    role: str
    task_type: str
    selected: list[str]
    pool: list[str]
    plugins: int
    told_anew: bool


@dataclass(frozen=True)
class AnswerChecked(Event):
    """Checks of an answer ran before it went to the user.

    Each of `checks` has `code`, `passed` (null: it could not be carried out) and `why`. `sent_back` says that the
    worker was asked again because of those that failed; `calls` and `tokens` are what proposing the checks has cost.
    """

    round_id: str
    checks: list[dict[str, Any]] = field(metadata=_keys_metadata("code", "passed", "why"))
    sent_back: bool
    calls: int
    tokens: int

    @property
    def line(self) -> str:
        """How many checks came out in which way, and their cost."""
        counts = {word: sum(check["passed"] is passed for check in self.checks) for passed, word in _OUTCOMES}
        words = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        sent_back = ", sent back" * self.sent_back
        return f"checks: {words}{sent_back} ({pluralize(self.calls, 'model call')}, {self.tokens} tokens)"


@dataclass(frozen=True)
class AnswerCheckSkipped(Event):
    """An answer goes out unchecked or uncorrected, since a model gave no usable reply; `problem` says which and why."""

    role: str
    problem: str


@dataclass(frozen=True)
class CodeChecked(Event):
    """Generated code was checked against the policy; each finding is one line of words."""

    code: str
    findings: list[str]


@dataclass(frozen=True)
class ApprovalAsked(Event):
    """A person is asked; `kind` is that of `Proposal`, `text` the thing itself."""

    kind: str
    text: str
    findings: list[str]


@dataclass(frozen=True)
class ApprovalDecided(Event):
    """The person has decided; `text` is what is to happen instead, empty if nothing was changed."""

    kind: str
    approved: bool
    text: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class CellStarted(Event):
    """A cell began to run; `cell` counts from 1 within the session. A `check` of an answer is undone when it ends."""

    cell: int
    code: str
    check: bool = False


@dataclass(frozen=True)
class CellOutput(Event):
    """The running cell wrote; `stream` is `stdout` or `stderr`."""

    cell: int
    stream: str
    text: str


@dataclass(frozen=True)
class CellRan(Event):
    """A cell ended; `variables` are those that exist now, one line each. `undone`: they are as they were before it."""

    cell: int
    ok: bool
    result: str | None
    stdout: str
    stderr: str
    error: str
    artifacts: list[dict[str, str]] = field(metadata=_keys_metadata("name", "path"))
    variables: list[str]
    state_lost: bool
    seconds: float
    undone: bool = False


@dataclass(frozen=True)
class ArtifactSaved(Event):
    """A file was made for the user; `path` is absolute."""

    name: str
    kind: str
    path: str
    preview: str


@dataclass(frozen=True)
class FileCopied(Event):
    """A file of an answer was copied to where the user is; both paths are absolute.

    The stamps say whether file and copy have changed since, to a resumed session.
    """

    source: str
    path: str
    source_stamp: list[int]
    stamp: list[int]


@dataclass(frozen=True)
class HooksMade(Event):
    """Settings files or hooks appeared in a folder that code may write to; look at them before a program reads them.

    `paths` are absolute. Code made them, or someone else did meanwhile. The event comes after a round's end, and once
    more when the session closes, after the end of its kernel; `round_id` is the newest round's.
    """

    round_id: str
    paths: list[str]


@dataclass(frozen=True)
class HostCalled(Event):
    """Code in the kernel called a function on the host."""

    function: str
    ok: bool
    error: str
    seconds: float

    @property
    def line(self) -> str:
        """The function, how long it took, and why it failed."""
        return f"{self.function} on the host{'' if self.ok else f' failed: {self.error}'}, {self.seconds:.1f} s"


@dataclass(frozen=True)
class RoundClosed(Event):
    """A round ended: `state` is finished or failed, `stop` the Planner's word for it, `error` why it failed.

    `seconds` is the wall clock; `model_seconds` and `kernel_seconds` are what of it went by in models and in cells.
    `spent` is what counts towards limits (`calls`, `tokens`, `dollars`), of agents too that were asked.
    `unanswered` is how many calls of models went out, and failed or were stopped: servers may count them.
    """

    round_id: str
    state: str = field(metadata={"words": frozenset(RoundState)})
    stop: str
    answer: str
    error: str
    seconds: float
    usage: dict[str, float | None] = field(default_factory=dict)
    model_seconds: float = 0.0
    kernel_seconds: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)
    unanswered: int = 0


@dataclass(frozen=True)
class SessionClosed(Event):
    """A session ended and gave back what it owned."""

    session_id: str


class LineFile(Protocol):
    """What lines are written to: a text file, or what has these two methods of one."""

    def write(self, text: str, /) -> object:
        """Write a line with its end."""

    def flush(self) -> object:
        """Hand on what was written."""


class EventLines:
    """Writes events to a file, each as one line of JSON: `seq`, `at`, `event` and its fields; secrets are masked.

    Args:
        file: Where to; flushed after each line.
        first: The `seq` of the first line.
        head: What each line begins with.
        seal: Given a line without its end, returns what is written in its place.
    """

    def __init__(
        self,
        file: LineFile,
        *,
        first: int = 0,
        head: Mapping[str, Any] | None = None,
        seal: Callable[[str], str] = str,
    ) -> None:
        self._file = file
        self._seq = first
        self._head = dict(head or {})
        self._redact = redactor(os.environ)
        self._seal = seal
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write one event."""
        with self._lock:
            at = datetime.now(timezone.utc).isoformat()
            line = {**self._head, "seq": self._seq, "at": at, **event.to_dict()}
            try:
                text = json.dumps(line, ensure_ascii=False, default=str)
            except TypeError:  # a key is neither text nor a number
                text = json.dumps(_with_text_keys(line), ensure_ascii=False, default=str)
            self._file.write(self._seal(json_controls_escaped(redacted_json(text, self._redact))) + "\n")
            self._file.flush()
            self._seq += 1


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _with_text_keys(inner) for key, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, list | tuple) else value


_RENAMED = {
    "TalkShortened": "HistoryCompacted",
    "TalkNotShortened": "CompactionFailed",
    "PromptCut": "PromptTruncatedByServer",
    "ApprovalGiven": "ApprovalDecided",
}
"""By their name in earlier journals."""


__getattr__ = old_names(__name__, {}, renamed=_RENAMED)


def event_from_dict(plain: Mapping[str, Any]) -> Event:
    """Read what `to_dict` gave; keys that the event does not have (a journal's `at`, `seq`) are passed over.

    Raises:
        ValueError: there is no such event, or a field is of a wrong type.
        TypeError: a field is missing.
    """
    name = str(plain.get("event"))
    name = _RENAMED.get(name, name)
    if name not in _event_classes():
        raise ValueError(f"no event is called {name!r}{nearest(name, _event_classes())}")
    kind = _event_classes()[name]
    readers = _field_readers(kind)  # type: ignore[arg-type]  # a class is hashable
    return kind(**{field_name: read(plain[field_name]) for field_name, read in readers if field_name in plain})


def is_event_of_ours(event: Event) -> bool:
    """Return whether an event's class is one of this module; `event_from_dict` reads no others."""
    return _event_classes().get(type(event).__name__) is type(event)


@functools.cache
def _event_classes() -> Mapping[str, type[Event]]:
    return {kind.__name__: kind for kind in Event.__subclasses__() if kind.__module__ == __name__}


@functools.cache
def _field_readers(kind: type[Event]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return for each field of an event what reads its value; somebody else may have written it."""
    types = get_type_hints(kind)
    return tuple((spec.name, _field_reader(spec, types[spec.name])) for spec in dataclasses.fields(kind))


def _field_reader(spec: dataclasses.Field[Any], type_: Any) -> Callable[[Any], Any]:
    if type_ is Post:
        return lambda value: Post.from_dict(value).with_stated_plan()
    if type_ is Plan:
        return Plan.from_dict
    fits = bounded_json.check_of(type_)
    keys, words = spec.metadata.get("keys"), spec.metadata.get("words")

    def read(value: Any) -> Any:
        if not fits(value):
            raise ValueError(f"{spec.name}: expected {spec.type}, got {reprlib.repr(value)}")
        if keys and not all(keys <= part.keys() for part in value):
            raise ValueError(f"{spec.name}: each needs {', '.join(sorted(keys))}")
        if words and value not in words:
            raise ValueError(f"{spec.name}: {reprlib.repr(value)} is none of {', '.join(sorted(words))}")
        return value

    return read


def post_events(rounds: Sequence[Round], post: Post, before: Sequence[Post], *, post_id: str = "") -> Iterator[Event]:
    """Yield what a post changes, then that it is whole.

    Args:
        rounds: All rounds of the session, oldest first; the post is one of the newest.
        post: The post.
        before: The posts before it in its round.
        post_id: The id that `PostOpened` gave; empty if nothing grew.
    """
    here = rounds[-1].id
    last = next((post.plan for post in reversed(before) if post.plan is not None), None)
    if post.plan is not None and post.plan != last:
        yield PlanChanged(here, post.send_from, post.plan)
    changed = post.attachment(AttachmentType.definitions)
    if changed is not None:
        state = Definitions.of(rounds)
        in_force = [definition.to_dict() for definition in state.in_force]
        yield DefinitionsChanged(here, post.send_from, list(changed.extra or ()), in_force, list(state.stale))
    yield PostClosed(here, post_id, post)
