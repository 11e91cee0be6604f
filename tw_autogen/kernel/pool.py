"""`KernelPool`: the fork servers of this process, and the kernels that are kept ready, forked or not."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.closing import Closing
from tw_autogen.errors import KernelError
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.first_server import SUPERVISED, StartingServer, server_key, start_server, take_first_server
from tw_autogen.kernel.folder_ownership import OWNERSHIP
from tw_autogen.kernel.guest_bundle import call_expression
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.kernel_start import StartedKernel, start
from tw_autogen.kernel.launcher.sandbox import BUBBLEWRAP, LANDLOCK
from tw_autogen.kernel.launcher_client import ForkServer, SandboxUnavailable
from tw_autogen.kernel.sandbox_levels import available_level, level_attempts, record_failure
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.transport import await_kernel_info
from tw_autogen.safe_folder import remove_folder, temporary_folder

_CELL = """\
if "pandas" in __import__("sys").modules:
    __import__("pandas").DataFrame({"a": range(3)}).sum().sum()
1 + 1"""
"""It makes no variable."""


_MAX_SERVERS = 4
_MAX_READY = 4
_HELLO_SECONDS = 120.0
_PAUSE_SECONDS = 60.0
"""How long no server is tried again where one has failed."""
_LAST_SECONDS = 2.0
_BEGUN_SECONDS = 10.0
"""How long a kernel waits for a server that is starting: a process of its own would take longer than the rest."""
_HASTE_SECONDS = 0.25
"""How long a session has the processors for itself, for its start and its first cell, before more kernels are made."""


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
    if not await_kernel_info(wire, started.process.alive, seconds):
        raise KernelError("a kernel to be kept ready did not start")
    request = wire.request(_CELL, counted=False)
    if wire.await_reply(request, started.process.alive, deadline - time.monotonic()) is None:
        raise KernelError("a kernel to be kept ready did not answer")
    while wire.receive("iopub") is not None:
        pass


@dataclass
class WarmPool:
    """One source of kernels, and those that it keeps ready, each with the key of what it was made with.

    Args:
        settings: It was made for these.
        level: The sandbox of its kernels.
        server: Its fork server; None: each kernel is started for itself.
        folder: Its own; removed by `close`.
        ready: The kernels.
        used: When somebody last needed it, on the clock of `time.monotonic`.
    """

    settings: KernelSettings
    level: str
    server: ForkServer | None
    folder: Path
    ready: list[tuple[object, StartedKernel]] = field(default_factory=list)
    used: float = field(default_factory=time.monotonic)

    @property
    def usable(self) -> bool:
        """Whether kernels can be started, as far as is known."""
        return self.server is None or self.server.greeted

    @property
    def loaded(self) -> bool:
        """Whether kernels that are forked have imported what they are to import."""
        return self.server is None or self.server.loaded

    def await_server(self, seconds: float, *, loaded: bool = False) -> bool:
        """Return whether kernels can be started; raises what `ForkServer.ready` does.

        Args:
            seconds: How long to wait for that.
            loaded: As of `ForkServer.ready`.
        """
        return self.server is None or self.server.ready(seconds, loaded=loaded)

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
        """Return whether kernels are to be made; never in a sandbox that must know a session's folders at once."""
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
        started = start(settings, None, server=self.server)
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


def begin_warm_pool(settings: KernelSettings) -> WarmPool:
    """Begin to make kernels.

    Args:
        settings: How.

    Raises:
        KernelError: kernels with these settings are not forked.
        OSError: the server can't be started.
        SandboxError: no sandbox can be set up.
    """
    if SUPERVISED and settings.fork:
        return _warm_pool(settings, start_server(settings))
    level = next(level_attempts(settings)) if SUPERVISED else available_level(settings)
    return WarmPool(settings, level, None, temporary_folder("tw-server-"))


def _warm_pool(settings: KernelSettings, begun: StartingServer) -> WarmPool:
    return WarmPool(settings, begun.level, begun.server, begun.folder)


def kernel_key(settings: KernelSettings) -> tuple[object, bool, bool, tuple[int, ...]]:
    """Return all that a kernel kept ready is made with and can't be told later; first the key of its server."""
    return server_key(settings), settings.allow_network, settings.allow_symlinks, tuple(settings.limits.values())


class KernelPool(Closing):
    """Makes kernels quickly; one for each process of the host, unless a `LocalKernel` is given another one.

    A fork server is started in the background when a kernel is likely to be needed. Until it is ready, and whenever
    anything about it fails, kernels are started one by one. When nobody has needed it for `kernel.warm_seconds`, it
    ends; it ends in any case with this process. Where nothing forks (macOS, Windows, or `kernel.fork` off), kernels
    that are kept ready are started one by one in the background, and live as long.

    Example:
        >>> with KernelPool() as pool:
        ...     pool.closed
        False
    """

    def __init__(self) -> None:
        self._pools: dict[object, WarmPool] = {}
        self._wanted: dict[object, KernelSettings] = {}
        self._failed: dict[object, float] = {}
        self._taken = 0.0
        self._change = threading.Condition()
        self._keeper: threading.Thread | None = None
        self._owner = os.getpid()
        self.closed = False

    def prepare(self, settings: KernelSettings) -> None:
        """Make a fork server for these settings, and kernels, ready soon; return at once."""
        forks = SUPERVISED and settings.fork
        if not (forks or settings.warm) or self.closed or os.getpid() != self._owner:
            return
        wanted = kernel_key(settings)
        key = wanted[0]
        with self._change:
            if key not in self._pools and (first := take_first_server(key)) is not None:
                self._pools[key] = _warm_pool(settings, first)
            if key in self._pools:
                self._pools[key].used = time.monotonic()
            elif time.monotonic() < self._failed.get(key, 0.0) + _PAUSE_SECONDS:
                return
            self._wanted[wanted] = settings
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._run_keeper, name="tw-autogen-kernels", daemon=True)
                self._keeper.start()
            self._change.notify_all()

    def take(self, settings: KernelSettings, place: KernelFolders) -> StartedKernel:
        """Return a kernel for a session's folders: one that was kept ready, else a forked one, else one of its own.

        Args:
            settings: Say what the kernel may do.
            place: The session's folders.

        Raises:
            KernelStartError: none starts.
            SandboxError: no sandbox can be set up.
        """
        self._taken = time.monotonic()
        try:
            warm = self._ready_server(server_key(settings))
            return (
                self._take_kept(settings, place, warm)
                or self._fork_kernel(settings, place, warm)
                or start(settings, place)
            )
        finally:
            self.prepare(settings)

    def take_on_sockets(self, settings: KernelSettings, place: KernelFolders, lent: Connection) -> StartedKernel:
        """Return a kernel that listens on somebody else's sockets and answers heartbeats; raises as `take` does.

        Args:
            settings: Say what the kernel may do.
            place: The session's folders.
            lent: The sockets and their key.
        """
        try:
            warm = self._ready_server(server_key(settings))
            return self._fork_kernel(settings, place, warm, lent) or start(settings, place, lent=lent)
        finally:
            self.prepare(settings)

    def wait(self, settings: KernelSettings, seconds: float = _HELLO_SECONDS) -> bool:
        """Wait until the server is there and kernels are ready for these settings; tell whether they are.

        Args:
            settings: For which kernels are to be ready.
            seconds: How long to wait.
        """
        self.prepare(settings)
        deadline = time.monotonic() + seconds
        with self._change:
            while not self.closed and time.monotonic() < deadline:
                warm = self._pools.get(server_key(settings))
                if warm is not None and warm.usable and warm.loaded and not warm.lacks(settings):
                    return True
                self._change.wait(max(0.0, min(0.05, deadline - time.monotonic())))
        return False

    def close(self) -> None:
        """End servers and the kernels that are kept ready; those in use go on."""
        with self._change:
            self.closed = True
            pools, self._pools = list(self._pools.values()), {}
            keeper = self._keeper
            self._change.notify_all()
        if os.getpid() == self._owner:
            for warm in pools:
                warm.close()
            if keeper is not None:
                keeper.join(_LAST_SECONDS)  # it ends what it is just making

    def _ready_server(self, key: object) -> WarmPool | None:
        """Return a server that is ready and up to date; one that has begun to start is waited for."""
        deadline = time.monotonic() + _BEGUN_SECONDS
        with self._change:
            while (warm := self._pools.get(key)) is not None and not warm.usable and not self.closed:
                if not self._change.wait(deadline - time.monotonic()):
                    break
        usable = warm is not None and self._owner == os.getpid() and warm.usable and not warm.stale()
        return warm if usable else None

    def _take_kept(self, settings: KernelSettings, place: KernelFolders, warm: WarmPool | None) -> StartedKernel | None:
        """Return a kernel that was kept ready, if there is one and nobody else works in that folder."""
        key = kernel_key(settings)
        while warm is not None and not OWNERSHIP.user(place.folder):
            with self._change:
                started = warm.take(key)
            if started is None:
                return None
            with contextlib.suppress(KernelError):  # it has ended while it waited, or its sandbox: the next one
                started.bind(place, settings)
                started.way = "warm"
                return started
            started.discard()
        return None

    def _fork_kernel(
        self, settings: KernelSettings, place: KernelFolders, warm: WarmPool | None, lent: Connection | None = None
    ) -> StartedKernel | None:
        if warm is not None and warm.server is not None:
            with contextlib.suppress(OSError, KernelError):
                return start(settings, place, server=warm.server, lent=lent)
        return None

    # What the keeper does, in a thread of its own.

    def _run_keeper(self) -> None:
        while True:
            with self._change:
                while not self._wanted and not self.closed:
                    if not self._change.wait(self._wait_seconds()):
                        break
                if self.closed:
                    return
                wanted, self._wanted = self._wanted, {}
                old = self._discard_outdated({server_key(settings) for settings in wanted.values()})
            for warm in old:
                warm.close()
            for settings in wanted.values():
                self._keep_ready(settings)
            with self._change:
                if not self._pools and not self._wanted:
                    self._keeper = None
                    return

    def _wait_seconds(self) -> float:
        ends = [warm.used + warm.settings.warm_seconds for warm in self._pools.values()]
        return max(0.0, min(ends, default=time.monotonic()) - time.monotonic()) + 0.01

    def _discard_outdated(self, wanted: set[object]) -> list[WarmPool]:
        """Take out what nobody needs any more, what is out of date, and what is too many."""
        now = time.monotonic()
        out = [
            key
            for key, warm in self._pools.items()
            if warm.stale() or (key not in wanted and now > warm.used + warm.settings.warm_seconds)
        ]
        left = sorted((key for key in self._pools if key not in out), key=lambda key: self._pools[key].used)
        out += left[: max(0, len(left) - _MAX_SERVERS)]
        return [self._pools.pop(key) for key in out]

    def _keep_ready(self, settings: KernelSettings) -> None:
        """Start a server if there is none, and fill up the kernels that it keeps ready."""
        key = server_key(settings)
        warm: WarmPool | None = None
        try:
            with self._change:
                warm = self._pools.get(key)
            if warm is None:
                warm = begin_warm_pool(settings)
                with self._change:
                    late = self.closed
                    if not late:
                        self._pools[key] = warm
                if late:  # it was closed while the server was made
                    warm.close()
                    return
            if not warm.await_server(_HELLO_SECONDS):
                raise KernelError("the fork server was not ready in time")
            with self._change:
                self._change.notify_all()
            if not warm.await_server(_HELLO_SECONDS, loaded=True):
                raise KernelError("the fork server did not import its modules in time")
            while not self.closed and warm.lacks(settings):
                self._back_off()
                self._add_ready_kernel(warm, settings)
        except SandboxUnavailable as error:
            if warm is not None and not record_failure(warm.level, str(error)):
                self._failed[key] = time.monotonic()  # `prepare` waits before it tries again
            self._drop(key)
            self.prepare(settings)
        except (KernelError, OSError):  # kernels are then started one by one
            self._failed[key] = time.monotonic()
            self._drop(key)

    def _back_off(self) -> None:
        """Leave the processors for a moment to whoever has just taken a kernel."""
        with self._change:
            while not self.closed and (left := self._taken + _HASTE_SECONDS - time.monotonic()) > 0:
                self._change.wait(left)

    def _add_ready_kernel(self, warm: WarmPool, settings: KernelSettings) -> None:
        key, started = kernel_key(settings), warm.make(settings)
        with self._change:
            if not any(pool is warm for pool in self._pools.values()):  # it was closed meanwhile
                started.discard()
                return
            warm.ready.append((key, started))
            many = warm.ready[: max(0, len(warm.ready) - max(_MAX_READY, settings.warm))]
            del warm.ready[: len(many)]
            self._change.notify_all()
        for _, one in many:
            one.discard()

    def _drop(self, key: object) -> None:
        with self._change:
            warm = self._pools.pop(key, None)
            self._change.notify_all()
        if warm is not None:
            warm.close()


_default: list[KernelPool] = []
_default_lock = threading.Lock()


def default_pool() -> KernelPool:
    """Return the pool of this process; it is closed when the process ends."""
    with _default_lock:
        if not _default or _default[0]._owner != os.getpid():  # a fork of the host gets one of its own
            pool = KernelPool()
            _default[:] = [pool]
            atexit.register(pool.close)
        return _default[0]
