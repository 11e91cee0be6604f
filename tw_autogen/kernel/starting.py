"""Makes kernels: forked from a server or each for itself, behind the strongest wall that stands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError, KernelStartError
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.environment import clean_environment
from tw_autogen.kernel.forkserver import ForkServer, launch_one
from tw_autogen.kernel.handle import KernelHandle
from tw_autogen.kernel.kernel_folders import KernelFolders, assignment_of, environment_of, furnish
from tw_autogen.kernel.launcher.sandbox import LANDLOCK, OFF
from tw_autogen.kernel.ownership import OWNERSHIP, hand_over
from tw_autogen.kernel.sandbox import failed, levels, plan, stood, told, user_for, words
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.supervised_process import SandboxFailed, SupervisedProcess

StartStewarded = Callable[[dict[str, Any], int, Sequence[int]], SupervisedProcess]
"""Takes the request, as `launcher.supervisor.attend` does, and the descriptors of the log and the sockets."""

STEWARDED = sys.platform.startswith("linux")
"""Where kernels have a steward, which a fork server may make; elsewhere they are plain processes."""


@dataclass
class StartedKernel:
    """A kernel's process with its sockets, which may still be starting.

    Args:
        connection: Its sockets.
        process: Itself.
        level: Its wall.
        environment: Its variables.
        uid: The user that it becomes; 0: the host's.
        way: How it came to be: `warm`, `forked` or `cold`.
        place: What it sees of its session, once it has one.
        lent: Its sockets belong to somebody else.
    """

    connection: Connection
    process: SupervisedProcess
    level: str
    environment: dict[str, str]
    uid: int = 0
    way: str = "cold"
    place: KernelFolders | None = None
    lent: bool = False

    def settle(self, place: KernelFolders, settings: KernelSettings) -> None:
        """Bind a kernel that was kept ready to its session's folders.

        Raises:
            KernelError: it has ended meanwhile, or code there could write to its runtime folder.
            WallDown: the wall can't stand with these folders.
        """
        OWNERSHIP.enter(place.folder, self.uid)
        self.place = place
        self.environment = environment_of(place, settings, self.level, self.connection.own)
        assignment = assignment_of(place, settings)
        _check_apart(self.connection, assignment, self.level)
        self.process.assign(assignment, settings.start_seconds)

    def peer(self, settings: KernelSettings) -> KernelHandle:
        """Return the host's handle of it, once it has its session's folders."""
        place = self.place or KernelFolders(Path())
        stood(self.level, settings)
        return KernelHandle(
            self.connection,
            self.process,
            self.connection.said,
            self.move_out,
            {
                "folder": str(place.folder),
                "environment": self.environment,
                "wall": told(self.level, settings, assignment_of(place, settings)),
            },
            uid=self.uid,
            walls=words(self.level, settings),
            bundled=True,
            listens=self.way == "warm",
        )

    def move_out(self) -> None:
        """Forget where it worked, and give its folder back."""
        if self.place is not None:
            OWNERSHIP.leave(self.place.folder, self.uid)
            self.place = None

    def discard(self) -> None:
        """End it and remove what belongs to it."""
        self.process.end()
        if self.lent:
            self.connection.clear()
        else:
            self.connection.close()
        self.move_out()


def start_forked(
    server: ForkServer, settings: KernelSettings, place: KernelFolders | None, lent: Connection | None = None
) -> StartedKernel:
    """Fork a kernel.

    Args:
        server: From which.
        settings: Its limits and environment.
        place: Its session's folders; None: they come later.
        lent: Sockets of somebody else's, who wants heartbeats too.

    Raises:
        OSError: the server is gone.
        KernelError: the kernel has ended, or its wall can't stand.
    """
    started = _start(server.level, settings, place, "forked", server.fork, lent)
    if place is not None:
        try:
            started.process.await_assignment(settings.start_seconds)
        except BaseException:
            started.discard()
            raise
    return started


def start_waiting(settings: KernelSettings, level: str) -> StartedKernel:
    """Start a kernel without a server whose session's folders come later.

    Raises:
        OSError: it can't be started.
    """
    return _start(level, settings, None, "cold", _launched(settings))


def start_cold(settings: KernelSettings, place: KernelFolders, lent: Connection | None = None) -> StartedKernel:
    """Start a kernel without a server; `lent` as for `start_forked`.

    Raises:
        KernelStartError: it does not start.
        SandboxError: no wall can stand.
    """
    for level in levels(settings):
        try:
            started = _start(level, settings, place, "cold", _launched(settings), lent)
        except OSError as error:
            raise KernelStartError(
                f"{settings.python} does not start: {error.strerror}", folder=place.folder
            ) from error
        try:
            started.process.await_assignment(settings.start_seconds)
        except SandboxFailed as error:
            started.discard()
            failed(level, str(error))
        except KernelError as error:
            said = started.connection.said()
            started.discard()
            raise KernelStartError(f"{error}{chr(10) if said else ''}{said}", folder=place.folder) from error
        else:
            return started
    raise AssertionError("`levels` ends with an error")


def _launched(settings: KernelSettings) -> StartStewarded:
    def start(request: dict[str, Any], log: int, sockets: Sequence[int]) -> SupervisedProcess:
        environment = clean_environment(os.environ, allowed=settings.environment)
        level = request["wall"]["level"]
        return launch_one(settings.python, environment, level=level, request=request, log=log, sockets=sockets)

    return start


def _start(
    level: str,
    settings: KernelSettings,
    place: KernelFolders | None,
    way: str,
    start: StartStewarded,
    lent: Connection | None = None,
) -> StartedKernel:
    assignment = assignment_of(place, settings) if place else None
    connection = lent or Connection(outside=assignment["write"] if assignment else ())
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
        if assignment is not None:
            _check_apart(connection, assignment, level)
        uid = user_for(level, place.folder if place else None)
        with connection.begin() as new:
            environment = environment_of(place, settings, level, new.folder)
            stage = connection.runtime / "root"
            stage.mkdir(exist_ok=True)
            request = {
                "wall": plan(level, settings, uid, stage=stage, own=new.folder),
                "environment": environment,
                "connection_file": str(new.connection_file),
                "ports": list(new.sockets),
                "log": str(connection.log),
                "heartbeat": lent is not None,
            }
            if level != OFF:
                furnish(new.folder)
            if uid and level == LANDLOCK:
                connection.runtime.chmod(0o711)  # its user must pass it; behind other walls it is not seen
            hand_over(new.folder, uid)
            if place is not None:
                OWNERSHIP.enter(place.folder, uid)
                undo.callback(OWNERSHIP.leave, place.folder, uid)
                request["assignment"] = assignment
                if lent is not None:  # otherwise our end of the bridge goes there
                    request["cwd"] = str(place.folder)
            process = start(request, new.log, list(new.sockets.values()))
        undo.pop_all()
    return StartedKernel(connection, process, level, environment, uid, way, place, lent is not None)


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
