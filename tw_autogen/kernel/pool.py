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
from tw_autogen.kernel.forkserver import ForkServer
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.ownership import OWNERSHIP
from tw_autogen.kernel.plain import PlainKernel, start_plain
from tw_autogen.kernel.sandbox import failed
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.starting import STEWARDED, StartedKernel, start_cold, start_forked
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
        stewarded: Kernels have a steward; elsewhere than on Linux they are plain processes.

    Example:
        >>> with KernelPool() as pool:
        ...     pool.closed
        False
    """

    def __init__(self, *, stewarded: bool = STEWARDED) -> None:
        self._stewarded = stewarded
        self._nests: dict[object, WarmPool] = {}
        self._wanted: dict[object, KernelSettings] = {}
        self._failed: dict[object, float] = {}
        self._taken = 0.0
        self._change = threading.Condition()
        self._keeper: threading.Thread | None = None
        self._owner = os.getpid()
        self.closed = False

    def prepare(self, settings: KernelSettings) -> None:
        """Make a fork server for these settings, and kernels, ready soon; return at once."""
        forks = self._stewarded and settings.fork
        if not (forks or settings.warm) or self.closed or os.getpid() != self._owner:
            return
        key = server_key(settings)
        with self._change:
            if key in self._nests:
                self._nests[key].used = time.monotonic()
            elif time.monotonic() < self._failed.get(key, 0.0) + _PAUSE_SECONDS:
                return
            self._wanted[kernel_key(settings)] = settings
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="tw-autogen-kernels", daemon=True)
                self._keeper.start()
            self._change.notify_all()

    def take(self, settings: KernelSettings, place: KernelFolders) -> StartedKernel | PlainKernel:
        """Return a kernel for a session's folders: one that was kept ready, else a forked one, else one of its own.

        Raises:
            KernelStartError: none starts.
            SandboxError: no wall can stand.
        """
        self._taken = time.monotonic()
        try:
            cold = start_cold if self._stewarded else start_plain
            return self._settled(settings, place) or self._forked(settings, place) or cold(settings, place)
        finally:
            self.prepare(settings)

    def take_for(self, settings: KernelSettings, place: KernelFolders, lent: Connection) -> StartedKernel:
        """Return a kernel that listens on somebody else's sockets and answers heartbeats; raises as `take` does."""
        try:
            return self._forked(settings, place, lent) or start_cold(settings, place, lent)
        finally:
            self.prepare(settings)

    def wait(self, settings: KernelSettings, seconds: float = _HELLO_SECONDS) -> bool:
        """Wait until the server is there and kernels are ready for these settings; tell whether they are."""
        self.prepare(settings)
        deadline = time.monotonic() + seconds
        with self._change:
            while not self.closed and time.monotonic() < deadline:
                nest = self._nests.get(server_key(settings))
                if nest is not None and nest.server.greeted and not nest.lacks(settings):
                    return True
                self._change.wait(max(0.0, min(0.05, deadline - time.monotonic())))
        return False

    def close(self) -> None:
        """End servers and the kernels that are kept ready; those in use go on."""
        with self._change:
            self.closed = True
            nests, self._nests = list(self._nests.values()), {}
            keeper = self._keeper
            self._change.notify_all()
        if os.getpid() == self._owner:
            for nest in nests:
                nest.close()
            if keeper is not None:
                keeper.join(_LAST_SECONDS)  # it ends what it is just making

    def __enter__(self) -> KernelPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _nest(self, settings: KernelSettings) -> WarmPool | None:
        """Return a server that is ready and up to date."""
        with self._change:
            nest = self._nests.get(server_key(settings))
        usable = nest is not None and self._owner == os.getpid() and nest.server.greeted and not nest.server.stale()
        return nest if usable else None

    def _settled(self, settings: KernelSettings, place: KernelFolders) -> StartedKernel | PlainKernel | None:
        """Return a kernel that was kept ready, if there is one and nobody else works in that folder."""
        nest, key = self._nest(settings), kernel_key(settings)
        while nest is not None and not OWNERSHIP.user(place.folder):
            with self._change:
                started = nest.take(key)
            if started is None:
                return None
            with contextlib.suppress(KernelError):  # it has ended while it waited, or its wall: the next one
                started.settle(place, settings)
                started.way = "warm"
                return started
            started.discard()
        return None

    def _forked(
        self, settings: KernelSettings, place: KernelFolders, lent: Connection | None = None
    ) -> StartedKernel | None:
        nest = self._nest(settings)
        if nest is not None and isinstance(nest.server, ForkServer):
            with contextlib.suppress(OSError, KernelError):
                return start_forked(nest.server, settings, place, lent)
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
            for nest in old:
                nest.close()
            for settings in wanted.values():
                self._tend(settings)
            with self._change:
                if not self._nests and not self._wanted:
                    self._keeper = None
                    return

    def _patience(self) -> float:
        ends = [nest.used + nest.settings.warm_seconds for nest in self._nests.values()]
        return max(0.0, min(ends, default=time.monotonic()) - time.monotonic()) + 0.01

    def _outworn(self, wanted: set[object]) -> list[WarmPool]:
        """Take out what nobody needs any more, what is out of date, and what is too many."""
        now = time.monotonic()
        out = [
            key
            for key, nest in self._nests.items()
            if nest.server.stale() or (key not in wanted and now > nest.used + nest.settings.warm_seconds)
        ]
        left = sorted((key for key in self._nests if key not in out), key=lambda key: self._nests[key].used)
        out += left[: max(0, len(left) - _MOST_SERVERS)]
        return [self._nests.pop(key) for key in out]

    def _tend(self, settings: KernelSettings) -> None:
        """Start a server if there is none, and fill up the kernels that it keeps ready."""
        key = server_key(settings)
        nest: WarmPool | None = None
        try:
            with self._change:
                nest = self._nests.get(key)
            if nest is None:
                nest = begin(settings, stewarded=self._stewarded)
                with self._change:
                    late = self.closed
                    if not late:
                        self._nests[key] = nest
                if late:  # it was closed while the server was made
                    nest.close()
                    return
            if not nest.server.ready(_HELLO_SECONDS):
                raise KernelError("the fork server was not ready in time")
            while not self.closed and nest.lacks(settings):
                self._let_begin()
                self._fill(nest, settings)
        except SandboxFailed as error:
            if nest is not None:
                failed(nest.server.level, str(error))
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

    def _fill(self, nest: WarmPool, settings: KernelSettings) -> None:
        key, started = kernel_key(settings), nest.make(settings)
        with self._change:
            if not any(one is nest for one in self._nests.values()):  # it was closed meanwhile
                started.discard()
                return
            nest.ready.append((key, started))
            many = nest.ready[: max(0, len(nest.ready) - max(_MOST_READY, settings.warm))]
            del nest.ready[: len(many)]
            self._change.notify_all()
        for _, one in many:
            one.discard()

    def _drop(self, key: object) -> None:
        with self._change:
            nest = self._nests.pop(key, None)
        if nest is not None:
            nest.close()


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
