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
        disk_mb: How large the session's folder may get, with the kernel's own one, files that were removed while they
            are open, and 4 kB at least for each file and folder; looked at as often, so that what is written between
            two looks comes on top; also how much is copied out of it for one answer; 0: no limit.
        processes: How many processes and threads a kernel may have; 0: no limit.
        open_files: How many files one process may have open.
        fork: Start kernels from a process that has imported already what they need (Linux). Otherwise each is started
            for itself; those that are kept ready have imported it too.
        preload: The modules that it imports, as soon as no kernel is asked for; one that is forked before that lacks
            them. What is not installed is left out.
        warm: How many kernels are kept ready for sessions to come; 0: none.
        warm_seconds: How long that process, and kernels kept ready, stay when no session needs one.
        start_seconds: How long a process may take until it is ready.
        load_seconds: How long a plugin may take to load, a variable to cross, and files to a gateway's kernel and back
            from it.
        grace_seconds: How long an interrupted cell may take to end before its process is killed.
        end_unresponsive: Kill it after that time also where a user has interrupted it; otherwise it goes on until its
            time limit or `Session.interrupt(kill=True)`.
        turn_seconds: How long a thread waits for its turn while another one uses the kernel.
        output_chars: How much of what a cell prints is kept, for each of stdout and stderr; head and tail stay.
        result_chars: How much of the last expression's text is kept.
        host_threads: How many submitted host calls run at once; the others wait their turn.
        max_artifacts: How many files one cell may make by displaying or through plugins.
        max_artifact_mb: How large one of them may be.
        rollback_on_error: Undo a cell that fails or is stopped: variables are as they were before it.
            `docs/kernels.md` says what that costs and what it can't undo.
        rollback_mb: How much is copied before a cell for that; tables are not where pandas copies on write.
        rollback_seconds: How long that copying may take.
        checkpoint_seconds: How often at most, after a cell, a child of the kernel writes a copy of the variables into
            the folder, so that they come back when the kernel dies, or in a later `LocalKernel(folder,
            resume=True)`; 0: never. Of local kernels only. Where it is not set, sessions of the command line and of
            `open_session` have it done every 30 seconds, and when they are closed.
        checkpoint_mb: How large that copy may get; the largest variables are left out.
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
            plain = list(map(_plain, given)) if isinstance(given, list | tuple) else _plain(given)
            value = fit_setting(f"kernel.{name}", Setting(plain, "KernelSettings"), hint)
            if isinstance(value, int | float) and value < 0:
                raise ConfigError(f"kernel.{name}: {value} is less than 0")
            object.__setattr__(self, name, value)
        for name in ("read", "write"):
            if not all(one.strip() for one in getattr(self, name)):
                raise ConfigError(f"kernel.{name}: an empty path; write . for the current folder")
        if os.sep in self.python:
            object.__setattr__(self, "python", os.path.abspath(os.path.expanduser(self.python)))

    def check_limits(self) -> None:
        """Refuse limits that are too low for any kernel.

        Raises:
            ConfigError: names the setting, and the least value.
        """
        limits = {name: getattr(self, name) for name in _MIN}
        low = next((one for one, most in limits.items() if most < _MIN[one] and (most or one == "open_files")), "")
        if low:  # 0 is no limit
            raise ConfigError(f"kernel.{low}: {limits[low]} is less than a kernel needs itself; allow {_MIN[low]}")


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value
