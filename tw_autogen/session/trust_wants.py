"""`Want`: one thing that a folder gets only if it is trusted, and the words in which a setting is shown as one."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.named_folders import path_out_of, step_out_of
from tw_autogen.private_files import lies_in
from tw_autogen.recall import example_paths
from tw_autogen.session.referenced_files import which_below
from tw_autogen.session.server_words import UNREADABLE, server_lines
from tw_autogen.setting_values import texts_of
from tw_autogen.settings import ROLE_SECTION, VARIABLE_SUFFIX, FolderSetting
from tw_autogen.settings_trust import PROGRAM_OF_ROLE
from tw_autogen.text_escaping import visible_line

PROGRAMS = ("kernel.python", "plugin.mcp_servers")
_STARTING = ("kernel.python", "kernel.preload", "kernel.sandbox", "embedding.folder", "session.roles")
_MAX_LINKS_NAMED = 20
_SECRETS = ("api_key", "password", "secret", "token")
_OF_FOLDERS = ("plugin.mcp_servers", "plugin.folder", "session.role_folder")
"""Settings of which a line says where they lead, if that is outside of the folder."""
_MEANS = {
    "kernel.sandbox": "what confines code; with `off` it may do what you may do",
    "kernel.python": "the interpreter that runs the code; its packages run outside the sandbox too, uncompared",
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
_AS_NOTED = re.compile(r"[\s()]")
"""What the words behind a value hold too: a text with it stands in quotes."""
_OF_ROLES = {
    VARIABLE_SUFFIX: "a variable of your environment, which goes to that role's server",
    ".no_sandbox": "that role's browser runs without its own sandbox",
    ".approval": "when you are asked about what that role does",
}
"""By the end of a role's setting."""


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


def wants_of(one: FolderSetting, folder: Path, *, looks_outside: bool = True) -> Iterator[Want]:
    """Word what one setting would do; each MCP server for itself.

    Args:
        one: The setting.
        folder: Whose file sets it.
        looks_outside: Follow links; else only `brief` is of use.
    """
    value = one.setting.value
    outside = _outside_words(one, folder)
    of_role = one.key.startswith(f"{ROLE_SECTION}.")
    if one.key == "plugin.mcp_servers" and outside and (not looks_outside or path_out_of(folder, value)):
        yield Want(one.key, f"{UNREADABLE}{outside}", outside, starts=True)
    elif one.key == "plugin.mcp_servers":
        for does, brief in server_lines(value):
            yield Want(one.key, does, brief, starts=True)
    elif one.key.endswith(_SECRETS) and not (looks_outside and of_role and _is_path_that_exists(one)):
        yield Want(visible_line(one.key), "a key")
    else:
        means = next((words for end, words in _OF_ROLES.items() if of_role and one.key.endswith(end)), "")
        by_path = one.key == "session.roles" and any(os.sep in text for text in texts_of(value))
        means = means or _MEANS.get(one.key, "those named by a path are Python, outside the sandbox" * by_path)
        shown_value = repr(value) if isinstance(value, str) and _AS_NOTED.search(value) else value
        shown = visible_line(
            f"{shown_value}{f'{_found_by_path_words(one)}{_link_words(one)}' if looks_outside else ''}"
        )
        yield Want(
            visible_line(one.key),
            f"{shown}: {means}" if means else shown,
            outside,
            starts=one.key in _STARTING or (of_role and one.key.endswith((PROGRAM_OF_ROLE, ".no_sandbox"))),
        )


def _outside_words(setting: FolderSetting, folder: Path) -> str:
    """Return in words that a setting takes code or servers from outside of its folder; empty: it doesn't."""
    value = setting.setting.value
    if setting.key not in _OF_FOLDERS or not isinstance(value, str) or value.lstrip().startswith("{"):
        return ""
    if not step_out_of(folder, value):
        return ""
    written = value if setting.setting.written is None else setting.setting.written
    link = lies_in(os.path.abspath(value), os.path.abspath(folder))
    return f"names {visible_line(str(written))}, {'a link out' if link else 'outside'} of this folder"


def _is_path_that_exists(setting: FolderSetting) -> bool:
    """Return whether a value is the path of something that is there."""
    value, file = setting.setting.value, setting.setting.file
    if not isinstance(value, str) or file is None:
        return False
    try:
        return os.path.lexists(os.path.join(file.parent, os.path.expanduser(value)))
    except ValueError:  # a NUL
        return False


def _found_by_path_words(setting: FolderSetting) -> str:
    """Return in words where PATH finds an interpreter in the folder that names it by a word; empty elsewhere."""
    file, text = setting.setting.file, setting.setting.value
    if setting.key != "kernel.python" or file is None or not isinstance(text, str):
        return ""
    found = which_below(text, file.parent.resolve())
    return f" (found by PATH: {found})" if found else ""


def _link_words(setting: FolderSetting) -> str:
    """Return in words where the paths of a setting lead over links; empty if they lead over none."""
    texts = list(texts_of(setting.setting.value)) if setting.key.partition(".")[0] not in ("model", "planner") else []
    base = os.path.abspath(setting.setting.file.parent) if setting.setting.file else os.sep
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
            if setting.key.startswith("recall."):  # what lies there becomes part of prompts
                held = [path for path in example_paths(Path(used)) if path.is_symlink()]
                named = held[:_MAX_LINKS_NAMED]
                words += "".join(f" ({path.name} in it is a link to {os.path.realpath(path)})" for path in named)
                words += f" (and {len(held) - len(named)} more links in it)" if held[len(named) :] else ""
    return words


def rank(want: Want) -> tuple[bool, bool, bool]:
    """Return where a thing stands among others in a list that may be cut: what starts programs first."""
    return (not want.starts, want.name not in PROGRAMS, want.name not in _MEANS)
