"""What the author of a role in TaskWeaver's form writes against: `Role`, `RoleConfig`, and what `Role` is given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tw_autogen.errors import RoleSpecError
from tw_autogen.model import ChatModel
from tw_autogen.role.taskweaver.emitting import SessionEventEmitter
from tw_autogen.settings import Setting, fit_setting

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_log = logging.getLogger(__name__)


class TelemetryLogger:
    """A role's log; its lines go to Python's `logging`. Prompts are not dumped: the session's journal has each call."""

    def __init__(self, name: str) -> None:
        self._log = _log.getChild(name)

    def debug(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log what only its author wants to know."""
        self._log.debug(msg, *args)

    def info(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log what was done."""
        self._log.info(msg, *args)

    def warning(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log what may be wrong."""
        self._log.warning(msg, *args)

    def error(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log what is wrong."""
        self._log.error(msg, *args)

    def dump_prompt_file(self, prompt: object, path: str) -> None:
        """Note in the log that there was a prompt."""
        self._log.debug("a prompt for %s", path)

    def dump_log_file(self, obj: object, path: str) -> None:
        """Note in the log that there was something to log."""
        self._log.debug("a log for %s", path)


class Tracing:
    """What a role says of its spans; none are kept here, because each step of a session is an event already."""

    def set_span_status(self, status_code: str, status_message: str | None = None) -> None:
        """Take how it ended."""

    def set_span_attribute(self, key: str, value: object) -> None:
        """Take one fact."""

    def set_span_exception(self, exception: BaseException) -> None:
        """Take what was raised."""

    def add_prompt_size(self, size: int = 0, labels: Mapping[str, str] | None = None, data: object = None) -> None:
        """Take how long a prompt was; what a call costs is counted when it is made."""


def tracing_decorator(function: F) -> F:
    """Leave a function as it is."""
    return function


@dataclass(frozen=True)
class RoleEntry:
    """What a role's YAML says.

    Args:
        name: The name of its folder.
        alias: Its name in the talk.
        module: The dotted path of its class.
        intro: What it can do.
    """

    name: str
    alias: str
    module: str
    intro: str


@dataclass(frozen=True)
class AppConfigSource:
    """Where settings come from.

    Args:
        app_base_path: The project's folder.
        module_base_path: The folder of the role.
        give: Gives what is set for the role, when it is told which keys it knows.
    """

    app_base_path: str
    module_base_path: str
    give: Callable[[Sequence[str]], Mapping[str, Setting]]


class RoleConfig:
    """A role's settings: a subclass reads them in `_configure`, each by its key; `role.<name>.<key>` in our spelling.

    Args:
        src: Gives them.
        entry: Of the role that they are for.
        path: Its YAML, for messages.
    """

    def __init__(self, src: AppConfigSource, entry: RoleEntry, path: Path) -> None:
        self.src = src
        self.name = entry.name
        self.role_entry = entry
        self.asked: list[str] = []
        """The keys that were asked for."""
        self._path = path
        self._configure()

    def _configure(self) -> None:
        """Read the settings; a subclass does."""

    def _set_name(self, name: str) -> None:
        """Accept the role's own name."""
        if name != self.name:
            raise RoleSpecError(
                f"settings of a role are called by its name, {self.name!r}, not {name!r}: leave `_set_name` out",
                path=self._path,
            )

    def _get_str(self, key: str, default: str | None = None, required: bool = True) -> Any:
        return self._get(key, default, str, required)

    def _get_int(self, key: str, default: int | None = None, required: bool = True) -> Any:
        return self._get(key, default, int, required)

    def _get_float(self, key: str, default: float | None = None, required: bool = True) -> Any:
        return self._get(key, default, float, required)

    def _get_bool(self, key: str, default: bool | None = None, required: bool = True) -> Any:
        return self._get(key, default, bool, required)

    def _get_list(self, key: str, default: list[Any] | None = None, required: bool = True) -> Any:
        found = self._get(key, default, tuple[Any, ...], required)
        return list(found) if found is not None else None

    def _get_dict(self, key: str, default: dict[str, Any] | None = None, required: bool = True) -> Any:
        return self._get(key, default, dict[str, Any], required)

    def _get_enum(self, key: str, options: Sequence[str], default: str | None = None, required: bool = True) -> Any:
        found = self._get(key, default, str, required)
        if found is not None and found not in options:
            raise RoleSpecError(
                f"role.{self.name}.{key} is {found!r}, not one of {', '.join(options)}", path=self._path
            )
        return found

    def _get_path(self, key: str, default: str | None = None, required: bool = True) -> Any:
        found = self._get(key, default, str, required)
        if found is None:
            return None
        for word, folder in (
            ("${AppBaseDir}", self.src.app_base_path),
            ("${ModuleBaseDir}", self.src.module_base_path),
        ):
            found = found.replace(word, folder)
        return str(Path(found).expanduser())

    def _get(self, key: str, default: Any, kind: Any, required: bool) -> Any:
        self.asked.append(key)
        setting = self.src.give([key]).get(key)
        if setting is not None:
            return fit_setting(f"role.{self.name}.{key}", setting, kind)
        if default is None and required:
            raise RoleSpecError(f"the setting 'role.{self.name}.{key}' is missing; it has no default", path=self._path)
        return default


class Role:
    """Who answers posts, as TaskWeaver's authors know it: subclass it and write `reply(self, memory, **kwargs)`.

    Args:
        config: Its settings.
        logger: Its log.
        tracing: Takes what it says of its spans.
        event_emitter: Makes its posts.
        role_entry: What its YAML says.
    """

    def __init__(
        self,
        config: RoleConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        role_entry: RoleEntry | None = None,
    ) -> None:
        entry = role_entry or config.role_entry
        self.config = config
        self.logger = logger
        self.tracing = tracing
        self.event_emitter = event_emitter
        self.role_entry = entry
        self.name = entry.name
        self.alias = entry.alias
        self.intro = entry.intro

    def get_intro(self) -> str:
        """Return what it can do."""
        return self.intro

    def get_alias(self) -> str:
        """Return its name in the talk."""
        return self.alias

    def set_alias(self, alias: str) -> None:
        """Set its name in the talk."""
        self.alias = alias

    def reply(self, memory: Any, **kwargs: Any) -> Any:
        """Answer the newest post."""
        raise NotImplementedError(f"{type(self).__name__} has no reply(self, memory, **kwargs)")

    def close(self) -> None:
        """Release what it owns."""

    def format_experience(self, *args: Any, **kwargs: Any) -> str:
        """Return nothing: lessons go to the Planner and the CodeInterpreter, see the setting `recall.experience`."""
        return ""


class LLMApi:
    """Asks the session's model, within the limits of the round; what each call costs is counted.

    Args:
        model: Gives whom to ask.
        emitter: Has the turn that is under way.
        caller: Name of the role.
    """

    def __init__(self, model: Callable[[], ChatModel], emitter: SessionEventEmitter, caller: str) -> None:
        self._model = model()
        self._emitter = emitter
        self._caller = caller

    def chat_completion(self, messages: Sequence[Mapping[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Return the model's answer as a message; temperature, stop words and the like are the model's settings here.

        Raises:
            ModelError: no answer came.
            RuntimeError: called outside of `reply`.
        """
        turn = self._emitter.turn
        if turn is None:
            raise RuntimeError(f"{self._caller}: the model can be asked within reply() only")
        words = turn.ask(self._model, [dict(one) for one in messages], caller=self._caller)
        return {"role": "assistant", "content": words}

    def chat_completion_stream(self, messages: Sequence[Mapping[str, Any]], **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Yield the answer as messages that together are the whole; here it is one."""
        yield self.chat_completion(messages)


def format_chat_message(
    role: str, message: str, image_urls: Sequence[str] | None = None, **kwargs: Any
) -> dict[str, Any]:
    """Make a message for a model, with pictures if there are any."""
    if not image_urls:
        return {"role": role, "content": message}
    images = [{"type": "image_url", "image_url": {"url": url}} for url in image_urls]
    return {"role": role, "content": [{"type": "text", "text": message}, *images]}
