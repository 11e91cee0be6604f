"""`TaskWeaverRoleSpec`: a role as a `<name>.role.yaml` describes it, and what makes its class answer posts here."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tw_autogen.conversation import Memory, Post
from tw_autogen.errors import ConfigError, RoleSpecError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.model import ChatModel
from tw_autogen.role.role import Role, Turn
from tw_autogen.role.role_source import line_in, load_source
from tw_autogen.role.spec import Given, RoleSpec, check_entry, hints_of, refuse_unknown
from tw_autogen.settings import PROJECT_FILE
from tw_autogen.taskweaver_config import TASKWEAVER_FILE
from tw_autogen.yaml_files import read_mapping

if TYPE_CHECKING:
    from tw_autogen.role.taskweaver import api, imports
    from tw_autogen.role.taskweaver import memory as their
else:  # only a role in this form needs them
    api = LazyModule("tw_autogen.role.taskweaver.api")
    imports = LazyModule("tw_autogen.role.taskweaver.imports")
    their = LazyModule("tw_autogen.role.taskweaver.memory")

SUFFIX = ".role.yaml"
_KEYS = ("name", "alias", "module", "intro")
_INSTEAD = "write the class against `tw_autogen`, with a `role.yaml`: see the README of roles"
_log = logging.getLogger(__name__)


class AdaptedRole(Role):
    """A role in TaskWeaver's form, adapted to this package's contract.

    Args:
        theirs: The role.
        emitter: The emitter that it was given; gets the turn that is under way.
        path: Its Python, for messages.
    """

    def __init__(self, theirs: api.Role, emitter: api.SessionEventEmitter, path: Path) -> None:
        self.theirs = theirs
        """The role as its author wrote it."""
        self._emitter = emitter
        self._path = path
        self.intro = theirs.get_intro()

    @property
    def name(self) -> str:
        """Its name in posts."""
        return self.theirs.get_alias()

    @name.setter
    def name(self, name: str) -> None:
        self.theirs.set_alias(name)

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Return the role's answer; a post without a receiver goes back to the role that asked.

        Raises:
            RoleSpecError: the role returned no post; names its Python.
        """
        turn: Turn | None = kwargs.get("turn")
        self._emitter.turn, self._emitter.session_id = turn, memory.session_id
        takes = inspect.signature(self.theirs.reply).parameters
        offered: dict[str, Any] = {
            "post_proxy": self._emitter.create_post_proxy(self.name),
            "event_emitter": self._emitter,
            "prompt_log_path": str((turn.folder if turn else Path()) / f"{self.name}_prompt_log.json"),
        }
        wanted = {key: value for key, value in offered.items() if key in takes}
        if any(take.kind is take.VAR_KEYWORD for take in takes.values()):
            wanted["prompt_log_path"] = offered["prompt_log_path"]
        try:
            answer = self.theirs.reply(their.Memory(memory), **wanted)
        finally:
            self._emitter.turn = None
        if not isinstance(answer, their.Post):
            raise RoleSpecError(
                f"reply() gave {type(answer).__name__}, not a Post: end it with `return post_proxy.end()`",
                path=self._path,
            )
        if answer.send_to == their.UNKNOWN:
            answer.send_to = memory.last_post.send_from
        return answer.frozen().with_stated_plan()

    def close(self) -> None:
        """Release what the role owns."""
        self.theirs.close()


@dataclass(frozen=True)
class TaskWeaverRoleSpec(RoleSpec):
    """A role as its `<name>.role.yaml` describes it; `module` is the dotted path of its class."""

    def make(
        self,
        model: Callable[[], ChatModel],
        *,
        given: Given | None = None,
        more: Mapping[str, Callable[[], Any]] | None = None,
        distrusted: Path | None = None,
    ) -> Role:
        """Load the class and create a role.

        Args:
            model: As of `RoleSpec.make`.
            given: As of `RoleSpec.make`.
            more: Not used: the classes of TaskWeaver that a constructor may take are known.
            distrusted: Not used: none of their settings says that it is a path.

        Raises:
            RoleSpecError: the Python doesn't load, lacks the class, or needs a part of TaskWeaver that isn't here.
            SettingsError: a setting is unknown or of the wrong type; says where it was set.
        """
        kind = self._load_role_class()
        hints = hints_of(kind)
        given = given or (lambda known: {})
        entry = api.RoleEntry(self.name, self.alias, self.module, self.intro)
        source = api.AppConfigSource(str(_project_folder(self.path)), str(self.path.parent), given)
        emitter = api.SessionEventEmitter()
        config_kind = next((one for one in hints.values() if _is_config(one)), api.RoleConfig)
        offered: dict[str, tuple[type, Callable[[], Any]]] = {
            "logger": (api.TelemetryLogger, lambda: api.TelemetryLogger(self.name)),
            "tracing": (api.Tracing, api.Tracing),
            "event_emitter": (api.SessionEventEmitter, lambda: emitter),
            "role_entry": (api.RoleEntry, lambda: entry),
            "llm_api": (api.LLMApi, lambda: api.LLMApi(model, emitter, self.alias)),
            "session_metadata": (api.SessionMetadata, lambda: api.SessionMetadata(emitter)),
            "src": (api.AppConfigSource, lambda: source),
        }
        try:
            config = config_kind(source, entry, self.path)
            offered["config"] = (config_kind, lambda: config)
            by_type = dict(offered.values())
            arguments: dict[str, Any] = {}
            for key, value in inspect.signature(kind).parameters.items():
                hint = hints.get(key)
                create = by_type.get(hint) if isinstance(hint, type) else offered.get(key, (None, None))[1]
                if create is not None:
                    arguments[key] = create()
                elif value.default is value.empty and value.kind not in (value.VAR_POSITIONAL, value.VAR_KEYWORD):
                    name = f" ({hint.__name__})" if isinstance(hint, type) else ""
                    raise RoleSpecError(
                        f"its constructor needs {key!r}{name}, which has no counterpart here; a role in "
                        f"TaskWeaver's form gets {', '.join(offered)}; else {_INSTEAD}",
                        path=self._python_file,
                    )
            role = AdaptedRole(kind(**arguments), emitter, self._python_file)
        except ConfigError:
            raise
        except (Exception, SystemExit) as error:  # a constructor of the role's author
            line = line_in(error, self._python_file)
            raise RoleSpecError(f"{type(error).__name__}: {error}", path=self._python_file, line=line) from error
        refuse_unknown(self.name, config.asked, given(config.asked))
        return role

    @property
    def _python_file(self) -> Path:
        return self.path.with_name(f"{self.name}.py")

    def _load_role_class(self) -> type[api.Role]:
        """Load the Python and return the class that the YAML names."""
        wanted = self.module.rpartition(".")[2]
        found = imports.IsolatedImports(self.module, self._python_file)
        try:
            module = load_source(self._python_file, builtins=found.builtins)
        except RoleSpecError as error:
            problem, cause = found.without_namespace(error.problem), error.__cause__
            missing = found.without_namespace(getattr(cause, "name", None) or "")
            if isinstance(cause, ImportError) and missing.partition(".")[0] == imports.ROOT:
                known = ", ".join(imports.MODULES)
                problem += f": that part of TaskWeaver has no counterpart here (there are {known}); {_INSTEAD}"
            raise RoleSpecError(problem, path=self._python_file, line=error.line) from cause
        kind = vars(module).get(wanted)
        if not (inspect.isclass(kind) and issubclass(kind, api.Role)):
            raise RoleSpecError(
                f"there is no class {wanted!r} that inherits from taskweaver.role.Role, as `module: {self.module}` in "
                f"{self.path.name} says; it has {_roles_in(module)}",
                path=self._python_file,
            )
        if kind.reply is api.Role.reply:
            raise RoleSpecError(f"class {wanted} has no `reply(self, memory, **kwargs)`", path=self._python_file)
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
    check_entry(plain, ("alias", "module", "intro"), path)
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


def _is_config(hint: Any) -> bool:
    return inspect.isclass(hint) and issubclass(hint, api.RoleConfig)


def _roles_in(module: ModuleType) -> str:
    own = (var for var in vars(module).values() if inspect.isclass(var) and var.__module__ == module.__name__)
    return ", ".join(sorted(one.__name__ for one in own if issubclass(one, api.Role))) or "none"


def _project_folder(path: Path) -> Path:
    """Return the folder of the project that a role lies in."""
    for folder in path.resolve().parents:
        if (folder / TASKWEAVER_FILE).exists() or (folder / PROJECT_FILE).exists():
            return folder
    return path.resolve().parent.parent
