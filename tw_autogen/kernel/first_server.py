"""The fork server of a program's first kernel: it is started before the rest of this package is imported."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.errors import KernelError, SandboxError
from tw_autogen.kernel.environment_variables import clean_environment, matcher, variables
from tw_autogen.kernel.launcher.sandbox import BUBBLEWRAP
from tw_autogen.kernel.launcher_client import ForkServer
from tw_autogen.kernel.sandbox_levels import available_level, level_attempts
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.safe_folder import remove_folder, temporary_folder

SUPERVISED = sys.platform.startswith("linux")
"""Where kernels have a supervisor, and a fork server may make them; elsewhere they are plain processes."""

_FIXED = ("PYTHON*", "LD_*", "OMP_*", "OPENBLAS*", "MKL_*", "NUMEXPR_*", "CUDA*", "LC_*", "LANG", "PATH", "VIRTUAL_ENV")
_END_SECONDS = 2.0
_AT_ONCE = ("numpy", "pandas")
"""What nearly each question about data needs; it is imported on another processor than the one that this process uses.

A kernel that is forked without it imports it in its first cell, which takes 0.3 s.
"""


@dataclass(frozen=True)
class StartingServer:
    """A fork server that was started, and may not be ready yet.

    Args:
        level: The sandbox of its kernels.
        server: The process.
        folder: Its own; removed by `close`.
        owner: The process that started it; a fork of that one neither uses nor ends it.
    """

    level: str
    server: ForkServer
    folder: Path
    owner: int = field(default_factory=os.getpid)

    def close(self) -> None:
        """End the process."""
        self.server.close()
        remove_folder(self.folder)


_first: dict[object, StartingServer] = {}
_lock = threading.Lock()


def server_key(settings: KernelSettings) -> object:
    """Return all that a server is made with."""
    fixed = sorted(variables(os.environ, matcher(_FIXED)).items())
    return settings.python, settings.sandbox, settings.fork, settings.preload, shared_names(settings), tuple(fixed)


def shared_names(settings: KernelSettings) -> tuple[str, ...]:
    """Return the names of `kernel.environment` that a server, or a kernel kept ready, is started with.

    The others are for code of one session, and told with its kernel: more would find them in what they are forked from.
    """
    return tuple(filter(matcher(_FIXED), settings.environment))


def start_server(settings: KernelSettings, *, at_once: Sequence[str] = ()) -> StartingServer:
    """Start a fork server.

    Args:
        settings: How.
        at_once: Which modules it imports before it forks its first kernel; the others, when no kernel is asked for.

    Raises:
        KernelError: kernels with these settings are not forked.
        OSError: it can't be started.
        SandboxError: no sandbox can be set up.
    """
    level = next(level_attempts(settings))
    if level == BUBBLEWRAP:
        raise KernelError("kernels behind bubblewrap are not forked")
    environment = clean_environment(os.environ, allowed=shared_names(settings))
    folder = temporary_folder("tw-server-")
    later = [one for one in settings.preload if one not in at_once]
    try:
        server = ForkServer(
            settings.python, environment, level=level, modules=later, at_once=at_once, log=folder / "log"
        )
    except BaseException:
        remove_folder(folder)
        raise
    return StartingServer(level, server, folder)


def begin_fork_server(settings: KernelSettings) -> None:
    """Start the fork server of the first kernel, with what that one is likely to need; return at once.

    Where none can be started, nothing happens: the kernel comes from elsewhere, or raises the error.

    Args:
        settings: The pool of kernels that first needs a server takes this one, if it needs one with such settings;
            otherwise it is ended.
    """
    if not (SUPERVISED and settings.fork):
        return
    with _lock, contextlib.suppress(KernelError, OSError):
        if not _first:
            at_once = [one for one in _AT_ONCE if one in settings.preload]
            _first[server_key(settings)] = start_server(settings, at_once=at_once)
            atexit.register(_end_unused)
    # A session asks which sandbox there is before its first kernel; a process tries it, which takes 0.05 s and more.
    trying = threading.Thread(target=_try_sandbox, args=(settings,), name="tw-sandbox", daemon=True)
    trying.start()
    atexit.register(trying.join, _END_SECONDS)  # Python's end may abort under a thread that starts a process


def _try_sandbox(settings: KernelSettings) -> None:
    with contextlib.suppress(SandboxError):  # whoever asks for the sandbox gets it again
        available_level(settings)


def take_first_server(key: object) -> StartingServer | None:
    """Return the server of `begin_fork_server` if it was made with such settings; end it otherwise.

    Args:
        key: The `server_key` of a kernel's settings.
    """
    with _lock:
        found = _first.pop(key, None)
    _end_unused()
    return found if found is not None and found.owner == os.getpid() else None


def _end_unused() -> None:
    """End the server that nobody has taken, unless this is a fork of the process that started it."""
    with _lock:
        unused = list(_first.values())
        _first.clear()
    for one in unused:
        if one.owner == os.getpid():
            one.close()
