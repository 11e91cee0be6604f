"""`KernelSettings`: what can be set about a kernel."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from tw_autogen.errors import ConfigError
from tw_autogen.setting_values import Setting, fit_setting
from tw_autogen.settings_trust import LIMIT, LOWER, OFF

_MIN = {"memory_mb": 64, "processes": 8, "open_files": 64}
"""What a kernel that does nothing comes close to."""
_LIMITS = ("memory_mb", "file_mb", "disk_mb", "processes", "open_files")
"""What the sandbox enforces; a new one is enforced in `kernel/launcher` too."""
_hints = functools.cache(get_type_hints)


@dataclass(frozen=True)
class KernelSettings:
    """What can be set about a kernel.

    Args:
        python: The interpreter that runs the code; it needs ipykernel. This process's own by default.
        environment: Names of this process's environment variables that code may read, besides what Python and the
            system need; `*` stands for any ending. The default passes on what is named for plugins.
        sandbox: What separates generated code from the system: `namespaces`, `landlock` or `bubblewrap`, on macOS
            `seatbelt`; `auto`: the first of them that works on this system, and no code is run if none does; `off`:
            none, code may do what this user may do.
        allow_network: Code may open sockets. The network is the host's own: code reaches what the host reaches, with
            what listens on this machine alone (loopback addresses, abstract Unix sockets, vsock). Plugins that need the
            network better run in the host.
        allow_symlinks: Code may make symbolic links. By such it could lead programs that read or write in its folders
            later to other files. Most libraries copy where there are none.
        read: Files and folders that code may read, besides system, interpreter and the session's folder; in a project's
            file relative to its folder.
        write: Folders that code may write, besides the session's folder; relative as `read`.
        install: What `pip install` in a cell does: `never`: it is refused; `ask`: a person decides; `allow`: the host
            installs the package for this session.
        memory_mb: How much memory one process of a kernel may write to, a limit of the system, and all of them
            together, which is looked at many times a second: with files in memory, shared memory, page tables and data
            in sockets. The tables of one message from the kernel may take half of it in the host. 0: no limit.
        file_mb: How large one file may get; 0: no limit.
        disk_mb: How large the session's folder and the kernel's own may get together, with removed files that are still
            open, and at least 4 kB for each file and folder. Measured many times a second; writes between two
            measurements can exceed the limit. Also how much is copied out of the folder for one answer. 0: no limit.
        processes: How many processes and threads a kernel may have; 0: no limit.
        open_files: How many files one process may have open.
        fork: Fork kernels from a fork server, a process that has imported `kernel.preload` already (Linux). Otherwise
            each kernel is started as a new process; warm kernels have imported the modules too.
        preload: Modules that the fork server imports as soon as it is idle. A kernel forked earlier imports them
            itself. Missing modules are skipped.
        warm: How many warm kernels are kept ready for later sessions; 0: none.
        warm_seconds: How long the fork server and warm kernels stay alive without a session.
        start_seconds: How long a process may take until it is ready.
        load_seconds: How long a plugin may take to load, a variable to cross, and files to a gateway's kernel and back
            from it.
        grace_seconds: How long an interrupted cell may take to end before its process is killed.
        end_unresponsive: After `kernel.grace_seconds`, kill a kernel that ignored an interrupt by the user. False: let
            it run until its time limit or `Session.interrupt(kill=True)`.
        turn_seconds: How long a thread waits for its turn while another one uses the kernel.
        output_chars: How much of what a cell prints is kept, for each of stdout and stderr; head and tail stay.
        result_chars: How much of the last expression's text is kept.
        host_threads: How many submitted host calls run at once; the others wait their turn.
        max_artifacts: How many files one cell may make by displaying or through plugins.
        max_artifact_mb: How large one file may be that a cell makes by displaying or through plugins.
        rollback_on_error: Undo a cell that fails or is stopped: variables are as they were before it.
            `docs/kernels.md` says what that costs and what it can't undo.
        rollback_mb: How much may be copied before a cell for `kernel.rollback_on_error`; tables are not copied where
            pandas copies on write.
        rollback_seconds: How long copying for `kernel.rollback_on_error` may take.
        checkpoint_seconds: How often at most, after a cell, a child of the kernel writes a copy of the variables into
            the folder, so that they come back when the kernel dies, or in a later `LocalKernel(folder,
            resume=True)`; 0: never. Of local kernels only. Where it is not set, sessions of the command line and of
            `open_session` have it done every 30 seconds, and when they are closed.
        checkpoint_mb: How large the copy of `kernel.checkpoint_seconds` may get; the largest variables are left out.
    """

    python: str = sys.executable
    environment: tuple[str, ...] = ("PLUGIN_*",)
    sandbox: Literal["auto", "namespaces", "landlock", "bubblewrap", "seatbelt", "off"] = "auto"
    allow_network: bool = field(default=False, metadata=OFF)
    allow_symlinks: bool = field(default=False, metadata=OFF)
    read: tuple[str, ...] = field(default=(), metadata={"path": "real"})
    write: tuple[str, ...] = field(default=(), metadata={"path": "real"})
    install: Literal["never", "ask", "allow"] = "never"
    memory_mb: int = field(default=3072, metadata=LIMIT)
    file_mb: int = field(default=1024, metadata=LIMIT)
    disk_mb: int = field(default=4096, metadata=LIMIT)
    processes: int = field(default=64 + 4 * (os.cpu_count() or 4), metadata=LIMIT)
    open_files: int = field(default=4096, metadata=LOWER)
    fork: bool = True
    preload: tuple[str, ...] = ("numpy", "pandas", "matplotlib.pyplot")
    warm: int = 1
    warm_seconds: float = 600.0
    start_seconds: float = 60.0
    load_seconds: float = 120.0
    grace_seconds: float = 2.0
    end_unresponsive: bool = True
    turn_seconds: float = 3600.0
    output_chars: int = field(default=100_000, metadata=LOWER)
    result_chars: int = field(default=20_000, metadata=LOWER)
    host_threads: int = 8
    max_artifacts: int = field(default=50, metadata=LOWER)
    max_artifact_mb: int = field(default=50, metadata=LOWER)
    rollback_on_error: bool = False
    rollback_mb: int = 256
    rollback_seconds: float = 0.3
    checkpoint_seconds: float = 0.0
    checkpoint_mb: int = 512

    def __post_init__(self) -> None:
        """Bring each value to its type, as those of a kernelspec need it; make the path of the interpreter whole.

        The interpreter is started in another folder. A bare name stays one.

        Raises:
            ConfigError: a value is of another type, or less than 0.
        """
        for name, hint in _hints(type(self)).items():  # type: ignore[arg-type]  # a class is hashable
            given = getattr(self, name)
            plain = list(map(_path_as_text, given)) if isinstance(given, list | tuple) else _path_as_text(given)
            value = fit_setting(f"kernel.{name}", Setting(plain, "KernelSettings"), hint)
            if isinstance(value, int | float) and value < 0:
                raise ConfigError(f"kernel.{name}: {value} is less than 0")
            object.__setattr__(self, name, value)
        for name in ("read", "write"):
            if not all(one.strip() for one in getattr(self, name)):
                raise ConfigError(f"kernel.{name}: an empty path; write . for the current folder")
        if os.sep in self.python:
            object.__setattr__(self, "python", os.path.abspath(os.path.expanduser(self.python)))

    @property
    def limits(self) -> dict[str, int]:
        """Return the limits that the sandbox of a kernel enforces, by the names of their settings; 0: no limit."""
        return {name: getattr(self, name) for name in _LIMITS}

    def check_limits(self) -> None:
        """Refuse limits that are too low for any kernel.

        Raises:
            ConfigError: names the setting, and the least value.
        """
        limits = {name: most for name, most in self.limits.items() if name in _MIN}
        low = next((one for one, most in limits.items() if most < _MIN[one] and (most or one == "open_files")), "")
        if low:  # 0 is no limit
            raise ConfigError(f"kernel.{low}: {limits[low]} is less than a kernel needs itself; allow {_MIN[low]}")


def _path_as_text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value
