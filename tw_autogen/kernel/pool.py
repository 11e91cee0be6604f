"""`KernelPool`: the fork servers of this process, and kernels that are kept ready."""

from __future__ import annotations

import atexit
import contextlib
import fnmatch
import os
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from tw_autogen.errors import KernelError
from tw_autogen.kernel.birth import STEWARDED, Newborn, Place, bear_cold, bear_forked
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.environment import clean_environment
from tw_autogen.kernel.forkserver import ForkServer
from tw_autogen.kernel.launcher.wall import BUBBLEWRAP, LANDLOCK
from tw_autogen.kernel.sandbox import TENANTS, failed, levels
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.steward import WallDown
from tw_autogen.kernel.wire import await_life

_FIXED = ("PYTHON*", "LD_*", "OMP_*", "OPENBLAS*", "MKL_*", "NUMEXPR_*", "CUDA*", "LC_*", "LANG", "PATH", "VIRTUAL_ENV")
_MOST_SERVERS = 4
_HELLO_SECONDS = 120.0


@dataclass
class _Nest:
    """One fork server, and the kernels that it keeps ready."""

    settings: KernelSettings
    server: ForkServer
    folder: Path
    ready: list[Newborn] = field(default_factory=list)
    used: float = field(default_factory=time.monotonic)


class KernelPool:
    """Makes kernels quickly; one for each process of the host, unless a `LocalKernel` is given another one.

    A fork server is started in the background when a kernel is likely to be needed. Until it is ready, and whenever
    anything about it fails, kernels are started one by one. When nobody has needed it for `kernel.warm_seconds`, it
    ends; it ends in any case with this process.

    Example:
        >>> with KernelPool() as pool:
        ...     pool.closed
        False
    """

    def __init__(self) -> None:
        self._nests: dict[object, _Nest] = {}
        self._wanted: list[tuple[object, KernelSettings]] = []
        self._change = threading.Condition()
        self._keeper: threading.Thread | None = None
        self._owner = os.getpid()
        self.closed = False

    def prepare(self, settings: KernelSettings) -> None:
        """Have a fork server for these settings, and kernels ready, soon; returns at once."""
        if not (STEWARDED and settings.fork) or self.closed or os.getpid() != self._owner:
            return
        key = _key(settings)
        with self._change:
            nest = self._nests.get(key)
            if nest is not None:
                nest.used = time.monotonic()
            if all(one != key for one, _ in self._wanted):
                self._wanted.append((key, settings))
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="tw-autogen-kernels", daemon=True)
                self._keeper.start()
            self._change.notify_all()

    def take(self, settings: KernelSettings, place: Place) -> Newborn:
        """Give a kernel for a session's folders: one that was kept ready, else a forked one, else one of its own.

        Raises:
            KernelStartError: none starts.
            SandboxError: no wall can stand.
        """
        try:
            while not TENANTS.user(place.folder) and (spare := self._spare(settings)) is not None:
                with contextlib.suppress(KernelError):  # it has ended while it waited, or its wall: the next one
                    spare.settle(place, settings)
                    spare.way = "warm"
                    return spare
                spare.discard()
            return self._fork(settings, place) or bear_cold(settings, place)
        finally:
            self.prepare(settings)

    def take_for(self, settings: KernelSettings, place: Place, lent: Connection) -> Newborn:
        """Give a kernel that listens on somebody else's sockets and answers heartbeats; raises as `take` does."""
        try:
            return self._fork(settings, place, lent) or bear_cold(settings, place, lent)
        finally:
            self.prepare(settings)

    def wait(self, settings: KernelSettings, seconds: float = _HELLO_SECONDS) -> bool:
        """Wait until a kernel is ready for these settings; tell whether one is."""
        self.prepare(settings)
        key, deadline = _key(settings), time.monotonic() + seconds
        with self._change:
            while not self.closed and time.monotonic() < deadline:
                nest = self._nests.get(key)
                if nest is not None and len(nest.ready) >= _warm(nest.server, settings) and nest.server.ready():
                    return True
                self._change.wait(max(0.0, min(0.05, deadline - time.monotonic())))
        return False

    def close(self) -> None:
        """End servers and the kernels that are kept ready; those in use go on."""
        with self._change:
            self.closed = True
            nests, self._nests = list(self._nests.values()), {}
            self._change.notify_all()
        if os.getpid() == self._owner:
            for nest in nests:
                _end(nest)

    def __enter__(self) -> KernelPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _spare(self, settings: KernelSettings) -> Newborn | None:
        with self._change:
            nest = self._nests.get(_key(settings))
            if nest is None or nest.server.stale():
                return None
            return nest.ready.pop() if nest.ready else None

    def _fork(self, settings: KernelSettings, place: Place, lent: Connection | None = None) -> Newborn | None:
        with self._change:
            nest = self._nests.get(_key(settings))
            if nest is None or nest.server.stale() or os.getpid() != self._owner:
                return None
            try:
                if not nest.server.ready():
                    return None
                newborn = bear_forked(nest.server, settings, place, lent)
            except (OSError, KernelError):
                return None
        return newborn

    # What the keeper does, in a thread of its own.

    def _keep(self) -> None:
        while True:
            with self._change:
                while not self._wanted and not self.closed:
                    if not self._change.wait(self._patience()):
                        break
                if self.closed:
                    return
                wanted, self._wanted = self._wanted, []
                old = self._aged()
            for nest in old:
                _end(nest)
            for key, settings in wanted:
                self._tend(key, settings)
            with self._change:
                if not self._nests and not self._wanted:
                    self._keeper = None
                    return

    def _patience(self) -> float:
        ends = [nest.used + nest.settings.warm_seconds for nest in self._nests.values()]
        return max(0.0, min(ends, default=time.monotonic()) - time.monotonic()) + 0.01

    def _aged(self) -> list[_Nest]:
        """Take out what nobody needs any more, what is out of date, and what is too many."""
        now = time.monotonic()
        wanted = {key for key, _ in self._wanted}
        out = [
            key
            for key, nest in self._nests.items()
            if nest.server.stale() or (key not in wanted and now > nest.used + nest.settings.warm_seconds)
        ]
        left = sorted((nest.used, str(key), key) for key, nest in self._nests.items() if key not in out)
        out += [key for _, _, key in left[: max(0, len(left) - _MOST_SERVERS)]]
        return [self._nests.pop(key) for key in out]

    def _tend(self, key: object, settings: KernelSettings) -> None:
        """Start a server if there is none, and fill up the kernels that it keeps ready."""
        nest: _Nest | None = None
        try:
            with self._change:
                nest = self._nests.get(key)
            if nest is None:
                nest = _start(settings)
                with self._change:
                    self._nests[key] = nest
            if not nest.server.ready(_HELLO_SECONDS):
                raise KernelError("the fork server was not ready in time")
            while not self.closed and len(nest.ready) < _warm(nest.server, settings):
                newborn = bear_forked(nest.server, settings, None)
                if not _listens(newborn, settings.start_seconds):
                    newborn.discard()
                    raise KernelError("a forked kernel did not start")
                with self._change:
                    nest.ready.append(newborn)
                    self._change.notify_all()
        except WallDown as error:
            if nest is not None:
                failed(nest.server.level, str(error))
            self._drop(key)
            self.prepare(settings)
        except (KernelError, OSError):  # kernels are then started one by one
            self._drop(key)

    def _drop(self, key: object) -> None:
        with self._change:
            nest = self._nests.pop(key, None)
        if nest is not None:
            _end(nest)


def _start(settings: KernelSettings) -> _Nest:
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
    return _Nest(settings, server, folder)


def _end(nest: _Nest) -> None:
    nest.server.close()
    for newborn in nest.ready:
        newborn.discard()
    shutil.rmtree(nest.folder, ignore_errors=True)


def _warm(server: ForkServer, settings: KernelSettings) -> int:
    """Say how many kernels are kept ready: none behind a wall that must know a session's folders from the start."""
    return 0 if server.level == LANDLOCK else settings.warm


def _listens(newborn: Newborn, seconds: float) -> bool:
    """Wait until a kernel answers; tell whether it does."""
    return await_life(newborn.connection, newborn.process.alive, seconds)


def _key(settings: KernelSettings) -> object:
    """Give all that a server, or a kernel kept ready, is made with and can't be told later."""
    fixed = sorted((name, value) for name, value in clean_environment(os.environ).items() if _is_fixed(name))
    later = {"environment": (), "read": (), "write": (), "warm": 0, "warm_seconds": 0.0}
    return replace(settings, **later), tuple(fixed)  # type: ignore[arg-type] # the fields' own types


def _is_fixed(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, one) for one in _FIXED)


_default: list[KernelPool] = []
_default_lock = threading.Lock()


def default_pool() -> KernelPool:
    """Give the pool of this process; it is closed when the process ends."""
    with _default_lock:
        if not _default or _default[0]._owner != os.getpid():  # a fork of the host gets one of its own
            pool = KernelPool()
            _default[:] = [pool]
            atexit.register(pool.close)
        return _default[0]
