"""The host's side of the launcher: fork servers, and kernels' processes that have a supervisor (Linux)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError, SandboxError
from tw_autogen.kernel.kernel_process import wait_readable
from tw_autogen.kernel.launcher.package_loader import STUB
from tw_autogen.kernel.launcher.packets import pack
from tw_autogen.kernel.launcher.process_tree import kill_below
from tw_autogen.kernel.python_process import isolated

_PACKET = 1 << 16
_CREDENTIALS = struct.Struct("3i")
_MAX_PACKETS = 100
"""How many packets of a supervisor are read at one look; it sends fewer in all."""
_END_SECONDS = 2.0


class SandboxUnavailable(SandboxError):
    """The sandbox of one level can't be set up here."""


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """Make the socket between host and supervisor: ours, which tells who sends, and theirs."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return ours, theirs


class SupervisedProcess:
    """A kernel's process that a supervisor looks after.

    Args:
        channel: To the supervisor.
        wait: Waits for what this process itself has started, once all has ended.
    """

    def __init__(self, channel: socket.socket, wait: Callable[[], object] = lambda: None) -> None:
        self._channel = channel
        self._channel.setblocking(False)
        self._wait_or_kill = wait
        self._lock = threading.Lock()
        self._supervisor = -1
        self._supervisor_pid = 0
        self._assigned = False
        self._ended = ""
        self._down = ""
        self.pid = 0
        self.death: int | None = channel.fileno()

    def assign(self, assignment: Mapping[str, Any], seconds: float) -> None:
        """Show the kernel its session's folders.

        Args:
            assignment: `folder`, and the `read` and `write` that belong to it.
            seconds: How long that may take.

        Raises:
            KernelError: the process has ended.
            SandboxUnavailable: its sandbox can't be set up.
        """
        self._send(op="assign", **assignment)
        self.await_assignment(seconds)

    def await_assignment(self, seconds: float) -> None:
        """Wait until the kernel sees its session's folders; raises as `assign` does."""
        deadline = time.monotonic() + seconds
        while self.alive() and not self._assigned:
            if not wait_readable(self._channel, max(0.0, deadline - time.monotonic())):
                raise KernelError(f"the kernel's process was not ready within {seconds:g} s")
        if self._ended:
            raise self.ended_error()

    def ended_error(self) -> KernelError:
        """Return the reason of the end as an exception."""
        if self._down:
            return SandboxUnavailable(self._down)
        return KernelError(f"the kernel's process ended: {self._ended}")

    def alive(self) -> bool:
        """Return whether it still runs; takes what the supervisor has said meanwhile."""
        for _ in range(_MAX_PACKETS):
            if self._ended:
                return False
            try:
                packet, extra, _, _ = self._channel.recvmsg(_PACKET, socket.CMSG_SPACE(_CREDENTIALS.size))
            except BlockingIOError:
                return True
            except ConnectionResetError:  # it ended with something of ours unread; what it said before can be read now
                continue
            except OSError:
                packet, extra = b"", []
            if packet:
                self._handle_packet(packet, extra)
            else:
                self._ended = "killed with its supervisor"
        self._ended = self._ended or "its supervisor said more than it ever does"
        return False

    def watch(self) -> None:
        """Watch it closely: a cell begins."""
        self._send(op="cell")

    def interrupt(self) -> None:
        """Send SIGINT to it and to its group; it has been sent when this returns."""
        if not self.alive():  # its number may be another's by now
            return
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just ended
                os.killpg(self.pid, signal.SIGINT)
        else:  # it has not yet said its number
            self._send(op="signal", number=int(signal.SIGINT))

    def end(self) -> str:
        """End it with all that it started; give how it ended."""
        with self._lock:  # a thread that closes the kernel meets the one that waits for a cell
            if self.death is None:
                return self._ended
            if self.alive():
                self._send(op="end")
                self._await_end()
                self._ended = "killed"
            else:
                self._await_end()
            self._channel.close()
            self.death = None
            if self._supervisor >= 0:
                os.close(self._supervisor)
                self._supervisor = -1
            self._wait_or_kill()
            return self._ended

    def _await_end(self) -> None:
        """Wait until the supervisor has ended, and with it all below; a supervisor that doesn't is killed."""
        if self._supervisor < 0:
            self._channel.shutdown(socket.SHUT_RDWR)
            return
        if not wait_readable(self._supervisor, _END_SECONDS):
            kill_below(self._supervisor_pid)  # it lives, so the number is its own; it would leave them behind
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._supervisor, signal.SIGKILL)
            wait_readable(self._supervisor, _END_SECONDS)

    def _handle_packet(self, packet: bytes, extra: list[Any]) -> None:
        try:
            message = json.loads(packet)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):  # code has taken over the supervisor
            self._ended = "its supervisor said what can't be read"
            return
        kind = message.get("kind")
        if kind == "supervisor":
            with contextlib.suppress(OSError):  # it has ended already
                self._supervisor_pid = _sender_pid(extra)
                self._supervisor = os.pidfd_open(self._supervisor_pid)
        elif kind == "kernel":
            self.pid = _sender_pid(extra)
        elif kind == "assigned":
            self._assigned = True
        elif kind == "failed":
            self._ended = str(message.get("why"))
            self._down = self._ended if message.get("sandbox") else ""
        elif kind == "ended":
            self._ended = str(message.get("how"))

    def _send(self, **message: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended; `alive` tells
            self._channel.send(pack(message))


def _sender_pid(extra: list[Any]) -> int:
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0])
    return 0


_HERE = Path(__file__).parent
_SEND_SECONDS = 10.0


class ForkServer:
    """A process that has imported what kernels need, and forks them.

    Args:
        python: The interpreter.
        environment: Its environment variables.
        level: That of its kernels' sandbox.
        modules: What it imports when no kernel is asked for.
        at_once: What it imports before it forks the first one.
        log: Takes what it writes; it is not there yet.

    Raises:
        OSError: it can't be started.
    """

    def __init__(
        self,
        python: str,
        environment: Mapping[str, str],
        *,
        level: str,
        modules: Sequence[str],
        at_once: Sequence[str],
        log: Path,
    ) -> None:
        self.level = level
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, log.open("xb") as written:
                rest = [level, ",".join(at_once), *modules]
                self._process = _launch(python, environment, "many", theirs, rest, written.fileno())
        except BaseException:
            self._control.close()
            raise
        self._control.settimeout(_SEND_SECONDS)
        self._listening = threading.Lock()
        self._hello: dict[str, Any] = {}
        self.loaded = False
        """Whether it has imported the modules; it forks kernels before that too, which then lack them."""

    def ready(self, seconds: float, *, loaded: bool) -> bool:
        """Return whether it forks kernels.

        Args:
            seconds: How long to wait for that.
            loaded: Wait until it has imported the modules, too.

        Raises:
            KernelError: it has ended.
            SandboxUnavailable: the sandbox can't be set up.
        """
        deadline = time.monotonic() + seconds
        while not self._is_ready(loaded):
            with self._listening:
                if self._is_ready(loaded):
                    break
                if not wait_readable(self._control, max(0.0, deadline - time.monotonic())):
                    return False
                packet = self._control.recv(_PACKET)
                if not packet:
                    raise KernelError("the fork server ended before it was ready")
                message = json.loads(packet)
                if message["kind"] == "failed":
                    raise SandboxUnavailable(message["why"])
                if message["kind"] == "loaded":
                    self.loaded = True
                else:
                    self._hello = message
        return True

    def _is_ready(self, loaded: bool) -> bool:
        return self.loaded if loaded else self.greeted

    @property
    def greeted(self) -> bool:
        """Return whether it has said that it is ready."""
        return bool(self._hello)

    def stale(self) -> bool:
        """Return whether it has ended, or packages have changed since it imported them."""
        if self._process.poll() is not None:
            return True
        for folder, date in self._hello.get("path", {}).items():
            try:
                if os.stat(folder).st_mtime_ns != date:
                    return True
            except OSError:
                return True
        return False

    def fork(self, request: Mapping[str, Any], log: int, sockets: Sequence[int]) -> SupervisedProcess:
        """Start a kernel.

        Args:
            request: As `launcher.supervisor.attend` takes it.
            log: A descriptor; takes what the kernel's process writes.
            sockets: Descriptors of its listening sockets.

        Raises:
            OSError: the server is gone.
        """
        ours, theirs = channel_pair()
        try:
            with theirs:
                # On a line of its own, which the server hands on unread: it forks other kernels as well.
                head = pack({key: value for key, value in request.items() if key != "environment"})
                packet = head + b"\n" + json.dumps(request["environment"]).encode()
                socket.send_fds(self._control, [packet], [theirs.fileno(), log, *sockets])
        except BaseException:
            ours.close()
            raise
        return SupervisedProcess(ours)

    def close(self) -> None:
        """End it; kernels that it has forked go on."""
        self._control.close()
        _wait_or_kill(self._process, 0.2 if self.loaded else 0.0)  # while it imports it notices nothing


def launch_one(
    python: str,
    environment: Mapping[str, str],
    *,
    level: str,
    request: Mapping[str, Any],
    log: int,
    sockets: Sequence[int],
) -> SupervisedProcess:
    """Start one kernel without a server; `request`, `log` and `sockets` as for `ForkServer.fork`.

    Args:
        python: The interpreter.
        environment: Its variables.
        level: The sandbox level.
        request: As for `ForkServer.fork`.
        log: Descriptor of the kernel's log.
        sockets: Descriptors of the sockets that the kernel listens on.

    Raises:
        OSError: it can't be started.
    """
    ours, theirs = channel_pair()
    try:
        with theirs:
            process = _launch(python, environment, "one", theirs, [level, *map(str, sockets)], log, sockets)
        ours.send(pack(request))
    except BaseException:
        ours.close()
        raise
    return SupervisedProcess(ours, wait=lambda: _wait_or_kill(process, _END_SECONDS))


def _launch(
    python: str,
    environment: Mapping[str, str],
    how: str,
    channel: socket.socket,
    rest: Sequence[str],
    log: int,
    passed: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start an interpreter that runs `fork_server.main` with these arguments."""
    folders = [str(_HERE / "guest"), str(_HERE / "launcher")]
    return subprocess.Popen(
        [python, "-c", STUB, *folders, how, str(channel.fileno()), *rest],
        env=isolated(environment, environment.get("PYTHONPATH", "")),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(channel.fileno(), *passed),
        start_new_session=True,
    )


def _wait_or_kill(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a process has ended, of itself within some seconds or because it is killed then."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.wait()
