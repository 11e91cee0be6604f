"""`KernelSettings`: what can be set about a kernel."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSettings:
    """What can be set about a kernel.

    Args:
        python: The interpreter that runs the code; it needs ipykernel. This process's own by default.
        environment: Names of this process's environment variables that code may read, besides what Python and the
            system need; `*` stands for any ending. The default passes on what is named for plugins.
        start_seconds: How long a process may take until it is ready.
        load_seconds: How long a plugin may take to load, and a variable to cross.
        grace_seconds: How long an interrupted cell may take to end before its process is killed.
        turn_seconds: How long a thread waits for its turn while another one uses the kernel.
        output_chars: How much of what a cell prints is kept, for each of stdout and stderr; head and tail stay.
        result_chars: How much of the last expression's text is kept.
        host_threads: How many submitted host calls run at once.
        max_artifacts: How many files one cell may make by displaying or through plugins.
    """

    python: str = sys.executable
    environment: tuple[str, ...] = ("PLUGIN_*",)
    start_seconds: float = 60.0
    load_seconds: float = 120.0
    grace_seconds: float = 2.0
    turn_seconds: float = 3600.0
    output_chars: int = 100_000
    result_chars: int = 20_000
    host_threads: int = 8
    max_artifacts: int = 50
