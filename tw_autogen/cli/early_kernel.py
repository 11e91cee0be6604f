"""`start_fork_server_early`: start the process that forks kernels while the rest of the command line is imported."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from tw_autogen.cli.options import ASK_OPTIONS
from tw_autogen.kernel import KernelSettings, begin_fork_server

_SETTINGS = "kernel."
_VARIABLES = "TW_AUTOGEN_KERNEL"


def start_fork_server_early(arguments: Sequence[str]) -> None:
    """Start what the first kernel is forked from, with the defaults; return at once.

    It runs none of a folder's files, and settings are read later: where a file sets another interpreter or sandbox, its
    kernel comes from a server of its own. Nothing is started where the arguments or the environment set that, or name
    a kernel of the user's, and where the arguments are wrong: the command itself says so.

    Args:
        arguments: Of `tw-autogen chat`, without its name.
    """
    if any(name.upper().startswith(_VARIABLES) for name in os.environ):
        return
    files = click.Argument(["files"], nargs=-1)
    chat = click.Command("chat", params=[*ASK_OPTIONS, files], add_help_option=False)
    try:
        said = chat.make_context("chat", list(arguments)).params
    except click.ClickException:
        return
    if said["attach"] is None and not any(one.lstrip().startswith(_SETTINGS) for one in said["sets"]):
        begin_fork_server(KernelSettings())
