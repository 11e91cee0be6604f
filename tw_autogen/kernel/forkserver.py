"""The host's side of the launcher: a server that forks kernels, and a launcher for one kernel."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError
from tw_autogen.kernel.launcher.boot import STUB
from tw_autogen.kernel.launcher.first.sitecustomize import PATH
from tw_autogen.kernel.process import readable
from tw_autogen.kernel.supervised_process import SandboxFailed, SupervisedProcess, channel_pair

_HERE = Path(__file__).parent
_SEND_SECONDS = 10.0


class ForkServer:
    """A process that has imported what kernels need, and forks them.

    Args:
        python: The interpreter.
        environment: Its environment variables.
        level: The wall that its kernels will have.
        modules: What it imports.
        log: Takes what it writes; it is not there yet.

    Raises:
        OSError: it can't be started.
    """

    def __init__(
        self, python: str, environment: Mapping[str, str], *, level: str, modules: Sequence[str], log: Path
    ) -> None:
        self.level = level
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, log.open("xb") as written:
                self._process = _launch(python, environment, ["many", theirs, level, *modules], written.fileno())
        except BaseException:
            self._control.close()
            raise
        self._control.settimeout(_SEND_SECONDS)
        self._listening = threading.Lock()
        self._hello: dict[str, Any] = {}

    def ready(self, seconds: float = 0.0) -> bool:
        """Return whether it has imported everything.

        Args:
            seconds: How long to wait for that.

        Raises:
            KernelError: it has ended.
            WallDown: the wall can't stand.
        """
        if self._hello:
            return True
        with self._listening:
            if not self._hello and readable(self._control, seconds):
                packet = self._control.recv(1 << 16)
                if not packet:
                    raise KernelError("the fork server ended before it was ready")
                message = json.loads(packet)
                if message["kind"] == "failed":
                    raise SandboxFailed(message["why"])
                self._hello = message
        return bool(self._hello)

    @property
    def greeted(self) -> bool:
        """Return whether it has said that it is ready."""
        return bool(self._hello)

    @property
    def missing(self) -> tuple[str, ...]:
        """Name what it could not import."""
        return tuple(self._hello.get("missing", ()))

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
                socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno(), log, *sockets])
        except BaseException:
            ours.close()
            raise
        return SupervisedProcess(ours)

    def close(self) -> None:
        """End it; kernels that it has forked go on."""
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        self._process.kill()
        self._process.wait()


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

    Raises:
        OSError: it can't be started.
    """
    ours, theirs = channel_pair()
    try:
        with theirs:
            process = _launch(python, environment, ["one", theirs, level, *map(str, sockets)], log, sockets)
        ours.send(json.dumps(request).encode())
    except BaseException:
        ours.close()
        raise
    return SupervisedProcess(ours, bury=lambda: _bury(process))


def _launch(
    python: str,
    environment: Mapping[str, str],
    arguments: Sequence[str | socket.socket],
    log: int,
    passed: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    how, channel, *rest = arguments
    assert isinstance(channel, socket.socket)  # noqa: S101 - for the types
    return subprocess.Popen(
        [
            python,
            "-c",
            STUB,
            str(_HERE / "guest"),
            str(_HERE / "launcher"),
            str(how),
            str(channel.fileno()),
            *map(str, rest),
        ],
        env={**environment, "PYTHONPATH": str(_HERE / "launcher" / "first"), PATH: environment.get("PYTHONPATH", "")},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(channel.fileno(), *passed),
        start_new_session=True,
    )


def _bury(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(2.0)
    process.kill()
    process.wait()
