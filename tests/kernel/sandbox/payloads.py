"""Cells that do harm, from payloads.yaml, and the host that they are let loose on."""

import contextlib
import importlib.util
import os
import shutil
import socket
import socketserver
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.kernel.sandbox.world import SECRET, World

MARKS = ("printed", "made", "heard", "gone", "changed")
_GO_HOME = "import os\nhere = globals().get('here') or os.getcwd()\nos.chdir(here)"


@dataclass(frozen=True)
class Payload:
    """One cell, and by what the host knows that it succeeded."""

    id: str
    mark: str
    cell: str
    needs: tuple = ()
    seconds: float = 0.0

    @property
    def destroys(self):
        """Tell whether it gets a kernel that no other cell has been in."""
        return self.mark in ("changed", "gone")

    def lacking(self):
        """Give what it needs and this system doesn't have."""
        return [need for need in self.needs if not _there(need)]


def payloads():
    """Read them all."""
    rows = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return [Payload(**{**row, "needs": tuple(row.get("needs", ()))}) for row in rows]


class Prize(World):
    """A host whose listeners answer, with a process to kill; for many payloads, one after the other."""

    def __enter__(self):
        super().__enter__()
        self._heard = []
        handler = type("Handler", (_Answer,), {"heard": self._heard})
        self._servers = []
        for make, address in (
            (socketserver.ThreadingTCPServer, ("127.0.0.1", 0)),
            (socketserver.ThreadingUDPServer, ("127.0.0.1", 0)),
            (socketserver.ThreadingUnixStreamServer, str(self.outside / "answers")),
        ):
            server = make(address, handler)
            server.daemon_threads = True
            self._stack.callback(server.server_close)
            self._stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
            self._servers.append(server)
        self._prey = None
        self._stack.callback(self._end_prey)
        return self

    def run(self, payload, kernel):
        """Let a payload loose; tell whether it succeeded, and what its cell came to."""
        self._replant()
        made = self.outside / f"made-{payload.id}"
        words = {
            "home": self.home, "tilde": f"~/{self.home.name}", "outside": self.outside, "made": made,
            "victim": self.outside / "victim.txt", "unix": self.outside / "answers", "prey": self._prey.pid,
            "host": os.getpid(), "mark": f"{self.nonce}.{payload.id}.", "tcp": self._servers[0].server_address[1],
            "udp": self._servers[1].server_address[1],
        }  # fmt: skip
        code = payload.cell
        for name, value in words.items():
            code = code.replace(f"<<{name}>>", str(value))
        if "<<" in code or not (self.outside.is_absolute() and self.home.is_absolute() and self._prey.poll() is None):
            raise ValueError(f"{payload.id} has no target of its own")
        for _ in range(2):  # a kernel that the one before has ended says so once
            kernel.execute(_GO_HOME, seconds=60)
        execution = kernel.execute(code, seconds=15)
        said = f"{execution.result}{execution.stdout}{execution.stderr}{execution.error}"
        checks = {
            "printed": lambda: SECRET in said or words["mark"] in said.replace(code, ""),
            "made": made.exists,
            "heard": lambda: any(words["mark"].encode() in one for one in self._heard),
            "gone": lambda: self._prey.poll() is not None,
            "changed": lambda: self._snapshot() != self._files,
        }
        end = time.monotonic() + max(payload.seconds, 0.1 if payload.mark in ("heard", "gone") else 0.0)
        while not (succeeded := checks[payload.mark]()) and time.monotonic() < end:
            time.sleep(0.02)
        return succeeded, execution

    def _replant(self):
        for folder in (self.home, self.outside):
            if "tw-sandbox-" not in folder.name or folder.is_symlink():
                raise ValueError(f"not ours to empty: {folder}")
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif not path.is_socket():
                    path.unlink()
        self._plant_files()
        self._heard.clear()
        if self._prey is None or self._prey.poll() is not None:
            self._end_prey()
            environment = {"OPENAI_API_KEY": SECRET}
            self._prey = subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)
        self._files = self._snapshot()

    def _end_prey(self):
        if self._prey is not None:
            self._prey.kill()
            self._prey.wait()


class _Answer(socketserver.BaseRequestHandler):
    heard: list

    def handle(self):
        if isinstance(self.request, tuple):
            self.heard.append(self.request[0])
            return
        with contextlib.suppress(OSError):
            self.request.settimeout(2)
            while data := self.request.recv(65536):
                self.heard.append(data)
                if b"\r\n\r\n" in data:
                    self.request.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\na\n1\n")
                    self.request.shutdown(socket.SHUT_WR)


def _there(need):
    if not need.startswith("/"):
        return importlib.util.find_spec(need) is not None
    if need.count("/") > 1:
        return os.access(need, os.R_OK)
    return shutil.which(need[1:]) is not None
