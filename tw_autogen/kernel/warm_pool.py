"""`WarmPool`: one source of kernels, a fork server or none, with those that it keeps ready; what tells two apart."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.errors import KernelError
from tw_autogen.kernel.bundle import call_expression
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.environment import clean_environment, matcher, variables
from tw_autogen.kernel.forkserver import ForkServer
from tw_autogen.kernel.launcher.sandbox import BUBBLEWRAP, LANDLOCK
from tw_autogen.kernel.sandbox import levels, standing
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.starting import SUPERVISED, StartedKernel, start
from tw_autogen.kernel.wire import await_life
from tw_autogen.safe_folder import remove_folder, temporary_folder

_CELL = """\
if "pandas" in __import__("sys").modules:
    __import__("pandas").DataFrame({"a": range(3)}).sum().sum()
1 + 1"""
"""It makes no variable."""


def warm_up(started: StartedKernel, seconds: float, *, modules: Sequence[str] = ()) -> None:
    """Make the bridge in a kernel that has no session yet, and run a cell there; both are over when this returns.

    A kernel that was still busy with it would keep its first session waiting.

    Args:
        started: The kernel.
        seconds: How long that may take.
        modules: What it is to import first; what is not installed is left out.

    Raises:
        KernelError: the kernel has ended, or did not answer in time.
    """
    wire, deadline = started.connection, time.monotonic() + seconds
    wire.request("", expressions={"a": call_expression("warm_up", ",".join(modules))}, silent=True)
    if not await_life(wire, started.process.alive, seconds):
        raise KernelError("a kernel to be kept ready did not start")
    request = wire.request(_CELL, counted=False)
    while not _replied(wire, request):
        if not started.process.alive() or time.monotonic() > deadline:
            raise KernelError("a kernel to be kept ready did not answer")
        wire.await_reply()
    while wire.receive("iopub") is not None:
        pass


def _replied(wire: Connection, request: str) -> bool:
    while (message := wire.receive("shell")) is not None:
        if message["parent_header"].get("msg_id") == request:
            return True
    return False


_FIXED = ("PYTHON*", "LD_*", "OMP_*", "OPENBLAS*", "MKL_*", "NUMEXPR_*", "CUDA*", "LC_*", "LANG", "PATH", "VIRTUAL_ENV")


@dataclass
class WarmPool:
    """One source of kernels, and those that it keeps ready, each with the key of what it was made with.

    Args:
        settings: It was made for these.
        level: The sandbox of its kernels.
        server: Its fork server; None: each kernel is started for itself.
        folder: Its own; removed by `close`.
        supervised: Its kernels have a supervisor.
        ready: The kernels.
        used: When somebody last needed it, on the clock of `time.monotonic`.
    """

    settings: KernelSettings
    level: str
    server: ForkServer | None
    folder: Path
    supervised: bool = SUPERVISED
    ready: list[tuple[object, StartedKernel]] = field(default_factory=list)
    used: float = field(default_factory=time.monotonic)

    @property
    def usable(self) -> bool:
        """Whether kernels can be started, as far as is known."""
        return self.server is None or self.server.greeted

    def await_server(self, seconds: float) -> bool:
        """Return whether kernels can be started within some seconds; raises as `ForkServer.ready` does."""
        return self.server is None or self.server.ready(seconds)

    def stale(self) -> bool:
        """Return whether its fork server has ended or is out of date."""
        return self.server is not None and self.server.stale()

    def take(self, key: object) -> StartedKernel | None:
        """Return a kernel that was made with this, and forget it; None if there is none."""
        found = next((one for one in self.ready if one[0] == key), None)
        if found is None:
            return None
        self.ready.remove(found)
        return found[1]

    def lacks(self, settings: KernelSettings) -> bool:
        """Return whether kernels are to be made; never behind a wall that must know a session's folders at once."""
        if self.level in (LANDLOCK, BUBBLEWRAP):
            return False
        key = kernel_key(settings)
        return sum(one == key for one, _ in self.ready) < settings.warm

    def make(self, settings: KernelSettings) -> StartedKernel:
        """Make a kernel to be kept ready; it has done once what takes long.

        Raises:
            KernelError: it ends, or does not answer.
            OSError: the server is gone, or it can't be started.
        """
        started = start(settings, None, server=self.server, supervised=self.supervised)
        modules = () if self.server is not None else settings.preload
        try:
            warm_up(started, settings.start_seconds, modules=modules)
        except BaseException:
            started.discard()
            raise
        return started

    def close(self) -> None:
        """End the server and the kernels."""
        if self.server is not None:
            self.server.close()
        for _, started in self.ready:
            started.discard()
        remove_folder(self.folder)


def begin(settings: KernelSettings, *, supervised: bool = SUPERVISED) -> WarmPool:
    """Begin to make kernels.

    Args:
        settings: How.
        supervised: They have a supervisor; elsewhere than on Linux they are plain processes.

    Raises:
        KernelError: kernels with these settings are not forked.
        OSError: the server can't be started.
        SandboxError: no sandbox can be set up.
    """
    level = next(levels(settings)) if supervised else standing(settings)
    forks = supervised and settings.fork
    if forks and level == BUBBLEWRAP:
        raise KernelError("kernels behind bubblewrap are not forked")
    folder = temporary_folder("tw-server-")
    server = None
    if forks:
        environment = clean_environment(os.environ, allowed=settings.environment)
        log = folder / "log"
        try:
            server = ForkServer(settings.python, environment, level=level, modules=settings.preload, log=log)
        except BaseException:
            remove_folder(folder)
            raise
    return WarmPool(settings, level, server, folder, supervised)


def server_key(settings: KernelSettings) -> object:
    """Return all that a server is made with."""
    fixed = sorted(variables(os.environ, matcher(_FIXED)).items())
    return settings.python, settings.sandbox, settings.fork, settings.preload, tuple(fixed)


def kernel_key(settings: KernelSettings) -> object:
    """Return all that a kernel kept ready is made with and can't be told later."""
    limits = (settings.memory_mb, settings.file_mb, settings.disk_mb, settings.processes, settings.open_files)
    return server_key(settings), settings.allow_network, limits
