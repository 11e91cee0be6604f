"""`begin_fork_server`: start the process that forks kernels while the rest of the command line is imported."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tw_autogen.kernel import KernelSettings, LocalKernel

_HELP = ("-h", "--help")
_SETTINGS = "kernel."
_VARIABLES = "TW_AUTOGEN_KERNEL"


def begin_fork_server(arguments: Sequence[str]) -> None:
    """Begin to start what the first kernel is forked from, with the defaults; return at once.

    It runs none of a folder's files, and settings are read later: where a file sets another interpreter or sandbox, its
    kernel comes from a server of its own. Where the arguments or the environment set that, nothing is started.

    Args:
        arguments: Of the command line.
    """
    if not any(one in _HELP or one.startswith(_SETTINGS) or f"={_SETTINGS}" in one for one in arguments) and not any(
        name.upper().startswith(_VARIABLES) for name in os.environ
    ):
        LocalKernel.prepare(KernelSettings(warm=0))
