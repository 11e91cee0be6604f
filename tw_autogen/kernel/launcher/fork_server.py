"""The fork server: imports once what kernels need, then forks a supervisor for each; or starts a single kernel."""

from __future__ import annotations

import array
import contextlib
import functools
import gc
import importlib
import json
import os
import platform
import select
import signal
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from . import namespaces, seccomp
from .bubblewrap import run_wrapped, wanted_mounts
from .first import sitecustomize
from .first.sitecustomize import PATH
from .known_paths import FolderRefusedError, crosses, resolve
from .package_loader import STUB, load, prepare
from .packets import unpack
from .readable_files import changed_at, editable_paths, environment_paths, font_folders
from .sandbox import BUBBLEWRAP, NAMESPACES, Sandbox
from .supervisor import supervise, tell, whole_path
from .system_calls import CLONE_NEWPID, PR_SET_CHILD_SUBREAPER, prctl, unshare

_PACKET = 1 << 20
_MAX_DESCRIPTORS = 16
_IDLE_SECONDS = 0.25
"""How long no kernel is asked for before the next module is imported: the first session is likely to ask soon."""


def main(arguments: Sequence[str]) -> None:
    """Serve until the other end of a socket closes.

    Args:
        arguments: `many`, `one`, or `first` for one that is in the sandbox already; the socket's number; the sandbox's
            level; for `many` the names of modules to import at once, with commas between, and of those to import when
            no kernel is asked for; else the numbers of the kernel's listening sockets, with that of `wanted_mounts`
            behind them for `first`.
    """
    how, number, level, *rest = arguments
    channel = socket.socket(fileno=int(number))
    channel.set_inheritable(False)
    # That a process with threads forks: they are those of numeric libraries, which see to it themselves.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    try:
        if level == NAMESPACES and os.geteuid() != 0:
            namespaces.own_user()
    except OSError as error:
        tell(channel, kind="failed", why=str(error.strerror or error), sandbox=True)
        return
    if how == "one" and level == BUBBLEWRAP:
        _serve_wrapped(channel, [int(number) for number in rest])
    elif how == "one":
        _serve_one(channel, [int(number) for number in rest])
    elif how == "first":
        request = unpack(channel.recv(_PACKET))
        *sockets, wanted = map(int, rest)
        request["assignment"]["mounts"] = wanted_mounts(wanted)
        load()
        supervise(channel, request, sockets)
    else:
        at_once, *modules = rest
        _serve_many(channel, level, modules, at_once=[part for part in at_once.split(",") if part])


def _serve_one(channel: socket.socket, sockets: Sequence[int]) -> None:
    request = _with_environment(unpack(channel.recv(_PACKET)))
    load()
    down = _enter_processes(request["sandbox"]["level"])
    if down:
        tell(channel, kind="failed", why=down, sandbox=True)
        return
    child = os.fork()
    if child == 0:
        supervise(channel, request, sockets)
    channel.close()
    for sock in sockets:
        os.close(sock)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _serve_wrapped(channel: socket.socket, sockets: Sequence[int]) -> None:
    request = unpack(channel.recv(_PACKET, socket.MSG_PEEK))  # the supervisor reads it again
    os.environ[PATH] = os.environ.get("PYTHONPATH", "")  # for the supervisor, which no seccomp filter holds
    os.environ["PYTHONPATH"] = os.path.dirname(str(sitecustomize.__file__))
    first = [*_own_package_folders(), "first", str(channel.fileno()), BUBBLEWRAP, *map(str, sockets)]
    command = [sys.executable, "-c", STUB, *first]
    refused = False
    try:
        read = _interpreter_paths(request["assignment"]["write"])
        why = run_wrapped(request, read, kept_folders(), command, (channel.fileno(), *sockets))
    except FolderRefusedError as error:
        why, refused = str(error), True
    if why:
        with contextlib.suppress(OSError):  # or the host would learn of an unread request, and nothing else
            channel.recv(_PACKET, socket.MSG_DONTWAIT)
        tell(channel, kind="failed", why=why, sandbox=not refused)


def _serve_many(control: socket.socket, level: str, modules: Sequence[str], *, at_once: Sequence[str]) -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # supervisors are its children, though another process has forked them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # and the system buries them by itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load()
    seccomp.prepare()
    _known_folders()  # once, before any kernel waits
    for name in at_once:
        _try_import(name)
    waiting = _stand_by(control, level)
    tell(control, kind="hello", python=platform.python_version(), path=_dated_path())
    left, loaded, buffer = list(modules), False, bytearray(_PACKET)
    while True:
        if not loaded and not select.select([control], [], [], _IDLE_SECONDS if left else 0)[0]:
            if left:
                _try_import(left.pop(0))
                continue
            waiting.close()
            gc.collect()
            gc.freeze()
            prepare()  # not frozen: `gc.get_referrers` is to find a cell's variables
            loaded = True
            waiting = _stand_by(control, level, prepared=True)
            tell(control, kind="loaded")
        size, found = _receive(control, buffer)
        if not size:
            break
        with socket.socket(fileno=found[0]) as channel, memoryview(buffer)[:size] as packet:
            try:
                try:
                    socket.send_fds(waiting, [packet], found)
                except BrokenPipeError:  # something has killed it while it waited
                    waiting.close()
                    waiting = _stand_by(control, level, prepared=loaded)
                    socket.send_fds(waiting, [packet], found)
            except OSError as error:
                tell(channel, kind="failed", why=f"the request can't be handed on: {error.strerror}")
        for descriptor in found[1:]:
            os.close(descriptor)
        waiting.close()
        head = bytes(buffer[: buffer.index(b"\n", 0, size)])
        buffer[:size] = bytes(size)  # code could read in its memory what this process had in its own
        _known_folders()  # again if they have changed; the next supervisors know the filter of such kernels
        Sandbox(unpack(head)["sandbox"]).prepare()
        waiting = _stand_by(control, level, prepared=loaded)
    waiting.shutdown(socket.SHUT_WR)
    waiting.recv(1)  # until it has ended


def _receive(control: socket.socket, buffer: bytearray) -> tuple[int, list[int]]:
    """Take one packet into a buffer; return its size, 0 at the end, and the descriptors that came with it."""
    numbers = array.array("i")
    room = socket.CMSG_LEN(_MAX_DESCRIPTORS * numbers.itemsize)
    size, messages, _, _ = control.recvmsg_into([buffer], room)
    for level, kind, data in messages:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return size, list(numbers)


def _stand_by(control: socket.socket, level: str, *, prepared: bool = False) -> socket.socket:
    """Fork a supervisor ahead of its request, so that a kernel waits for one fork instead of three.

    It is forked by a child that enters a new process namespace: this process must stay in its own. A thread could enter
    it as well, and would save a fork; but Python 3.13 takes a process that such a thread has forked for one whose main
    thread gets no signals.

    Args:
        control: The server's socket; closed in the child.
        level: That of the kernels' sandbox.
        prepared: Whether this process has done `prepare`; otherwise the child does it while it waits.

    Returns:
        Where it takes its request, and with it the socket to the host; it ends when the other end closes.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() != 0:
        theirs.close()
        return ours
    control.close()
    ours.close()
    down = _enter_processes(level)
    if not down and os.fork() != 0:
        os._exit(0)
    if not prepared:
        prepare()
    packet, found, _, _ = socket.recv_fds(theirs, _PACKET, _MAX_DESCRIPTORS)
    theirs.close()
    if packet:
        channel = socket.socket(fileno=found[0])
        if down:  # that was then
            down = _enter_processes(level)
            if not down and os.fork() != 0:
                os._exit(0)
        if not down:
            head, _, environment = packet.partition(b"\n")
            request = {**unpack(head), "environment": json.loads(environment)}
            supervise(channel, _with_environment(request), found[2:], log=found[1])
        tell(channel, kind="failed", why=down, sandbox=True)
    os._exit(0)


def _enter_processes(level: str) -> str:
    """Make the next child the first of a new process namespace, if the sandbox wants one; return why it can't be."""
    try:
        if level == NAMESPACES:
            unshare(CLONE_NEWPID)
    except OSError as error:
        return str(error)
    return ""


def _with_environment(request: Mapping[str, Any]) -> dict[str, Any]:
    """Add the folders of this interpreter to what a kernel may read, and not write where they lie in its folders."""
    plan, assignment = request["sandbox"], request.get("assignment")
    written = [] if assignment is None else assignment["write"]
    ours, kept = _known_folders(written)
    found = {"read": [*plan["read"], *ours], "kept": kept, "written": written}
    if assignment is None:
        found["path"] = {path: resolve(os.path.abspath(path), ()) for path in whole_path() if path}
    return {**request, "sandbox": {**plan, **found}}


def _known_folders(written: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    crossed = any(crosses(path, written) for path in whole_path() if path)
    key = tuple(map(changed_at, whole_path())), tuple(written) if crossed else ()
    seen, found, kept = _own_folders(*key)
    if any(changed_at(path) != when for path, when in seen.items()):
        _own_folders.cache_clear()
        seen, found, kept = _own_folders(*key)
    return found, kept


@functools.lru_cache(maxsize=4)
def _own_folders(changed: tuple[int, ...], written: tuple[str, ...]) -> tuple[dict[str, int], list[str], list[str]]:
    """Return the folders that were looked at, `_interpreter_paths` and `kept_folders`.

    Args:
        changed: When each folder of the path was changed; the key of what is remembered.
        written: Folders that code may write to, where a folder of the path is reached through one.
    """
    seen: dict[str, int] = {}
    return seen, _interpreter_paths(written, seen), kept_folders()


def _interpreter_paths(written: Sequence[str], seen: dict[str, int] | None = None) -> list[str]:
    """Return what code may read of the interpreter, its packages, and the projects on its path.

    Args:
        written: Folders that code may write to.
        seen: As of `environment_paths`.
    """
    own, packages = (sys.prefix, sys.base_prefix), _own_package_folders()
    home = os.path.expanduser("~")
    found = environment_paths(whole_path(), home, own, packages=packages, written=written, seen=seen)
    return [*found, *font_folders(home, written), *editable_paths(dict(sys.modules), seen=seen)]


def kept_folders() -> list[str]:
    """Return the folders that processes outside a sandbox run programs and import from, without links."""
    installed = [entry for entry in whole_path() if os.path.basename(entry) in ("site-packages", "dist-packages")]
    own, packages = (sys.prefix, sys.base_prefix), _own_package_folders()
    found = environment_paths(installed, os.path.expanduser("~"), own, packages=packages)
    return [path for path in found if os.path.isdir(path) and os.path.realpath(path) == path]


def _own_package_folders() -> list[str]:
    """Return the folders of what we brought along: tracebacks quote it, and some of it is imported late."""
    return [os.path.dirname(str(sys.modules[name].__file__)) for name in ("tw_guest", "tw_launcher")]


def _try_import(name: str) -> None:
    with contextlib.suppress(Exception):  # a package that is not there, or is broken, is none of the server's business
        importlib.import_module(name)


def _dated_path() -> dict[str, int]:
    """Return when each folder of installed packages last changed, in nanoseconds."""
    found = {}
    for folder in whole_path():
        if not folder.endswith("-packages"):
            continue
        with contextlib.suppress(OSError):
            found[folder] = os.stat(folder).st_mtime_ns
    return found
