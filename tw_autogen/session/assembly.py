"""The only place where the parts of a session are put together."""

from __future__ import annotations

import errno
import functools
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.approval import Approve, Decision, Proposal, checked_approve, decide
from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings
from tw_autogen.conversation import new_id
from tw_autogen.errors import ConfigError, RoleSpecError, SettingsError, nearest
from tw_autogen.events import Handler, checked_handlers
from tw_autogen.kernel import Kernel, KernelSettings, LocalKernel
from tw_autogen.model import EmbeddingSettings, ModelSettings, resolve_model
from tw_autogen.named_folders import checked_path, distrusted_now
from tw_autogen.planner import Planner, PlannerSettings
from tw_autogen.plugin import PluginSpec, PluginWanted, find_plugins
from tw_autogen.plugin.mcp import McpWanted, read_mcp_servers
from tw_autogen.private_files import FOLDER_MODE, create_held_folder
from tw_autogen.role import Role, as_role
from tw_autogen.safe_folder import HeldFolder, SafeFolder
from tw_autogen.session.earlier_session import EarlierSession, mark_own_session
from tw_autogen.session.mcp_tools import start_mcp_servers, with_tools
from tw_autogen.session.project import Project, project_folder, project_here, read_project
from tw_autogen.session.referenced_files import files_of_setting
from tw_autogen.session.request_inputs import FilesWanted, checked_inputs, place_inputs, several
from tw_autogen.session.role_configs import (
    Kernels,
    KernelWanted,
    Models,
    ModelWanted,
    PolicyWanted,
    Resume,
    RoleConfig,
    RolesWanted,
    RoleWanted,
    absolute_role,
    checked_models,
    checked_policy,
    known,
    model_key,
    policy_of,
    role_spec,
)
from tw_autogen.session.session import Session
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.settings_sources import read_logged
from tw_autogen.session.trust_review import compare_trusted, distrusted_folder
from tw_autogen.session.working_copies import given_copies, read_copies, refuse_replacing, write_copies
from tw_autogen.session.workspace import chosen_folder, ignore_in_git, session_folder
from tw_autogen.session_layout import FILES, FOLDER_COPIES
from tw_autogen.setting_values import naming_folder, relative_to_folder
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import FolderTrust
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.text_escaping import visible_line
from tw_autogen.trusted_files import ImportGuards, compared_with

PluginsWanted = Iterable[PluginWanted] | PluginWanted
"""Several, or a single one that needs no list."""

_log = logging.getLogger(__name__)


def open_session(
    model: ModelWanted = None,
    *,
    roles: RolesWanted | None = None,
    plugins: PluginsWanted = (),
    kernel: KernelWanted = None,
    policy: PolicyWanted | None = None,
    folder: Path | str | None = None,
    handlers: Sequence[Handler] = (),
    settings: Settings | Mapping[str, Any] | None = None,
    approve: Approve | None = None,
    project: Path | str | Project | None = None,
    mcp_servers: McpWanted | None = None,
    trust: bool = False,
    resume: Path | str | None = None,
    rerun: bool | None = None,
) -> Session:
    """Open a session with all its parts.

    Args:
        model: What the roles ask: a model, or its name on the server of the settings; one for all, or by role name
            (`Planner`, `CodeInterpreter`, and a key `""` for the rest); None: the one that the settings name.
        roles: Names of shipped roles or of installed packages', folders or classes of one's own, roles (closed with
            the session), or functions that make one. `planner`, `code_interpreter` and `code_interpreter_plugin_only`,
            which may call plugins and do nothing else, are always known. None: the setting `session.roles`, which names
            the first two; it may name roles of `project`, or of the current folder if that is a project. A single one
            needs no list.
        plugins: Names of shipped or installed plugins; paths of YAML files, of Python files with `@plugin` functions,
            or of folders of these; specs; functions, which run in this process. A single one needs no list.
        kernel: Where code runs: a Kernel, which stays the caller's, or a function that makes one for a folder; None: a
            `LocalKernel`.
        policy: What code may do: a policy, its name (`strict`), or the path of its YAML; beats the settings
            `code_interpreter.policy` and `plugin_only`, while `allowed_modules` and `blocked_functions` narrow this one
            too. None: as the settings say.
        folder: The workspace, in which the session makes its own folder; None: the setting `session.workspace`.
        handlers: Called with each event.
        settings: Dotted keys, or settings that were read before.
        approve: Asked for packages, cells, plans and calls of MCP tools, where the settings `kernel.install`,
            `code_interpreter.approval`, `planner.approval` and `plugin.mcp_approval` say so, and for the commands of
            the role `command_line`; blocks until a person has decided. None: nobody is there.
        project: A folder with settings, plugins and roles, such as TaskWeaver's: its plugins come before those of
            `plugins`, which may also name them; its roles take part where `roles` names them; what can't be used
            of it, also a plugin that fails while it is loaded, is named in the log. None: the current folder's
            settings, as far as it is trusted, and no plugins.
        mcp_servers: MCP servers whose tools are plugins too: a JSON file with `mcpServers`, or what stands in it. They
            are started here and end with the session. None: those of the setting `plugin.mcp_servers`.
        trust: All that the project's file, or the current folder's, sets is wanted. Otherwise what it may not set
            unasked (servers, keys, programs, roles, sandbox, grants, policy, approval) is left out and named in the
            log, unless the user has trusted the folder at a terminal. Holds for this call; nothing is remembered.
            With `resume`: go on also with a session that this user did not make there.
        resume: Go on with a session that has ended, however it ended: its name in the workspace, or its folder. Rounds,
            files and board are there; variables come back from their last checkpoint. `Session.earlier` says what there
            was, `Session.cut_off` which request was left in the middle.
        rerun: Whether cells that no checkpoint covers are run again for that, with all that they do; None: `approve`
            is asked, and without it they are not.

    Returns:
        A session that owns and closes what was made here.

    Raises:
        ConfigError: anything is wrong with settings, model, roles or plugins; before any request. Also: there is no
            session to resume, it is open elsewhere, damaged, or not this user's.
        SandboxError: no sandbox can be set up here.
    """
    place = project.folder if isinstance(project, Project) else project
    read = settings if isinstance(settings, Settings) else read_logged(settings, project=place, trust=trust)
    distrusted = distrusted_folder(read, opening=True)  # first: a policy there is read over no link out of it
    policy = checked_policy(policy)
    given = {
        role: resolve_model(replace(read.read("model", ModelSettings), name=one)) if isinstance(one, str) else one
        for role, one in checked_models(model, names=True).items()
    }
    if isinstance(project, str | Path):
        project = read_project(project, read)
        for line in project.remarks:
            _log.warning("%s", visible_line(line))
    own = project.plugin_folder if project else None
    earlier = None
    if resume is not None:
        workspace = Path(os.path.expanduser(folder or read.read("session", SessionSettings).workspace))
        place = session_folder(resume, workspace)
        trust = trust and not (distrusted and place.is_relative_to(distrusted))  # that of a project says nothing of it
        earlier = EarlierSession.read(place, trust=trust)
    with compared_with(read.files):
        specs = check_plugins(several(plugins), own=own, project=project.plugins if project else ())
        configs = [
            RoleConfig(
                one, model=given.get(model_key(one)) or given.get(""), plugins=specs, kernel=kernel, policy=policy
            )
            for one in check_roles(roles, read, project)
        ]
    asked = rerun if rerun is not None else _ask_rerun(approve)
    return open_team(
        configs,
        folder=folder,
        handlers=handlers,
        settings=read,
        approve=approve,
        mcp_servers=mcp_servers,
        examples=project.examples if project else (),
        earlier=earlier,
        variables=Resume(goes_on=earlier is not None, rerun=asked, trust=trust),
    )


def open_team(
    configs: Sequence[RoleConfig],
    *,
    folder: Path | str | None = None,
    handlers: Sequence[Handler] = (),
    settings: Settings | Mapping[str, Any] | None = None,
    approve: Approve | None = None,
    mcp_servers: McpWanted | None = None,
    examples: Sequence[Path] = (),
    trust: bool = False,
    earlier: EarlierSession | None = None,
    variables: Resume | None = None,
) -> Session:
    """Open a session whose roles each have a name, a model, and for code a kernel, plugins and a policy of their own.

    Args:
        configs: Who takes part; a Planner is the one that gets the user's requests.
        folder: As in `open_session`.
        handlers: As in `open_session`.
        settings: As in `open_session`.
        approve: As in `open_session`.
        mcp_servers: As in `open_session`; each CodeInterpreter may call their tools.
        examples: A project's, for roles whose folder of examples the settings don't name.
        trust: As in `open_session`.
        earlier: The session that is resumed; None: a new one.
        variables: How variables are kept, and come back; None: as the settings say, and they don't.

    Raises:
        ConfigError: as in `open_session`.
    """
    handlers = checked_handlers(handlers)
    for config in configs:
        if config.kernel is not None and not isinstance(config.kernel, Kernel) and not callable(config.kernel):
            raise ConfigError(f"kernel: expected a Kernel, or a function from a folder to one, got {config.kernel!r}")
    approve = checked_approve(approve)
    read = settings if isinstance(settings, Settings) else read_logged(settings, trust=trust)
    distrusted = distrusted_folder(read, opening=True)
    _compare_named(read)
    models = Models(read, examples, distrusted=distrusted)
    for config in configs:
        if known(config.role):
            models.pick(config)  # a missing model is told before any folder or process is made
            policy_of(config, read)
    options = read.read("session", SessionSettings)
    session_id = earlier.id if earlier else new_id("session")
    root = earlier.folder if earlier else chosen_folder(read, folder) / session_id
    if folder is None and earlier is None and read.origin("session.workspace") == Settings.DEFAULT:
        ignore_in_git(root.parent, distrusted=distrusted is not None)
    # What was made is closed again if a later part can't be made.
    with compared_with(read.files), _held_folder(root), ExitStack() as undo:
        opened: list[Session] = []
        guards = undo.enter_context(ImportGuards(read.files))
        asked = _approve_with_events(approve, opened)
        kernels = Kernels(
            root / FILES,
            read,
            options.user_folder,
            asked,
            undo,
            lambda path: _answer_refused_write(path, approve, opened),
            resume=variables,
            distrusted=distrusted,
            root=root,
        )
        servers = start_mcp_servers(mcp_servers, configs, read, root / "mcp", undo, approve=asked)
        configs = [with_tools(config, servers, configs) for config in configs]
        workers = [
            _make_worker(config, models, kernels, read, undo, approve, alone=len(configs) == 1)
            for config in configs
            if known(config.role) != "planner"
        ]
        own, recall = read.read("planner", PlannerSettings), models.recall_for("planner")
        planners: list[Role] = [
            Planner(
                models.pick(config),
                workers,
                settings=own,
                recall=recall,
                name=config.name or Planner.name,
                approve=approve,
            )
            for config in configs
            if known(config.role) == "planner"
        ]
        _refuse_roleless(read, configs)
        session = Session(
            [*planners, *workers],
            folder=root,
            settings=replace(options, user_folder=kernels.user_folder if kernels.shared else ""),
            handlers=handlers,
            owned=[guards, *kernels.made, *([servers] if servers else [])],
            session_id=session_id,
            entry=planners[0].name if planners else None,
            learner=models.learner(configs),
            grants=kernels.grants,
            distrusted=distrusted,
            earlier=earlier,
        )
        mark_own_session(root)
        opened.append(session)
        undo.pop_all()
        return session


def open_kernel(
    read: Settings,
    folder: Path | str | None,
    undo: ExitStack,
    *,
    name: str,
    files: FilesWanted = (),
    variables: Mapping[str, Any] | None = None,
    approve: Approve | None = None,
) -> Kernel:
    """Open a kernel without roles around it, as a session has one; it starts when it is first needed.

    Args:
        read: The settings.
        folder: Where code runs; None: a folder of its own in `session.workspace`.
        undo: Closes it.
        name: Beginning of that folder's name.
        files: Copied read-only into the folder.
        variables: Those of the request, whose names are checked.
        approve: Asked for packages.

    Raises:
        ConfigError: a file or name is wrong, or no kernel works in such a folder; as of `chosen_folder`.
        SandboxError: no sandbox can be set up here.
    """
    distrusted = distrusted_folder(read, opening=True)
    _compare_named(read)
    with ExitStack() as opened:
        held = [opened.enter_context(SafeFolder(distrusted))] if distrusted else []
        sources = checked_inputs(files, variables or {}, distrusted=held)
        place = chosen_folder(read, folder) / ("" if folder is not None else new_id(name))
        settings = read.read("kernel", KernelSettings)
        LocalKernel.check_folder(place, settings)
        undo.enter_context(_held_folder(place, mode=FOLDER_MODE))  # code may be able to write above it
        kernels = Kernels(place, read, "", checked_approve(approve), undo, distrusted=distrusted)
        kernel = kernels.pick(RoleConfig("code_interpreter"))
        copies = read_copies(place, FOLDER_COPIES)
        refuse_replacing(sources, place, copies)
        placed = place_inputs(sources, place, lambda path: False, distrusted=held, limit_mb=settings.disk_mb)
        if sources:
            write_copies(place, {**copies, **given_copies(sources, placed, place)}, FOLDER_COPIES)
    return kernel


def _held_folder(folder: Path, **mode: int) -> HeldFolder:
    """Return the folder as of `create_held_folder`.

    Raises:
        ConfigError: the user can't make it there.
    """
    try:
        return create_held_folder(folder, **mode)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EROFS, errno.ENOTDIR):
            raise
        raise ConfigError(
            f"{folder}: can't be made: {error.strerror}; name a folder that you can write to: folder= or "
            "session.workspace"
        ) from error


def _compare_named(read: Settings) -> None:
    """Refuse an interpreter or a model that a trusted folder names and that is not as it was then.

    Settings may have been read long before.

    Raises:
        ConfigError: names the file.
    """
    for key, value in (
        ("kernel.python", read.read("kernel", KernelSettings).python),
        ("embedding.folder", read.read("embedding", EmbeddingSettings).folder),
    ):
        folder = read.folder_of(key)
        if folder is not None and value:
            find = functools.partial(files_of_setting, key, value, folder.resolve())
            compare_trusted(read, find, f"{key} of {folder}", "this folder")


def checked_opening(opening: functools.partial[Session], settings: Settings) -> functools.partial[Session]:
    """Check what a later `open_session` gets, so that what is wrong is said now; nothing of a role or plugin is run.

    Which roles a project or the settings name is found again when a session opens, under the trust that its folder has
    then. Relative paths mean what they mean now.

    Args:
        opening: `open_session` with keywords.
        settings: Read for the keyword `project`; they say who takes part where `roles` is None.

    Returns:
        The same with `plugins`, `policy` and `approve` as they were found, and the paths of `folder`, `roles`,
        `project` and `mcp_servers` absolute. Relative paths in settings and commands begin in what is the current
        folder now, and without a project `trust` is that of this folder.

    Raises:
        ConfigError: one is wrong; names it.
    """
    given = dict(opening.keywords)
    checked_models(given.get("model"))
    if given.get("mcp_servers") is not None:
        given["mcp_servers"] = _absolute_file(given["mcp_servers"])
        read_mcp_servers(given["mcp_servers"])
    if given.get("roles") is not None:
        given["roles"] = tuple(map(absolute_role, several(given["roles"])))
    if given.get("folder") is not None:
        given["folder"] = checked_path(given["folder"], "folder").absolute()
    if isinstance(given.get("project"), str | Path):
        given["project"] = project_folder(given["project"])
    check_roles(given.get("roles"), settings, given.get("project"))
    given["plugins"] = check_plugins(given.get("plugins", ()))
    distrusted_folder(settings)  # noted: a policy there is read over no link out of it
    given["policy"] = checked_policy(given.get("policy"))
    given["approve"] = checked_approve(given.get("approve"))
    trust = FolderTrust.of(trust=True) if given.get("trust") and given.get("project") is None else None
    return functools.partial(_opened_as_made, opening.func, naming_folder() or Path.cwd(), trust, **given)


def _opened_as_made(
    opening: Callable[..., Session], folder: Path, trust: FolderTrust | None, /, **given: Any
) -> Session:
    """Open a session for an agent that was made in a folder, which may not be the current one any more."""
    if trust is not None:
        given["trust"] = trust.holds()
    with relative_to_folder(folder):
        return opening(**given)


def _absolute_file(servers: McpWanted) -> McpWanted:
    """Return the path of a file of MCP servers as an absolute one, and what may stand in such a file as it is."""
    if isinstance(servers, Mapping) or not str(servers) or str(servers).lstrip().startswith("{"):
        return servers
    return checked_path(servers, "mcp_servers").absolute()


def check_roles(
    roles: RolesWanted | None, settings: Settings, project: Path | str | Project | None = None
) -> tuple[RoleWanted, ...]:
    """Find who takes part, long before a session is opened; nothing of a role is run.

    Args:
        roles: As in `open_session`.
        settings: Say who takes part where `roles` is None.
        project: As in `open_session`; None: where `roles` is None too, the current folder if it is a project, since
            the settings are that folder's.

    Returns:
        `roles`, those of the project as their folders.

    Raises:
        ConfigError: one is unknown or wrong; names the file, or the setting.
    """
    if isinstance(project, str | Path):
        project = read_project(project, settings)
    if roles is None:
        wanted: Sequence[RoleWanted] = settings.read("session", SessionSettings).roles
        project = project or project_here(settings)
    else:
        wanted = several(roles)
    try:
        with compared_with(settings.files):
            found = tuple(map(project.resolve_role_folder, wanted) if project else wanted)
            for one in found:
                model_key(one)  # what can't be found is told now
    except RoleSpecError as error:
        if roles is not None:
            raise
        by = f"{error.problem} (`session.roles` in {settings.origin('session.roles')})"
        raise RoleSpecError(by, path=error.path, line=error.line) from error
    return found


def check_plugins(
    plugins: PluginsWanted, *, own: Path | None = None, project: Sequence[PluginSpec] = ()
) -> tuple[PluginSpec, ...]:
    """Find plugins, and check each one's YAML and Python, long before a session is opened.

    Args:
        plugins: As in `open_session`.
        own: Folder of a project's own plugins, which can be named as well.
        project: A project's plugins, checked already; they come first. One that is named too is no longer optional.

    Raises:
        ConfigError: one is unknown or wrong; names the file.
    """
    return find_plugins(plugins, shipped=shipped_folder("plugins"), own=own, project=project)


def _approve_with_events(approve: Approve | None, opened: Sequence[Session]) -> Approve | None:
    """Return what asks for packages and tool calls, and makes events of the session of it."""
    if approve is None:
        return None

    def ask(proposal: Proposal) -> Decision:
        return decide(approve, proposal, opened[0].emit if opened else None)

    return ask


def _ask_rerun(approve: Approve | None) -> bool | Callable[[Sequence[str]], bool]:
    """Return what asks whether cells may be run again; False: nobody is there."""
    asked = checked_approve(approve)
    if asked is None:
        return False
    return lambda codes: decide(asked, Proposal("rerun", "\n\n".join(codes))).approved


def _answer_refused_write(path: str, approve: Approve | None, opened: Sequence[Session]) -> str:
    """Ask whether files may be saved in the user's folder, where code failed to write; return words for the model.

    Args:
        path: What code could not write.
        approve: Asked; None: nobody is there.
        opened: The session, once it is open.

    Returns:
        What the model reads in place of the setting that would allow it; empty if nobody copies files there.
    """
    landing = opened[0].landing if opened else None
    if landing is None or not landing.covers(path):
        return ""
    if approve is not None and not landing.granted and not landing.refused:
        decision = decide(approve, Proposal("write", str(landing.folder)), opened[0].emit)
        if decision.approved:
            landing.grant(always=decision.always)
        else:
            landing.refused = decision.reason or "no"
    refusal = f" The User was asked, and said: {landing.refused}." if landing.refused else ""
    return f"Code can't write there itself.{refusal} {landing.sentence}"


def _refuse_roleless(read: Settings, configs: Sequence[RoleConfig]) -> None:
    """Refuse settings for a role that is neither here nor known from elsewhere: its name is misspelt."""
    here = [
        role_spec(config.role).name
        for config in configs
        if isinstance(config.role, str | Path | type) and not known(config.role)
    ]
    shipped = [path.name for path in shipped_folder("roles").iterdir()]
    for name in read.configured_roles:
        if name not in (*here, *shipped):
            key, (_, setting) = f"role.{name}", next(iter(read.of_role(name, ()).items()))
            raise SettingsError(
                f"{setting.origin}: no role here is called {name!r}{nearest(name, [*here, *shipped])}",
                key=key,
                origin=setting.origin,
            )


def _make_worker(
    config: RoleConfig,
    models: Models,
    kernels: Kernels,
    read: Settings,
    undo: ExitStack,
    approve: Approve | None,
    *,
    alone: bool,
) -> Role:
    role: Role
    if known(config.role):
        own, kernel = read.read("code_interpreter", CodeInterpreterSettings), kernels.pick(config)
        name, policy = config.name or CodeInterpreter.name, policy_of(config, read)
        if kernel is kernels.shared:
            policy = replace(policy, install=read.read("kernel", KernelSettings).install)
        role = CodeInterpreter(
            models.pick(config),
            kernel,
            plugins=config.plugins,
            policy=policy,
            settings=own,
            ranker=models.ranker,
            recall=models.recall_for("code_interpreter"),
            name=name,
            approve=approve,
            keeps_definitions=alone,
            distrusted=distrusted_now,
        )
    elif isinstance(config.role, str | Path | type):
        spec = role_spec(config.role)
        named = read.of_role(spec.name, ["model"]).get("model")
        role = spec.make(
            lambda: models.pick(config, str(named.value) if named else str(spec.settings.get("model") or "")),
            given=lambda keys: read.of_role(spec.name, keys),
            more={
                "approve": lambda: approve,
                "kernel": lambda: kernels.pick(config),
                "ranker": lambda: models.ranker,
            },
            distrusted=distrusted_folder(read),
        )
    else:
        made = config.role() if callable(config.role) and not hasattr(config.role, "reply") else config.role
        role = as_role(made)
    if config.name:
        role.name = config.name
    undo.callback(role.close)
    return role
