"""`ContainerKernel`: a kernel in a container of docker or podman."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.container_process import Container, ContainerProcess
from tw_autogen.kernel.handle import KernelHandle
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.live_kernel import LiveKernel
from tw_autogen.kernel.plain import start_otherwise
from tw_autogen.kernel.settings import KernelSettings


class ContainerKernel(LiveKernel):
    """An IPython kernel in a container, on a Linux host; the image needs Python and ipykernel, nothing of ours.

    Code there sees the image, read-only, a /tmp in memory, and the kernel's folder, at the same path as here and as the
    same user. It has no network, no capabilities, no way to more rights, and limits on memory and processes. Sockets in
    a folder of their own lead to this process. Nothing is pulled: the image must be there.

    It is tested with a stand-in for the engine, which reads the command line as docker does and runs the kernel
    without a container: what it does with a real engine, and that the walls hold, you should try before you rely on it.

    Args:
        folder: Where code runs; None: a temporary one, removed by `close`.
        image: Such as `quay.io/jupyter/scipy-notebook`.
        engine: `docker`, `podman`, or the path of a command that takes the same words.
        python: The interpreter in the image.
        network: As of `--network`.
        memory: As of `--memory`; there is no swap beside it.
        pids: How many processes and threads there may be at once.
        tmp: How large /tmp may grow; it counts as memory.
        options: Further options for `run`, such as `--security-opt=label=disable` where SELinux is on, or `--gpus=all`.
        settings: Limits, and which variables of the environment code may read; `python` says nothing here.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        image: str,
        engine: str = "docker",
        python: str = "python",
        network: str = "none",
        memory: str = "2g",
        pids: int = 256,
        tmp: str = "512m",
        options: Sequence[str] = (),
        settings: KernelSettings | None = None,
    ) -> None:
        super().__init__(folder, settings=settings)
        names = self._settings.environment
        self._container = Container(engine, image, python, network, memory, pids, tmp, names, tuple(options))

    def _place(self, process: str) -> str:
        one = self._container
        return f"container of {one.image} by {Path(one.engine).name}, {process}, network {one.network}"

    def _open(self) -> KernelHandle:
        one = self._container
        if shutil.which(one.engine) is None:
            raise KernelStartError(
                f"container engine {one.engine!r}: there is no such command; install docker or podman, or pass engine=",
                folder=self.folder,
            )
        peer = start_otherwise(
            KernelFolders(self.folder), self._settings, lambda launch: ContainerProcess(launch, one), ""
        )
        return dataclasses.replace(peer, said=lambda: self._with_advice(peer.said()))

    def _with_advice(self, said: str) -> str:
        engine = self._container.engine
        advice = f"Try: {engine} run --rm {self._container.image} {self._container.python} -m ipykernel --version"
        return f"{said.strip()}\n{advice} (`{engine} pull` or `build` the image first if it is not there)"
