"""A session as the command line's options say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tw_autogen.approval import Approve
from tw_autogen.cli.options import Options
from tw_autogen.cli.trust_prompt import HOW
from tw_autogen.cli.workspace_choice import fallback_workspace, workspace_of
from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.errors import TwAutogenError
from tw_autogen.events import Handler
from tw_autogen.kernel import AttachedKernel, KernelSettings, LocalKernel
from tw_autogen.model import OpenAIModel
from tw_autogen.named_folders import granted_path
from tw_autogen.planner import Planner
from tw_autogen.plural import pluralize
from tw_autogen.role import Placed
from tw_autogen.session import (
    AnswerFiles,
    Project,
    Session,
    SessionSettings,
    distrusted_folder,
    is_project,
    open_session,
    prune_refusal_reason,
    prune_sessions,
    read_project,
    read_settings,
    session_folder,
    trust_lines,
)
from tw_autogen.settings import Settings
from tw_autogen.text_escaping import visible_line


def open_session_for(
    options: Options,
    handlers: Sequence[Handler],
    say: Callable[[str], None],
    approve: Approve | None,
    *,
    warn: Callable[[str], None] | None = None,
    elsewhere_because: str = "",
) -> Session:
    """Open a session whose code may read the current folder, and call the plugins of the project there.

    Args:
        options: What the shared options said.
        handlers: Called with each event.
        say: Called with a line about what code may read, and lines about what the project brings: what of it runs
            here, outside the sandbox, before it does.
        approve: Asked for packages, cells and plans, as the settings say; None: nobody is there.
        warn: Called with lines about what of an untrusted folder counts and what doesn't; None: `say` is.
        elsewhere_because: Why sessions are kept in the user's cache, as a clause; empty: below the current folder.

    Raises:
        ConfigError: anything is wrong with settings, model, roles or plugins.
        SandboxError: no sandbox can be set up here.
        ModelError: the server that should say which model it has does not answer.
    """
    settings = read_settings(options.keywords, project=options.project, trust=options.trust)
    workspace, elsewhere = (options.workspace, "")
    if not options.workspace:
        workspace, elsewhere = fallback_workspace(settings, unwanted=elsewhere_because)
    said = ""
    if options.attach:
        said = f"code runs in your kernel {options.attach}, in no sandbox; cells you approve: {options.attach_approval}"
    elif not settings.read("session", SessionSettings).user_folder:
        folder = granted_path(options.project or ".", distrusted=distrusted_folder(settings))
        if why := _unreadable_reason(folder, options, settings):
            said = f"code can't read {folder}, because it is {why}; name the files, or start in a folder of their own"
        else:
            said = f"code can read {folder}"
            keywords: Mapping[str, Any] = {**options.keywords, "session.user_folder": str(folder)}
            if settings.origin("session.profile_folder") == Settings.DEFAULT:
                keywords = {**keywords, "session.profile_folder": "content"}
            settings = read_settings(keywords, project=options.project, trust=options.trust)
    project = project_of(options, settings)
    of_project = project.examples if project else None
    for line in trust_lines(settings, HOW, examples=of_project):  # of what is used: files may have changed meanwhile
        (warn or say)(line)
    resume = _session_to_resume(options, settings, workspace)
    set_roles = settings.read("session", SessionSettings).roles
    roles = (*set_roles, *(role for role in options.roles if role not in set_roles))
    for line in project.unsandboxed_notices(roles) if project else ():
        say(line)  # before it runs
    session = open_session(
        roles=roles,
        plugins=options.plugins,
        kernel=_attached_kernel(options, settings, say) if options.attach else None,
        folder=workspace,
        handlers=handlers,
        settings=settings,
        approve=approve,
        project=project,
        resume=resume,
        rerun=True if options.rerun else None,
        trust=options.trust,
    )
    with contextlib.ExitStack() as undo:
        undo.callback(session.close)
        if options.workspace or not prune_refusal_reason(settings):
            _prune_old_sessions(workspace or Path(settings.read("session", SessionSettings).workspace), settings, say)
        for line in (*model_lines(session), said, elsewhere, *_words_about(project, session)):
            if line:
                say(line)
        undo.pop_all()
    return session


def model_lines(session: Session) -> Iterable[str]:
    """Return a line for each model that the Planner and the CodeInterpreter of a session ask."""
    asked = [role.model for role in session.roles if isinstance(role, Planner | CodeInterpreter)]
    return dict.fromkeys(f"model: {model}" for model in asked if isinstance(model, OpenAIModel))


def _words_about(project: Project | None, session: Session) -> Iterable[str]:
    if project is None:
        return ()
    offered = plugins_of(session)  # a plugin that failed while it was loaded is not there
    found = replace(project, plugins=tuple(spec for spec in project.plugins if spec.name in offered))
    return (found.found, *found.remarks)


def copy_files_of_answers(session: Session, options: Options) -> AnswerFiles:
    """Make that files of a session's answers are copied to the current folder, or to that of `--out`.

    Args:
        session: What was copied of it in an earlier process is known from its journal.
        options: Say where to.

    Returns:
        What copies them; also `session.landing`.
    """
    session.landing = AnswerFiles(
        Path(),
        out=options.out,
        project=options.project,
        limit_mb=session.grants.settings.disk_mb,
        earlier=session.earlier.events if session.earlier else (),
        emit=session.emit,
    )
    return session.landing


def _attached_kernel(
    options: Options, settings: Settings, say: Callable[[str], None]
) -> Callable[[Path], AttachedKernel]:
    """Return a function that attaches to the kernel of `--attach`, given the session's folder."""

    def make(folder: Path) -> AttachedKernel:
        return AttachedKernel(
            str(options.attach),
            approval=options.attach_approval,
            folder=folder,
            settings=settings.read("kernel", KernelSettings),
            on_wait=say,
        )

    return make


def _session_to_resume(options: Options, settings: Settings, workspace: Path | None) -> Path | None:
    """Return the folder of the session that is resumed; None: a new one is opened.

    Raises:
        click.UsageError: the options contradict one another.
        ConfigError: there is no such session.
    """
    if options.continues and options.resume is not None:
        raise click.UsageError("--continue resumes the last session, --resume with the one that it names: say one")
    if options.rerun and not (options.continues or options.resume is not None):
        raise click.UsageError("--rerun belongs to --continue or --resume")
    place = workspace or workspace_of(options, settings).absolute()
    return session_folder(options.resume, place) if options.continues or options.resume is not None else None


def lines_of_resumed(session: Session) -> tuple[list[str], list[str]]:
    """Bring the variables back of a resumed session; return lines about it, and warnings.

    Args:
        session: The session; of a new one both are empty.
    """
    earlier = session.earlier
    if earlier is None:
        return [], []
    asked, warnings, back = len(earlier.rounds), [], []
    with contextlib.suppress(TwAutogenError):  # the first cell will say it
        back = [variable.name for variable in session.code_variables()]
    lines = [f"resuming {earlier.id}: {pluralize(asked, 'question')}"] if asked else []
    if back:
        lines.append(f"variables: {visible_line(', '.join(back))}")
    if lost := [name for name in earlier.variables if name not in back]:
        how = f"tw-autogen --resume {earlier.id} --rerun runs the cells again that made them"
        how = how if earlier.keeps_cells else "no cells were kept that could be run again (kernel.checkpoint_seconds)"
        warnings.append(f"variables that did not come back: {visible_line(', '.join(lost))}" + f"; {how}" * (not back))
    if gone := [name for name in earlier.plugins if name not in plugins_of(session)]:
        warnings.append(f"the session had plugins that are not here now: {', '.join(gone)}; add them with --plugins")
    return lines, warnings


def plugins_of(session: Session) -> set[str]:
    """Return the names of the plugins that a session's roles have."""
    return {name for role in session.roles if isinstance(role, Placed) for name in role.plugin_names}


def _prune_old_sessions(workspace: Path, settings: Settings, say: Callable[[str], None]) -> None:
    """Remove the sessions of a workspace that are older than `session.keep_days`, and say so."""
    own = settings.read("session", SessionSettings)
    removed, problems = prune_sessions(workspace, settings=own)
    if removed:
        say(f"removed {pluralize(len(removed), 'session')} older than {own.keep_days:g} days (session.keep_days)")
    for problem in problems:
        say(f"an old session can't be removed: {problem}")


def project_of(options: Options, settings: Settings) -> Project | None:
    """Read the project that `-C` names, else the current folder if a project file lies there, as far as it is trusted.

    Args:
        options: Whose `project` is what `-C` names; None for the current folder.
        settings: Those in force, which say what of a folder is trusted.

    Returns:
        The project, or None if `-C` names none and the current folder has no project file.

    Raises:
        ConfigError: as `read_project`.
    """
    if options.project:
        return read_project(options.project, settings)
    return read_project(Path(), settings, named=False) if is_project(Path()) else None


def readable_folders(options: Options) -> tuple[Path, ...]:
    """Return the folders that code may read besides the session's own, the user's own first."""
    settings = read_settings(options.keywords, project=options.project, trust=options.trust)
    named = settings.read("session", SessionSettings).user_folder or options.project or "."
    own = granted_path(named, distrusted=distrusted_folder(settings))
    granted = (Path(one).resolve() for one in settings.read("kernel", KernelSettings).read)
    return (*(() if _unreadable_reason(own, options, settings) else (own,)), *granted)


def _unreadable_reason(folder: Path, options: Options, settings: Settings) -> str:
    """Return the reason why code may not, or can't, read a whole folder; empty if it may."""
    kernel, session = settings.read("kernel", KernelSettings), settings.read("session", SessionSettings)
    return LocalKernel.unreadable_reason(
        folder, kernel, folder=Path(options.workspace or session.workspace) / "session"
    )
