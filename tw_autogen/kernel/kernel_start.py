"""Starts kernels, forked or each for itself, behind the strongest sandbox that can be set up.

Where there is no supervisor (macOS, Windows) a kernel is a plain process. Behind Seatbelt one that is started for a
session begins in the sandbox (`sandbox-exec`). One that was kept ready has run no code of anybody's when it gets its
session's folders, and then applies the same profile to itself. Tried on Linux with a stand-in for `sandbox-exec` only.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError, KernelStartError
from tw_autogen.kernel.client import KernelHandle
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.environment_variables import clean_environment, kernel_environment
from tw_autogen.kernel.first_server import SUPERVISED, shared_names
from tw_autogen.kernel.folder_ownership import OWNERSHIP, USER_NUMBERS, hand_over
from tw_autogen.kernel.guest_bundle import call_expression, install_expression
from tw_autogen.kernel.kernel_folders import KernelFolders, assignment_of, environment_of, make_stand_in_folders
from tw_autogen.kernel.kernel_process import Launch, LocalProcess, Process, StartProcess
from tw_autogen.kernel.launcher.sandbox import LANDLOCK, OFF
from tw_autogen.kernel.launcher_client import ForkServer, SandboxUnavailable, SupervisedProcess, launch_one
from tw_autogen.kernel.sandbox_levels import (
    available_level,
    describe_sandbox,
    hint_options,
    level_attempts,
    record_failure,
    record_success,
    sandbox_plan,
    user_for,
)
from tw_autogen.kernel.seatbelt import SEATBELT, command, interpreter_folders, profile
from tw_autogen.kernel.settings import KernelSettings

_LaunchSupervised = Callable[[dict[str, Any], int, Sequence[int]], SupervisedProcess]
"""Takes the request, as `launcher.supervisor.attend` does, and the descriptors of the log and the sockets."""

_ENCLOSED = "'up'"


@dataclass
class StartedKernel:
    """A kernel's process with its sockets, which may still be starting.

    Args:
        connection: Its sockets.
        process: Its process.
        level: Its sandbox.
        environment: Its variables.
        place: The session's folders; None: it is kept ready, and they come later.
        assignment: What follows from these, see `assignment_of`.
        way: How it was started: `warm`, `forked` or `cold`.
        lent: Its sockets belong to another client.
    """

    connection: Connection
    process: Process
    level: str
    environment: dict[str, str]
    place: KernelFolders | None = None
    assignment: Mapping[str, Any] = field(default_factory=dict)
    way: str = "cold"
    lent: bool = False

    @property
    def has_bridge(self) -> bool:
        """Whether our end of the bridge is there already; it then goes to the session's folder itself."""
        return self.way == "warm"

    def bind(self, place: KernelFolders, settings: KernelSettings) -> None:
        """Bind the session's folders to a kernel that was kept ready, and sandbox it.

        Args:
            place: The session's folders.
            settings: What is granted besides.

        Raises:
            KernelError: it has ended meanwhile, or does not answer, or code there could write to its runtime folder.
            SandboxUnavailable: the sandbox can't be set up with these folders.
        """
        if not self.process.alive():
            raise KernelError(f"the kernel's process ended: {self.process.end()}")
        assignment = assignment_of(place, settings)
        if self.level == SEATBELT:
            text = _seatbelt_profile(settings, self.connection, assignment)
            reply = _evaluate(self, call_expression("apply_seatbelt", text), settings.start_seconds)
            if reply != _ENCLOSED:
                raise SandboxUnavailable(reply)
        self.place, self.assignment = place, assignment
        self.environment = environment_of(place, settings, self.level, self.connection.own)

    def handle(self, settings: KernelSettings) -> KernelHandle:
        """Return what a client is made from, once the kernel has its session's folders."""
        record_success(self.level, settings)
        folder = {"folder": self.assignment["folder"], "environment": self.environment}
        return KernelHandle(
            self.connection,
            self.process,
            self.connection.said,
            self.give_folder_back,
            {"sandbox": hint_options(self.level, settings, self.assignment), **(folder if self.has_bridge else {})},
            sandbox=describe_sandbox(self.level, settings),
            has_bridge=self.has_bridge,
            listens=self.way == "warm",
        )

    def give_folder_back(self) -> None:
        """Return its folder to its owner."""
        self.place = None

    def discard(self) -> None:
        """End it and remove what belongs to it."""
        self.process.end()
        if self.lent:
            self.connection.remove_own_folder()
        else:
            self.connection.close()
        self.give_folder_back()


@dataclass
class SupervisedKernel(StartedKernel):
    """A kernel whose process has a supervisor.

    Args:
        process: Its process.
        uid: The user that it becomes; 0: the host's.
    """

    process: SupervisedProcess
    uid: int = 0

    @property
    def has_bridge(self) -> bool:
        """Whether our end of the bridge is there already: the launcher imports it."""
        return True

    def bind(self, place: KernelFolders, settings: KernelSettings) -> None:
        """Bind the session's folders to a kernel that was kept ready; raises as `StartedKernel.bind` does.

        Args:
            place: The session's folders.
            settings: What is granted besides.
        """
        OWNERSHIP.acquire(place.folder, self.uid)
        self.place = place
        self.environment = environment_of(place, settings, self.level, self.connection.own)
        self.assignment = assignment_of(place, settings)
        _check_apart(self.connection, self.assignment, self.level)
        self.process.assign(self.assignment, settings.start_seconds)

    def handle(self, settings: KernelSettings) -> KernelHandle:
        """Return what a client is made from, once the kernel has its session's folders."""
        return replace(super().handle(settings), uid=self.uid, watch=self.process.watch)

    def give_folder_back(self) -> None:
        """Return its folder to its owner, and free its user's number."""
        if self.place is not None:
            OWNERSHIP.release(self.place.folder, self.uid)
            self.place = None
        USER_NUMBERS.free(self.uid)
        self.uid = 0


def start(
    settings: KernelSettings,
    place: KernelFolders | None,
    *,
    server: ForkServer | None = None,
    lent: Connection | None = None,
) -> StartedKernel:
    """Start a kernel: forked where there is a server, else for itself behind the first sandbox that can be set up.

    Args:
        settings: Its limits and environment.
        place: Its session's folders; None: it is kept ready until `bind`, and may still be starting.
        server: Forks it.
        lent: Sockets of another client's, who wants heartbeats too.

    Raises:
        KernelError: it has ended, or the fork server's sandbox can't be set up for it.
        KernelStartError: it does not start.
        OSError: the fork server is gone.
        SandboxError: no sandbox can be set up.
    """
    if place is None:
        settings = replace(settings, environment=shared_names(settings))
    if server is not None:
        return _start_supervised(server.level, settings, place, server.fork, way="forked", lent=lent)
    folder = place.folder if place else Path()
    try:
        if not SUPERVISED:
            return _start_plain(available_level(settings), settings, place)
        for level in level_attempts(settings):
            try:
                return _start_supervised(level, settings, place, _cold_launcher(settings), lent=lent)
            except SandboxUnavailable as error:
                record_failure(level, str(error))
    except OSError as error:
        raise _not_started(error, settings, folder) from error
    raise AssertionError("`level_attempts` ends with an error")


def _not_started(error: OSError, settings: KernelSettings, folder: Path) -> KernelStartError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    where = f" in {tempfile.gettempdir()}, where a kernel's files are made" if full else ""
    return KernelStartError(f"{settings.python} does not start: {error.strerror}{where}", folder=folder)


def _cold_launcher(settings: KernelSettings) -> _LaunchSupervised:
    def start(request: dict[str, Any], log: int, sockets: Sequence[int]) -> SupervisedProcess:
        environment = clean_environment(os.environ, allowed=settings.environment)
        level = request["sandbox"]["level"]
        return launch_one(settings.python, environment, level=level, request=request, log=log, sockets=sockets)

    return start


def _start_supervised(
    level: str,
    settings: KernelSettings,
    place: KernelFolders | None,
    launch: _LaunchSupervised,
    *,
    way: str = "cold",
    lent: Connection | None = None,
) -> SupervisedKernel:
    """Start a kernel behind one sandbox; where its folders are known, return it once it sees them."""
    assignment = assignment_of(place, settings) if place else {}
    connection = lent or Connection()
    with ExitStack() as undo:
        if lent is None:
            undo.callback(connection.close)
        if connection.info["transport"] != "ipc":
            folder = connection.runtime.parent
            raise KernelStartError(
                f"{folder}: its path is too long for a kernel's sockets, and neither /tmp nor /var/tmp "
                "can be written to; set TMPDIR to a shorter one",
                folder=folder,
            )
        if place is not None:
            _check_apart(connection, assignment, level)
        uid = user_for(level, place.folder if place else None)
        undo.callback(USER_NUMBERS.free, uid)
        with connection.begin() as new:
            environment = environment_of(place, settings, level, new.folder)
            stage = connection.runtime / "root"
            stage.mkdir(exist_ok=True)
            request = {
                "sandbox": sandbox_plan(level, settings, uid, stage=stage, own=new.folder),
                "environment": environment,
                "connection_file": str(new.connection_file),
                "ports": list(new.sockets),
                "log": str(connection.log),
                "heartbeat": lent is not None,
            }
            if level != OFF:
                make_stand_in_folders(new.folder)
            if uid and level == LANDLOCK:
                connection.runtime.chmod(0o711)  # its user must pass it; in other sandboxes it is not seen
            hand_over(new.folder, uid)
            if place is not None:
                OWNERSHIP.acquire(place.folder, uid)
                undo.callback(OWNERSHIP.release, place.folder, uid)
                request["assignment"] = assignment
                if lent is not None:  # otherwise our end of the bridge goes there
                    request["cwd"] = str(place.folder)
            process = launch(request, new.log, list(new.sockets.values()))
        undo.pop_all()
    started = SupervisedKernel(
        connection, process, level, environment, place, assignment, way, lent is not None, uid=uid
    )
    if place is not None:
        try:
            process.await_assignment(settings.start_seconds)
        except BaseException as error:
            output = connection.said()
            started.discard()
            if way == "cold" and isinstance(error, KernelError) and not isinstance(error, SandboxUnavailable):
                output += (
                    f"\nTry: {settings.python} -m pip install ipykernel" if "ModuleNotFoundError" in output else ""
                )
                text = f"{error}{chr(10) if output else ''}{output}"
                raise KernelStartError(text, folder=place.folder) from error
            raise
    return started


def _check_apart(connection: Connection, assignment: Mapping[str, Any], level: str) -> None:
    """Refuse to run code that could move or replace the host's files in the runtime folder.

    Raises:
        KernelStartError: the runtime folder lies in a folder that code may write to.
    """
    for folder in assignment["write"] if level != OFF else ():
        if connection.runtime.is_relative_to(folder):
            raise KernelStartError(
                f"{folder}: code may write here, and the folder for temporary files lies in it; neither /tmp nor "
                "/var/tmp can take its place. Set TMPDIR to a folder elsewhere",
                folder=Path(assignment["folder"]),
            )


def start_with(start: StartProcess, settings: KernelSettings, place: KernelFolders, *, sandbox: str) -> KernelHandle:
    """Start a kernel by a function of the user's, or in a container.

    Args:
        start: Starts the process.
        settings: Interpreter and environment.
        place: Where its code runs.
        sandbox: Describes in one line what separates it from the machine; empty where that is said elsewhere.

    Raises:
        KernelStartError: it does not start.
    """
    connection = Connection(binds=False)  # nobody knows whether it hands descriptors on
    try:
        with connection.begin() as new:
            environment = kernel_environment(os.environ, allowed=settings.environment, own=new.folder)
            process = start(Launch(settings.python, place.folder, environment, new.connection_file, connection.log))
        connection.join(process.alive, settings.start_seconds)
    except OSError as error:
        connection.close()
        raise _not_started(error, settings, place.folder) from error
    except BaseException:
        connection.close()
        raise
    return KernelHandle(connection, process, connection.said, sandbox=sandbox)


def _start_plain(level: str, settings: KernelSettings, place: KernelFolders | None) -> StartedKernel:
    connection = Connection()
    try:
        with connection.begin() as new:
            before: tuple[str, ...] = ()
            assignment = assignment_of(place, settings) if place else {}
            if level == SEATBELT:
                make_stand_in_folders(new.folder)
                before = command(_seatbelt_profile(settings, connection, assignment)) if place else ()
            environment = environment_of(place, settings, level, new.folder)
            folder = place.folder if place else new.folder
            launch = Launch(
                settings.python, folder, environment, new.connection_file, connection.log, before, new.sockets
            )
            started = StartedKernel(connection, LocalProcess(launch), level, environment, place, assignment)
        if place is None:
            connection.request("", expressions={"a": install_expression()}, silent=True)
        return started
    except BaseException:
        connection.close()
        raise


def _seatbelt_profile(settings: KernelSettings, connection: Connection, assignment: Mapping[str, Any]) -> str:
    return profile(
        assignment,
        own=connection.own,
        sockets=connection.runtime,
        python=interpreter_folders(settings.python),
        network=settings.allow_network,
        links=settings.allow_symlinks,
        by_file=connection.info["transport"] == "ipc",
    )


def _evaluate(kernel: StartedKernel, expression: str, seconds: float) -> str:
    """Evaluate an expression in the kernel; return the text of the result."""
    request = kernel.connection.request("", expressions={"a": expression}, silent=True)
    reply = kernel.connection.await_reply(request, kernel.process.alive, seconds)
    if reply is None:
        raise KernelError("a kernel that was kept ready did not answer")
    results = reply.get("user_expressions", {}).get("a", {})
    return str(results.get("data", {}).get("text/plain") or results.get("evalue", "no answer"))
