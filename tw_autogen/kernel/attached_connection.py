"""The way to a kernel that the user has open: by its connection file, or through its Jupyter server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.errors import ConfigError, KernelStartError
from tw_autogen.kernel.connection import Connection, MessageDecoder, Sender
from tw_autogen.kernel.gateway_client import Gateway, GatewayProcess, WebsocketWire
from tw_autogen.kernel.kernel_process import Process, wait_readable
from tw_autogen.kernel.transport import Wire
from tw_autogen.trust_store import open_regular

_URL = ("http://", "https://")
_LOCAL = ("127.0.0.1", "localhost", "::1", "0.0.0.0")
_CHANNELS = ("shell", "iopub", "stdin", "control")
_LAST_PORT = 65535
_LARGEST_PID = (1 << 31) - 1
_FILE_BYTES = 64 << 10
_LINGER_SECONDS = 1.0
"""How long what was sent last is still sent after `close`."""
_FILE_OPTIONS = ("-f", "--f", "--IPKernelApp.connection_file")
"""How ipykernel's command line names the connection file."""
_CALL_SECONDS = 10.0
_MAX_REPLIES = 4
"""How many replies to earlier requests to interrupt are taken before the next one."""
_INTERRUPT_SECONDS = 0.5
"""How long the request to interrupt may take on its way."""
_KNOCK_SECONDS = 1.0
"""How long a kernel of this machine is given to take a connection; one that is busy takes it, too."""
_ENDED = "its process ended: it was restarted, shut down, or has crashed"
_UNRESPONSIVE = "the cell did not react to an interrupt and still runs in your kernel"


@dataclass(frozen=True)
class Target:
    """Which kernel: of a server, or of a connection file on this machine.

    Args:
        file: The connection file; None: `url` and `kernel_id` say it.
        url: The Jupyter server's address.
        kernel_id: The kernel's id there.
        token: The server's.
    """

    file: Path | None = None
    url: str = ""
    kernel_id: str = ""
    token: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str | Path, token: str | None = None) -> Target:
        """Parse `URL#kernel_id`, or the path of a connection file.

        Args:
            text: What the user wrote.
            token: The server's; None: the environment's `JUPYTER_TOKEN`, if there is one.

        Raises:
            ConfigError: it is neither, or there is no such file.
        """
        if isinstance(text, str) and text.startswith(_URL):
            url, _, kernel_id = text.partition("#")
            if not kernel_id or "?" in url:
                raise ConfigError(
                    "attach: expected URL#kernel_id, such as http://127.0.0.1:8888#0a1b…, with the token apart "
                    "(token=, or JUPYTER_TOKEN); `GET /api/kernels` of the server lists the ids"
                )
            known = os.environ.get("JUPYTER_TOKEN", "") if token is None else token
            return cls(url=url.rstrip("/"), kernel_id=kernel_id, token=known)
        path = Path(os.path.expanduser(text))
        if not path.is_file():
            raise ConfigError(
                f"attach: there is no connection file {path}; `%connect_info` in the notebook shows its name, and "
                "`jupyter --runtime-dir` its folder"
            )
        return cls(file=path.absolute())

    def is_own(self) -> bool:
        """Return whether it is the kernel in which this code runs, which would wait for itself."""
        app = getattr(sys.modules.get("ipykernel.kernelapp"), "IPKernelApp", None)
        if app is None or not app.initialized():
            return False
        own = Path(str(app.instance().abs_connection_file))
        return own.stem == f"kernel-{self.kernel_id}" or (
            self.file is not None and os.path.realpath(self.file) == str(own.resolve())
        )

    def __str__(self) -> str:
        """Return the file, or the server and the kernel's id."""
        return str(self.file) if self.file else f"{self.url}#{self.kernel_id}"

    def connect(self, folder: Path) -> tuple[Wire, AttachedProcess]:
        """Open the way to the kernel.

        Args:
            folder: The session's; errors carry it.

        Raises:
            KernelStartError: the file can't be read, or the server doesn't answer, or has no such kernel.
        """
        if self.file is not None:
            info = read_connection_file(self.file, folder)
            try:
                wire = FileConnection(info)
            except OSError as error:  # a path of `ipc` that is too long
                raise KernelStartError(f"{self.file}: no socket of a kernel: {error}", folder=folder) from error
            return wire, LocalAttachedProcess(self.file, wire.interrupt, wire.listens)
        gateway = Gateway(self.url, self.token, None, folder)
        try:
            status, kernels = gateway.call("GET", "api/kernels", seconds=_CALL_SECONDS)
        except OSError as error:
            raise KernelStartError(f"the Jupyter server {self.url} does not answer ({error})", folder=folder) from error
        if status in (401, 403):
            raise KernelStartError(
                f"the Jupyter server {self.url} refuses the token (HTTP {status}); pass token=, or set JUPYTER_TOKEN",
                folder=folder,
            )
        there = [str(one.get("id")) for one in kernels if isinstance(one, dict)] if isinstance(kernels, list) else []
        if self.kernel_id not in there:
            known = ", ".join(there) or f"none (HTTP {status})"
            raise KernelStartError(
                f"the Jupyter server {self.url} has no kernel {self.kernel_id}; it has: {known}", folder=folder
            )
        process = ServerAttachedProcess(gateway, self.kernel_id)
        return WebsocketWire(gateway, self.kernel_id, process, attached=True), process


def read_connection_file(path: Path, folder: Path) -> dict[str, Any]:
    """Return what a connection file holds, checked.

    Args:
        path: The file.
        folder: Errors carry it.

    Raises:
        KernelStartError: it is no connection file, is unsigned, or names another machine.
    """
    try:
        with os.fdopen(open_regular(path)[0], "rb") as file:
            info = bounded_json.loads(file.read(_FILE_BYTES))
        ports = {f"{channel}_port": int(info[f"{channel}_port"]) for channel in _CHANNELS}
        info = {"transport": str(info["transport"]), "ip": str(info["ip"]), "key": str(info["key"]), **ports}
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:  # the last one: 1e400
        raise KernelStartError(f"{path} is no connection file of a kernel: {error!r}", folder=folder) from error
    if not info["key"]:
        raise KernelStartError(f"{path}: the kernel's messages are not signed (`key` is empty)", folder=folder)
    if info["transport"] not in ("tcp", "ipc"):
        raise KernelStartError(f"{path}: unknown transport {info['transport']!r}; known: tcp, ipc", folder=folder)
    wrong = [f"{one} {port}" for one, port in ports.items() if not 0 < port <= _LAST_PORT]
    if wrong and info["transport"] == "tcp":
        raise KernelStartError(f"{path}: no number of a port: {', '.join(wrong)}", folder=folder)
    if info["transport"] == "tcp" and info["ip"] not in _LOCAL:
        raise KernelStartError(
            f"{path}: the kernel runs on {info['ip']}; attach to it through its Jupyter server (URL#kernel_id)",
            folder=folder,
        )
    return info


class FileConnection(Connection):
    """The `Wire` to a kernel whose connection file was written by its own starter; makes and removes no file.

    Args:
        info: What the file holds.

    Raises:
        OSError: there can be no socket of that address.
    """

    def __init__(self, info: Mapping[str, Any]) -> None:
        self.info = dict(info)
        self._channels = {}
        if info["ip"] == "localhost":
            self.info["ip"] = "127.0.0.1"  # or it would be looked up for each attempt to connect
        if info["transport"] == "ipc" and info["ip"].startswith("@") and sys.platform == "linux":
            self.info["ip"] = f"\0{info['ip'][1:]}"  # without a file
        key = info["key"].encode()
        self._sender, self._reader = Sender(key), MessageDecoder(key)
        self._control = self._open_channel("control")
        try:
            self._connect()
        except OSError:
            self.close()
            raise

    def interrupt(self) -> None:
        """Ask the kernel to interrupt its running cell, as Jupyter's protocol has it."""
        for _ in range(_MAX_REPLIES):
            self._control.receive(0.0)  # of earlier ones
        self._sender.send(self._control, "interrupt_request", {})
        self._control.flush(_INTERRUPT_SECONDS)

    def listens(self) -> bool:
        """Return whether a process listens at the place of the shell channel."""
        ip, port = self.info["ip"], self.info["shell_port"]
        try:
            if self.info["transport"] == "tcp":
                socket.create_connection((ip, port), _KNOCK_SECONDS).close()
            else:
                with socket.socket(socket.AF_UNIX) as knocking:
                    knocking.settimeout(_KNOCK_SECONDS)
                    knocking.connect(f"{ip}-{port}")
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # not known
            return True
        return True

    def close(self) -> None:
        """Close the sockets; what was sent still goes out."""
        until = time.monotonic() + _LINGER_SECONDS
        for channel in (*self._channels.values(), self._control):
            channel.close(until - time.monotonic())


class AttachedProcess(Process):
    """A process that is the user's: `end` leaves it running."""

    how: str
    """Why the host has left it, in words; empty while it is attached."""

    def lose(self, how: str) -> None:
        """Note that it ended or can't be reached; from any thread."""

    def watch(self, pid: int) -> None:
        """Note the number of the process, once it is known.

        Args:
            pid: As the kernel says.
        """

    def is_there(self) -> bool:
        """Return whether it may answer some time: False if nothing listens where it should."""
        return True

    def release(self) -> None:
        """Close what belongs to the watch."""


class LocalAttachedProcess(AttachedProcess):
    """The process behind a connection file; on this machine, but perhaps in a container.

    Args:
        file: The connection file.
        request_interrupt: Interrupts the running cell without a signal.
        listens: Returns whether a process listens at its address.
    """

    def __init__(
        self, file: Path, request_interrupt: Callable[[], None], listens: Callable[[], bool] = lambda: True
    ) -> None:
        self._file = file
        self._listens = listens
        self._request_interrupt = request_interrupt
        self.pid = 0
        self.death: int | None = None  # looked at often: `end` has to be noticed as well as its own end
        self.how = ""
        self._descriptor = -1

    def watch(self, pid: int) -> None:
        """Watch a process, if it is the kernel's: the number is what code there says, perhaps of another namespace.

        Elsewhere than on Linux it is looked at only, and no signal is sent to it.
        """
        if not 1 < pid <= _LARGEST_PID or pid == os.getpid():
            return
        if sys.platform != "linux":
            self.pid = pid if _process_exists(pid) else 0
            return
        with contextlib.suppress(OSError):
            self._descriptor = os.pidfd_open(pid)
        try:
            known = self._descriptor >= 0 and _is_kernel(pid, {self._file.name, self._file.resolve().name})
        except OSError:
            known = False
        if known:
            self.pid = pid
        elif self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def alive(self) -> bool:
        """Return whether it runs, and is still attached."""
        if not self.how and self.pid and not self._is_running():
            self.how = _ENDED
        return not self.how

    def is_there(self) -> bool:
        """Return whether a process listens at its address."""
        return self._listens()

    def _is_running(self) -> bool:
        if self._descriptor >= 0:
            return not wait_readable(self._descriptor, 0)
        return _process_exists(self.pid)

    def lose(self, how: str) -> None:
        """Note that it can't be reached."""
        self.how = self.how or how

    def interrupt(self) -> None:
        """Send SIGINT to a process that is surely the kernel's; ask the kernel otherwise (ipykernel 6.9 or newer)."""
        if self._descriptor < 0:
            self._request_interrupt()
            return
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGINT)

    def end(self) -> str:
        """Leave it, running; return why."""
        self.lose(_UNRESPONSIVE if self.pid or self.is_there() else _ENDED)
        return self.how

    def release(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self.lose("it was left")


def _process_exists(pid: int) -> bool:
    """Return whether there is such a process; True on Windows, where looking would end it."""
    if sys.platform == "win32":
        return True
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def _is_kernel(pid: int, file_names: Collection[str]) -> bool:
    """Return whether a process of Linux is of our user and namespace, and was started with a connection file.

    Args:
        pid: Its number.
        file_names: The file's, and that of what it is a link to; Jupyter makes them unique.

    Raises:
        OSError: there is no such process.
    """
    proc = Path(f"/proc/{pid}")
    arguments = os.fsdecode((proc / "cmdline").read_bytes()).split("\0")
    pairs = [*zip(arguments, arguments[1:], strict=False), *(word.partition("=")[::2] for word in arguments)]
    return (
        any(option in _FILE_OPTIONS and os.path.basename(value) in file_names for option, value in pairs)
        and proc.stat().st_uid == os.getuid()
        and (proc / "ns/pid").readlink() == Path("/proc/self/ns/pid").readlink()
    )


class ServerAttachedProcess(GatewayProcess, AttachedProcess):
    """A process that a Jupyter server runs for the user."""

    @property
    def how(self) -> str:  # type: ignore[override] # read-only here
        """Return why the host has left it."""
        return self._ended or self._lost

    def is_there(self) -> bool:
        """Return whether its server has it; one that it has ended comes back no more."""
        if self.alive() and self.dead():
            self.lose("its server has ended it")
        return self.alive()

    def end(self) -> str:
        """Leave it, running; return why."""
        self._ended = self._ended or self._lost or _UNRESPONSIVE
        self._wakeup.wake()
        return self._ended
