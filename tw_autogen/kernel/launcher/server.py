"""The fork server: imports once what kernels need, then forks a steward for each; and the same for a single kernel."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import platform
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from . import namespaces
from .boot import STUB, load
from .bubblewrap import run_wrapped
from .steward import attend
from .system import CLONE_NEWPID, unshare
from .wall import BUBBLEWRAP, NAMESPACES, environment_paths

_PACKET = 1 << 20


def main(arguments: Sequence[str]) -> None:
    """Serve until the other end of a socket closes.

    Args:
        arguments: `many`, `one`, or `first` for one that is behind the wall already; the socket's number; the wall's
            level; for `many` the names of modules to import.
    """
    how, number, level, *modules = arguments
    channel = socket.socket(fileno=int(number))
    channel.set_inheritable(False)
    warnings.filterwarnings(
        "ignore", category=DeprecationWarning
    )  # that a process with threads forks: they are none of Python's
    try:
        if level == NAMESPACES and os.geteuid() != 0:
            namespaces.own_user()
    except OSError as error:
        _tell(channel, kind="failed", why=str(error.strerror or error), wall=True)
        return
    if how == "one" and level == BUBBLEWRAP:
        _serve_wrapped(channel)
    elif how == "one":
        _serve_one(channel)
    elif how == "first":
        request = json.loads(channel.recv(_PACKET))
        load()
        attend(channel, request)
    else:
        _serve_many(channel, modules)


def _serve_one(channel: socket.socket) -> None:
    request = json.loads(channel.recv(_PACKET))
    load()
    child = _fork(channel, request)
    channel.close()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _serve_wrapped(channel: socket.socket) -> None:
    request = json.loads(channel.recv(_PACKET, socket.MSG_PEEK))  # the steward reads it again
    command = [sys.executable, "-c", STUB, *_packages(), "first", str(channel.fileno()), BUBBLEWRAP]
    why = run_wrapped(request, _ours(), command, channel.fileno())
    if why:
        with contextlib.suppress(OSError):  # or the host would learn of an unread request, and nothing else
            channel.recv(_PACKET, socket.MSG_DONTWAIT)
        _tell(channel, kind="failed", why=why, wall=True)


def _serve_many(control: socket.socket, modules: Sequence[str]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries stewards by itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load()
    missing = [name for name in modules if not _imported(name)]
    gc.collect()
    gc.freeze()
    _tell(control, kind="hello", python=platform.python_version(), missing=missing, path=_dated_path())
    while True:
        packet, found, _, _ = socket.recv_fds(control, _PACKET, 1)
        if not packet:
            return
        with socket.socket(fileno=found[0]) as channel:
            _fork(channel, json.loads(packet), control)


def _fork(channel: socket.socket, request: Mapping[str, Any], control: socket.socket | None = None) -> int:
    """Fork a steward, in a new process namespace if the wall wants one: only the thread that forks it enters that."""
    plan = request["wall"]
    request = {**request, "wall": {**plan, "read": [*plan["read"], *_ours()]}}
    outcome: list[int] = []
    problem: list[OSError] = []

    def fork() -> None:
        try:
            if request["wall"]["level"] == NAMESPACES:
                unshare(CLONE_NEWPID)
            child = os.fork()
        except OSError as error:
            problem.append(error)
            return
        if child == 0:
            if control is not None:
                control.close()
            attend(channel, request)
        outcome.append(child)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    if problem:
        _tell(channel, kind="failed", why=str(problem[0]), wall=True)
        return -1
    return outcome[0]


def _ours() -> list[str]:
    """Give the folders of the interpreter and its packages."""
    return environment_paths([*sys.path, sys.prefix, sys.base_prefix, *_packages()], os.path.expanduser("~"))


def _packages() -> list[str]:
    """Give the folders of what we brought along: tracebacks quote it, and some of it is imported late."""
    return [os.path.dirname(str(sys.modules[name].__file__)) for name in ("tw_inside", "tw_launcher")]


def _imported(name: str) -> bool:
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - a package that is not there, or is broken, is none of the server's business
        return False
    return True


def _dated_path() -> dict[str, int]:
    """Give when each folder of installed packages last changed, in nanoseconds."""
    found = {}
    for folder in sys.path:
        if not folder.endswith("-packages"):
            continue
        with contextlib.suppress(OSError):
            found[folder] = os.stat(folder).st_mtime_ns
    return found


def _tell(channel: socket.socket, **message: Any) -> None:
    with contextlib.suppress(OSError):
        channel.send(json.dumps(message).encode())
