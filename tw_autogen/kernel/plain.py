"""Kernels where there is no steward, on macOS and Windows: plain processes, started each for itself or kept ready.

Behind Seatbelt one that is started for a session begins behind the wall (`sandbox-exec`). One that was kept ready has
run no code of anybody's when it gets its session's folders; it then puts itself behind the same profile. Tried on Linux
with a stand-in for `sandbox-exec`, on neither of the two systems.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError, KernelStartError
from tw_autogen.kernel.bundle import call_expression, install_expression
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.environment import kernel_environment
from tw_autogen.kernel.handle import KernelHandle
from tw_autogen.kernel.kernel_folders import KernelFolders, assignment_of, environment_of, furnish
from tw_autogen.kernel.launcher.sandbox import OFF
from tw_autogen.kernel.process import Launch, LocalProcess, Process, StartProcess
from tw_autogen.kernel.sandbox import standing, stood, told, words
from tw_autogen.kernel.seatbelt import SEATBELT, command, interpreter_folders, profile
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.supervised_process import SandboxFailed

_UP = "'up'"


@dataclass
class PlainKernel:
    """A kernel's process with its sockets, as `StartedKernel` is one with a steward.

    Args:
        connection: Its sockets.
        process: Itself.
        level: Its wall: `seatbelt` or `off`.
        place: What it sees of its session, once it has one.
        way: How it came to be: `warm` or `cold`.
    """

    connection: Connection
    process: Process
    level: str
    place: KernelFolders | None = None
    way: str = "cold"

    def settle(self, place: KernelFolders, settings: KernelSettings) -> None:
        """Bind a kernel that was kept ready to its session's folders, and sandbox it.

        Raises:
            KernelError: it has ended meanwhile, or does not answer.
            WallDown: the wall can't stand.
        """
        if not self.process.alive():
            raise KernelError(f"the kernel's process ended: {self.process.end()}")
        if self.level == SEATBELT:
            text = _profile(settings, self.connection, place)
            said = _evaluated(self, call_expression("enclose", text, module="seatbelt"), settings.start_seconds)
            if said != _UP:
                raise SandboxFailed(said)
        self.place = place

    def peer(self, settings: KernelSettings) -> KernelHandle:
        """Return the host's handle of it, once it has its session's folders."""
        place = self.place or KernelFolders(Path())
        stood(self.level, settings)
        options: dict[str, Any] = {"wall": told(self.level, settings, assignment_of(place, settings))}
        if self.way == "warm":
            environment = environment_of(place, settings, self.level, self.connection.own)
            options |= {"folder": str(place.folder), "environment": environment}
        return KernelHandle(
            self.connection,
            self.process,
            self.connection.said,
            options=options,
            walls=words(self.level, settings),
            bundled=self.way == "warm",
            listens=self.way == "warm",
        )

    def discard(self) -> None:
        """End it and remove what belongs to it."""
        self.process.end()
        self.connection.close()


def start_unsettled(level: str, settings: KernelSettings) -> PlainKernel:
    """Start a kernel that has no session yet.

    Raises:
        OSError: it can't be started.
    """
    started = _start(level, settings, None)
    started.connection.request("", expressions={"a": install_expression()}, silent=True)
    return started


def start_plain(settings: KernelSettings, place: KernelFolders) -> PlainKernel:
    """Start a kernel for a session's folders.

    Raises:
        KernelStartError: it does not start.
        SandboxError: no wall can stand.
    """
    try:
        return _start(standing(settings), settings, place)
    except OSError as error:
        raise KernelStartError(f"{settings.python} does not start: {error.strerror}", folder=place.folder) from error


def start_otherwise(
    place: KernelFolders, settings: KernelSettings, start: StartProcess, walls: str | None = None
) -> KernelHandle:
    """Start a kernel by a function of the user's, or in a container.

    Args:
        place: Where its code runs.
        settings: Interpreter and environment.
        start: Starts the process.
        walls: Says in one line what stands around it; None: nothing of ours.

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
        raise KernelStartError(f"{settings.python} does not start: {error.strerror}", folder=place.folder) from error
    except BaseException:
        connection.close()
        raise
    return KernelHandle(connection, process, connection.said, walls=words(OFF, settings) if walls is None else walls)


def _start(level: str, settings: KernelSettings, place: KernelFolders | None) -> PlainKernel:
    connection = Connection(outside=assignment_of(place, settings)["write"] if place else ())
    try:
        with connection.begin() as new:
            before: tuple[str, ...] = ()
            if level == SEATBELT:
                furnish(new.folder)
                before = command(_profile(settings, connection, place)) if place else ()
            environment = environment_of(place, settings, level, new.folder)
            folder = place.folder if place else new.folder
            launch = Launch(
                settings.python, folder, environment, new.connection_file, connection.log, before, new.sockets
            )
            return PlainKernel(connection, LocalProcess(launch), level, place)
    except BaseException:
        connection.close()
        raise


def _profile(settings: KernelSettings, connection: Connection, place: KernelFolders) -> str:
    return profile(
        assignment_of(place, settings),
        own=connection.own,
        sockets=connection.runtime,
        python=interpreter_folders(settings.python),
        network=settings.allow_network,
        by_file=connection.info["transport"] == "ipc",
    )


def _evaluated(kernel: PlainKernel, expression: str, seconds: float) -> str:
    """Evaluate an expression in the kernel; return the text of the result."""
    wire, deadline = kernel.connection, time.monotonic() + seconds
    request = wire.request("", expressions={"a": expression}, silent=True)
    while kernel.process.alive() and time.monotonic() < deadline:
        wire.await_reply()
        while (message := wire.receive("shell")) is not None:
            if message["parent_header"].get("msg_id") == request:
                said = message["content"].get("user_expressions", {}).get("a", {})
                return str(said.get("data", {}).get("text/plain") or said.get("evalue", "no answer"))
    raise KernelError("a kernel that was kept ready did not answer")
