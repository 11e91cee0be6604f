"""`Live`: one kernel process with its sockets, from its start to its end."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Mapping
from typing import Any

from tw_autogen.errors import KernelError, KernelStartError
from tw_autogen.kernel.birth import Newborn, Place
from tw_autogen.kernel.bundle import call_expression, install_expression
from tw_autogen.kernel.folder import HostExchange
from tw_autogen.kernel.host_calls import HostCalls
from tw_autogen.kernel.inside.codec import Codec
from tw_autogen.kernel.kernel import OnOutput
from tw_autogen.kernel.running import Doorbell, Outcome, Running
from tw_autogen.kernel.sandbox import words
from tw_autogen.kernel.served import Served
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.steward import StewardedProcess


class Live:
    """A process that is ready, with our bridge in it.

    Args:
        newborn: The process with its sockets; it belongs to this object from now on.
        place: Where its code runs.
        settings: Limits.
        served: The functions that code may call.
        bell: Rings when another thread wants the running request stopped.

    Raises:
        KernelStartError: the process does not start.
    """

    def __init__(
        self, newborn: Newborn, place: Place, *, settings: KernelSettings, served: Served, bell: Doorbell
    ) -> None:
        self._newborn = newborn
        self._folder = place.folder
        self._settings = settings
        self._served = served
        self._bell = bell
        self._owner = os.getpid()
        self._exchange = HostExchange(place.folder, newborn.uid)
        self.codec = Codec(self._exchange)
        self.python = ""
        self.process = newborn.process
        self.wall = words(newborn.level, settings)
        self._connection = newborn.connection
        try:
            self._make_ready()
        except KernelError as error:
            said = self._connection.said()
            self.end()
            raise KernelStartError(f"{error}{chr(10) if said else ''}{said}", folder=self._folder) from error
        except BaseException:
            self.end()
            raise

    def run(self, code: str, *, seconds: float, on_output: OnOutput | None = None) -> Outcome:
        """Run a cell."""
        return self.start_cell(code, seconds=seconds, on_output=on_output).wait()

    def start_cell(self, code: str, *, seconds: float, on_output: OnOutput | None = None) -> Running:
        """Send a cell; give what waits for it."""
        if isinstance(self.process, StewardedProcess):
            self.process.watch()
        return self._running(self._connection.request(code), seconds, on_output)

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Ask the bridge in the kernel; give its answer.

        Raises:
            KernelError: the process ended, or did not answer in time and was killed.
        """
        return self._evaluate("answer", json.dumps({"op": op, **fields}), self._settings.load_seconds)

    def end(self) -> str:
        """End the process and remove what belongs to it; give how it ended."""
        if os.getpid() != self._owner:  # a fork of the owner must not end the owner's kernel
            return ""
        how = self._newborn.discard()
        self._exchange.close()
        return how

    def _make_ready(self) -> None:
        began = time.monotonic()
        options: dict[str, Any] = {
            "session_id": self._folder.name,
            "output_chars": self._settings.output_chars,
            "result_chars": self._settings.result_chars,
            "max_artifacts": self._settings.max_artifacts,
            "arrow": importlib.util.find_spec("pyarrow") is not None,
        }
        if self._newborn.way != "started":
            options |= {"folder": str(self._folder), "environment": self._newborn.environment}
        bundle = install_expression() if self._newborn.way == "started" else "None"
        start = call_expression("start", json.dumps(options))
        hello = call_expression("answer", json.dumps({"op": "hello"}))
        request = self._connection.request("", expressions={"a": bundle, "b": start, "c": hello}, silent=True)
        outcome = self._running(request, self._settings.start_seconds).wait()
        self._check(outcome, self._settings.start_seconds)
        if "ok" not in outcome.report:
            raise KernelError(_first_error(outcome.reply or {}), folder=self._folder)
        self.python = outcome.report["ok"]["python"]
        self.codec = Codec(self._exchange, arrow=outcome.report["ok"]["arrow"])
        if self._newborn.way != "warm" and not self._connection.await_life(
            self.process.alive, began + self._settings.start_seconds
        ):
            raise KernelError("no output comes from the kernel", folder=self._folder)

    def _evaluate(self, function: str, argument: str, seconds: float) -> dict[str, Any]:
        expression = call_expression(function, argument)
        request = self._connection.request("", expressions={"a": expression}, silent=True)
        outcome = self._running(request, seconds).wait()
        self._check(outcome, seconds)
        return outcome.report

    def _check(self, outcome: Outcome, seconds: float) -> None:
        if outcome.died:
            why = f"did not answer within {seconds:g} s" if outcome.killed else f"ended: {outcome.died}"
            raise KernelError(f"the kernel's process {why}", folder=self._folder)
        if outcome.stopped:
            raise KernelError(f"the kernel's process was stopped {outcome.stopped}", folder=self._folder)

    def _running(self, request: str, seconds: float, on_output: OnOutput | None = None) -> Running:
        return Running(
            self._connection,
            self.process,
            request,
            seconds=seconds,
            grace_seconds=self._settings.grace_seconds,
            output_chars=self._settings.output_chars,
            calls=lambda wake: HostCalls(self._served, self.codec, wake, threads=self._settings.host_threads),
            bell=self._bell,
            on_output=on_output,
        )


def _first_error(reply: Mapping[str, Any]) -> str:
    for one in (reply.get("user_expressions") or {}).values():
        if one.get("status") == "error":
            return f"{one.get('ename')}: {one.get('evalue')}"
    return "the kernel gave no answer"
