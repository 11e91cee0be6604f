"""`SandboxedProvisioner`: our forked, sandboxed kernels for everybody who speaks Jupyter."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from jupyter_client.provisioning import KernelProvisionerBase
from traitlets import Dict

from tw_autogen.code_writable_folders import note_code_folders
from tw_autogen.errors import ConfigError, KernelStartError, nearest
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.first_server import SUPERVISED
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.kernel_start import StartedKernel
from tw_autogen.kernel.mounted_names import all_names
from tw_autogen.kernel.path_policy import check_granted, checked_kernel_folder
from tw_autogen.kernel.pinned_paths import PinnedPaths
from tw_autogen.kernel.pool import default_pool
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.safe_folder import KERNEL_FOLDERS

_LOOK_SECONDS = 0.05
_LAST_REQUEST_SECONDS = 0.15
"""How long jupyter_client's request to end, sent to a process that had ended, still goes to the next one; it says 0.1.
"""


class SandboxedProvisioner(KernelProvisionerBase):  # type: ignore[misc] # jupyter_client has no types that mypy follows
    """Starts a kernelspec's kernels as `LocalKernel` starts its own: forked, behind a sandbox; on Linux.

    A kernelspec names it in its metadata: `"kernel_provisioner": {"provisioner_name": "tw-autogen", "config":
    {"settings": {"allow_network": true}}}`. Its `argv` is not used. The kernel listens on Unix sockets that stay the
    same when it is restarted, in a folder that code can't write to, and answers heartbeats. It works in the notebook's
    folder, which is all of the host that it may write to; IPython's profile, its home folder and temporary files are
    new at each start. Of the environment it sees what `KernelSettings.environment` lets through, and the kernelspec's
    own `env`.
    """

    settings = Dict(help="Fields of KernelSettings by name.").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._connection: Connection | None = None
        self._kernel: StartedKernel | None = None
        self._cwd = Path.cwd()
        self._pinned: PinnedPaths | None = None

    @property
    def has_process(self) -> bool:
        """Return whether there is a kernel, or one that has ended and was not yet waited for."""
        return self._kernel is not None

    @property
    def pid(self) -> int | None:
        """Return the number of the kernel's process, as soon as it is known and as long as it runs."""
        if self._kernel is None or not self._kernel.process.alive():
            return None
        return self._kernel.process.pid or None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Prepare; there is no command to be made."""
        prepared: dict[str, Any] = await super().pre_launch(cmd=[], **kwargs)
        return prepared

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Start a kernel; give where it listens.

        Raises:
            KernelStartError: it does not start; it would work in the home folder, among keys, in a system's folder,
                or over a link that code could have made; it is granted what is not there, or closed to it; or a setting
                is of a wrong type.
            SandboxError: no sandbox can be set up.
        """
        self._cwd = self._pinned.folder if self._pinned else Path(kwargs.get("cwd") or Path.cwd())
        try:
            settings = _read_kernel_settings(self.settings)
            self._cwd = checked_kernel_folder(self._cwd, settings)
            pinned = self._pinned or PinnedPaths(self._cwd, settings)
            pinned.check()
            settings.check_limits()
            kept = check_granted(settings, self._cwd, pinned=pinned)
        except ConfigError as error:
            raise KernelStartError(str(error), folder=self._cwd) from error
        settings = pinned.granted()
        folders = all_names((self._cwd, *map(Path, settings.write)))
        KERNEL_FOLDERS.update(folders)
        note_code_folders(folders)
        if self._cwd.is_dir():
            self._pinned = pinned
        given = kwargs.get("env") or {}
        place = KernelFolders(
            self._cwd,
            environment={name: given[name] for name in self.kernel_spec.env if name in given},
            known=pinned.file_identities(),
            kept=kept,
        )
        if self._connection is None:
            self._connection = Connection(opens=False)
        self._kernel = await asyncio.to_thread(default_pool().take_on_sockets, settings, place, self._connection)
        info = self._connection.info
        self.connection_info = {**info, "key": str(info["key"]).encode()}
        return self.connection_info

    async def poll(self) -> int | None:
        """Return None while it runs, else its exit code."""
        if self._kernel is None:
            return 0
        process = self._kernel.process
        return None if process.alive() else _exit_code(await asyncio.to_thread(process.end))

    async def wait(self) -> int | None:
        """Wait until it has ended, and end what it left behind."""
        while (code := await self.poll()) is None:
            await asyncio.sleep(_LOOK_SECONDS)
        await self._discard()
        return code

    async def send_signal(self, signum: int) -> None:
        """Signal it and its group."""
        if self._kernel is None:
            return
        process = self._kernel.process
        if signum == signal.SIGINT:
            process.interrupt()
        elif signum == signal.SIGKILL:
            await asyncio.to_thread(process.end)
        elif (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just ended
                os.killpg(pid, signum)

    async def kill(self, restart: bool = False) -> None:
        """End it with all that it started."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """Ask it to end."""
        await self.send_signal(signal.SIGTERM)

    async def cleanup(self, restart: bool = False) -> None:
        """End what is left; its sockets stay for the one that takes its place."""
        await self._discard()
        if restart:
            await asyncio.sleep(_LAST_REQUEST_SECONDS)
        elif self._connection is not None:
            self._connection.close()
            self._connection = None

    def resolve_path(self, path: str) -> str | None:
        """Return a path as the kernel would take it; None if there is nothing."""
        found = (self._cwd / Path(path).expanduser()).resolve()
        return found.as_posix() if found.exists() else None

    async def _discard(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            await asyncio.to_thread(kernel.discard)


def _read_kernel_settings(given: dict[str, Any]) -> KernelSettings:
    known = [field.name for field in fields(KernelSettings)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise KernelStartError(f"the kernelspec sets {', '.join(unknown)}{nearest(unknown[0], known)}")
    if not SUPERVISED:
        raise KernelStartError("the provisioner tw-autogen works on Linux only")
    return replace(KernelSettings(**given), warm=0)  # those that are kept ready have sockets of their own


def _exit_code(how: str) -> int:
    """Return an exit code for `exit code 3`, `killed by SIGSEGV`, as subprocess does."""
    if match := re.match(r"exit code (\d+)", how):
        return int(match[1])
    match = re.match(r"killed by (SIG\w+)", how)
    return -int(getattr(signal, match[1], signal.SIGKILL)) if match else -int(signal.SIGKILL)
