"""The classes that a role in TaskWeaver's form is written against: `Role`, `RoleConfig`, and what both are given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tw_autogen.conversation import AttachmentType
from tw_autogen.errors import RoleSpecError
from tw_autogen.events import PostGrew
from tw_autogen.model import ChatModel
from tw_autogen.role.role import Turn
from tw_autogen.role.taskweaver.memory import Attachment, Post, SharedMemoryEntry
from tw_autogen.setting_values import Setting, fit_setting

F = TypeVar("F", bound=Callable[..., Any])
_log = logging.getLogger(__name__)


class TelemetryLogger:
    """A logger of Python's `logging`; prompts are not written to files, because the session's journal has each call.

    Args:
        name: The role's.
    """

    def __init__(self, name: str) -> None:
        self._log = _log.getChild(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def dump_prompt_file(self, *args: object, **named: object) -> None:
        """Ignore what is to be dumped."""

    dump_log_file = dump_prompt_file


class Tracing:
    """Accepts every call on spans and ignores it: each step of a session is an event already."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def tracing_decorator(function: F) -> F:
    """Return the function unchanged."""
    return function


@dataclass(frozen=True)
class RoleEntry:
    """The content of a role's YAML.

    Args:
        name: The name of its folder.
        alias: Its name in posts.
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
        given: Returns the values that are set for the role, of the keys it is called with.
    """

    app_base_path: str
    module_base_path: str
    given: Callable[[Sequence[str]], Mapping[str, Setting]]


class RoleConfig:
    """A role's settings: a subclass reads them in `_configure`, each by its key; `role.<name>.<key>` in our spelling.

    Args:
        src: Has the values.
        entry: Of the role that they are for.
        path: Its YAML, for messages.
    """

    def __init__(self, src: AppConfigSource, entry: RoleEntry, path: Path) -> None:
        self.src = src
        self.name = entry.name
        self.role_entry = entry
        self.asked: list[str] = []
        """The keys that `_configure` has read."""
        self._path = path
        self._configure()

    def _configure(self) -> None:
        """Read the settings; for subclasses."""

    def _set_name(self, name: str) -> None:
        if name != self.name:
            problem = f"settings of a role are called by its name, {self.name!r}, not {name!r}: leave `_set_name` out"
            raise RoleSpecError(problem, path=self._path)

    def _get(self, kind: Any, key: str, default: Any = None, required: bool = True) -> Any:
        self.asked.append(key)
        setting = self.src.given([key]).get(key)
        if setting is not None:
            return fit_setting(f"role.{self.name}.{key}", setting, kind)
        if default is None and required:
            raise RoleSpecError(f"the setting 'role.{self.name}.{key}' is missing; it has no default", path=self._path)
        return default

    _get_str = partialmethod(_get, str)
    _get_int = partialmethod(_get, int)
    _get_float = partialmethod(_get, float)
    _get_bool = partialmethod(_get, bool)
    _get_dict = partialmethod(_get, dict[str, Any])

    def _get_list(self, key: str, default: list[Any] | None = None, required: bool = True) -> Any:
        value = self._get(tuple[Any, ...], key, default, required)
        return list(value) if value is not None else None

    def _get_enum(self, key: str, options: Sequence[str], default: str | None = None, required: bool = True) -> Any:
        value = self._get(str, key, default, required)
        if value is not None and value not in options:
            problem = f"role.{self.name}.{key} is {value!r}, not one of {', '.join(options)}"
            raise RoleSpecError(problem, path=self._path)
        return value

    def _get_path(self, key: str, default: str | None = None, required: bool = True) -> Any:
        value = self._get(str, key, default, required)
        if value is None:
            return None
        value = value.replace("${AppBaseDir}", self.src.app_base_path)
        return str(Path(value.replace("${ModuleBaseDir}", self.src.module_base_path)).expanduser())


class PostEventProxy:
    """A post that grows; each change is an event of the session.

    Args:
        send_from: Name of the role that writes.
        turn: Takes the events, and has the board; None: neither.
    """

    def __init__(self, send_from: str, turn: Turn | None) -> None:
        self.post = Post.create(None, send_from)
        self.message_is_end = False
        self._turn = turn

    def update_send_to(self, send_to: str) -> None:
        """Set the receiver."""
        self.post.send_to = send_to

    def update_status(self, status: str) -> None:
        """Show a status beside the growing post."""
        self._emit("status", status)

    def update_message(self, message: str, is_end: bool = True) -> None:
        """Set the message, or append to it.

        Args:
            message: The text.
            is_end: Whether the message is complete; if not, the next call appends.
        """
        grows = bool(self.post.message) and not self.message_is_end
        self.post.message = self.post.message + message if grows else message
        self.message_is_end = is_end
        self._emit("message", message)

    def update_attachment(
        self,
        message: str,
        type: AttachmentType | str | None = None,  # noqa: A002 - TaskWeaver's parameter name
        extra: Any = None,
        id: str | None = None,  # noqa: A002 - TaskWeaver's parameter name
        is_end: bool = True,
    ) -> Attachment:
        """Add an attachment, or append text to one.

        Args:
            message: The text.
            type: Of a new attachment.
            extra: Data beside the text; a `SharedMemoryEntry` of the type `plan` is written to the round's board.
            id: Of the attachment; the text is appended to the one that has it.
            is_end: Whether the attachment is complete; without meaning here.

        Raises:
            ValueError: a new attachment without a type, or of an unknown one.
        """
        attachment = next((one for one in self.post.attachment_list if one.id == id), None)
        if attachment is None:
            if type is None:
                raise ValueError("update_attachment: a new attachment needs its `type`")
            attachment = Attachment.create(type, "", id)
            self.post.add_attachment(attachment)
        attachment.content += message
        attachment.extra = attachment.extra if extra is None else extra
        if isinstance(extra, SharedMemoryEntry) and extra.type == "plan" and self._turn is not None:
            self._turn.round.write_board(self.post.send_from, extra.content)
        self._emit(attachment.type.value, message)
        return attachment

    def error(self, msg: str) -> None:
        """Make an error the post's message, without attachments."""
        self.post.message, self.post.attachment_list = msg, []
        self._emit("error", msg)

    def end(self, msg: str = "") -> Post:
        """Return the whole post."""
        return self.post

    def _emit(self, part: str, text: str) -> None:
        if self._turn is not None and text:
            self._turn.emit(PostGrew(self._turn.post_id, part, text))


class SessionEventEmitter:
    """Creates the posts of a role.

    Attributes:
        turn: Of the answer that is under way; None outside of `reply`.
        session_id: Of the session that asked last.
    """

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.session_id = ""

    def create_post_proxy(self, send_from: str) -> PostEventProxy:
        """Return a new post."""
        return PostEventProxy(send_from, self.turn)


class SessionMetadata:
    """The session that a role answers in, and its folder; known within `reply` only.

    Args:
        emitter: Has the turn that is under way.
    """

    def __init__(self, emitter: SessionEventEmitter) -> None:
        self._emitter = emitter

    @property
    def session_id(self) -> str:
        """Of the session."""
        return self._emitter.session_id

    @property
    def workspace(self) -> str:
        """The session's folder."""
        if self._emitter.turn is None:
            raise RuntimeError("the session's folder is known within reply() only")
        return str(self._emitter.turn.folder)

    execution_cwd = workspace


class LLMApi:
    """Asks the session's model, within the limits of the round; each call counts.

    Args:
        model: Returns the model.
        emitter: Has the turn that is under way.
        caller: Name of the role.
    """

    def __init__(self, model: Callable[[], ChatModel], emitter: SessionEventEmitter, caller: str) -> None:
        self._model = model()
        self._emitter = emitter
        self._caller = caller

    def chat_completion(self, messages: Sequence[Mapping[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Return the model's answer as a message.

        Args:
            messages: With `role` and `content` each.
            kwargs: Ignored: temperature, stop words and the like are settings of the model here.

        Raises:
            ModelError: no answer came.
            RuntimeError: called outside of `reply`.
        """
        turn = self._emitter.turn
        if turn is None:
            raise RuntimeError(f"{self._caller}: the model can be asked within reply() only")
        text = turn.ask(self._model, [dict(message) for message in messages], caller=self._caller)
        return {"role": "assistant", "content": text}

    def chat_completion_stream(self, messages: Sequence[Mapping[str, Any]], **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Yield the answer as one message; arguments as of `chat_completion`."""
        yield self.chat_completion(messages)


def format_chat_message(
    role: str, message: str, image_urls: Sequence[str] | None = None, **kwargs: Any
) -> dict[str, Any]:
    """Return a message for a model.

    Args:
        role: `system`, `user` or `assistant`.
        message: The text.
        image_urls: Pictures that follow the text.
        kwargs: Ignored.
    """
    if not image_urls:
        return {"role": role, "content": message}
    images = [{"type": "image_url", "image_url": {"url": url}} for url in image_urls]
    return {"role": role, "content": [{"type": "text", "text": message}, *images]}


def read_yaml(path: str) -> Any:
    """Return the content of a YAML file."""
    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


class Role:
    """Base class of roles: a subclass has a `reply(self, memory, **kwargs)`.

    Args:
        config: Its settings.
        logger: Its log.
        tracing: Ignores spans.
        event_emitter: Creates its posts.
        role_entry: The content of its YAML.
    """

    def __init__(
        self,
        config: RoleConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        role_entry: RoleEntry | None = None,
    ) -> None:
        self.config = config
        self.logger = logger
        self.tracing = tracing
        self.event_emitter = event_emitter
        self.role_entry = role_entry or config.role_entry
        self.experiences: list[Any] = []
        self.name, self.alias, self.intro = self.role_entry.name, self.role_entry.alias, self.role_entry.intro

    def get_intro(self) -> str:
        """Return what it can do."""
        return self.intro

    def get_alias(self) -> str:
        """Return its name in posts."""
        return self.alias

    def set_alias(self, alias: str) -> None:
        """Set its name in posts."""
        self.alias = alias

    def reply(self, memory: Any, **kwargs: Any) -> Any:
        """Return the answer to the newest post."""
        raise NotImplementedError(f"{type(self).__name__} has no reply(self, memory, **kwargs)")

    def close(self) -> None:
        """Release what it owns."""

    def format_experience(self, *args: Any, **kwargs: Any) -> str:
        """Return an empty text: lessons go to the Planner and the CodeInterpreter (`recall.experience`)."""
        return ""

    def role_load_experience(self, query: str, memory: Any = None) -> None:
        """Load nothing, and warn: lessons go to the Planner and the CodeInterpreter (`recall.experience`).

        Args:
            query: Not used.
            memory: Not used.
        """
        _log.warning("%s loads no experience: only the Planner and the CodeInterpreter are given lessons", self.alias)

    def role_load_example(self, role_set: Any, memory: Any = None) -> list[Any]:
        """Return no examples, and warn: they go to the Planner and the CodeInterpreter.

        Args:
            role_set: Not used.
            memory: Not used.
        """
        _log.warning("%s loads no examples: only the Planner and the CodeInterpreter are given some", self.alias)
        return []
