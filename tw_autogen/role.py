"""`Role`: who answers posts; its contract, what it is handed for one answer, and how one is loaded by path."""

from __future__ import annotations

import importlib.util
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import yaml

from tw_autogen.conversation import Memory, Post, Round
from tw_autogen.errors import RoleSpecError, nearest
from tw_autogen.events import Event, ModelCalled, PostGrew
from tw_autogen.model import ChatModel, CodeStream, Completion, FieldStream


def _ignore(event: Event) -> None:
    """Let an event go by."""


def _allow() -> None:
    """Let a call of a model be made."""


@dataclass(frozen=True)
class Turn:
    """What a role is handed for one answer, as the keyword `turn`; a role that ignores it works.

    Args:
        round: The current round, with its board: `turn.round.write_board(self.name, …)`.
        folder: The session's folder; files for the user belong here.
        post_id: Under which `PostGrew` events of this answer go.
        emit: Takes events; never raises.
        deadline: When the round must be over, on the clock of `time.monotonic`.
        cancelled: Set when the round is to stop at once.
        variables: The session's variables, by name: what requests brought beside words and files.
        before_call: To be called before each call of a model; raises `RoundTooCostly` where the round has reached a
            limit of calls, tokens or money.
    """

    round: Round
    folder: Path
    post_id: str = ""
    emit: Callable[[Event], None] = _ignore
    deadline: float = float("inf")
    cancelled: threading.Event = field(default_factory=threading.Event)
    variables: Mapping[str, Any] = field(default_factory=dict)
    before_call: Callable[[], None] = _allow

    def seconds_left(self, at_most: float) -> float:
        """Give how long one wait may last, in seconds: never longer than the round, never less than 0."""
        return max(0.0, min(at_most, self.deadline - time.monotonic()))


class Worker(Protocol):
    """Somebody whom a Planner may write to: a role of its session, or an agent of the host's."""

    @property
    def name(self) -> str:
        """How the Planner addresses it."""
        ...

    @property
    def intro(self) -> str:
        """What it can do and what it needs to be told."""
        ...


@runtime_checkable
class Role(Protocol):
    """Who answers posts: inherit from it, or just have these four names.

    `name` is how others address it; `intro` tells the Planner what it can do and what it needs to be told, and is
    read when a session begins.
    """

    name: str
    intro: str

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Answer `memory.last_post`; called by the session, in the session's thread.

        Args:
            memory: What this role may see, newest post last.
            **kwargs: `turn`, a `Turn`.

        Returns:
            A post from this role. In a session with a Planner a worker writes to whoever wrote to it.
        """
        ...

    def close(self) -> None:
        """Give back what it owns; called once, when the session ends."""


@runtime_checkable
class Offering(Protocol):
    """A role that can say what it has for one request, beyond its intro."""

    def offer(self, request: str) -> str:
        """Say what fits this request; empty if the intro says it all. Read by the Planner with each user's request."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A role that can be stopped in the middle of an answer."""

    def interrupt(self) -> None:
        """Stop what is running; called by `Session.interrupt` from any thread."""
        ...


@runtime_checkable
class Placed(Protocol):
    """A role that runs code somewhere."""

    @property
    def folder(self) -> Path | None:
        """The folder it works in already; None if it will work in the session's."""
        ...

    @property
    def where(self) -> str:
        """Say in one line where code runs."""
        ...

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """The functions that its code may call, beside Python's own."""
        ...


def report_call(turn: Turn, caller: str, completion: Completion, seconds: float) -> None:
    """Emit that a model answered, and what it cost.

    Args:
        turn: Takes the event.
        caller: The role (or plugin) that asked.
        completion: The answer.
        seconds: How long it took.
    """
    usage = completion.usage
    turn.emit(
        ModelCalled(
            caller,
            completion.model,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            completion.finish_reason,
            seconds,
            usage.dollars,
        )
    )


class Growing:
    """Passes a model's reply on as it grows, and says what each call cost; one object for all tries at one reply.

    Args:
        turn: Takes the events.
        caller: The role that asks.
        stream: Makes what finds the fields in growing text: `FieldStream` or `CodeStream`.
    """

    def __init__(self, turn: Turn, caller: str, stream: Callable[[], FieldStream | CodeStream]) -> None:
        self._turn = turn
        self._caller = caller
        self._make = stream
        self._stream: FieldStream | CodeStream | None = None

    def take(self, text: str) -> None:
        """Take new text of the reply; called by the model."""
        self._stream = self._stream or self._make()
        for part, new in self._stream.feed(text):
            self._turn.emit(PostGrew(self._turn.post_id, part, new))

    def called(self, completion: Completion, seconds: float) -> None:
        """Take the whole reply; called once for each try. A model that doesn't stream is passed on now."""
        if self._stream is None:
            self.take(completion.text)
        self._stream = None
        report_call(self._turn, self._caller, completion, seconds)


ROLE_FILE = "role.yaml"
_KEYS = ("alias", "intro", "module", "settings")


@dataclass(frozen=True)
class RoleSpec:
    """A role's YAML, checked.

    Args:
        alias: Its name in the talk.
        intro: What it can do; for the Planner.
        path: The YAML file.
        module: Stem of the Python file beside it that holds the class; the folder's name if the YAML doesn't say.
        settings: Handed to the class, if its constructor takes `settings`.
    """

    alias: str
    intro: str
    path: Path
    module: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def make(self, model: Callable[[], ChatModel]) -> Role:
        """Load the class and make one role.

        Args:
            model: Gives the role's model; called only if the constructor takes `model`.

        Raises:
            RoleSpecError: the Python doesn't load, or holds no class, or more than one, that has `reply`.
        """
        source = self.path.with_name(f"{self.module}.py")
        module = _load(source)
        found: list[Callable[..., Any]] = [
            kind
            for kind in vars(module).values()
            if inspect.isclass(kind) and kind.__module__ == module.__name__ and callable(getattr(kind, "reply", None))
        ]
        if len(found) != 1:
            named = ", ".join(sorted(kind.__name__ for kind in found)) or "none"
            raise RoleSpecError(f"expected one class with `reply(self, memory, **kwargs)`, found {named}", path=source)
        offered: dict[str, Callable[[], Any]] = {"model": model, "settings": lambda: dict(self.settings)}
        takes = inspect.signature(found[0]).parameters
        role: Role = found[0](**{name: give() for name, give in offered.items() if name in takes})
        role.name, role.intro = self.alias, self.intro
        return role


def read_role(folder: Path) -> RoleSpec:
    """Read a role's folder.

    Raises:
        RoleSpecError: names the file and what is wrong in it.
    """
    path = folder / ROLE_FILE
    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RoleSpecError("there is no such file; a role's folder holds one", path=path) from None
    except yaml.YAMLError as error:
        raise RoleSpecError(f"not YAML: {error}", path=path) from error
    if not isinstance(plain, Mapping):
        raise RoleSpecError("expected keys and values", path=path)
    for key in plain:
        if key not in _KEYS:
            raise RoleSpecError(f"unknown key {key!r}{nearest(str(key), _KEYS)}", path=path)
    for key in ("alias", "intro"):
        if not isinstance(plain.get(key), str) or not plain[key].strip():
            raise RoleSpecError(f"`{key}` is missing or no text", path=path)
    if not plain["alias"].isidentifier():
        raise RoleSpecError(f"`alias` must be a plain name without spaces, not {plain['alias']!r}", path=path)
    module, settings = plain.get("module", folder.resolve().name), plain.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise RoleSpecError("`settings` must be keys and values", path=path)
    return RoleSpec(plain["alias"], plain["intro"].strip(), path, str(module), settings)


def find_role(wanted: str | Path, *, shipped: Path) -> RoleSpec:
    """Find a role by the name of a shipped one, or by the path of a folder.

    Raises:
        RoleSpecError: there is none of that name, or its YAML is wrong.
    """
    folder = Path(wanted)
    if isinstance(wanted, str) and not folder.is_dir():
        names = sorted(one.parent.name for one in shipped.glob(f"*/{ROLE_FILE}"))
        if wanted not in names:
            raise RoleSpecError(f"no shipped role and no folder{nearest(wanted, names)}", path=wanted)
        folder = shipped / wanted
    return read_role(folder)


def _load(source: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tw_autogen_role_{source.stem}", source)
    if spec is None or spec.loader is None or not source.exists():
        raise RoleSpecError("there is no such file", path=source)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # somebody's own code: whatever it raises is told with the file
        line = getattr(error, "lineno", None) or _line_in(error, source)
        raise RoleSpecError(f"{type(error).__name__}: {error}", path=source, line=line) from error
    return module


def _line_in(error: BaseException, source: Path) -> int | None:
    """Give the last line of this file that the error passed through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == source:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
