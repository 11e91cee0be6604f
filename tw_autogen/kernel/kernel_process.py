"""Where a kernel's process comes from; the one part that another kind of kernel replaces."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.guest_bundle import boot_text
from tw_autogen.kernel.launcher.exit_status import describe_exit
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    from _typeshed import HasFileno
    from jupyter_client import launcher, win_interrupt
else:
    launcher = LazyModule("jupyter_client.launcher")
    win_interrupt = LazyModule("jupyter_client.win_interrupt")

_FILES_LEFT = 40
"""How many files a process must be able to open when a kernel is started: for that one, and for those kept ready."""


def wait_readable(one: int | HasFileno, seconds: float) -> bool:
    """Return whether something is to be read, or has ended, within some seconds.

    `select` would tell it too, but not where a process has more than a thousand files open, as one with many kernels.

    Args:
        one: A descriptor, or what has one.
        seconds: How long to wait.
    """
    poller = select.poll()
    poller.register(one, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def check_open_files(folder: Path) -> None:
    """See to it that a kernel's sockets find room; the ZeroMQ of its process says nothing where they don't.

    Raises:
        KernelStartError: this process has about as many files open as it may; `folder` is the kernel's.
    """
    if not hasattr(os, "sysconf"):  # Windows, where the limit is another one
        return
    most = os.sysconf("SC_OPEN_MAX")
    try:
        many = len(os.listdir("/dev/fd"))
    except OSError as error:
        many = most if error.errno == errno.EMFILE else 0
    if 0 < most < many + _FILES_LEFT:
        raise KernelStartError(
            f"this process has {many} files open, of the {most} that it may, and a kernel takes a dozen; close "
            "sessions, or allow more (`ulimit -n` in the shell that starts it)",
            folder=folder,
        )


@dataclass(frozen=True)
class Launch:
    """What a process is started with.

    Args:
        python: The interpreter.
        folder: Where its code runs.
        environment: All of its variables.
        connection_file: Tells ipykernel which sockets to bind.
        log: Takes what the process writes before its streams are led to the host.
        before: Stands before the interpreter in the command: a program that sets a sandbox up and becomes it.
        sockets: Descriptors of listening sockets, by the numbers in the connection file, which the process takes over;
            those that are missing it binds itself.
    """

    python: str
    folder: Path
    environment: Mapping[str, str]
    connection_file: Path
    log: Path
    before: tuple[str, ...] = ()
    sockets: Mapping[int, int] = field(default_factory=dict)


class Process(Protocol):
    """A running kernel process, whatever started it."""

    pid: int
    death: int | None
    """A file descriptor that becomes readable when the process ends; None where the system has none."""

    def alive(self) -> bool:
        """Return whether it still runs."""
        ...

    def interrupt(self) -> None:
        """Send it what Ctrl-C sends."""
        ...

    def end(self) -> str:
        """End it with all that it started; give how it ended: `exit code 3`, `killed by SIGSEGV`; no harm if it has."""
        ...


StartProcess = Callable[[Launch], Process]


class CommandProcess:
    """A kernel's process that is a command of this machine, or lasts as long as one; each kind says how it is stopped.

    Args:
        command: The command, just started.
    """

    def __init__(self, command: subprocess.Popen[bytes]) -> None:
        self._process = command
        self._ended = ""
        self._lock = threading.Lock()
        self.pid = command.pid
        self.death: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # Linux before 5.3
                self.death = os.pidfd_open(self.pid)

    def alive(self) -> bool:
        """Return whether it still runs; it stays a zombie until `end`, so that its number is not given away."""
        if self._ended:
            return False
        if self.death is not None:
            return not wait_readable(self.death, 0)
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Send it what Ctrl-C sends."""
        raise NotImplementedError

    def end(self) -> str:
        """End it with all that it started; give how it ended."""
        with self._lock:  # a thread that closes the kernel meets the one that waits for a cell
            if self._ended:
                return self._ended
            dead_already = not self.alive()
            code = self._stop(dead_already)
            if self.death is not None:
                os.close(self.death)
                self.death = None
            self._ended = self._describe_exit(code) if dead_already else "killed"
            return self._ended

    def _stop(self, dead_already: bool) -> int:
        """End what still runs of it; give its exit code."""
        raise NotImplementedError

    def _describe_exit(self, code: int) -> str:
        """Return how it ended."""
        return describe_exit(code)


class LocalProcess(CommandProcess):
    """A process of this machine in a session of its own, which ends when this process does, however that ends.

    On POSIX systems a pipe tells it (see `guest.boot.hold_on`); besides, on macOS and Windows ipykernel itself looks
    whether its parent is still there.

    Args:
        launch: What it is started with.

    Raises:
        OSError: it can't be started.
    """

    def __init__(self, launch: Launch) -> None:
        ours = theirs = -1
        if os.name == "posix":
            theirs, ours = os.pipe()
        self._lifeline = ours
        try:
            with launch.log.open("wb") as log:
                command = [*launch.before, launch.python, "-c", boot_text(), str(launch.connection_file), str(theirs)]
                command += [f"{number}:{descriptor}" for number, descriptor in launch.sockets.items()]
                if os.name == "posix":
                    process = subprocess.Popen(
                        command,
                        cwd=launch.folder,
                        env=_with_owner_pid(launch.environment),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        pass_fds=(theirs, *launch.sockets.values()),
                        start_new_session=True,
                    )
                else:  # Windows: there it gives the kernel a handle of this process, and an event to interrupt it by
                    process = launcher.launch_kernel(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        env=dict(launch.environment),
                        cwd=str(launch.folder),
                    )
        except BaseException:
            self._cut_lifeline()
            raise
        finally:
            if theirs >= 0:
                os.close(theirs)
        super().__init__(process)

    def interrupt(self) -> None:
        """Send SIGINT to it and to what it started."""
        if self._process.returncode is not None:  # its number may be another's by now
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just ended
            if hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGINT)
            elif (event := getattr(self._process, "win32_interrupt_event", None)) is not None:
                win_interrupt.send_interrupt(event)

    def _stop(self, dead_already: bool) -> int:
        if hasattr(os, "killpg") and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: a zombie's group
                os.killpg(self.pid, signal.SIGKILL)
        if self._process.returncode is None:
            self._process.kill()
        code = self._process.wait()
        self._cut_lifeline()
        return code

    def _cut_lifeline(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


def _with_owner_pid(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell ipykernel its owner, where no signal of the system tells of the owner's end."""
    by_signal = sys.platform.startswith("linux")
    return {**environment, **({} if by_signal else {"JPY_PARENT_PID": str(os.getpid())})}
