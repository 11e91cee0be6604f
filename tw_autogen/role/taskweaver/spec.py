"""`TaskWeaverRoleSpec`: a role as a `<name>.role.yaml` describes it, and what makes its class answer posts here."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from tw_autogen.conversation import AttachmentType, Memory, Post
from tw_autogen.conversation.plain import read_mapping
from tw_autogen.errors import ConfigError, RoleSpecError
from tw_autogen.model import ChatModel
from tw_autogen.role.loading import line_in, load_source
from tw_autogen.role.role import Role, Turn
from tw_autogen.role.spec import Given, RoleSpec, refuse_unknown
from tw_autogen.role.taskweaver import author, talk
from tw_autogen.role.taskweaver.beside import Beside
from tw_autogen.role.taskweaver.emitting import SessionEventEmitter, SessionMetadata
from tw_autogen.role.taskweaver.names import NAMES, ROOT
from tw_autogen.settings import PROJECT_FILE
from tw_autogen.taskweaver_config import TASKWEAVER_FILE

SUFFIX = ".role.yaml"
_KEYS = ("name", "alias", "module", "intro")
_INSTEAD = "write the class against `tw_autogen`, with a `role.yaml`: see the README of roles"
_log = logging.getLogger(__name__)


class AdaptedRole(Role):
    """A role in TaskWeaver's form, as the session sees it.

    Args:
        theirs: The role.
        emitter: The one that it was given; has the turn that is under way.
        path: Its Python, for messages.
    """

    def __init__(self, theirs: author.Role, emitter: SessionEventEmitter, path: Path) -> None:
        self._theirs = theirs
        self._emitter = emitter
        self._path = path
        self.intro = theirs.get_intro()
        takes = inspect.signature(theirs.reply).parameters
        self._takes = None if any(one.kind is one.VAR_KEYWORD for one in takes.values()) else tuple(takes)
        self._wants = [name for name in ("post_proxy", "event_emitter") if name in takes]

    @property
    def theirs(self) -> author.Role:
        """The role as its author wrote it."""
        return self._theirs

    @property
    def name(self) -> str:
        """Its name in the talk."""
        return self._theirs.get_alias()

    @name.setter
    def name(self, name: str) -> None:
        self._theirs.set_alias(name)

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Return the role's answer; a post that doesn't say to whom it goes goes back to who wrote.

        Raises:
            RoleSpecError: what it gave back is no post; names its Python.
        """
        turn: Turn | None = kwargs.get("turn")
        self._emitter.turn, self._emitter.session_id = turn, memory.session_id
        folder = turn.folder if turn else Path()
        more: dict[str, Any] = {
            "prompt_log_path": str(folder / f"{self.name}_prompt_log.json"),
            "post_proxy": self._emitter.create_post_proxy(self.name),
            "event_emitter": self._emitter,
        }
        wanted = {
            key: value
            for key, value in more.items()
            if key in self._wants or key == "prompt_log_path" and (self._takes is None or key in self._takes)
        }
        try:
            answer = self._theirs.reply(talk.Memory(memory), **wanted)
        finally:
            self._emitter.turn = None
        if not isinstance(answer, talk.Post):
            raise RoleSpecError(
                f"reply() gave {type(answer).__name__}, not a Post: end it with `return post_proxy.end()`",
                path=self._path,
            )
        if answer.send_to == talk.UNKNOWN:
            answer.send_to = memory.last_post.send_from
        answer.attachment_list = [shown for one in answer.attachment_list if (shown := _shown(one))]
        return Post.from_dict(answer.to_dict()).with_stated_plan()

    def close(self) -> None:
        """Release what the role owns."""
        self._theirs.close()


@dataclass(frozen=True)
class TaskWeaverRoleSpec(RoleSpec):
    """A role as its `<name>.role.yaml` describes it; `module` is the dotted path of its class."""

    def make(
        self,
        model: Callable[[], ChatModel],
        *,
        given: Given | None = None,
        more: Mapping[str, Callable[[], Any]] | None = None,
    ) -> Role:
        """Load the class and make one role; arguments as in `RoleSpec.make`.

        Raises:
            RoleSpecError: the Python doesn't load, lacks the class, or needs a part of TaskWeaver that isn't here.
            SettingsError: a setting is unknown or of the wrong type; says where it stands.
        """
        kind = self._class()
        entry = author.RoleEntry(self.name, self.alias, self.module, self.intro)
        emitter = SessionEventEmitter()
        give = given or (lambda known: {})
        hints = _hints(kind)
        source = author.AppConfigSource(str(_project(self.path)), str(self.path.parent), give)
        takes = inspect.signature(kind).parameters
        config_kind = next((one for one in hints.values() if _is_config(one)), author.RoleConfig)
        offered: dict[type, tuple[str, Callable[[], Any]]] = {
            author.TelemetryLogger: ("logger", lambda: author.TelemetryLogger(self.name)),
            author.Tracing: ("tracing", author.Tracing),
            SessionEventEmitter: ("event_emitter", lambda: emitter),
            author.RoleEntry: ("role_entry", lambda: entry),
            author.LLMApi: ("llm_api", lambda: author.LLMApi(model, emitter, self.alias)),
            SessionMetadata: ("session_metadata", lambda: SessionMetadata(emitter)),
            author.AppConfigSource: ("src", lambda: source),
        }
        by_name = {name: make for name, make in offered.values()}
        try:
            config = config_kind(source, entry, self.path)
            by_name["config"] = lambda: config
            arguments: dict[str, Any] = {}
            for key, value in takes.items():
                hint = hints.get(key)
                if _is_config(hint):
                    arguments[key] = config
                elif hint in offered:
                    arguments[key] = offered[hint][1]()
                elif key in by_name and not isinstance(hint, type):
                    arguments[key] = by_name[key]()
                elif value.default is value.empty and value.kind not in (value.VAR_POSITIONAL, value.VAR_KEYWORD):
                    kind_of = f" ({hint.__name__})" if isinstance(hint, type) else ""
                    raise RoleSpecError(
                        f"its constructor needs {key!r}{kind_of}, which has no counterpart here; a role in "
                        f"TaskWeaver's form gets {', '.join(by_name)}; else {_INSTEAD}",
                        path=self._python,
                    )
            role = AdaptedRole(kind(**arguments), emitter, self._python)
        except ConfigError:
            raise
        except Exception as error:  # somebody's own constructor
            line = line_in(error, self._python)
            raise RoleSpecError(f"{type(error).__name__}: {error}", path=self._python, line=line) from error
        refuse_unknown(self.name, config.asked, give(config.asked))
        return role

    @property
    def _python(self) -> Path:
        return self.path.with_name(f"{self.name}.py")

    def _class(self) -> type[author.Role]:
        """Load the Python and give the class that the YAML names."""
        wanted = self.module.rpartition(".")[2]
        beside = Beside(self.module, self._python)
        with beside.at_hand():
            try:
                module = load_source(self._python, builtins=beside.builtins)
            except RoleSpecError as error:
                missing = getattr(error.__cause__, "name", None) or ""
                if isinstance(error.__cause__, ImportError) and missing.partition(".")[0] == ROOT:
                    raise RoleSpecError(
                        f"{error.problem}: that part of TaskWeaver has no counterpart here (there are "
                        f"{', '.join(f'{ROOT}.{one}' for one in NAMES if NAMES[one])}); {_INSTEAD}",
                        path=self._python,
                        line=error.line,
                    ) from error
                raise
        kind = vars(module).get(wanted)
        if not (inspect.isclass(kind) and issubclass(kind, author.Role)):
            raise RoleSpecError(
                f"there is no class {wanted!r} that inherits from taskweaver.role.Role, as `module: {self.module}` in "
                f"{self.path.name} says; it has {_roles_in(module)}",
                path=self._python,
            )
        if kind.reply is author.Role.reply:
            raise RoleSpecError(f"class {wanted} has no `reply(self, memory, **kwargs)`", path=self._python)
        return kind


def find_role_yaml(folder: Path) -> Path | None:
    """Return the YAML in TaskWeaver's form of a role's folder; None if there is none."""
    path = folder / f"{folder.resolve().name}{SUFFIX}"
    if path.exists():
        return path
    others = sorted(folder.glob(f"*{SUFFIX}"))
    if others:
        raise RoleSpecError(f"its name must be that of its folder: {path.name}", path=others[0])
    return None


def read_role_yaml(path: Path) -> TaskWeaverRoleSpec:
    """Read a `<name>.role.yaml`; nothing of the role is run.

    Keys that TaskWeaver doesn't read are passed over, and named in the log.

    Raises:
        RoleSpecError: names the file and what is wrong in it.
    """
    plain = read_mapping(path, RoleSpecError)
    for key in ("alias", "module", "intro"):
        if not isinstance(plain.get(key), str) or not plain[key].strip():
            raise RoleSpecError(f"`{key}` is missing or no text", path=path)
    if not plain["alias"].isidentifier():
        raise RoleSpecError(f"`alias` must be a plain name without spaces, not {plain['alias']!r}", path=path)
    if not plain["module"].rpartition(".")[2].isidentifier() or "." not in plain["module"]:
        raise RoleSpecError(
            f"`module` must be the dotted path of a class, as in roles.{path.parent.name}.{path.parent.name}.MyRole, "
            f"not {plain['module']!r}",
            path=path,
        )
    ignored = [str(key) for key in plain if key not in _KEYS]
    if ignored:
        _log.warning("%s: without meaning here: %s", path, ", ".join(ignored))
    name = path.name.removesuffix(SUFFIX)
    return TaskWeaverRoleSpec(plain["alias"], plain["intro"].strip(), path, name, plain["module"])


def _shown(one: talk.Attachment) -> talk.Attachment | None:
    """Return an attachment in our form: a picture's address is its content, where TaskWeaver keeps it in `extra`."""
    if one.type is not AttachmentType.image_url or not isinstance(one.extra, Mapping) or "image_url" not in one.extra:
        return one
    url = one.extra["image_url"]
    return talk.Attachment(one.type, str(url), one.id) if url else None  # the role found no picture


def _is_config(hint: Any) -> bool:
    return inspect.isclass(hint) and issubclass(hint, author.RoleConfig)


def _hints(kind: Callable[..., Any]) -> dict[str, Any]:
    """Return what the constructor says of its arguments, as far as it can be known."""
    try:
        return get_type_hints(kind.__init__)
    except NameError:  # a name that stands under TYPE_CHECKING only
        return {}


def _roles_in(module: ModuleType) -> str:
    own = (one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__)
    return ", ".join(sorted(one.__name__ for one in own if issubclass(one, author.Role))) or "none"


def _project(path: Path) -> Path:
    """Return the folder of the project that a role lies in."""
    for folder in path.resolve().parents:
        if (folder / TASKWEAVER_FILE).exists() or (folder / PROJECT_FILE).exists():
            return folder
    return path.resolve().parent.parent
