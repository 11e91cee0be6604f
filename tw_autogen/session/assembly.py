"""The only place where the parts of a session are put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings, Policy
from tw_autogen.conversation.post import new_id
from tw_autogen.errors import SettingsError, nearest
from tw_autogen.events import Handler
from tw_autogen.kernel import Approve, Kernel, KernelSettings, LocalKernel
from tw_autogen.kernel.sandbox_trial import standing
from tw_autogen.model import ChatModel, EmbeddingSettings, ModelSettings, resolve_model, resolve_ranker
from tw_autogen.planner import Planner, PlannerSettings
from tw_autogen.plugin import PluginSpec, find_plugins
from tw_autogen.role import Role, RoleSpec, find_role
from tw_autogen.session.session import Session
from tw_autogen.session.settings import SessionSettings
from tw_autogen.settings import Settings
from tw_autogen.shipped import shipped_folder

ROOMS: Mapping[str, type] = {
    "model": ModelSettings,
    "embedding": EmbeddingSettings,
    "planner": PlannerSettings,
    "code_interpreter": CodeInterpreterSettings,
    "kernel": KernelSettings,
    "session": SessionSettings,
}
"""Every room that has settings."""

_ALIASES = {"planner": Planner.name, "code_interpreter": CodeInterpreter.name}

RoleWanted = str | Path | type | Role | Callable[[], Role]
"""A name, the path of a folder, a class, a role that is there already, or a function that makes one."""
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


@dataclass(frozen=True)
class Seat:
    """One role of a session, and what it is made of.

    Args:
        role: The name of a shipped role or of an installed package's, the folder or class of one's own, a role, or a
            function that makes one.
        name: Its name in the talk; empty: the role's own.
        model: What it asks; None: the one that the settings name.
        plugins: For a CodeInterpreter: what its code may call.
        kernel: For a CodeInterpreter: where its code runs; None: the one `LocalKernel` that the session's interpreters
            share.
        policy: For a CodeInterpreter: what its code may do.
    """

    role: RoleWanted
    name: str = ""
    model: ChatModel | None = None
    plugins: tuple[PluginSpec, ...] = ()
    kernel: KernelWanted = None
    policy: Policy | None = None


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
    approve: Approve | None = None,
) -> Session:
    """Open a session with all its parts.

    Args:
        model: What the roles ask: one for all, or by role name (`Planner`, `CodeInterpreter`, and a key `""` for the
            rest); None: the one that the settings name.
        roles: Names of shipped roles or of installed packages', folders or classes of one's own, roles (closed with
            the session), or functions that make one. `planner` and `code_interpreter` are always known.
        plugins: Names of shipped plugins, paths of YAML files or of folders of them, or specs.
        kernel: Where code runs: a Kernel, which stays the caller's, or a function that makes one for a folder; None: a
            `LocalKernel`.
        policy: What code may do.
        folder: The workspace, in which the session makes its own folder; None: the setting `session.workspace`.
        handlers: Called with each event.
        settings: Dotted keys, or settings that were read before.
        approve: Asked for packages that code wants, where the setting `kernel.install` is `ask`, and for the commands
            of the role `command_line`; None: nobody is there.

    Returns:
        A session that owns and closes what was made here.

    Raises:
        ConfigError: anything is wrong with settings, model, roles or plugins; before any request.
        SandboxError: no sandbox can stand around the code here.
    """
    specs = check_plugins(plugins)
    given = {"": model} if isinstance(model, ChatModel) else dict(model or {})
    seats = [
        Seat(one, model=given.get(_role_name(one)) or given.get(""), plugins=specs, kernel=kernel, policy=policy)
        for one in roles
    ]
    return open_team(seats, folder=folder, handlers=handlers, settings=settings, approve=approve)


def open_team(
    seats: Sequence[Seat],
    *,
    folder: Path | str | None = None,
    handlers: Sequence[Handler] = (),
    settings: Settings | Mapping[str, Any] | None = None,
    approve: Approve | None = None,
) -> Session:
    """Open a session whose roles each have a name, a model, and for code a kernel, plugins and a policy of their own.

    Args:
        seats: Who takes part; a Planner is the one that gets the user's requests.
        folder: As in `open_session`.
        handlers: As in `open_session`.
        settings: As in `open_session`.
        approve: As in `open_session`.

    Raises:
        ConfigError: as in `open_session`.
    """
    read = settings if isinstance(settings, Settings) else read_settings(settings)
    models = _Models(read)
    for seat in seats:
        if _known(seat.role):
            models.pick(seat)  # a missing model is told before any folder or process is made
    options = read.read("session", SessionSettings)
    session_id = new_id("session")
    root = (Path(folder or options.workspace) / session_id).resolve()
    with ExitStack() as undo:  # what was made is closed again if a later part can't be made
        kernels = _Kernels(root / "files", read, options.user_folder, approve, undo)
        workers = [_worker(seat, models, kernels, read, undo) for seat in seats if _known(seat.role) != "planner"]
        own = read.read("planner", PlannerSettings)
        planners: list[Role] = [
            Planner(models.pick(seat), workers, settings=own, name=seat.name or Planner.name)
            for seat in seats
            if _known(seat.role) == "planner"
        ]
        _refuse_roleless(read, seats)
        session = Session(
            [*planners, *workers],
            folder=root,
            settings=options if kernels.shared else replace(options, user_folder=""),
            handlers=handlers,
            owned=kernels.made,
            session_id=session_id,
            entry=planners[0].name if planners else None,
        )
        undo.pop_all()
        return session


def check_plugins(plugins: Sequence[str | Path | PluginSpec]) -> tuple[PluginSpec, ...]:
    """Find plugins, and check each one's YAML and Python, long before a session is opened.

    Raises:
        ConfigError: one is unknown or wrong; names the file.
    """
    return find_plugins(plugins, shipped=shipped_folder("plugins"))


class _Models:
    """Who is asked, by seat: what was given, else what the settings name, made once for each name."""

    def __init__(self, read: Settings) -> None:
        self._read = read
        self._made: dict[str, ChatModel] = {}

    def pick(self, seat: Seat, name: str = "") -> ChatModel:
        """Give a seat's model.

        Args:
            seat: Whose.
            name: Name of the model on the server, if the role's settings say one.

        Raises:
            NoModelError: none was given, and the settings name none.
        """
        if seat.model is not None:
            return seat.model
        own = {
            "planner": self._read.read("planner", PlannerSettings).model,
            "code_interpreter": self._read.read("code_interpreter", CodeInterpreterSettings).model,
        }.get(_known(seat.role), name)
        if own not in self._made:
            options = self._read.read("model", ModelSettings)
            self._made[own] = resolve_model(replace(options, name=own) if own else options)
        return self._made[own]


class _Kernels:
    """Where code runs: what a seat brings, else one for all (`shared`); `made` are those that the session owns."""

    def __init__(
        self, folder: Path, read: Settings, user_folder: str, approve: Approve | None, undo: ExitStack
    ) -> None:
        self._folder = folder
        self._read = read
        self._user_folder = user_folder
        self.approve = approve
        self._undo = undo
        self.shared: Kernel | None = None
        self.made: list[Kernel] = []

    def pick(self, seat: Seat) -> Kernel:
        if isinstance(seat.kernel, Kernel):
            return seat.kernel
        if seat.kernel is not None:
            return self._own(seat.kernel)
        if self.shared is None:
            options = self._read.read("kernel", KernelSettings)
            if self._user_folder:
                options = replace(options, read=(*options.read, self._user_folder))
            standing(options)  # where no sandbox can stand, that is said before any model is asked
            self.shared = self._own(lambda folder: LocalKernel(folder, settings=options, approve=self.approve))
        return self.shared

    def _own(self, make: Callable[[Path], Kernel]) -> Kernel:
        self._folder.mkdir(parents=True, exist_ok=True)
        kernel = make(self._folder)
        self._undo.callback(kernel.close)
        self.made.append(kernel)
        return kernel


def _known(wanted: RoleWanted) -> str:
    """Give the short name of a role that is always known; empty for one that is to be loaded."""
    plain = str(wanted).lower().replace("codeinterpreter", "code_interpreter") if isinstance(wanted, str) else ""
    return plain if plain in _ALIASES else ""


def _role_name(wanted: RoleWanted) -> str:
    """Give the name under which a role's model is looked up; empty for one that a function makes."""
    if _known(wanted):
        return _ALIASES[_known(wanted)]
    return _find(wanted).alias if isinstance(wanted, str | Path | type) else ""


def _find(wanted: str | Path | type) -> RoleSpec:
    return find_role(wanted, shipped=shipped_folder("roles"))


def _refuse_roleless(read: Settings, seats: Sequence[Seat]) -> None:
    """Refuse settings for a role that is neither here nor known from elsewhere: its name is misspelt."""
    here = [
        _find(seat.role).name for seat in seats if isinstance(seat.role, str | Path | type) and not _known(seat.role)
    ]
    shipped = [one.name for one in shipped_folder("roles").iterdir()]
    for name in read.roles:
        if name not in (*here, *shipped):
            key, (_, setting) = f"role.{name}", next(iter(read.of_role(name, ()).items()))
            raise SettingsError(
                f"{setting.origin}: no role here is called {name!r}{nearest(name, [*here, *shipped])}",
                key=key,
                origin=setting.origin,
            )


def _worker(seat: Seat, models: _Models, kernels: _Kernels, read: Settings, undo: ExitStack) -> Role:
    role: Role
    if _known(seat.role):
        own, kernel = read.read("code_interpreter", CodeInterpreterSettings), kernels.pick(seat)
        name, policy = seat.name or CodeInterpreter.name, seat.policy
        if kernel is kernels.shared:
            policy = replace(policy or Policy(), install=read.read("kernel", KernelSettings).install)
        role = CodeInterpreter(models.pick(seat), kernel, plugins=seat.plugins, policy=policy, settings=own, name=name)
    elif isinstance(seat.role, str | Path | type):
        spec = _find(seat.role)
        named = read.of_role(spec.name, ["model"]).get("model")
        role = spec.make(
            lambda: models.pick(seat, str(named.value) if named else str(spec.settings.get("model") or "")),
            given=lambda known: read.of_role(spec.name, known),
            more={
                "approve": lambda: kernels.approve,
                "kernel": lambda: kernels.pick(seat),
                "ranker": lambda: resolve_ranker(
                    read.read("embedding", EmbeddingSettings), read.read("model", ModelSettings)
                ),
            },
        )
    elif isinstance(seat.role, Role):
        role = seat.role
    else:
        role = seat.role()
    if seat.name:
        role.name = seat.name
    undo.callback(role.close)
    return role
