"""Isolation that a kernel may claim: what generated code must not reach. Each is tried with things planted for it.

Nothing here harms a machine whose kernel has no sandbox: only what a check has made is read, written or signalled.
One or a few ways are tried for each; that they are closed doesn't show that all are.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.kernel_checks.bench import KernelFactory, expect, run
from tw_autogen.kernel import Kernel

_WAYS = """
import json, os, socket, subprocess, sys
facts = {facts!r}
through = []
def way(name, act):
    try:
        if act():
            through.append(name)
    except Exception:
        pass
{ways}
print(json.dumps(through))
"""
_CONNECT = """
def connect(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"hello")
    return True
way("tcp", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", facts["tcp"])))
for name, address in facts["paths"].items():
    way(name, lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, address.replace("@", chr(0))))
def listen():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"hello", ("127.0.0.1", facts["udp"]))
    return False
way("udp", listen)
"""
_READ = """
way("read", lambda: facts["secret"] in open(facts["path"]).read())
way("listed", lambda: os.path.basename(facts["path"]) in os.listdir(os.path.dirname(facts["path"])))
way("program", lambda: facts["secret"] in subprocess.run(["cat", facts["path"]], capture_output=True, text=True).stdout)
"""
_WRITE = """
def put(path, mode):
    with open(path, mode) as file:
        file.write("by code")
way("appended", lambda: put(facts["path"], "a"))
way("made", lambda: put(facts["path"] + ".made", "w"))
way("mode", lambda: os.chmod(facts["path"], 0o600))
way("program", lambda: subprocess.run(["touch", facts["path"] + ".touched"]))
"""
_PROCESSES = """
import signal
def seen(what):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if facts["secret"].encode() in open(f"/proc/{pid}/{what}", "rb").read():
                return True
        except OSError:
            pass
way("command line", lambda: seen("cmdline"))
way("environment", lambda: seen("environ"))
way("signal", lambda: os.kill(facts["pid"], signal.SIGCONT))
"""
_SECRETS = """
way("variable", lambda: any(facts["secret"] in one for one in os.environ.values()))
def parents():
    pid = os.getpid()
    for _ in range(3):
        if facts["secret"].encode() in open(f"/proc/{pid}/environ", "rb").read():
            return True
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
way("of processes above", parents)
way("program", lambda: facts["secret"] in subprocess.run(["env"], capture_output=True, text=True).stdout)
"""
_LISTENER = """
import os, signal, sys
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b"signalled"))
os.write(1, b"ready")
sys.stdin.read()
"""
_OUTLIVING = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
end = time.monotonic() + 10
while time.monotonic() < end:
    with open("beat.txt", "a") as file:
        file.write(".")
    time.sleep(0.05)
"""
_START = """
import os, subprocess, sys, time
subprocess.run([sys.executable, "-c", {code!r}])
end = time.monotonic() + 8
while not os.path.exists("beat.txt") and time.monotonic() < end:
    time.sleep(0.02)
os.path.exists("beat.txt")
"""


def no_network(factory: KernelFactory) -> None:
    """Code reaches no port and no Unix socket of this machine."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_shared_folder())
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        heard, paths = {"tcp": tcp, "udp": udp}, {}
        if hasattr(socket, "AF_UNIX"):
            paths["path"] = str(folder / "s")
            if sys.platform == "linux":
                paths["abstract"] = f"@tw-check-{secrets.token_hex(8)}"
        for name, address in paths.items():
            heard[name] = stack.enter_context(socket.socket(socket.AF_UNIX))
            heard[name].bind(address.replace("@", "\0"))
            heard[name].listen()
        with contextlib.suppress(OSError):
            os.chmod(folder / "s", 0o777)
        with factory() as kernel:
            said = _try(kernel, _CONNECT, tcp=tcp.getsockname()[1], udp=udp.getsockname()[1], paths=paths)
        expect(sorted({*said, *(name for name, one in heard.items() if _was_reached(one))}), [], "reached")


def no_home(factory: KernelFactory) -> None:
    """Code reads nothing in the home folder of who runs the kernel."""
    secret = secrets.token_hex(16)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=Path.home(), prefix=".tw-check-") as file:
        file.write(secret)
        file.flush()
        os.chmod(file.name, 0o644)
        with factory() as kernel:
            expect(_try(kernel, _READ, path=file.name, secret=secret), [], "ways that got through")


def no_host_files(factory: KernelFactory) -> None:
    """Code reads no file of this machine that lies neither in its folder nor in the system."""
    secret = secrets.token_hex(16)
    with _shared_folder() as folder, factory() as kernel:
        (folder / "file.txt").write_text(secret, encoding="utf-8")
        expect(_try(kernel, _READ, path=str(folder / "file.txt"), secret=secret), [], "ways that got through")


def no_host_writes(factory: KernelFactory) -> None:
    """Code changes nothing on this machine outside its folder, also where anybody may write."""
    with _shared_folder() as folder, factory() as kernel:
        path = folder / "file.txt"
        path.write_text("as it was", encoding="utf-8")
        path.chmod(0o666)
        _try(kernel, _WRITE, path=str(path))
        found = {one.name: (one.read_text(encoding="utf-8"), one.stat().st_mode & 0o777) for one in folder.iterdir()}
        expect(found, {"file.txt": ("as it was", 0o666)}, "the folder beside")


def no_host_processes(factory: KernelFactory) -> None:
    """Code sees and signals no process but its own."""
    secret = secrets.token_hex(16)
    process = subprocess.Popen(
        [sys.executable, "-c", _LISTENER, secret], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "TW_CHECK": secret},
    )  # fmt: skip
    try:
        expect(os.read(process.stdout.fileno(), 5) if process.stdout else b"", b"ready", "the process to be found")
        with factory() as kernel:
            said = _try(kernel, _PROCESSES, secret=secret, pid=process.pid)
        heard, _ = process.communicate(timeout=10)
        expect(sorted(set(said) - {"signal"}), [], "ways that got through")
        expect(heard, b"", "what the process heard")
    finally:
        process.kill()
        process.communicate()


def no_secrets(factory: KernelFactory) -> None:
    """Code reads no variable of this process's environment that nobody named for it."""
    secret = secrets.token_hex(16)
    os.environ["TW_CHECK_API_KEY"] = secret
    try:
        with factory() as kernel:
            expect(_try(kernel, _SECRETS, secret=secret), [], "ways that got through")
    finally:
        del os.environ["TW_CHECK_API_KEY"]


def nothing_outlives(factory: KernelFactory) -> None:
    """What code started ends with its kernel, however it was started."""
    with factory() as kernel:
        began = run(kernel, _START.format(code=_OUTLIVING)).result
        expect(began, "True", "a process of the cell's has begun to write")
        kernel.restart()
        beat = kernel.folder / "beat.txt"
        before = beat.stat().st_size
        threading.Event().wait(0.5)
        expect(beat.stat().st_size - before, 0, "what it wrote in half a second behind the restart")


ISOLATION = (no_network, no_home, no_host_files, no_host_writes, no_host_processes, no_secrets, nothing_outlives)


def _try(kernel: Kernel, ways: str, **facts: Any) -> list[str]:
    """Run a cell that tries some ways; give those that it says got through."""
    said = run(kernel, _WAYS.format(facts=facts, ways=ways)).stdout.strip()
    found = json.loads(said.rpartition("\n")[2])
    return [str(one) for one in found]


@contextlib.contextmanager
def _shared_folder() -> Iterator[Path]:
    """Make a folder that every user of this machine may read and write."""
    folder = Path(tempfile.mkdtemp(prefix="tw-check-"))
    try:
        folder.chmod(0o777)
        yield folder
    finally:
        shutil.rmtree(folder)


def _was_reached(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        if one.type == socket.SOCK_DGRAM:
            one.recv(16)
        else:
            one.accept()[0].close()
    except BlockingIOError:
        return False
    return True
