"""`ContainerKernel`: a kernel in a container of docker or podman."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.client import KernelHandle
from tw_autogen.kernel.environment_variables import matcher, variables
from tw_autogen.kernel.guest_bundle import boot_text
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.kernel_process import CommandProcess, Launch
from tw_autogen.kernel.kernel_start import start_with
from tw_autogen.kernel.launcher.seccomp import container_filter
from tw_autogen.kernel.launcher.system_calls import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
from tw_autogen.kernel.live_kernel import LiveKernel
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.named_folders import executable_search_path
from tw_autogen.safe_folder import SafeFolder

_COMMAND_SECONDS = 20.0
"""How long the engine may take to pass on a signal or to remove a container."""

_SAME_FOLDER = (
    "import os, sys\nif not os.path.exists({!r}):\n"
    "    sys.exit('another folder is mounted than was checked: code may be allowed to write above it')\n"
)
_LIFELINE = (
    "import os, sys\nsys.argv[2] = str(os.dup(0))\nos.dup2(os.open(os.devnull, os.O_RDONLY), 0)\n"
    # Its stdin ends when the engine's command does, and so does the kernel then: its owner is gone.
)
# The container's first process: it passes signals on to the kernel, waits for what nobody else does, and ends with it.
# It is ours, not the engine's `--init`, so that each process there has the filter: code could act through another one.
_FIRST_PROCESS = """
import os, signal, sys
kernel, passed = 0, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
before = {one: signal.signal(one, lambda number, frame: kernel and os.kill(kernel, number)) for one in passed}
kernel = os.fork()
while kernel:
    try:
        pid, status = os.wait()
    except InterruptedError:
        continue
    if pid == kernel:
        os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
for one in passed:
    signal.signal(one, before[one])
"""
_FILTER = (
    "import ctypes, struct, sys\nlines = bytes.fromhex({0!r})\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "head = struct.pack('HP', len(lines) // 8, ctypes.cast(lines, ctypes.c_void_p).value)\n"
    f"if libc.prctl({PR_SET_NO_NEW_PRIVS}, *map(ctypes.c_ulong, (1, 0, 0, 0))) or "
    f"libc.prctl({PR_SET_SECCOMP}, ctypes.c_ulong(2), head):\n"
    "    {1} or sys.exit(f'no filter of system calls can be set here (error {{ctypes.get_errno()}}): pass "
    "KernelSettings(allow_symlinks=True)')\n"
)

_FIXED = {"HOME": "/tmp", "TMPDIR": "/tmp", "MPLCONFIGDIR": "/tmp/matplotlib"}
_OF_ENGINES = tuple(
    name for kind in ("http", "https", "ftp", "no", "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())
)
"""Variables that engines hand on by themselves, with passwords in them."""
_TAKEN = ("MPLBACKEND", "NO_COLOR", "TERM", "IPYTHONDIR", "LANG", "LC_*", "TZ", "OMP_*", "OPENBLAS_NUM_THREADS")


class ContainerProcess(CommandProcess):
    """A kernel in a container; the process here is the engine's command, which lasts as long.

    Args:
        launch: What it is started with.
        engine: The command: docker, podman, or a path.
        run: What follows the container's name in the command line: further options of `run`, the image, its command.
        passed: Names of variables that the container has of `launch.environment`.

    Raises:
        KernelStartError: the kernel's sockets or folder can't be reached from a container.
        OSError: the engine's command can't be started.
    """

    def __init__(self, launch: Launch, engine: str, run: Sequence[str], passed: Sequence[str]) -> None:
        _check(launch)
        self._engine = engine = os.path.abspath(engine) if os.sep in engine else engine
        self._name = f"tw-{secrets.token_hex(8)}"
        values = {name: launch.environment[name] for name in passed}
        fixed = ["--rm", "--interactive", "--sig-proxy=false", "--pull=never", f"--name={self._name}"]
        with launch.log.open("wb") as log:
            process = subprocess.Popen(
                [engine, "run", *fixed, *run],
                env={**variables(os.environ), **values},  # the engine's own command may need any of them
                cwd=os.sep,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        super().__init__(process)

    def interrupt(self) -> None:
        """Send it SIGINT through the engine."""
        self._run_engine("kill", "--signal=INT", self._name)

    def _stop(self, dead_already: bool) -> int:
        code = self._process.wait() if dead_already else self._remove()
        if dead_already and code < 0:  # the engine's command was killed, perhaps not the container
            self._run_engine("rm", "--force", self._name)
        if self._process.stdin is not None:
            self._process.stdin.close()
        return code

    def _describe_exit(self, code: int) -> str:
        if code == 125:
            return "the engine could not start the container (exit code 125)"
        if code in (126, 127):
            return f"the image has no such Python (exit code {code})"
        return super()._describe_exit(128 - code if 128 < code <= 128 + signal.NSIG else code)

    def _remove(self) -> int:
        self._run_engine("rm", "--force", self._name)
        try:
            return self._process.wait(_COMMAND_SECONDS / 4)
        except subprocess.TimeoutExpired:  # it had not made the container yet, or hangs
            self._process.kill()
            code = self._process.wait()
            self._run_engine("rm", "--force", self._name)
            return code

    def _run_engine(self, *arguments: str) -> None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # the time limit and the end come anyway
            subprocess.run(
                [self._engine, *arguments],
                cwd=os.sep,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_COMMAND_SECONDS,
                start_new_session=True,
                check=False,
            )


def _check(launch: Launch) -> None:
    if json.loads(launch.connection_file.read_text(encoding="utf-8"))["transport"] != "ipc":
        raise KernelStartError(
            f"{launch.connection_file.parent}: no socket can be made there that a container without network reaches; "
            "use a system with Unix sockets, and a TMPDIR with a shorter path",
            folder=launch.folder,
        )
    for one in (launch.folder, launch.connection_file.parent):
        if "," in str(one):
            raise KernelStartError(f"{one}: a folder with a comma in its path can't be mounted", folder=launch.folder)


class ContainerKernel(LiveKernel):
    """An IPython kernel in a container, on a Linux host; the image needs Python and ipykernel, nothing of ours.

    Code there sees the image, read-only, a /tmp in memory, and the kernel's folder, at the same path as here and as the
    same user. It has no network, no capabilities, no way to more rights, and limits on memory and processes; without
    `kernel.allow_symlinks` it makes no symbolic links (on x86_64 and aarch64). Sockets in a folder of their own lead to
    this process. Nothing is pulled: the image must be there.

    Tested with podman 4.3 and runc, as root on Debian 12; never with docker, nor with podman as another user: try what
    it refuses there before you rely on it.

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
        settings: Limits, symbolic links, and which variables of the environment code may read; `python` says nothing
            here.
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
        self._image, self._engine, self._python, self._network = image, engine, python, network
        self._limits = [
            f"--network={network}", f"--memory={memory}", f"--memory-swap={memory}", f"--pids-limit={pids}",
            "--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only",
            f"--tmpfs=/tmp:rw,nosuid,nodev,size={tmp}",
        ]  # fmt: skip
        self._options = tuple(options)

    def _place(self, process: str) -> str:
        return f"container of {self._image} by {Path(self._engine).name}, {process}, network {self._network}"

    def _open(self) -> KernelHandle:
        found = shutil.which(self._engine, path=executable_search_path())
        if found is None:
            raise KernelStartError(
                f"container engine {self._engine!r}: there is no such command; install docker or podman, or pass "
                "engine=",
                folder=self.folder,
            )
        self._engine = found
        folders = KernelFolders(self.folder)
        mark = f".tw-{secrets.token_hex(8)}"
        with SafeFolder(self.folder) as folder:  # which stays the same one; the engine mounts what its path means then
            folder.write_file(mark, b"")
            try:
                handle = start_with(lambda launch: self._process(launch, mark), self._settings, folders, sandbox="")
            finally:
                with contextlib.suppress(FileNotFoundError):
                    folder.remove(mark)
        return replace(handle, said=lambda: self._with_advice(handle.said()))

    def _process(self, launch: Launch, mark: str) -> ContainerProcess:
        """Start the container.

        Args:
            launch: What runs in it.
            mark: Name of a file in the kernel's folder that must be seen in the container before anything runs there.
        """
        passed = list(filter(matcher((*_TAKEN, *self._settings.environment)), launch.environment))
        rootless = "podman" in Path(self._engine).name and os.getuid() != 0  # podman has `keep-id` for others than root
        user = [f"--user={os.getuid()}:{os.getgid()}", *(["--userns=keep-id"] if rootless else [])]
        mounts = (launch.folder, launch.connection_file.parent)
        links = self._settings.allow_symlinks
        filtered = _FILTER.format(container_filter(platform.machine(), links=links).hex(), links)
        first = (_SAME_FOLDER.format(mark), filtered, _FIRST_PROCESS, _LIFELINE, boot_text())
        run = [
            "--label=tw-autogen", "--log-driver=none", *self._limits, *user,
            *(f"--mount=type=bind,source={mount},target={mount}" for mount in mounts),
            f"--workdir={launch.folder}",
            *(f"--env={one}={value}" for one, value in _FIXED.items()),
            *(f"--env={engine}=" for engine in _OF_ENGINES if engine not in passed),
            *(f"--env={one}" for one in passed),  # no values: everybody sees a command line
            *self._options,
            self._image, self._python, "-c", "".join(first), str(launch.connection_file), "0",
        ]  # fmt: skip
        return ContainerProcess(launch, self._engine, run, passed)

    def _with_advice(self, error: str) -> str:
        advice = f"Try: {self._engine} run --rm {self._image} {self._python} -m ipykernel --version"
        return f"{error.strip()}\n{advice} (`{self._engine} pull` or `build` the image first if it is not there)"
