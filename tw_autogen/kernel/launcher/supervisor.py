"""The supervisor of one kernel: starts it, tells the host of its end, and ends all that it started.

In a sandbox of namespaces, our own or bubblewrap's, it is the first process of the kernel's own process namespace, so
that nothing outlives it. Elsewhere it adopts what the kernel's children leave behind.

It speaks with the host over a socket: `assign`, `signal`, `end` come in (`packets`); `kernel`, `assigned`, `failed`,
`ended` go out as JSON. When the host's end closes, however the host ended, all is ended.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from . import resource_watch
from .exit_status import describe_exit
from .known_paths import FolderRefusedError
from .package_loader import kernel_app
from .packets import unpack
from .process_tree import kill_below
from .resource_watch import Unseen
from .sandbox import Sandbox, SandboxFailed
from .socket_memory import Sockets
from .system_calls import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl

_LOOK_SECONDS = 3.0
_PACKET = 1 << 20
_MAX_FILES = 4096
_IN_MEMORY = ("/tmp", "/dev/shm")
"""File systems in memory that a kernel in namespaces has for itself."""


def supervise(
    channel: socket.socket, request: Mapping[str, Any], sockets: Sequence[int], log: int | None = None
) -> NoReturn:
    """Start a kernel and stay with it to its end; this process ends here.

    Args:
        channel: To the host.
        request: `sandbox`, `environment`, `connection_file`, `ports`, `heartbeat`, and `assignment`, unless it comes
            later; `cwd` if nobody but us will send the kernel to its folder.
        sockets: Descriptors of the kernel's listening sockets, in the order of `ports`.
        log: A descriptor that takes what the kernel writes; None: this process's own streams do.
    """
    try:
        _Supervisor(channel, request, sockets, log).run()
    except BaseException as error:  # noqa: BLE001 - the host is told of whatever it is, and this process ends
        _tell_failure(channel, error)
    finally:
        os._exit(1)


class _Supervisor:
    def __init__(
        self, channel: socket.socket, request: Mapping[str, Any], sockets: Sequence[int], log: int | None
    ) -> None:
        self._channel = channel
        self._request = request
        self._sockets = sockets
        self._log = log
        self._sandbox = Sandbox(request["sandbox"])
        self._bounds: resource_watch.ResourceWatch | None = None
        self._child = 0
        self._written = -1

    def run(self) -> None:
        os.setsid()
        os.chdir("/")  # a folder of the old root would lead out of the new one
        umask = os.umask(0o022)  # the kernel's user passes and reads what is made here
        given = [*self._sockets, *([] if self._log is None else [self._log])]
        _close_others([self._channel.fileno(), *given])
        tell(self._channel, kind="supervisor")
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not self._sandbox.encloses:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._sandbox.around_supervisor()
        assignment = self._request.get("assignment")
        if assignment is None and not self._sandbox.late:
            assignment = self._receive()
            if assignment is None or assignment["op"] != "assign":
                return
        goes_there = "cwd" in self._request
        if assignment is not None and goes_there:
            self._sandbox.admit(assignment)
        ours = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            os.umask(umask)
            _lead_streams(self._log)
            _become_kernel(self._channel, self._request, self._sandbox, assignment, self._sockets, supervisor=ours)
        self._hide_proc_entries()
        for one in given:
            os.close(one)
        if assignment is not None:
            self._assign(assignment, admitted=goes_there)
        else:  # not kept: the first run copies memory that is shared with the fork server, and a session would wait
            plan = self._request["sandbox"]
            self._make_resource_watch({"folder": plan["write"][0], "read": [], "write": []}, plan["write"])
        self._report_and_exit(self._wait_for_kernel_end())

    def _hide_proc_entries(self) -> None:
        """Close this process's memory and settings in /proc to processes of the same user: to code, before it runs."""
        with contextlib.suppress(OSError):
            self._written = os.open("/proc/self/io", os.O_RDONLY | os.O_CLOEXEC)  # closed to this process too from then
        prctl(PR_SET_DUMPABLE, 0)

    def _wait_for_kernel_end(self) -> str:
        """Wait for the kernel's end, and do what the host says; give how the kernel ended."""
        death = os.pidfd_open(self._child)
        poller = select.poll()
        poller.register(self._channel.fileno(), select.POLLIN)
        poller.register(death, select.POLLIN)
        while True:
            patience = _LOOK_SECONDS if self._bounds is None else self._bounds.seconds
            ready = [found for found, _ in poller.poll(patience * 1000)]
            if death in ready:
                return describe_exit(os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1]))
            if self._channel.fileno() in ready and (how := self._handle_pending_messages()):
                return how
            if self._sandbox.encloses or not ready:
                self._reap()
            if not ready and self._bounds is not None and (why := self._bounds.look(self._child)):
                return why

    def _handle_pending_messages(self) -> str:
        """Do what the host has said, without waiting for it; return how the kernel ends, if it does."""
        poller = select.poll()
        poller.register(self._channel.fileno(), select.POLLIN)
        while poller.poll(0):
            message = self._receive()
            if message is None or message["op"] == "end":
                return "killed"
            self._handle_message(message)
        return ""

    def _handle_message(self, message: Mapping[str, Any]) -> None:
        if message["op"] == "assign":
            self._assign(message)
        elif message["op"] == "cell" and self._bounds is not None:
            self._bounds.seconds = resource_watch.SOON
        elif message["op"] == "signal":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child, message["number"])

    def _assign(self, assignment: Mapping[str, Any], *, admitted: bool = False) -> None:
        if not admitted:
            self._sandbox.admit(assignment)
        folders = resource_watch.held([assignment["folder"], *self._request["sandbox"]["write"]])
        tell(self._channel, kind="assigned")
        self._bounds = self._make_resource_watch(assignment, folders)

    def _make_resource_watch(
        self, assignment: Mapping[str, Any], folders: Sequence[str | int]
    ) -> resource_watch.ResourceWatch:
        plan, granted = self._request["sandbox"], {*assignment["read"], *assignment["write"]}
        in_memory = [one for one in _IN_MEMORY if self._sandbox.encloses and one not in granted]
        own_network = self._sandbox.encloses and not plan["network"]
        unseen = Unseen(in_memory, Sockets(own=own_network, network=plan["network"]))
        return resource_watch.ResourceWatch(
            folders, plan["limits"], unseen, self._handle_pending_messages, self._written
        )

    def _receive(self) -> dict[str, Any] | None:
        packet = self._channel.recv(_PACKET)
        return unpack(packet) if packet else None

    def _reap(self) -> None:
        """Bury what the kernel's children left behind; the kernel itself is waited for elsewhere."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if found.si_pid == self._child:
                    return
                os.waitpid(found.si_pid, 0)

    def _report_and_exit(self, how: str) -> None:
        tell(self._channel, kind="ended", how=how)
        if self._sandbox.encloses:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # all of this namespace but ourselves
        else:
            kill_below(os.getpid())
        os._exit(0)


def _become_kernel(
    channel: socket.socket,
    request: Mapping[str, Any],
    sandbox: Sandbox,
    assignment: Mapping[str, Any] | None,
    sockets: Sequence[int],
    *,
    supervisor: int,
) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        sandbox.around_kernel(assignment)
        sys.path[:] = whole_path()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
        if os.getppid() != supervisor:  # it has refused the session's folders meanwhile, and ended
            os._exit(1)
        tell(channel, kind="kernel")
        channel.close()
        _reseed_random()
        if "cwd" in request:
            os.chdir(request["cwd"])
        gc.disable()  # it would look through all that was imported, and copy it for this process by doing so
        listening = dict(zip(request["ports"], sockets, strict=True))
        app = kernel_app(request["connection_file"], heartbeat=request["heartbeat"], sockets=listening)
        gc.enable()
        app.start()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - told to the host, through the log and the channel if it is open
        with contextlib.suppress(OSError):
            _tell_failure(channel, error)
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(1)


def _close_others(kept: Iterable[int]) -> None:
    """Close all descriptors but the standard streams and these, and let none of these be inherited by programs."""
    below = 2
    for one in sorted(kept):
        os.closerange(below + 1, one)
        os.set_inheritable(one, False)
        below = one
    os.closerange(below + 1, _MAX_FILES)


def _lead_streams(log: int | None) -> None:
    """Lead stdout and stderr to a descriptor, and stdin to nothing; None: they are led already."""
    if log is None:
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    for found, places in ((nothing, (0,)), (log, (1, 2))):
        for place in places:
            os.dup2(found, place)
        os.close(found)


def whole_path() -> list[str]:
    """Return the path for imports as the user has set it, of which a part may be left out before a sandbox is set up.

    See `first.sitecustomize`.
    """
    return [os.fspath(one) for one in vars(sys).get("tw_path", sys.path)]


def _reseed_random() -> None:
    """Draw new random numbers: forked kernels have the same state otherwise."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _tell_failure(channel: socket.socket, error: BaseException) -> None:
    why = str(error) if isinstance(error, SandboxFailed | FolderRefusedError) else f"{type(error).__name__}: {error}"
    tell(channel, kind="failed", why=why, sandbox=isinstance(error, SandboxFailed))


def tell(channel: socket.socket, **message: Any) -> None:
    """Send the host a packet of JSON."""
    with contextlib.suppress(OSError):  # the host is gone: then nobody wants to know
        channel.send(json.dumps(message).encode())
