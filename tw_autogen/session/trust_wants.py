"""`Want`: one thing that a folder gets only if it is trusted, and the words in which a setting is shown as one."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError
from tw_autogen.escaped_text import visible_line
from tw_autogen.plugin.mcp import read_mcp_servers
from tw_autogen.recall import example_paths
from tw_autogen.session.named_places import which_below
from tw_autogen.settings import ROLE_SECTION, VARIABLE_SUFFIX, FolderSetting, texts_of
from tw_autogen.settings_trust import PROGRAM_OF_ROLE

UNREADABLE = "can't be read: "
PROGRAMS = ("kernel.python", "plugin.mcp_servers")
_STARTING = ("kernel.python", "kernel.preload", "kernel.sandbox", "embedding.folder", "session.roles")
_MOST_LINKS_NAMED = 20
_SECRETS = ("api_key", "password", "secret", "token")
_PLAIN_WORD = re.compile(r"[\w@%+=:,./${}?&#~-]+", re.ASCII)
_MEANS = {
    "kernel.sandbox": "what confines code; with `off` it may do what you may do",
    "kernel.python": "the interpreter that runs the code",
    "kernel.environment": "environment variables that code may read",
    "kernel.read": "code may read it",
    "kernel.write": "code may write it",
    "kernel.allow_network": "code may open sockets",
    "kernel.allow_symlinks": "code may make symbolic links",
    "kernel.install": "packages that code asks for",
    "kernel.preload": "modules that are imported outside the sandbox",
    "model.base_url": "the server that gets all that is asked",
    "embedding.base_url": "a server that gets texts",
    "embedding.folder": "a model; Python in its folder runs with all that you may do, outside the sandbox",
    "code_interpreter.policy": "what code may do",
    "code_interpreter.approval": "when you are asked about code",
    "planner.approval": "when you are asked about plans",
    "plugin.mcp_approval": "when you are asked about calls of tools",
    "session.user_folder": "code may read it",
    "session.workspace": "where sessions lie, which code may write",
}


@dataclass(frozen=True)
class Want:
    """One thing that a folder gets only if it is trusted.

    Args:
        name: The setting's key, or `plugins` or `roles`.
        does: What it is or does, in words whose signs can all be seen.
        brief: The part of that which stands in a line with all others; empty: the name says enough.
        starts: It starts a program, or loads Python outside the sandbox.
    """

    name: str
    does: str
    brief: str = ""
    starts: bool = False


def wants_of(one: FolderSetting) -> Iterator[Want]:
    """Word what one setting would do; each MCP server for itself."""
    value = one.setting.value
    if one.key == "plugin.mcp_servers":
        yield from (Want(one.key, words, words, starts=True) for words in _server_lines(value))
    elif one.key.endswith(_SECRETS):
        yield Want(visible_line(one.key), "a key")
    else:
        variable = one.key.startswith(f"{ROLE_SECTION}.") and one.key.endswith(VARIABLE_SUFFIX)
        means = _MEANS.get(one.key, "a variable of your environment, which goes to that role's server" * variable)
        shown = visible_line(f"{value}{_found_of(one)}{_links_of(one)}")
        yield Want(
            visible_line(one.key),
            f"{shown}: {means}" if means else shown,
            starts=one.key in _STARTING or one.key.endswith(PROGRAM_OF_ROLE),
        )


def _found_of(one: FolderSetting) -> str:
    """Return in words where PATH finds an interpreter in the folder that names it by a word; empty elsewhere."""
    file, text = one.setting.file, one.setting.value
    if one.key != "kernel.python" or file is None or not isinstance(text, str):
        return ""
    found = which_below(text, file.parent.resolve())
    return f" (found by PATH: {found})" if found else ""


def _links_of(one: FolderSetting) -> str:
    """Return in words where the paths of a setting lead over links; empty if they lead over none."""
    texts = list(texts_of(one.setting.value)) if one.key.partition(".")[0] not in ("model", "planner") else []
    base = os.path.abspath(one.setting.file.parent) if one.setting.file else os.sep
    words = ""
    for text in texts:
        with contextlib.suppress(OSError):
            path = os.path.abspath(os.path.join(base, text))
            plain = (
                os.path.join(os.path.realpath(base), os.path.relpath(path, base))
                if Path(path).is_relative_to(base)
                else path
            )
            used = os.path.realpath(os.path.join(base, text))  # `..` goes up from where a link before it leads
            if used != os.path.normpath(plain):
                words += f" ({f'{text} is ' if len(texts) > 1 else ''}a link to {used})"
            if one.key.startswith("recall."):  # what lies there becomes part of prompts
                held = [path for path in example_paths(Path(used)) if path.is_symlink()]
                named = held[:_MOST_LINKS_NAMED]
                words += "".join(f" ({path.name} in it is a link to {os.path.realpath(path)})" for path in named)
                words += f" (and {len(held) - len(named)} more links in it)" if held[len(named) :] else ""
    return words


def _server_lines(value: Any) -> Iterator[str]:
    """Word what MCP servers would do, with whole command lines; variables stay as they are written."""
    try:
        servers = read_mcp_servers(value, fill=False)
    except ConfigError as error:
        yield f"{UNREADABLE}{visible_line(str(error))}"
        return
    for server in servers:
        words = []
        if server.command:
            given = "".join(f" {_quoted(name)}={_quoted(text)}" for name, text in server.env.items())
            where = f" in {_quoted(server.cwd)}" if server.cwd else ""
            line = " ".join(map(_word, [server.command, *server.args]))
            words.append(f"would start:{given} {line}{where}")
        if server.url:
            headers = "".join(f", with {_quoted(f'{name}: {text}')}" for name, text in server.headers.items())
            words.append(f"would connect to: {_quoted(server.url)}{headers}")
        yield visible_line(f"{_quoted(server.name)}: {', '.join(words)}")


def _quoted(text: str) -> str:
    """Return a text as a word of a command line; a variable stays as it is written."""
    return text if _PLAIN_WORD.fullmatch(text) else _word(text)


def _word(text: str) -> str:
    r"""Return a text as a word of a command line.

    One with signs that can't be seen stands in `$'…'`, as a shell has it: `\n` is a line break only there.
    """
    if visible_line(text) == text:
        return shlex.quote(text)
    return "$'" + visible_line(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def rank(want: Want) -> tuple[bool, bool, bool]:
    """Return where a thing stands among others in a list that may be cut: what starts programs first."""
    return (not want.starts, want.name not in PROGRAMS, want.name not in _MEANS)
