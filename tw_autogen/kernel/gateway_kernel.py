"""`GatewayKernel`: a kernel that a Jupyter gateway runs, on another machine or in a cluster."""

from __future__ import annotations

import functools
import os
import ssl
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.errors import KernelError, KernelStartError
from tw_autogen.kernel.client import KernelClient, KernelHandle
from tw_autogen.kernel.environment_variables import matcher, variables
from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.gateway_client import Gateway, GatewayProcess, WebsocketWire
from tw_autogen.kernel.kernel import Log
from tw_autogen.kernel.live_kernel import LiveKernel
from tw_autogen.kernel.pending_request import RawResult
from tw_autogen.kernel.settings import KernelSettings

_FIRST_SECONDS = 15.0
"""How long a kernel may take to answer before another one is started in its place: a Jupyter server never hears of one
whose ports another process took just before it, and waits."""


class GatewayKernel(LiveKernel):
    """A kernel behind Jupyter Kernel Gateway, Enterprise Gateway or Jupyter Server; there only ipykernel is needed.

    It works in a temporary folder of that machine. Before each cell the files of `folder` that are new or changed are
    copied there, behind it those that the cell made are copied back, and around each host call too; hidden files stay,
    and so does what is deleted on one side only. Before a cell, and after it, copying takes `load_seconds` at most, and
    an interrupt ends it; a log line names files that are left, and the next cell tries them again. What confines the
    code is the gateway's business. A kernel whose owner is killed before `close` lives on there until the gateway ends
    idle ones (`MappingKernelManager.cull_idle_timeout`).

    Args:
        folder: The host's; None: a temporary one, removed by `close`.
        gateway_url: Such as `http://127.0.0.1:8888`.
        token: What the gateway asks for; None: the environment's `KG_AUTH_TOKEN`, if there is one.
        kernel_name: A kernelspec that the gateway has; its language must be Python.
        settings: Limits; `python` says nothing here, and `environment` what is sent to the kernel.
        kernel_environment: Sent with the request for a kernel, such as Enterprise Gateway's `KERNEL_…`.
        file_bytes: Larger files don't travel by themselves; a log line of the next cell says so.
        tls: For `https`, where the system's certificates don't do.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        gateway_url: str = "http://127.0.0.1:8888",
        token: str | None = None,
        kernel_name: str = "python3",
        settings: KernelSettings | None = None,
        kernel_environment: Mapping[str, str] | None = None,
        file_bytes: int = 64_000_000,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(folder, settings=settings)
        known = os.environ.get("KG_AUTH_TOKEN", "") if token is None else token
        self._gateway = Gateway(gateway_url.rstrip("/"), known, tls, self.folder)
        self._kernel_name = kernel_name
        self._kernel_environment = dict(kernel_environment or {})
        self._file_bytes = file_bytes
        self._folder_name = ""
        self._files: FileTransfer

    def _place(self, process: str) -> str:
        return f"gateway {self._gateway.url}, kernel {self._kernel_name}, {process}, no sandbox but the gateway's"

    def _open(self) -> KernelHandle:
        # a fresh kernel has seen no file
        self._files = FileTransfer(self.folder, self._file_bytes, max_total_bytes=self._settings.disk_mb << 20)
        max_seconds = self._settings.start_seconds
        try:
            wire, process = self._start(min(_FIRST_SECONDS, max_seconds))
        except KernelStartError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            wire, process = self._start(max_seconds)
        leftover, self._folder_name = self._folder_name, f"tw-kernel-{uuid.uuid4().hex}"
        remote = {
            "environment": variables(os.environ, matcher(self._settings.environment)),
            "max_bytes": self._file_bytes,
            "folder_name": self._folder_name,
            "leftover": leftover,
        }
        return KernelHandle(wire, process, options={"remote": remote}, files=self._files)

    def _start(self, open_seconds: float) -> tuple[WebsocketWire, GatewayProcess]:
        kernel = self._gateway.start(self._kernel_name, self._kernel_environment, self._settings.start_seconds)
        process = GatewayProcess(self._gateway, kernel)
        try:
            return WebsocketWire(self._gateway, kernel, process, open_seconds=open_seconds), process
        except BaseException:
            process.end()
            raise

    def _before_cell(self, live: KernelClient) -> list[Log]:
        with self._reachable():
            return self._files.send(functools.partial(self._move, live), seconds=self._settings.load_seconds)

    def _after_cell(self, live: KernelClient, outcome: RawResult) -> list[Log]:
        move, seconds = functools.partial(self._move, live), self._settings.load_seconds
        with self._reachable():
            return self._files.fetch(move, outcome.report, seconds=seconds)

    def _move(self, live: KernelClient, op: str, names: Sequence[str], seconds: float) -> dict[str, Any]:
        try:
            return live.move_files(op, names, seconds=seconds)
        except KernelError as error:
            if live.process.alive():
                return {"error": str(error)}
            self._lose(error)
            raise
