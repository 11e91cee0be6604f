"""Starts ipykernel, tuned; the first text of a kernel's process where no fork server is.

Run as `python -c <this text> <connection file> <lifeline> [<number>:<descriptor> ...]`; the lifeline is a pipe whose
other end the owner holds, or -1; the rest are listening sockets, by the numbers in the connection file. Only the
standard library and ipykernel are there.
"""

import sys

# Before anything else is imported: a user's `json.py` or `random.py` in the folder must shadow no module.
sys.path[:] = [entry for entry in sys.path if entry]

import contextlib
import functools
import importlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_CONFIG = {
    "HistoryManager": {"enabled": False},
    "InteractiveShell": {"colors": "nocolor", "cache_size": 0},
    "InteractiveShellApp": {"ignore_cwd": True},
    "IPKernelApp": {"ignore_cwd": True},
    "Kernel": {"_execute_sleep": 0},
    "IPythonKernel": {"_execute_sleep": 0},
}
_NEEDED = (
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "ipykernel.debugger"),
    *("ipykernel.subshell_manager", "IPython.core.completerlib", "IPython.core.debugger", "IPython.core.oinspect"),
    *("IPython.utils.wildcard", "IPython.extensions.storemagic", "faulthandler", "pdb", "tornado.platform.asyncio"),
)
"""Imported before a kernel is made, so that forked ones have them; each is imported late somewhere."""
_STORE = "PickleShareDB"
"""What `%store` writes to: up to IPython 8 a shell makes one at once, and a folder with it."""


def hold_on(lifeline: int) -> None:
    """End this process and its group as soon as the owner's end of the pipe closes, however the owner ended.

    On Linux the system itself sends SIGKILL, so that neither a busy loop in C nor a stopped thread is in its way. It
    doesn't depend on the thread that started the process, as PR_SET_PDEATHSIG would.
    """
    os.set_inheritable(lifeline, False)
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl  # not on Windows

        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)  # AttributeError where this is not Linux
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # it closed before anybody listened
            os.killpg(0, signal.SIGKILL)
        return
    threading.Thread(target=_wait_for_end, args=(lifeline,), daemon=True).start()


def _wait_for_end(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def load() -> None:
    """Import ipykernel, without what costs a start 0.2 s and is of no use here: the debugger."""
    sys.modules["debugpy"] = None  # type: ignore[assignment] # the import system's way to say: not there
    try:
        for name in _NEEDED:
            with contextlib.suppress(ImportError):  # another version has another name for it
                importlib.import_module(name)
    finally:
        del sys.modules["debugpy"]
    _kernel_app_class()


class _BareSys:
    """Stands for `sys` while ipykernel makes a kernel, which would list all modules for the debugger that isn't there.

    In a forked kernel each module it looks at is a page or two that is copied for this process alone, 6 MB in all.
    """

    modules: Mapping[str, object] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


def _listening_app() -> Any:
    """Return the kind of application that takes sockets which listen already."""
    import zmq
    from ipykernel.heartbeat import Heartbeat
    from ipykernel.kernelapp import IPKernelApp

    class ListeningApp(IPKernelApp):  # type: ignore[misc] # ipykernel has no types
        tw_others = False
        """Other clients than ours connect."""
        tw_sockets: Mapping[int, int] = {}
        """Descriptors of sockets that listen already, by the numbers in the connection file."""

        def init_control(self, context: Any) -> None:
            """Make the channel, without the connection to our own shell that the debugger would use."""
            super().init_control(context)
            with contextlib.suppress(zmq.ZMQError):  # it is retried for ever where the path is not seen
                self.debug_shell_socket.disconnect(self.shell_socket.getsockopt(zmq.LAST_ENDPOINT))

        def init_heartbeat(self) -> None:
            """Answer heartbeats, where other clients connect."""
            if self.tw_others:
                context: Any = zmq.Context()  # of its own, as in ipykernel: it must not wait for Python's lock
                if self.hb_port in self.tw_sockets:
                    context.setsockopt(zmq.USE_FD, self.tw_sockets[self.hb_port])
                self.heartbeat = Heartbeat(context, (self.transport, self.ip, self.hb_port))
                self.heartbeat.start()

        def _try_bind_socket(self, s: Any, port: int) -> int:
            """Take a socket that listens already if there is one."""
            if port in self.tw_sockets:
                s.setsockopt(zmq.USE_FD, self.tw_sockets[port])
            return int(super()._try_bind_socket(s, port))

    return ListeningApp


def _has_terminals() -> bool:
    """Return whether terminals can be made here; sandboxes allow none."""
    try:
        os.close(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _run_shell_command(shell: Any, command: str) -> None:
    """Run a `!command` with its output in a pipe; IPython's own way wants a terminal.

    Kernels of this package have `ipython_patches.run_command` for it; this text runs by itself, without that module.

    Raises:
        OSError: it is to go on in the background, as in IPython's way.
    """
    if command.rstrip().endswith("&"):
        raise OSError("a command that goes on in the background is started with subprocess.Popen, not with `!`")
    with subprocess.Popen(
        shell.var_expand(command, depth=1),
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                sys.stdout.write(line)
        except BaseException:
            process.kill()
            raise
    shell.user_ns["_exit_code"] = process.returncode


@functools.cache
def _kernel_app_class() -> Any:
    """Return our kind of application; made before a kernel is, so that forked ones have them."""
    import zmq
    from IPython.core.profiledir import ProfileDir

    class App(_listening_app()):  # type: ignore[misc] # made from what ipykernel has
        def parse_command_line(self, argv: Any = None) -> None:
            """Take no arguments: to build the parser takes longer than all else."""

        def load_config_file(self, *args: Any, **kwargs: Any) -> None:
            """Read no configuration."""

        def init_iopub(self, context: Any) -> None:
            context.setsockopt(zmq.SNDHWM, 0)  # or a flood of output drops messages, `idle` among them
            super().init_iopub(context)

        def log_connection_info(self) -> None:
            """Print nothing: no other client is to connect."""

        def init_kernel(self) -> None:
            """Make the kernel; it finds the shell that was made before it."""
            super().init_kernel()
            shell = self.kernel.shell
            shell.parent = shell.kernel = self.kernel
            _bind_to_process(shell, self.ipython_dir, self.profile_dir)
            if self.tw_others and not _has_terminals():
                shell.system = functools.partial(
                    _run_shell_command, shell
                )  # adds no frame: names are looked up in the caller's

        def init_profile_dir(self) -> None:
            """Make a profile that is empty, without looking for one."""
            self.profile_dir = ProfileDir(location=os.path.join(self.ipython_dir, "profile_default"))

        def init_config_files(self) -> None:
            """Copy no configuration."""

        def init_code(self) -> None:
            """Run files for the start of each shell only where other clients connect."""
            if self.tw_others:
                super().init_code()

    return App


@functools.cache
def prepare() -> Any:
    """Make application and shell of a kernel, without what belongs to its process: half of what a fork has to do.

    Only once a process has imported what its kernels need: modules that find a shell set themselves up for it.
    """
    from ipykernel.compiler import XCachingCompiler
    from ipykernel.ipkernel import IPythonKernel
    from IPython.core import interactiveshell
    from IPython.core.profiledir import ProfileDir
    from traitlets.config import Config

    load()
    app = _kernel_app_class().instance(config=Config(_CONFIG))
    app.log.setLevel("WARNING")  # or several records a cell are made and thrown away
    shell_module = vars(interactiveshell)
    store = shell_module.get(_STORE)
    if store:
        shell_module[_STORE] = lambda place: None
    try:
        shell = IPythonKernel.shell_class.default_value.instance(
            parent=app,
            ipython_dir="",  # this and the next come with the process, see `_bind_to_process`; unnamed they make none
            profile_dir=ProfileDir(),
            compiler_class=XCachingCompiler,
        )
    finally:
        if store:
            shell_module[_STORE] = store
    shell.user_ns_hidden.update(shell.user_ns)
    shell._sys_modules_keys = set(sys.modules)  # what `%reset -f aggressive` leaves
    shell.display_formatter.format(None)  # this makes a dozen formatters, and the next what reads cells
    shell.transform_cell("")
    return app


def _bind_to_process(shell: Any, ipython_dir: str, profile_dir: Any) -> None:
    """Set up for a shell what belongs to its process: folders and files in them, environment, streams."""
    shell.ipython_dir, shell.profile_dir = ipython_dir, profile_dir
    store = vars(sys.modules["IPython.core.interactiveshell"]).get(_STORE)
    if store:
        shell.db = store(os.path.join(profile_dir.location, "db"))
    history = shell.history_manager
    history.hist_file = history._get_hist_file_name()
    shell.starting_dir = os.getcwd()
    history.dir_hist[:] = [Path.cwd()]
    shell.init_pushd_popd_magic()
    if hasattr(shell, "init_logger"):  # until IPython 8: later ones make it when it is asked for
        shell.init_logger()
    shell.init_environment()
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr, "excepthook": sys.excepthook}
    shell._orig_sys_module_state.update(streams)


def make(connection_file: str, *, heartbeat: bool = False, sockets: Mapping[int, int] | None = None) -> Any:
    """Make a kernel that listens where a connection file says; its `start()` runs it for ever.

    It has no history database, no sleep behind a cell, reads no configuration of the user's, and opens no TCP port of
    its own.

    Args:
        connection_file: As jupyter_client writes it.
        heartbeat: Answer on the heartbeat's socket too, as other clients than ours want.
        sockets: Descriptors of sockets that listen already, by the numbers in the connection file.
    """
    app = prepare()
    import zmq
    from ipykernel import iostream, ipkernel

    if zmq.has("ipc"):
        _pipe_by_file(iostream.IOPubThread, f"ipc://{os.path.dirname(connection_file)}/children")
    app.connection_file, app.tw_others, app.tw_sockets = connection_file, heartbeat, sockets or {}
    sys.modules.setdefault("debugpy", None)  # type: ignore[arg-type] # imported late, see `load`
    ipkernel.sys = _BareSys()
    try:
        app.initialize([])
    finally:
        ipkernel.sys = sys
    _leave_first_streams()
    if sys.modules["debugpy"] is None:
        del sys.modules["debugpy"]
    sys.path.append("")  # modules beside the user's data can be imported; at the end, so that they shadow nothing
    return app


def _leave_first_streams() -> None:
    """Lead ipykernel's copies of the streams that the process began with to nothing: the host's log is one of them."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if (copy := getattr(stream, "_original_stdstream_copy", None)) is not None:
            os.dup2(null, copy, inheritable=False)
    os.close(null)


def _pipe_by_file(kind: Any, place: str) -> None:
    """Take what forked children print over a Unix socket, where the original opens a TCP port."""
    import zmq
    from zmq.eventloop.zmqstream import ZMQStream

    def setup_pipe_in(self: Any) -> None:
        self._pipe_uuid = os.urandom(16)
        pipe = self.socket.context.socket(zmq.PULL)
        pipe.linger = 0
        with contextlib.suppress(zmq.ZMQError):  # where no Unix socket may be made, what children display is lost
            pipe.bind(place)
        self._pipe_in = ZMQStream(pipe, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def setup_pipe_out(self: Any) -> tuple[Any, Any]:
        context: Any = zmq.Context()
        pipe = context.socket(zmq.PUSH)
        pipe.linger = 3000
        pipe.connect(place)
        return context, pipe

    kind._setup_pipe_in, kind._setup_pipe_out = setup_pipe_in, setup_pipe_out


if __name__ == "__main__":
    if int(sys.argv[2]) >= 0:
        hold_on(int(sys.argv[2]))
    given = (word.partition(":") for word in sys.argv[3:])
    make(sys.argv[1], sockets={int(number): int(descriptor) for number, _, descriptor in given}).start()
