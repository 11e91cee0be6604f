"""The only place where the parts of a session are put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings, Policy
from tw_autogen.conversation.post import new_id
from tw_autogen.events import Handler
from tw_autogen.kernel import Kernel, KernelSettings, LocalKernel
from tw_autogen.model import ChatModel, ModelSettings, resolve_model
from tw_autogen.planner import Planner, PlannerSettings
from tw_autogen.plugin import PluginSpec, find_plugins
from tw_autogen.role import Role, find_role
from tw_autogen.session.session import Session
from tw_autogen.session.settings import SessionSettings
from tw_autogen.settings import Settings
from tw_autogen.shipped import shipped_folder

ROOMS: Mapping[str, type] = {
    "model": ModelSettings,
    "planner": PlannerSettings,
    "code_interpreter": CodeInterpreterSettings,
    "kernel": KernelSettings,
    "session": SessionSettings,
}
"""Every room that has settings."""

_ALIASES = {"planner": Planner.name, "code_interpreter": CodeInterpreter.name}

RoleWanted = str | Path | Callable[[], Role]
KernelWanted = Kernel | Callable[[Path], Kernel] | None
ModelWanted = ChatModel | Mapping[str, ChatModel] | None


def read_settings(
    keywords: Mapping[str, Any] | None = None,
    *,
    project: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Read all settings, from the places that `tw_autogen.settings` lists.

    Args:
        keywords: Dotted keys, such as `{"session.max_posts": 20}`.
        project: Folder with a project file; None: the current folder.
        environ: The environment; None: that of this process.

    Raises:
        SettingsError: an unknown key or a wrong value; says where it stands.
    """
    environ = os.environ if environ is None else environ
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Settings(
        ROOMS,
        keywords,
        environ=environ,
        project=Path(project) if project else Path.cwd(),
        user_file=Path(home, "tw-autogen", "config.yaml"),
    )


def open_session(
    model: ModelWanted = None,
    *,
    roles: Sequence[RoleWanted] = ("planner", "code_interpreter"),
    plugins: Sequence[str | Path | PluginSpec] = (),
    kernel: KernelWanted = None,
    policy: Policy | None = None,
    folder: Path | str | None = None,
    handlers: Sequence[Handler] = (),
    settings: Settings | Mapping[str, Any] | None = None,
) -> Session:
    """Open a session with all its parts.

    Args:
        model: What the roles ask: one for all, or by role name (`Planner`, `CodeInterpreter`, and a key `""` for the
            rest); None: the one that the settings name.
        roles: Names of shipped roles, folders of one's own, or functions that make one. `planner` and
            `code_interpreter` are always known.
        plugins: Names of shipped plugins, paths of YAML files or of folders of them, or specs.
        kernel: Where code runs: a Kernel, which stays the caller's, or a function that makes one for a folder; None: a
            `LocalKernel`.
        policy: What code may do.
        folder: The workspace, in which the session makes its own folder; None: the setting `session.workspace`.
        handlers: Called with each event.
        settings: Dotted keys, or settings that were read before.

    Returns:
        A session that owns and closes what was made here.

    Raises:
        ConfigError: anything is wrong with settings, model, roles or plugins; before any request.
    """
    read = settings if isinstance(settings, Settings) else read_settings(settings)
    specs = check_plugins(plugins)
    models = _Models(model, read)
    known = {_known(one) for one in roles} - {""}
    for name in known:
        models.pick(_ALIASES[name])  # a missing model is told before any folder or process is made
    options = read.read("session", SessionSettings)
    session_id = new_id("session")
    root = (Path(folder or options.workspace) / session_id).resolve()
    with ExitStack() as undo:  # what was made is closed again if a later part can't be made
        team: list[Role] = []
        owned: list[Kernel] = []
        for one in roles:
            if _known(one) == "planner":
                continue
            if _known(one) == "code_interpreter":
                made = _kernel(kernel, root / "files", read)
                if made is not kernel:
                    undo.callback(made.close)
                    owned.append(made)
                team.append(_interpreter(models, made, specs, policy, read))
            else:
                team.append(_role(one, models))
            undo.callback(team[-1].close)
        if "planner" in known:
            own = read.read("planner", PlannerSettings)
            team.insert(0, Planner(models.pick(_ALIASES["planner"]), team, settings=own))
        session = Session(team, folder=root, settings=options, handlers=handlers, owned=owned, session_id=session_id)
        undo.pop_all()
        return session


def check_plugins(plugins: Sequence[str | Path | PluginSpec]) -> tuple[PluginSpec, ...]:
    """Find plugins, and check each one's YAML and Python, long before a session is opened.

    Raises:
        ConfigError: one is unknown or wrong; names the file.
    """
    return find_plugins(plugins, shipped=shipped_folder("plugins"))


class _Models:
    """Who is asked, by role: what was given, else what the settings name, made once for each name.

    Args:
        given: One model for all, or by role name; the one under `""` is for all others.
        read: Names server and model where nothing was given.
    """

    def __init__(self, given: ModelWanted, read: Settings) -> None:
        self._given = {"": given} if isinstance(given, ChatModel) else dict(given or {})
        self._read = read
        self._made: dict[str, ChatModel] = {}

    def pick(self, role: str) -> ChatModel:
        """Give a role's model.

        Raises:
            NoModelError: none was given, and the settings name none.
        """
        given = self._given.get(role) or self._given.get("")
        if given is not None:
            return given
        own = {
            _ALIASES["planner"]: self._read.read("planner", PlannerSettings).model,
            _ALIASES["code_interpreter"]: self._read.read("code_interpreter", CodeInterpreterSettings).model,
        }.get(role, "")
        if own not in self._made:
            options = self._read.read("model", ModelSettings)
            self._made[own] = resolve_model(replace(options, name=own) if own else options)
        return self._made[own]


def _known(wanted: RoleWanted) -> str:
    """Give the short name of a role that is always known; empty for one that is to be loaded."""
    plain = str(wanted).lower().replace("codeinterpreter", "code_interpreter") if isinstance(wanted, str) else ""
    return plain if plain in _ALIASES else ""


def _kernel(wanted: KernelWanted, folder: Path, read: Settings) -> Kernel:
    if isinstance(wanted, Kernel):
        return wanted
    folder.mkdir(parents=True, exist_ok=True)
    return wanted(folder) if wanted else LocalKernel(folder, settings=read.read("kernel", KernelSettings))


def _interpreter(
    models: _Models, kernel: Kernel, plugins: Sequence[PluginSpec], policy: Policy | None, read: Settings
) -> CodeInterpreter:
    own = read.read("code_interpreter", CodeInterpreterSettings)
    model = models.pick(_ALIASES["code_interpreter"])
    return CodeInterpreter(model, kernel, plugins=plugins, policy=policy, settings=own)


def _role(wanted: RoleWanted, models: _Models) -> Role:
    if not isinstance(wanted, str | Path):
        return wanted()
    spec = find_role(wanted, shipped=shipped_folder("roles"))
    return spec.make(lambda: models.pick(spec.alias))
