"""`KernelClient`: one kernel process with its sockets, from its start to its end."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen import bounded_json
from tw_autogen.errors import KernelError, KernelStartError
from tw_autogen.kernel.exchange_folder import HostExchange
from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.guest.codec import Codec
from tw_autogen.kernel.guest.crash_output import file_name
from tw_autogen.kernel.guest.json_size import MAX_BYTES, estimate_parsed_bytes
from tw_autogen.kernel.guest.output_capture import MARK_CHARS
from tw_autogen.kernel.guest.plugin_context import session_name
from tw_autogen.kernel.guest.remote_files import PIECE
from tw_autogen.kernel.guest_bundle import call_expression, install_expression
from tw_autogen.kernel.host_calls import HostCalls, HostFunctions
from tw_autogen.kernel.kernel import OnOutput
from tw_autogen.kernel.kernel_process import Process
from tw_autogen.kernel.pending_request import ANSWER_LOST, PendingRequest, RawResult, expression_results
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.transport import Poller, WakeupSocket, Wire, await_kernel_info
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = LazyModule("importlib.metadata")

_FINISH_SECONDS = 10.0
"""How long the end of a kernel waits for the last copy of its variables."""
_HELLO_SECONDS = 10.0
"""How long a kernel may take to answer after a cell of which no reply came."""
_MAX_MESSAGE = 2 << 30
"""How much memory a message of a kernel without a limit may take here."""


@dataclass(frozen=True)
class KernelHandle:
    """A kernel that was started, wherever it runs; it may not listen yet.

    Args:
        wire: The way to it.
        process: What ends with it.
        said: Returns what it wrote before its streams were led to the host.
        release: Called when it has ended.
        options: What its bridge is told, besides limits.
        files: Answers code there that asks for files of the host's folder; None where both see the same folder.
        uid: The user that it is, where the host is root; 0: the host's own.
        sandbox: Describes its sandbox in one line; empty where that is said elsewhere.
        has_bridge: Our end of the bridge is there already.
        listens: It has answered before.
        watch: Called when a cell begins, so that memory and disk are looked at more often.
        module: The module of the bundle that answers there, see `call_expression`.
        expressions: Evaluated after each cell that ran to its end.
        request_type: Waits for one request.
    """

    wire: Wire
    process: Process
    said: Callable[[], str] = str
    release: Callable[[], object] = str
    options: Mapping[str, Any] = field(default_factory=dict)
    files: FileTransfer | None = None
    uid: int = 0
    sandbox: str = ""
    has_bridge: bool = False
    listens: bool = False
    watch: Callable[[], object] = str
    module: str = "bridge"
    expressions: Mapping[str, str] = field(default_factory=dict)
    request_type: type[PendingRequest] = PendingRequest


class KernelClient:
    """A process that is ready, with our bridge in it.

    Args:
        folder: Where its code runs.
        settings: Limits.
        handle: The kernel, just started; this owns it from now on.
        served: The functions that code may call.
        wakeup: Rung when another thread wants the running request stopped.
        variables_key: Hexadecimal; with it copies of its variables are sealed, which are to come back in a later
            process. Empty: they are not.

    Raises:
        KernelStartError: the process does not start.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: KernelSettings,
        handle: KernelHandle,
        served: HostFunctions,
        wakeup: WakeupSocket,
        variables_key: str = "",
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._served = served
        self._variables_key = variables_key
        self._owner = os.getpid()
        self._exchange = HostExchange(folder, handle.uid)
        self.codec = Codec(self._exchange, max_bytes=max_message_bytes(settings))
        self.python = ""
        self._handle = handle
        self._connection = handle.wire
        self.process = handle.process
        self.sandbox = handle.sandbox
        self._waiting = Poller(handle.wire, handle.process, wakeup)
        try:
            self._make_ready()
        except KernelError as error:
            output = handle.said().strip()[-2000:]
            self.end()
            raise KernelStartError(f"{error}{chr(10) if output else ''}{output}", folder=folder) from error
        except BaseException:
            self.end()
            raise

    def start_cell(self, code: str, *, seconds: float, on_output: OnOutput | None = None) -> PendingRequest:
        """Send a cell; give what waits for it.

        Args:
            code: The cell.
            seconds: How long it may run.
            on_output: Called with stream and text as they come; None: nobody listens.
        """
        self._handle.watch()
        self._exchange.sweep()
        send = functools.partial(self._connection.request, code, expressions=self._handle.expressions)
        return self._start_request(send, seconds, on_output, self._crash_output)

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Ask the bridge in the kernel; give its answer.

        Raises:
            KernelError: the process ended, or did not answer in time and was killed.
        """
        return self._ask_kernel({"op": op, **fields}, self._settings.load_seconds)

    def move_files(self, op: str, names: Sequence[str], *, seconds: float) -> dict[str, Any]:
        """Ask the bridge to take or to give files, in a time that no call of code to the host adds to.

        Args:
            op: `take` or `give`.
            names: Of the files.
            seconds: How long it may take.

        Raises:
            KernelError: the process ended, or it was stopped, by the time limit or an interrupt, and lives.
        """
        return self._ask_kernel({"op": op, "files": names}, seconds, serves=False)

    def hello(self) -> dict[str, Any]:
        """Ask the bridge whether it still answers, and for the variables; raises as `ask` does, and sooner."""
        return self._ask_kernel({"op": "hello"}, min(self._settings.load_seconds, _HELLO_SECONDS))

    def request_rollback(self, code: str) -> None:
        """Ask that the next cell is undone when it ends, if it is this one."""
        self.tell("try", code=code, limits=_rollback_limits(self._settings))

    def finish_checkpoint(self, position: int) -> None:
        """Write a last copy of the variables in the kernel, if there is none of them as they are now, and wait for it.

        Args:
            position: How many lines of the journal of cells it covers.

        Raises:
            KernelError: as `ask`, and sooner.
        """
        asked = {"op": "finish_checkpoint", "position": position, "seconds": _FINISH_SECONDS}
        self._ask_kernel(asked, _FINISH_SECONDS + _HELLO_SECONDS)

    def tell(self, op: str, **fields: Any) -> str:
        """Ask the bridge to do something before the next cell; return the request's id, its answer is not awaited."""
        return self._sender({"a": self._call_expression("answer", json.dumps({"op": op, **fields}))})()

    @property
    def owned(self) -> bool:
        """Return whether this process has started it, and is no fork of the one that has."""
        return os.getpid() == self._owner

    @property
    def uid(self) -> int:
        """Return the user that the kernel is, where the host is root; 0: the same as the host."""
        return self._handle.uid

    def end(self) -> str:
        """End the process and remove what belongs to it; give how it ended."""
        if not self.owned:
            return ""
        how = self.process.end()
        self._waiting.close()
        self._connection.close()
        if self._handle.files is not None:
            self._handle.files.close()
        self._exchange.close()
        self._handle.release()
        return how

    def _make_ready(self) -> None:
        began = time.monotonic()
        options: dict[str, Any] = {
            "session_id": session_name(self._folder),
            "output_chars": self._settings.output_chars,
            "result_chars": self._settings.result_chars,
            "max_artifacts": self._settings.max_artifacts,
            "rollback": _rollback_limits(self._settings) if self._settings.rollback_on_error else None,
            "arrow": _has_arrow(),
            "exchange": self._exchange.token,
            "checkpoint": _checkpoint_options(self._settings, self._variables_key) if self._variables_key else None,
            "max_artifact_bytes": self._settings.max_artifact_mb << 20,
            **self._handle.options,
        }
        bundle = "None" if self._handle.has_bridge else install_expression()
        start = self._call_expression("start", json.dumps(options))
        hello = self._call_expression("answer", json.dumps({"op": "hello"}))
        send = self._sender({"a": bundle, "b": start, "c": hello})
        outcome = self._start_request(send, self._settings.start_seconds).wait()
        self._check(outcome, self._settings.start_seconds)
        error = _first_error(outcome.reply or {})
        greeting = outcome.report.get("ok")
        if error or not isinstance(greeting, dict):
            raise KernelError(error or "the kernel gave no answer", folder=self._folder)
        self.python = str(greeting.get("python", ""))
        self.codec.arrow = _has_arrow() and bool(greeting.get("arrow"))
        patience = began + self._settings.start_seconds - time.monotonic()
        heard = self._handle.listens or outcome.heard  # ipykernel greets who subscribes, since version 7
        if not (heard or await_kernel_info(self._connection, self.process.alive, patience)):
            raise KernelError("no output comes from the kernel", folder=self._folder)

    def _ask_kernel(self, question: Mapping[str, Any], seconds: float, *, serves: bool = True) -> dict[str, Any]:
        text = json.dumps(question)
        if self._handle.files is None or len(text) <= PIECE:
            return self._evaluate("answer", text, seconds, serves=serves)
        return self._evaluate("answer_file", self.codec.leave(text), seconds, serves=serves)

    def _evaluate(self, function: str, argument: str, seconds: float, *, serves: bool = True) -> dict[str, Any]:
        outcome = self._start_request(
            self._sender({"a": self._call_expression(function, argument)}), seconds, serves=serves
        ).wait()
        self._check(outcome, seconds)
        if self._handle.files is None or "file" not in outcome.report:
            return outcome.report
        try:
            text = self.codec.find(str(outcome.report["file"]), limit_bytes=MAX_BYTES)
            answer = bounded_json.loads(text) if estimate_parsed_bytes(text) <= MAX_BYTES else {}
        except (OSError, ValueError) as error:
            raise KernelError(f"the kernel's answer can't be read: {error}", folder=self._folder) from error
        return answer if isinstance(answer, dict) else {}

    def _sender(self, expressions: Mapping[str, str]) -> Callable[[], str]:
        return functools.partial(self._connection.request, "", expressions=expressions, silent=True)

    def _call_expression(self, function: str, argument: str) -> str:
        return call_expression(function, argument, module=self._handle.module)

    def _check(self, outcome: RawResult, seconds: float) -> None:
        if outcome.died:
            why = f"did not answer within {seconds:g} s" if outcome.killed else f"ended: {outcome.died}"
            raise KernelError(f"the kernel's process {why}", folder=self._folder)
        if outcome.answer_lost:
            raise KernelError(ANSWER_LOST, folder=self._folder)
        if outcome.stopped:
            raise KernelError(f"the kernel's process was stopped {outcome.stopped}", folder=self._folder)

    def _crash_output(self, stream: str, request: str) -> str:
        """Return what a cell flushed, from the file that the kernel keeps; empty if there is none of this cell."""
        most = 4 * (self._settings.output_chars + MARK_CHARS)
        with contextlib.suppress(OSError), self._exchange.open(file_name(stream, self._exchange.token)) as file:
            of, _, text = file.read(most).decode("utf-8", "ignore").partition("\n")
            return text if of == request else ""
        return ""

    def _start_request(
        self,
        send: Callable[[], str],
        seconds: float,
        on_output: OnOutput | None = None,
        crash_output: Callable[[str, str], str] = lambda stream, request: "",
        *,
        serves: bool = True,
    ) -> PendingRequest:
        def calls(wake: Callable[[], None]) -> HostCalls:
            files, threads = self._handle.files, self._settings.host_threads
            made = HostCalls(self._served, self.codec, wake, threads=threads, files=files)
            if not serves:
                made.abandon()
            return made

        return self._handle.request_type(
            self._connection,
            self.process,
            send,
            seconds=seconds,
            grace_seconds=self._settings.grace_seconds,
            ends_unresponsive=self._settings.end_unresponsive,
            output_chars=self._settings.output_chars + MARK_CHARS,
            calls=calls,
            waiting=self._waiting,
            on_output=on_output,
            crash_output=crash_output,
        )


def max_message_bytes(settings: KernelSettings) -> int:
    """Return how much memory the tables of one message may take here, and those of all host calls at work together.

    Args:
        settings: `memory_mb`.
    """
    return (settings.memory_mb << 19) or _MAX_MESSAGE


def _rollback_limits(settings: KernelSettings) -> dict[str, float]:
    return {"max_bytes": settings.rollback_mb << 20, "max_seconds": settings.rollback_seconds}


@functools.cache
def _has_arrow() -> bool:
    """Return whether pyarrow is here, and one that runs no code that is hidden in what it reads (CVE-2023-47248)."""
    try:
        return int(metadata.version("pyarrow").partition(".")[0]) > 14
    except (metadata.PackageNotFoundError, ValueError):
        return False


def _checkpoint_options(settings: KernelSettings, key: str) -> dict[str, Any]:
    return {
        "key": key,
        "every_seconds": settings.checkpoint_seconds,
        "max_bytes": settings.checkpoint_mb << 20,
        "max_seconds": settings.load_seconds / 2,
        "memory_bytes": settings.memory_mb << 20,
    }


def _first_error(reply: Mapping[str, Any]) -> str:
    for result in expression_results(reply):
        if result.get("status") == "error":
            return f"{result.get('ename')}: {result.get('evalue')}"
    return ""
