"""`Nest`: one fork server with the kernels that it keeps ready, and what tells two of them apart."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.errors import KernelError
from tw_autogen.kernel.environment import clean_environment, matcher
from tw_autogen.kernel.forkserver import ForkServer
from tw_autogen.kernel.launcher.wall import BUBBLEWRAP, LANDLOCK
from tw_autogen.kernel.sandbox import levels
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.starting import StartedKernel

_FIXED = ("PYTHON*", "LD_*", "OMP_*", "OPENBLAS*", "MKL_*", "NUMEXPR_*", "CUDA*", "LC_*", "LANG", "PATH", "VIRTUAL_ENV")


@dataclass
class Nest:
    """One fork server, and the kernels that it keeps ready, each with the key of what it was made with.

    Args:
        settings: It was made for these.
        server: Its server.
        folder: Its own; removed by `close`.
        ready: The kernels.
        used: When somebody last needed it, on the clock of `time.monotonic`.
    """

    settings: KernelSettings
    server: ForkServer
    folder: Path
    ready: list[tuple[object, StartedKernel]] = field(default_factory=list)
    used: float = field(default_factory=time.monotonic)

    def take(self, key: object) -> StartedKernel | None:
        """Give a kernel that was made with this, and forget it; None if there is none."""
        found = next((one for one in self.ready if one[0] == key), None)
        if found is None:
            return None
        self.ready.remove(found)
        return found[1]

    def lacks(self, settings: KernelSettings) -> bool:
        """Tell whether kernels are to be made; never behind a wall that must know a session's folders at once."""
        key = kernel_key(settings)
        return self.server.level != LANDLOCK and sum(one == key for one, _ in self.ready) < settings.warm

    def close(self) -> None:
        """End the server and the kernels."""
        self.server.close()
        for _, started in self.ready:
            started.discard()
        shutil.rmtree(self.folder, ignore_errors=True)


def begin(settings: KernelSettings) -> Nest:
    """Start a server.

    Raises:
        KernelError: kernels with these settings are not forked.
        OSError: it can't be started.
        SandboxError: no wall can stand.
    """
    level = next(levels(settings))
    if level == BUBBLEWRAP:
        raise KernelError("kernels behind bubblewrap are not forked")
    folder = Path(tempfile.mkdtemp(prefix="tw-server-"))
    try:
        environment = clean_environment(os.environ, allowed=settings.environment)
        server = ForkServer(settings.python, environment, level=level, modules=settings.preload, log=folder / "log")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Nest(settings, server, folder)


def server_key(settings: KernelSettings) -> object:
    """Give all that a server is made with."""
    is_fixed = matcher(_FIXED)
    fixed = sorted((name, value) for name, value in os.environ.items() if is_fixed(name))
    return settings.python, settings.sandbox, settings.preload, tuple(fixed)


def kernel_key(settings: KernelSettings) -> object:
    """Give all that a kernel kept ready is made with and can't be told later."""
    limits = (settings.memory_mb, settings.file_mb, settings.disk_mb, settings.processes, settings.open_files)
    return server_key(settings), settings.allow_network, limits
