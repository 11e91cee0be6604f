"""The first text that a local kernel's process runs: ties its life to its owner's, then starts ipykernel, tuned.

Run as `python -c <this text> <connection file> <lifeline>`; the lifeline is a pipe whose other end the owner holds, or
-1. Only the standard library and ipykernel are there.
"""

import sys

# Before anything else is imported: a user's `json.py` or `random.py` in the folder must shadow no module.
sys.path[:] = [entry for entry in sys.path if entry]

import contextlib
import os
import select
import signal
import threading


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


def run(connection_file: str) -> None:
    """Start ipykernel without what costs a start 0.3 s and is of no use here: debugger, history database, sleeps."""
    sys.modules["debugpy"] = None  # type: ignore[assignment] # the import system's way to say: not there
    import zmq  # deferred, like ipykernel: behind the line above
    from ipykernel.kernelapp import IPKernelApp

    class App(IPKernelApp):  # type: ignore[misc] # ipykernel has no types
        def init_iopub(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
            context.setsockopt(zmq.SNDHWM, 0)  # or a flood of output drops messages, `idle` among them
            super().init_iopub(context)

    app = App.instance()
    app.initialize(
        [
            f"-f={connection_file}",
            "--HistoryManager.enabled=False",
            "--InteractiveShell.colors=nocolor",
            "--InteractiveShell.cache_size=0",
            "--InteractiveShellApp.ignore_cwd=True",
            "--Kernel._execute_sleep=0",
        ]
    )
    del sys.modules["debugpy"]
    sys.path.append("")  # modules beside the user's data can be imported; at the end, so that they shadow nothing
    app.start()


if __name__ == "__main__":
    if int(sys.argv[2]) >= 0:
        hold_on(int(sys.argv[2]))
    run(sys.argv[1])
