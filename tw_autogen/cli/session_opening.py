"""A session as the command line's options say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.approval import Approve
from tw_autogen.cli.options import Options
from tw_autogen.cli.trust_prompt import read_settings_and_warn
from tw_autogen.cli.workspace_choice import fallback_workspace
from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.events import Handler
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.model import OpenAIModel
from tw_autogen.planner import Planner
from tw_autogen.role import Placed
from tw_autogen.session import (
    Project,
    Session,
    SessionSettings,
    is_project,
    open_session,
    prune_refusal_reason,
    prune_sessions,
    read_project,
    read_settings,
)
from tw_autogen.settings import Settings


def open_session_for(
    options: Options, handlers: Sequence[Handler], say: Callable[[str], None], approve: Approve | None
) -> Session:
    """Open a session whose code may read the current folder, and call the plugins of the project there.

    Args:
        options: What the shared options said.
        handlers: Called with each event.
        say: Called with a line about what code may read, and lines about what the project brings: what of it runs
            here, outside the sandbox, before it does.
        approve: Asked for packages, cells and plans, as the settings say; None: nobody is there.

    Raises:
        ConfigError: anything is wrong with settings, model, roles or plugins.
        SandboxError: no sandbox can stand around the code here.
        ModelError: the server that should say which model it has does not answer.
    """
    settings = read_settings_and_warn(options, say)
    workspace, elsewhere = (options.workspace, "") if options.workspace else fallback_workspace(settings)
    said = ""
    if not settings.read("session", SessionSettings).user_folder:
        folder = Path(options.project or ".").resolve()
        if why := _unreadable(folder, options, settings):
            said = f"code can't read {folder}, because it is {why}; name the files, or start in a folder of their own"
        else:
            said = f"code can read {folder}"
            keywords: Mapping[str, Any] = {**options.keywords, "session.user_folder": str(folder)}
            if settings.origin("session.profile_folder") == Settings.DEFAULT:
                keywords = {**keywords, "session.profile_folder": "content"}
            settings = read_settings(keywords, project=options.project, trust=options.trust)
    project = project_of(options, settings)
    set_roles = settings.read("session", SessionSettings).roles
    roles = (*set_roles, *(role for role in options.roles if role not in set_roles))
    for line in project.outside(roles) if project else ():
        say(line)  # before it runs
    session = open_session(
        roles=roles,
        plugins=options.plugins,
        folder=workspace,
        handlers=handlers,
        settings=settings,
        approve=approve,
        project=project,
    )
    if options.workspace or not prune_refusal_reason(settings):
        _prune(workspace or Path(settings.read("session", SessionSettings).workspace), settings, say)
    if project:  # a plugin that failed while it was loaded is not there
        offered = {name for role in session.roles if isinstance(role, Placed) for name in role.plugin_names}
        project = replace(project, plugins=tuple(spec for spec in project.plugins if spec.name in offered))
    asked = [role.model for role in session.roles if isinstance(role, Planner | CodeInterpreter)]
    models = dict.fromkeys(f"model: {model}" for model in asked if isinstance(model, OpenAIModel))
    for line in (*models, said, elsewhere, *((project.found, *project.remarks) if project else ())):
        if line:
            say(line)
    return session


def _prune(workspace: Path, settings: Settings, say: Callable[[str], None]) -> None:
    """Remove the sessions of a workspace that are older than `session.keep_days`, and say so."""
    days = settings.read("session", SessionSettings).keep_days
    if not days:
        return
    removed, problems = prune_sessions(workspace, days)
    if removed:
        say(f"removed {len(removed)} session{'s' * (len(removed) != 1)} older than {days:g} days (session.keep_days)")
    for problem in problems:
        say(f"an old session can't be removed: {problem}")


def project_of(options: Options, settings: Settings) -> Project | None:
    """Read the project that `-C` names, else the current folder if a project file lies there, as far as it is trusted.

    Raises:
        ConfigError: as `read_project`.
    """
    if options.project:
        return read_project(options.project, settings)
    return read_project(Path(), settings, named=False) if is_project(Path()) else None


def readable_folders(options: Options) -> tuple[Path, ...]:
    """Return the folders that code may read besides the session's own, the user's own first."""
    settings = read_settings(options.keywords, project=options.project, trust=options.trust)
    own = Path(settings.read("session", SessionSettings).user_folder or options.project or ".").resolve()
    granted = settings.read("kernel", KernelSettings).read
    return (*(() if _unreadable(own, options, settings) else (own,)), *(Path(one).resolve() for one in granted))


def _unreadable(folder: Path, options: Options, settings: Settings) -> str:
    """Return the reason why code may not, or can't, read a whole folder; empty if it may."""
    kernel, session = settings.read("kernel", KernelSettings), settings.read("session", SessionSettings)
    return LocalKernel.unreadable_reason(
        folder, kernel, folder=Path(options.workspace or session.workspace) / "session"
    )
