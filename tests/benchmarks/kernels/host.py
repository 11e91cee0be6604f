"""`Worker`: the benchmark's end of the line to a process that is measured. Every wait on it ends."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

WORKER = Path(__file__).with_name("worker.py")
REPOSITORY = Path(__file__).parents[3]


class WorkerFailed(Exception):
    """A worker answered with an error, or not in time, or ended."""


class Worker:
    """A fresh process that answers requests about one row.

    Args:
        row: Which; "" for what is measured of our kernel alone.
        python: The interpreter of the row's environment.

    Raises:
        WorkerFailed: the row's library can't be imported.
    """

    def __init__(self, row: str, python: str = sys.executable) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="twb", ignore_cleanup_errors=True)
        self._log = Path(self._folder.name, "log")
        path = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # a peer asks the command `jupyter`
        environment = {**os.environ, "TMPDIR": self._folder.name, "PYTHONPATH": str(REPOSITORY), "PATH": path}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, str(WORKER), row],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder.name,
                env=environment,
            )
        self._unread = b""
        try:
            self.import_seconds: float = self._answer(120)["import_seconds"]
        except BaseException:
            self.close()
            raise

    def ask(self, op: str, *, patience: float = 120, **arguments: Any) -> dict[str, Any]:
        """Ask for one measurement.

        Raises:
            WorkerFailed: it failed, or took longer than `patience` seconds.
        """
        try:
            self._process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerFailed("the worker ended before it was asked") from error
        answer = self._answer(patience)
        if "error" in answer:
            raise WorkerFailed(answer["error"])
        return answer

    def close(self) -> None:
        """End it with everything that it started."""
        started = psutil.Process(self._process.pid).children(recursive=True) if self._process.poll() is None else []
        with contextlib.suppress(OSError):  # it has ended already
            self._process.stdin.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _, left = psutil.wait_procs(started, timeout=1)
        for one in left:
            one.kill()
        self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, patience: float) -> dict[str, Any]:
        end = time.monotonic() + patience
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                raise WorkerFailed(f"no answer within {patience:g} s")
            read = os.read(pipe, 1 << 16)
            if not read:
                said = self._log.read_text(errors="replace").strip().splitlines()
                raise WorkerFailed(f"the worker ended: {said[-1] if said else 'it said nothing'}")
            self._unread += read
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)
