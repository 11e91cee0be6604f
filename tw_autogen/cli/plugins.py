"""`tw-autogen plugins`: which there are, whether they are right, and one written from a function."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.options import Options
from tw_autogen.cli.terminal import clean, link, marks, stdout_console
from tw_autogen.cli.trust_prompt import read_settings_and_warn
from tw_autogen.cli.user_path import UserPath
from tw_autogen.errors import ConfigError, ConversationFormatError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.named_folders import step_out_of
from tw_autogen.plugin import (
    Flaw,
    HostPlugin,
    Listed,
    PluginSettings,
    PluginSpec,
    PluginTests,
    check_files,
    files_of_plugins,
    is_name,
    listed_plugins,
    plugin_files,
    read_folder,
    write_plugin,
)
from tw_autogen.plural import pluralize
from tw_autogen.recall import read_conversation
from tw_autogen.safe_folder import private_folder
from tw_autogen.session import Project, example_files, is_project
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust
from tw_autogen.taskweaver_config import TASKWEAVER_FILE, remedies
from tw_autogen.text_escaping import visible, visible_line
from tw_autogen.trusted_files import ImportGuards, compared_with

_TEST_SECONDS = 120.0
_PROJECT = click.option(
    "-C",
    "--project",
    type=UserPath(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The project; default: here.",
)
_TRUST = click.option("--trust", is_flag=True, help="Trust the folder (here, or -C), this time.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


@click.group("plugins")
def command() -> None:
    """List plugins, check them, write one from a function."""


@command.command("list")
@click.argument("paths", nargs=-1, type=UserPath(path_type=Path))
@_PROJECT
@_TRUST
@_JSON
def list_plugins(paths: tuple[Path, ...], project: Path | None, trust: bool, as_json: bool) -> None:
    """List the shipped plugins, those of installed packages, of the project, and of PATHS.

    A shipped or installed one, or one that is not enabled, is brought along by its name: --plugins NAME.
    """
    settings = read_settings_and_warn(Options(project=project, trust=trust))
    folder = _plugin_folder(project, settings)
    python = settings.read("kernel", KernelSettings).python
    unseen = _is_out_of(Path.cwd() if project is None and settings.trust is Trust.none else None)
    here, loads = is_project(Path()), settings.read("plugin", PluginSettings).load
    used = loads and (project is not None or here and settings.trust is Trust.full)
    found = listed_plugins(folder, paths, used=used, python=python, unseen=unseen)
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "plugins": [one.to_dict() for one in found]}, indent=2))
        return
    console = stdout_console()
    for one in found:
        _print_listed(console, one)
    if any(one.origin == "folder" for one in found):
        path = shlex.quote(f"./{folder}" if is_name(str(folder)) else str(folder))
        hint = f"so a run takes those of {folder} only if told to: --plugins {path}{', or -C .' * loads}"
        why = "plugin.load is off" if not loads else f"This folder is {'not trusted' if here else 'no project'}"
        console.print(Text(f"{why}, {hint}"), soft_wrap=True)


@command.command("check")
@click.argument("plugins", nargs=-1)
@_PROJECT
@_TRUST
@click.option("--host", is_flag=True, help="Run host-run plugins' tests too, in this process, without a sandbox.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A setting of the kernel, such as kernel.read.")
@_JSON
@click.pass_context
def check(
    ctx: click.Context,
    plugins: tuple[str, ...],
    project: Path | None,
    trust: bool,
    host: bool,
    sets: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check plugins: YAML, Python, imports, secrets; then load them in a kernel and run their tests.

    PLUGINS are files, folders, or names as in `list`; without any, the project's plugins, its examples and its
    settings. Ends with 1 if something is wrong.
    """
    options = Options(sets=sets, project=project, trust=trust)
    settings = read_settings_and_warn(options)
    trusted = project is not None or settings.trust is Trust.full
    own = _plugin_folder(project, settings)
    if not plugins and not trusted:
        if own is None:
            next(read_folder(Path(), unseen=_is_out_of(Path.cwd())), None)  # says so where there are none
        raise ConfigError("the plugins of this folder would be loaded, and it is not trusted; name it with -C .")
    files = files_of_plugins(plugins, own if trusted else None) if plugins else plugin_files(own or (project or Path()))
    if project and not plugins and own is None and (project / settings.read("plugin", PluginSettings).folder).is_dir():
        raise ConfigError("the plugins of this folder lie elsewhere; name them, or trust the folder with --trust")
    with compared_with(settings.files, only=not plugins), ImportGuards(settings.files):
        specs, flaws = check_files(files)
        trial = _run_plugin_tests(specs, settings, host=host)
    paths = [Path(plugin) for plugin in plugins if not is_name(plugin)]
    folders = [path for path in paths if path.is_dir()] or [project or Path()] * (not plugins)
    flaws = (*flaws, *trial.flaws, *(flaw for folder in folders for flaw in _of_project(folder, settings)))
    wrong = any(flaw.level == "error" for flaw in flaws)
    left = [spec.name for spec in specs if spec.runs_in == "host" and not host]
    if as_json:
        click.echo(json.dumps(_report(specs, flaws, trial, left, ok=not wrong), indent=2))
    else:
        _print(stdout_console(), specs, flaws, trial, left)
    ctx.exit(Exit.failed if wrong else Exit.done)


@command.command("new")
@click.option("--from", "origin", required=True, metavar="MODULE:FUNCTION", help="Or FILE.py:FUNCTION.")
@click.option(
    "--folder",
    type=UserPath(file_okay=False, path_type=Path),
    default=Path("plugins"),
    show_default=True,
    help="Where the plugin's files go.",
)
@click.option("--name", help="The plugin's; default: the function's.")
@click.option("--runs-in", type=click.Choice(["kernel", "host"]), help="Default: where the function can be imported.")
def new(origin: str, folder: Path, name: str | None, runs_in: str | None) -> None:
    """Write a plugin from a function's signature and docstring; nothing is overwritten."""
    spec, files = write_plugin(_import_function(origin), folder, name=name, runs_in=runs_in)
    console = stdout_console()
    for file in files:
        console.print(Text.assemble("wrote ", link(file)), soft_wrap=True)
    console.print(clean(spec.stub()), soft_wrap=True)
    named = link(files[0])
    named.plain = shlex.quote(named.plain)
    line = Text.assemble(f"It runs in the {spec.runs_in}. Next: tw-autogen plugins check ", named)
    console.print(line, soft_wrap=True)
    console.print(Text.assemble("It is used with: tw-autogen --plugins ", named), soft_wrap=True)


def _plugin_folder(project: Path | None, settings: Settings) -> Path | None:
    """Return the folder of a project's plugins, if there is one that counts."""
    place = Project.place_of_plugins(project or Path(), settings)
    return Path(settings.read("plugin", PluginSettings).folder) if place and project is None else place


def _run_plugin_tests(specs: Sequence[PluginSpec], settings: Settings, *, host: bool) -> PluginTests:
    trial = PluginTests()
    inside = [spec for spec in specs if spec.runs_in == "kernel"]
    with private_folder("tw-plugins-") as folder:
        if inside:
            with LocalKernel(folder, settings=settings.read("kernel", KernelSettings)) as kernel:
                trial.in_kernel(inside, kernel, seconds=_TEST_SECONDS)
        if host:
            trial.run_in_host([spec for spec in specs if spec.runs_in == "host"], folder)
    return trial


def _is_out_of(folder: Path | None) -> Callable[[Path], bool]:
    """Return what tells whether a path leads out of a folder that is not trusted; None: nothing does."""
    return lambda path: folder is not None and step_out_of(folder, path) != ""


def _of_project(folder: Path, settings: Settings) -> list[Flaw]:
    flaws = []
    trusted = settings.trust is Trust.full
    unseen = _is_out_of(None if trusted else folder)  # what would not be loaded
    for path in (file for file in example_files(folder, inside=not trusted) if not unseen(file.absolute())):
        try:
            read_conversation(path)
        except ConversationFormatError as error:
            flaws.append(Flaw(path, error.problem, "correct the example, or say `enabled: False`", line=error.line))
    if settings.ignored:
        message = f"these keys mean nothing here: {', '.join(settings.ignored)}"
        flaws.append(
            Flaw(
                folder / TASKWEAVER_FILE,
                message,
                "; ".join(remedies(settings.ignored)) or "nothing need be done",
                "warning",
            )
        )
    return flaws


def _report(
    specs: Sequence[PluginSpec], flaws: Sequence[Flaw], trial: PluginTests, left: Sequence[str], *, ok: bool
) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "ok": ok,
        "plugins": [spec.name for spec in specs if spec.name not in trial.unloaded],
        "not_loaded": left,
        "tests": {"passed": trial.passed, "failed": trial.failed},
        "findings": [{**dataclasses.asdict(flaw), "path": str(flaw.path)} for flaw in flaws],
    }


def _print(
    console: Console, specs: Sequence[PluginSpec], flaws: Sequence[Flaw], trial: PluginTests, left: Sequence[str]
) -> None:
    signs = marks(console)
    for flaw in flaws:
        mark, style = (signs.failed, "red") if flaw.level == "error" else ("!", "yellow")
        at = f":{flaw.line}" if flaw.line else ""
        line = Text.assemble((f"{mark} ", style), link(flaw.path), f"{at}: {visible(flaw.what)}")
        console.print(line, soft_wrap=True)
        console.print(Text(f"  {visible(flaw.remedy)}", style="dim"), soft_wrap=True)
    wrong = sum(flaw.level == "error" for flaw in flaws)
    fit = sum(spec.enabled and spec.name not in trial.unloaded for spec in specs)
    tests, warnings = f"{pluralize(trial.passed, 'test')} passed", pluralize(len(flaws) - wrong, "warning")
    summary = f"{pluralize(fit, 'plugin')} to be used, {tests}, {pluralize(wrong, 'error')}, {warnings}"
    console.print(Text(summary, style="red" if wrong else "green"))
    if left:
        console.print(f"not loaded, because they run in the host: {', '.join(left)}; --host does it", soft_wrap=True)


def _print_listed(console: Console, listed: Listed) -> None:
    state = ", ".join(filter(None, (listed.origin, listed.runs_in, "" if listed.enabled else "not enabled")))
    console.print(Text.assemble((visible_line(listed.name), "bold"), f"  {state}"), soft_wrap=True)
    if listed.problem:
        console.print(Text(f"  {visible(listed.problem)}", style="red"), soft_wrap=True)
    else:
        console.print(Text(f"  {visible(listed.line)}", style="dim"), soft_wrap=True)


def _import_function(origin: str) -> Any:
    """Import what `module:function` or `file.py:function` names.

    Raises:
        ConfigError: it can't be imported.
    """
    place, colon, name = origin.rpartition(":")
    if not colon or not name.isidentifier():
        raise ConfigError(f"--from {origin}: write module:function, or file.py:function")
    try:
        file = Path(place).expanduser()
    except RuntimeError as error:  # no such user's home
        raise ConfigError(f"--from {origin}: {error}") from None
    if file.suffix == ".py" and not file.is_file():
        raise ConfigError(f"--from {origin}: there is no file {file}")
    try:
        if file.suffix == ".py":
            return getattr(HostPlugin.load_module(file, file.stem), name)
        if importlib.util.find_spec(top := place.partition(".")[0]) is None:  # nothing of this folder is imported
            raise ConfigError(
                f"--from {origin}: no module {top!r} is installed; write path/to/file.py:{name} for a file, or put the "
                "folder of your package on PYTHONPATH"
            )
        return getattr(importlib.import_module(place), name)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:  # somebody's own module: whatever its import raises
        raise ConfigError(f"--from {origin}: {type(error).__name__}: {error}") from error
