"""`KernelPool`: the fork servers of this process, and kernels that are kept ready, forked or not."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from types import TracebackType

from tw_autogen.errors import KernelError
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.ownership import OWNERSHIP
from tw_autogen.kernel.sandbox import failed
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.starting import SUPERVISED, StartedKernel, start
from tw_autogen.kernel.supervised_process import SandboxFailed
from tw_autogen.kernel.warm_pool import WarmPool, begin, kernel_key, server_key

_MOST_SERVERS = 4
_MOST_READY = 4
_HELLO_SECONDS = 120.0
_PAUSE_SECONDS = 60.0
"""How long no server is tried again where one has failed."""
_LAST_SECONDS = 2.0
_HASTE_SECONDS = 0.25
"""How long a session has the processors for itself, for its start and its first cell, before more kernels are made."""


class KernelPool:
    """Makes kernels quickly; one for each process of the host, unless a `LocalKernel` is given another one.

    A fork server is started in the background when a kernel is likely to be needed. Until it is ready, and whenever
    anything about it fails, kernels are started one by one. When nobody has needed it for `kernel.warm_seconds`, it
    ends; it ends in any case with this process. Where nothing forks (macOS, Windows, or `kernel.fork` off), kernels
    that are kept ready are started one by one in the background, and live as long.

    Args:
        supervised: Kernels have a supervisor; elsewhere than on Linux they are plain processes.

    Example:
        >>> with KernelPool() as pool:
        ...     pool.closed
        False
    """

    def __init__(self, *, supervised: bool = SUPERVISED) -> None:
        self._supervised = supervised
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
        forks = self._supervised and settings.fork
        if not (forks or settings.warm) or self.closed or os.getpid() != self._owner:
            return
        key = server_key(settings)
        with self._change:
            if key in self._pools:
                self._pools[key].used = time.monotonic()
            elif time.monotonic() < self._failed.get(key, 0.0) + _PAUSE_SECONDS:
                return
            self._wanted[kernel_key(settings)] = settings
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="tw-autogen-kernels", daemon=True)
                self._keeper.start()
            self._change.notify_all()

    def take(self, settings: KernelSettings, place: KernelFolders) -> StartedKernel:
        """Return a kernel for a session's folders: one that was kept ready, else a forked one, else one of its own.

        Raises:
            KernelStartError: none starts.
            SandboxError: no wall can stand.
        """
        self._taken = time.monotonic()
        try:
            return (
                self._kept(settings, place)
                or self._forked(settings, place)
                or start(settings, place, supervised=self._supervised)
            )
        finally:
            self.prepare(settings)

    def take_for(self, settings: KernelSettings, place: KernelFolders, lent: Connection) -> StartedKernel:
        """Return a kernel that listens on somebody else's sockets and answers heartbeats; raises as `take` does."""
        try:
            return self._forked(settings, place, lent) or start(settings, place, lent=lent)
        finally:
            self.prepare(settings)

    def wait(self, settings: KernelSettings, seconds: float = _HELLO_SECONDS) -> bool:
        """Wait until the server is there and kernels are ready for these settings; tell whether they are."""
        self.prepare(settings)
        deadline = time.monotonic() + seconds
        with self._change:
            while not self.closed and time.monotonic() < deadline:
                warm = self._pools.get(server_key(settings))
                if warm is not None and warm.usable and not warm.lacks(settings):
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

    def __enter__(self) -> KernelPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _warm(self, settings: KernelSettings) -> WarmPool | None:
        """Return a server that is ready and up to date."""
        with self._change:
            warm = self._pools.get(server_key(settings))
        usable = warm is not None and self._owner == os.getpid() and warm.usable and not warm.stale()
        return warm if usable else None

    def _kept(self, settings: KernelSettings, place: KernelFolders) -> StartedKernel | None:
        """Return a kernel that was kept ready, if there is one and nobody else works in that folder."""
        warm, key = self._warm(settings), kernel_key(settings)
        while warm is not None and not OWNERSHIP.user(place.folder):
            with self._change:
                started = warm.take(key)
            if started is None:
                return None
            with contextlib.suppress(KernelError):  # it has ended while it waited, or its wall: the next one
                started.bind(place, settings)
                started.way = "warm"
                return started
            started.discard()
        return None

    def _forked(
        self, settings: KernelSettings, place: KernelFolders, lent: Connection | None = None
    ) -> StartedKernel | None:
        warm = self._warm(settings)
        if warm is not None and warm.server is not None:
            with contextlib.suppress(OSError, KernelError):
                return start(settings, place, server=warm.server, lent=lent)
        return None

    # What the keeper does, in a thread of its own.

    def _keep(self) -> None:
        while True:
            with self._change:
                while not self._wanted and not self.closed:
                    if not self._change.wait(self._patience()):
                        break
                if self.closed:
                    return
                wanted, self._wanted = self._wanted, {}
                old = self._outworn({server_key(settings) for settings in wanted.values()})
            for warm in old:
                warm.close()
            for settings in wanted.values():
                self._tend(settings)
            with self._change:
                if not self._pools and not self._wanted:
                    self._keeper = None
                    return

    def _patience(self) -> float:
        ends = [warm.used + warm.settings.warm_seconds for warm in self._pools.values()]
        return max(0.0, min(ends, default=time.monotonic()) - time.monotonic()) + 0.01

    def _outworn(self, wanted: set[object]) -> list[WarmPool]:
        """Take out what nobody needs any more, what is out of date, and what is too many."""
        now = time.monotonic()
        out = [
            key
            for key, warm in self._pools.items()
            if warm.stale() or (key not in wanted and now > warm.used + warm.settings.warm_seconds)
        ]
        left = sorted((key for key in self._pools if key not in out), key=lambda key: self._pools[key].used)
        out += left[: max(0, len(left) - _MOST_SERVERS)]
        return [self._pools.pop(key) for key in out]

    def _tend(self, settings: KernelSettings) -> None:
        """Start a server if there is none, and fill up the kernels that it keeps ready."""
        key = server_key(settings)
        warm: WarmPool | None = None
        try:
            with self._change:
                warm = self._pools.get(key)
            if warm is None:
                warm = begin(settings, supervised=self._supervised)
                with self._change:
                    late = self.closed
                    if not late:
                        self._pools[key] = warm
                if late:  # it was closed while the server was made
                    warm.close()
                    return
            if not warm.await_server(_HELLO_SECONDS):
                raise KernelError("the fork server was not ready in time")
            while not self.closed and warm.lacks(settings):
                self._let_begin()
                self._fill(warm, settings)
        except SandboxFailed as error:
            if warm is not None:
                failed(warm.level, str(error))
            self._drop(key)
            self.prepare(settings)
        except (KernelError, OSError):  # kernels are then started one by one
            self._failed[key] = time.monotonic()
            self._drop(key)

    def _let_begin(self) -> None:
        """Leave the processors for a moment to whoever has just taken a kernel."""
        with self._change:
            while not self.closed and (left := self._taken + _HASTE_SECONDS - time.monotonic()) > 0:
                self._change.wait(left)

    def _fill(self, warm: WarmPool, settings: KernelSettings) -> None:
        key, started = kernel_key(settings), warm.make(settings)
        with self._change:
            if not any(one is warm for one in self._pools.values()):  # it was closed meanwhile
                started.discard()
                return
            warm.ready.append((key, started))
            many = warm.ready[: max(0, len(warm.ready) - max(_MOST_READY, settings.warm))]
            del warm.ready[: len(many)]
            self._change.notify_all()
        for _, one in many:
            one.discard()

    def _drop(self, key: object) -> None:
        with self._change:
            warm = self._pools.pop(key, None)
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
