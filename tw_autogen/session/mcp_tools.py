"""The MCP servers of a session: started where code could call them, their tools among the plugins."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tw_autogen import plugin
from tw_autogen.approval import Approve
from tw_autogen.errors import ConfigError
from tw_autogen.named_folders import checked_path, current_folder, executable_search_path, named_file
from tw_autogen.plugin import McpApproval, PluginSettings
from tw_autogen.plugin.mcp import McpServer, McpWanted, read_mcp_servers
from tw_autogen.private_files import belongs_to_user, lies_in, make_private_folder
from tw_autogen.safe_folder import SafeFolder, remove_folder, temporary_folder
from tw_autogen.session.referenced_files import program_name, server_files
from tw_autogen.session.role_configs import RoleConfig, runs_code
from tw_autogen.session.trust_review import compare_trusted, distrusted_folder, still_remembered
from tw_autogen.setting_values import naming_folder
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust
from tw_autogen.trust_store import state_folder
from tw_autogen.trusted_files import compared_with

if TYPE_CHECKING:
    from tw_autogen.plugin.mcp import McpServers

_OPTIONS_WITH_VALUE = ("--directory", "--project", "--with")
"""Of `uv`, before the script that it runs."""
_LOOK_FOR_PROGRAMS = frozenset({
    "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi",
    "conda", "mamba", "just", "task", "mise", "direnv", "tsx", "ts-node", "nodemon", "turbo", "nx", "volta", "dnx",
    "bundle", "rake", "composer", "mvn", "gradle", "sbt", "jbang", "clojure", "clj", "bb", "nix", "devbox", "git",
    "rscript", "octave", "matlab",
})  # fmt: skip
_PACKAGE_RUNNERS = frozenset({"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "pipx"})
"""Those whose words are names and options of packages, also where one ends as a script does."""
_RUN_PROGRAMS = frozenset(("uv", "pipx", "cargo", "go", "dotnet", "mix", "stack", "cabal", "swift"))
"""Commands that look for what they run in the folder where they start, and above it; the latter with the word `run`."""
_PRELOADS = re.compile(r"(-r|--require|--import|--loader|--experimental-loader)(=.*)?", re.DOTALL)
"""Options by which Node loads packages that it looks for there before the script."""
_FILE_NAME = re.compile(r"\w[\w.-]*")
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh")


def start_mcp_servers(
    wanted: McpWanted | None,
    configs: Sequence[RoleConfig],
    read: Settings,
    logs: Path,
    undo: ExitStack,
    *,
    approve: Approve | None = None,
) -> McpServers | None:
    """Start the MCP servers that are wanted, if there is anybody whose code could call them.

    Args:
        wanted: As in `open_session`.
        configs: Who takes part.
        read: How long starts and calls may take, and which servers, where nobody says otherwise.
        logs: Folder for what the servers write.
        undo: Gets what ends them.
        approve: Asked before calls, as the setting `plugin.mcp_approval` says; None: nobody can be asked.

    Raises:
        ConfigError: what is wanted can't be read, or a server doesn't start.
    """
    options = read.read("plugin", PluginSettings)
    origin = "mcp_servers" if wanted is not None else read.origin("plugin.mcp_servers")
    folder = read.folder_of("plugin.mcp_servers") if wanted is None else None
    from_folder = folder is not None
    wanted = options.mcp_servers if wanted is None else wanted
    distrusted = None if from_folder else distrusted_folder(read)
    if not from_folder and not isinstance(wanted, Mapping) and not str(wanted).lstrip().startswith("{"):
        wanted = named_file(checked_path(wanted, origin), distrusted=distrusted)[0] if str(wanted) else ""
    with compared_with(read.files if from_folder else None, only=True):
        servers = read_mcp_servers(wanted, origin=origin, from_folder=from_folder) if wanted else ()
    if not servers or not any(runs_code(config) for config in configs):
        return None
    start = (naming_folder() or Path.cwd()) if folder is None else folder.resolve()
    trusted = read.trust is Trust.full and read.files is None  # a yes is for what was shown: none of their modules was
    # And says nothing of another folder.
    trusted = trusted and distrusted is None and start.resolve() == current_folder()
    if not from_folder and not trusted:
        servers = tuple(_without_programs_of_here(_with_safe_search_paths(server), undo) for server in servers)
    servers = tuple(_started_in(server, start) for server in servers)
    compare = None
    if from_folder:
        files, what = functools.partial(server_files, servers, start), f"{servers[0].origin}: MCP servers"
        compare = functools.partial(compare_trusted, read, files, what, str(read.project))
        compare()
        caches = _own_caches(logs, start)
        safe = {"PATH": executable_search_path(), "PYTHONPYCACHEPREFIX": str(caches)}
        servers = tuple(replace(server, env={**safe, **server.env}) for server in servers)
    started = plugin.mcp.McpServers(  # most sessions have no servers, and import none of it
        servers,
        folder=logs,
        start_seconds=options.mcp_start_seconds,
        call_seconds=options.mcp_call_seconds,
        approval=_effective_approval(read, from_folder=from_folder),
        approve=approve,
        still_trusted=functools.partial(still_remembered, read) if from_folder else lambda: True,
        check=compare,
    )
    undo.callback(started.close)
    return started


def _started_in(server: McpServer, folder: Path) -> McpServer:
    """Return a server that starts in a folder, or in the one that it names there.

    Raises:
        ConfigError: the folder, in which an agent was made once, is not there.
    """
    if server.transport == "stdio" and not os.path.isabs(server.cwd) and not folder.is_dir():
        raise ConfigError(
            f"MCP server {server.name}: it starts in {folder}, where its agent was made; that is not there"
        )
    return server.started_in(folder)


def _with_safe_search_paths(server: McpServer) -> McpServer:
    """Return a server that takes no program of the current folder by its name, and its Python no module, from 3.11 on.

    Whatever the command is (`env`, `uv run`, `sh -c`): to other programs the variable means nothing. One that is known
    to run a script keeps its modules, since Python would not find what lies beside the script either.
    """
    safe = {"PATH": executable_search_path()}
    here = os.path.realpath(os.curdir)
    elsewhere = os.path.isabs(server.cwd) and not lies_in(os.path.realpath(server.cwd), here)
    if not elsewhere and not _runs_script(server.args):
        safe["PYTHONSAFEPATH"] = "1"
    return replace(server, env={**safe, **server.env})


def _without_programs_of_here(server: McpServer, undo: ExitStack) -> McpServer:
    """Return a server that starts in an empty folder, if its command would look for programs in the current one.

    `uv run` takes the environment and the settings that it finds there, `npx`, `node -r` and the like packages. One
    whose words name the current folder (`.`, `./data`, `server.py`) starts there nevertheless, like one with a `cwd`.

    Args:
        server: One of the user's own.
        undo: Gets what removes the folder.
    """
    command = (server.command, *server.args)
    programs = set(map(program_name, command))
    preloads = any(map(_PRELOADS.fullmatch, server.args)) or "NODE_OPTIONS" in server.env
    looks = (
        programs & _LOOK_FOR_PROGRAMS
        or programs & _RUN_PROGRAMS and {"run", "exec"} & {*command}
        or preloads and programs & {"node", "nodejs"}
    )  # fmt: skip
    scripts = not programs & _PACKAGE_RUNNERS
    named = any(_names_this_folder(word, scripts=scripts) for word in server.args)
    if server.transport != "stdio" or server.cwd or not looks or named:
        return server
    folder, shared = _empty_folder(undo)
    above = {"UV_NO_PROJECT": "1", "UV_NO_CONFIG": "1"} if shared else {}
    return replace(server, cwd=str(folder), env={**above, **server.env})


def _names_this_folder(word: str, *, scripts: bool) -> bool:
    beginning = word.replace(os.sep, "/").partition("/")[0]
    return beginning in (".", "..") or scripts and word.endswith(_SCRIPTS) and _FILE_NAME.fullmatch(word) is not None


def _empty_folder(undo: ExitStack) -> tuple[Path, bool]:
    """Return a new folder of this user's, not below the current one, and whether others can write above it.

    Programs look for projects in the folders above it, too. Where the current folder holds the state folder, it lies
    in `XDG_RUNTIME_DIR`, else where the system makes temporary files: an empty project there ends the search of `npx`.
    """
    places = [_of_state("mcp"), _runtime_folder(), Path(tempfile.gettempdir())]
    here = os.path.realpath(os.curdir)
    apart = (one for one in places if one is not None and not lies_in(os.path.realpath(one), here))
    place = next(apart, places[0])
    folder = temporary_folder("tw-mcp-", place=place)
    undo.callback(remove_folder, folder)
    if shared := place in (None, places[-1]):
        with SafeFolder(folder) as own, own.create_file("package.json") as file:
            file.write(b"{}")
    return folder, shared


def _runtime_folder() -> Path | None:
    """Return `XDG_RUNTIME_DIR` if it is this user's alone."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    try:
        state = os.stat(given)
    except (OSError, ValueError):
        return None
    own = os.path.isabs(given) and belongs_to_user(state) and not state.st_mode & 0o077
    return Path(given) if own else None


def _of_state(name: str) -> Path | None:
    """Return a private folder in the user's state folder; None without one, or where nothing can be written there."""
    state = state_folder()
    if state is None:
        return None
    try:
        make_private_folder(state / name)
    except OSError:
        return None
    return state / name


def _own_caches(logs: Path, folder: Path) -> Path:
    """Return where Python of a folder's servers keeps compiled files: none beside the folder's code, and no old ones.

    A compiled file counts for Python when it names its source's time and size, whatever it holds; whoever may write to
    the folder can say these, or have had other code there for a moment. So all of the folder's code is compiled anew.

    Args:
        logs: The servers'; used if the user has no state folder that can be written.
        folder: The project's, its links followed.
    """
    kept = _of_state("pycache") or logs / "pycache"
    make_private_folder(kept)
    for place, inner, _ in os.walk(kept):
        if Path(os.sep, os.path.relpath(place, kept)).resolve().is_relative_to(folder):  # Python repeats the path there
            remove_folder(place)
            inner.clear()
    return kept


def _runs_script(args: Sequence[str]) -> bool:
    """Return whether arguments name a script, with no option before it but those that are known to run no module."""
    left = iter(args)
    for word in left:
        if word in _OPTIONS_WITH_VALUE:
            next(left, None)
        elif word.endswith(".py") and "=" not in word:
            return True
        elif "=" in word or (word.startswith("-") and word != "-u"):
            return False
    return False


def _effective_approval(read: Settings, *, from_folder: bool) -> McpApproval:
    """Return which calls a person is asked about; a project's file can only ask for more.

    The user's `never` is about servers that they know: their own, the caller's, and those of a folder that was shown to
    them with each server and is trusted as it was shown.

    Args:
        read: The settings.
        from_folder: A project's file names the servers.
    """
    approval = read.read("plugin", PluginSettings).mcp_approval
    unknown = read.folder_of("plugin.mcp_approval") is not None or from_folder and read.files is None
    return "writes" if approval == "never" and unknown else approval


def with_tools(config: RoleConfig, servers: McpServers | None, configs: Sequence[RoleConfig]) -> RoleConfig:
    """Return a role with the servers' tools among its plugins, if it runs code; no name is taken twice.

    Args:
        config: One role of the session.
        servers: Those that were started; None: none.
        configs: All roles, whose plugins' names are taken.
    """
    if servers is None or not runs_code(config):
        return config
    taken = {spec.name for one in configs for spec in one.plugins}
    return replace(config, plugins=(*config.plugins, *servers.specs(taken)))
