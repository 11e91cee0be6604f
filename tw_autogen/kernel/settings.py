"""`KernelSettings`: what can be set about a kernel."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSettings:
    """What can be set about a kernel.

    Args:
        python: The interpreter that runs the code; it needs ipykernel. This process's own by default.
        environment: Names of this process's environment variables that code may read, besides what Python and the
            system need; `*` stands for any ending. The default passes on what is named for plugins.
        sandbox: The wall around generated code: `namespaces`, `landlock` or `bubblewrap`; `auto`: the first of them
            that stands on this system, and no code is run if none does; `off`: none, code may do what this user may do.
        allow_network: Code may open sockets. Plugins that need the network better run in the host.
        read: Files and folders that code may read, besides system, interpreter and the session's folder.
        write: Folders that code may write, besides the session's folder.
        memory_mb: How much memory one process of a kernel may write to, and all of them together; 0: no limit.
        file_mb: How large one file may get; 0: no limit.
        disk_mb: How large the session's folder may get; 0: no limit.
        processes: How many processes and threads a kernel may have; 0: no limit.
        open_files: How many files one process may have open.
        fork: Start kernels from a process that has imported already what they need (Linux).
        preload: The modules that it imports; what is not installed is left out.
        warm: How many kernels are kept ready for sessions to come; 0: none.
        warm_seconds: How long that process, and kernels kept ready, stay when no session needs one.
        start_seconds: How long a process may take until it is ready.
        load_seconds: How long a plugin may take to load, and a variable to cross.
        grace_seconds: How long an interrupted cell may take to end before its process is killed.
        turn_seconds: How long a thread waits for its turn while another one uses the kernel.
        output_chars: How much of what a cell prints is kept, for each of stdout and stderr; head and tail stay.
        result_chars: How much of the last expression's text is kept.
        host_threads: How many submitted host calls run at once; the others wait their turn.
        max_artifacts: How many files one cell may make by displaying or through plugins.
        max_artifact_mb: How large one of them may be.
    """

    python: str = sys.executable
    environment: tuple[str, ...] = ("PLUGIN_*",)
    sandbox: str = "auto"
    allow_network: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    memory_mb: int = 3072
    file_mb: int = 1024
    disk_mb: int = 4096
    processes: int = 64 + 4 * (os.cpu_count() or 4)
    open_files: int = 4096
    fork: bool = True
    preload: tuple[str, ...] = ("numpy", "pandas", "matplotlib.pyplot")
    warm: int = 1
    warm_seconds: float = 600.0
    start_seconds: float = 60.0
    load_seconds: float = 120.0
    grace_seconds: float = 2.0
    turn_seconds: float = 3600.0
    output_chars: int = 100_000
    result_chars: int = 20_000
    host_threads: int = 8
    max_artifacts: int = 50
    max_artifact_mb: int = 50
