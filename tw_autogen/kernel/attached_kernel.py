"""`AttachedKernel`: the kernel that the user's notebook has open; there is no sandbox."""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.approval import CellApproval
from tw_autogen.errors import ConfigError, KernelBusyError, KernelError, KernelStartError, PluginLoadError
from tw_autogen.kernel.attached_connection import AttachedProcess, Target
from tw_autogen.kernel.client import KernelClient, KernelHandle
from tw_autogen.kernel.fair_lock import LockTimeout
from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.gateway_client import RESTARTED
from tw_autogen.kernel.guest_bundle import PACKAGE, call_expression
from tw_autogen.kernel.kernel import Artifact, Execution, Loadable, Log, Variable
from tw_autogen.kernel.live_kernel import LiveKernel
from tw_autogen.kernel.pending_request import ANSWER_LOST, PendingRequest, RawResult, expression_results
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.kernel.transport import Poller, Wire, await_kernel_info

_log = logging.getLogger(__name__)
_ANSI = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")
_TABLE_BYTES = 64_000_000
_SAY_SECONDS = 1.0
"""How long a busy kernel is waited for before that is said."""
_ASK_SECONDS = 2.0
"""How often it is asked whether it is free."""
_GONE_SECONDS = 10.0
"""How long a kernel is waited for at whose address nothing listens: one that is restarted comes back."""
_LOOK_SECONDS = 1.0
"""How long it is waited for after a failed cell, to look at its variables."""
_LEAVE_SECONDS = 1.0
"""How long the removal of what is ours is waited for."""
_OUTPUT_SECONDS = 0.5
"""How long output of a request may trail behind its reply before the line counts as cut."""
_READ_SECONDS = 0.1
"""How long messages of one channel are read before the clock is looked at."""
_MAX_TRIES = 10
"""How often a request is sent that a failed cell of the user's has made Jupyter drop."""
_MAX_SHOWN, _MAX_SHOWN_CHARS, _SHOWN_WORDS_CHARS = 50, 64 << 20, 200
_PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/svg+xml": "svg"}
_NOBODY = "no kernel listens there: it has ended, and its connection file was left behind"
_HELLO, _LEAVE = '{"op": "hello"}', '{"op": "leave"}'
_INTERRUPTED = "Interrupted in the notebook by its user, or by a restart there."
_AFTER_LOSS = (
    "If it was restarted or ended, its variables are lost. The next cell goes to the kernel that answers there then."
)


class AttachedKernel(LiveKernel):
    """The kernel that a notebook of the user has open: code runs there, **in no sandbox**, with all that it may do.

    The code sees the notebook's variables, works in the notebook's folder, and leaves its variables for the user's next
    cell. Each cell waits for a person's approval, whatever any setting says, unless `approval` says otherwise here.
    Sandbox, limits of memory and disk, undoing of cells, checkpoints and plugins that run in the kernel don't exist
    here. No hook of IPython is replaced; `close` removes our modules and served functions, and ends nothing. Several
    may be attached to one kernel. Works with ipykernel 6 or newer on Python 3.9 or newer.

    While a cell of the user runs, ours wait, at most `busy_seconds`, also where they attach first; an interrupt reaches
    a cell of ours only. When the user restarts or ends the kernel, the running cell ends with an error that says so.

    Args:
        target: The connection file of a kernel on this machine, or `URL#kernel_id` of a Jupyter server's kernel.
        token: The server's; None: the environment's `JUPYTER_TOKEN`, if there is one.
        approval: When a person is asked before a cell runs, as the setting `code_interpreter.approval`, which does not
            count here.
        folder: The session's, for tables that cross and pictures; None: a temporary one, removed by `close`.
        settings: Limits of output and time; those of the sandbox don't count.
        busy_seconds: How long to wait for a cell of the user to end.
        on_wait: Called with a line when that begins; None: it is logged as a warning.

    Raises:
        ConfigError: the target is neither, there is no such file, or it is the kernel in which this code runs.
    """

    def __init__(
        self,
        target: str | Path,
        *,
        token: str | None = None,
        approval: CellApproval = "always",
        folder: Path | str | None = None,
        settings: KernelSettings | None = None,
        busy_seconds: float = 60.0,
        on_wait: Callable[[str], object] | None = None,
    ) -> None:
        self.target = Target.parse(target, token)
        if self.target.is_own():
            raise ConfigError(
                "attach: this code runs in that very kernel, and would wait for itself; ask with %%tw here, or attach "
                "from a terminal or another notebook"
            )
        self.approval = approval
        known = settings or KernelSettings()
        super().__init__(folder, settings=replace(known, rollback_on_error=False, checkpoint_seconds=0.0))
        self._heard = self._met = False
        self._owner = uuid.uuid4().hex
        self._busy_seconds = busy_seconds
        self._on_wait = on_wait or _log.warning
        self._wire: Wire
        self._process: AttachedProcess

    def execute(self, code: str, **options: Any) -> Execution:
        """Run one cell; see `Kernel.execute`. With `undo` nothing is run: here no cell can be undone."""
        if options.get("undo"):
            return Execution(False, error="This cell was not run: in the kernel of a notebook no cell can be undone.")
        return super().execute(code, **options)

    def variables(self) -> tuple[Variable, ...]:
        """Return the user's variables as they are now: cells of the user may have changed them."""
        if not (self._executing or self._closed):
            with self._alone():
                self._ask(self._ready(), "hello")
        return self._variables

    def describe_files(
        self, files: Sequence[tuple[str, str]], *, seconds: float, all_seconds: float | None = None
    ) -> dict[str, Any]:
        """Raise an error that says where the files lie: nothing is read in the notebook's kernel for it.

        Args:
            files: As for any kernel, and so the rest.
            seconds: Not used.
            all_seconds: Not used.

        Raises:
            KernelError: always.
        """
        raise KernelError(
            f"code runs in the notebook's folder; open this file by its whole path, in {self.folder}",
            folder=self.folder,
        )

    def list_files(self, folder: str, *, layouts: bool, max_lines: int, seconds: float) -> dict[str, Any]:
        """Raise an error, as `describe_files`.

        Args:
            folder: As for any kernel, and so the rest.
            layouts: Not used.
            max_lines: Not used.
            seconds: Not used.

        Raises:
            KernelError: always.
        """
        raise KernelError("folders are not listed in a notebook's kernel", folder=self.folder)

    def close(self) -> None:
        """Leave the kernel; a running cell of ours is interrupted first, and given `grace_seconds` to end.

        A cell of the user's is not waited for: what we have put into the kernel is removed after it.
        """
        self._closed = True
        if self._live is not None and self._executing:
            self._stop_at_close(self._live)
        with contextlib.suppress(LockTimeout), self._turns.take(self._settings.grace_seconds + 2 * _LEAVE_SECONDS):
            pass  # the thread that ran the cell has left the kernel
        super().close()

    def kill(self) -> None:
        """Interrupt the running cell: the user's kernel is never ended."""
        self.interrupt()

    def restart(self) -> None:
        """Raise an error: only the user restarts the kernel.

        Raises:
            KernelError: always.
        """
        raise KernelError("the notebook's kernel is the user's; restart it there", folder=self.folder)

    def _place(self, process: str) -> str:
        return f"attached to the kernel {self.target}, {process}, no sandbox, approval {self.approval}"

    def _stop_at_close(self, live: KernelClient) -> str:
        running = self._running
        if running is not None:
            running.insist()
        self._wakeup.wake()
        return ""

    def _open(self, *, again: bool = True) -> KernelHandle:
        self._wire, self._process = self.target.connect(self.folder)
        try:
            about = self._await_free(self._busy_seconds).get("language_info")
            language = about.get("name") if isinstance(about, dict) else None
            if language != "python":
                raise KernelStartError(f"the kernel {self.target} runs {language!r}, not Python", folder=self.folder)
            if self.target.file:
                self._process.watch(self._read_pid())
        except BaseException as error:
            self._wire.close()
            self._process.release()
            if not (again and isinstance(error, KernelStartError) and self._process.how == RESTARTED):
                raise
            return self._open(again=False)  # the one that ended was on its way out, and held nothing of ours
        return KernelHandle(
            self._wire,
            self._process,
            release=self._process.release,
            options={"owner": self._owner, "host": os.getpid() if self._process.pid else 0},
            files=FileTransfer(self.folder, _TABLE_BYTES, max_total_bytes=self._settings.disk_mb << 20),
            module="attached",
            expressions={"tw": call_expression("answer", _HELLO, module="attached")},
            request_type=AttachedRequest,
        )

    def _before_plugin(self, plugin: Loadable) -> None:
        raise PluginLoadError(
            "plugins that run in the kernel are not put into the kernel of a notebook; let it run in the host "
            "(`runs_in: host`)",
            path=plugin.path or f"<plugin {plugin.name}>",
        )

    def _ready(self, *, replay_failure: type[KernelError] | None = None) -> KernelClient:
        live = super()._ready(replay_failure=replay_failure)
        try:
            self._await_free(self._busy_seconds)
            self._check_output()
        except KernelStartError:  # it ended meanwhile
            if self._closed:
                raise
            self._loss = f"The notebook's kernel is attached no more: {self._process.end()}."
            self._end()
            return super()._ready(replay_failure=replay_failure)
        return live

    def _end(self) -> None:
        """Leave the kernel; the request to remove what is ours waits there for a cell of the user's, we don't."""
        if self._live is not None and self._live.process.alive():
            self._await_reply(self._live.tell("leave"), _LEAVE_SECONDS)
        super()._end()

    def _before_cell(self, live: KernelClient) -> list[Log]:
        if self._served.docs():
            live.tell("restore")
        return []

    def _after_cell(self, live: KernelClient, outcome: RawResult) -> list[Log]:
        outcome.report["artifacts"] = self._save_pictures(outcome.shown)
        if "variables" not in outcome.report:
            with contextlib.suppress(KernelError):  # a cell of the user's runs by now: what was known stays
                self._await_free(_LOOK_SECONDS, says=False)
                self._take_variables(live.hello())
        return []

    def _explained(self, ran: Execution) -> Execution:
        how = self._process.how if ran.state_lost else ""
        if not how or ran.error.endswith(_AFTER_LOSS):
            return ran
        return replace(ran, error=f"The notebook's kernel is attached no more: {how}. {_AFTER_LOSS}")

    def _lost_state_execution(self) -> Execution:
        loss, self._loss = self._loss, ""
        return Execution(False, error=f"{loss} This cell was not run. {_AFTER_LOSS}", state_lost=True)

    def _check_output(self) -> None:
        """Connect iopub again if it was cut, as by a large message of the user's cell; the kernel is free."""
        if self._heard:
            return
        until = time.monotonic() + _OUTPUT_SECONDS
        while time.monotonic() < until:
            if self._wire.await_output():
                return
        self._wire.reconnect_output()
        await_kernel_info(self._wire, self._process.alive, _OUTPUT_SECONDS)

    def _look_after(self, live: KernelClient, outcome: RawResult) -> None:
        """Leave a kernel that gave no reply: it was restarted, or its user interrupted what asks."""

    def _save_pictures(self, shown: Sequence[dict[str, Any]]) -> list[list[str]]:
        """Write displayed pictures into the session's folder; return them as rows of a report."""
        rows = []
        for data in shown[: self._settings.max_artifacts]:
            for mime, suffix in _PICTURES.items():
                text = data.get(mime)
                if not isinstance(text, str):
                    continue
                try:
                    content = text.encode() if suffix == "svg" else base64.b64decode(text)
                except ValueError:
                    continue
                path, file = Artifact.open_new_file(self.folder, f"chart.{suffix}", "chart")
                with file:
                    file.write(content)
                rows.append([path.stem, "chart", path.name, str(data.get("text/plain", ""))])
                break
        return rows

    # While the kernel is the user's.

    def _await_free(self, seconds: float, *, says: bool = True) -> dict[str, Any]:
        """Wait until the kernel answers, which it does between cells; return what it says of itself.

        Args:
            seconds: How long to wait.
            says: Say that there is a wait, if it takes long.

        Raises:
            KernelBusyError: it did not answer in time, or the wait was interrupted.
            KernelStartError: it ended.
        """
        began = time.monotonic()
        poller = Poller(self._wire, self._process, self._wakeup)
        executing, self._executing = self._executing, True  # so that an interrupt reaches the wait
        try:
            self._heard = False
            numbers, asked = {self._wire.request_kernel_info()}, began
            while (left := began + seconds - time.monotonic()) > 0:
                woken = poller.wait(int(min(left, 0.1) * 1000) + 1)
                if self._closed:
                    raise KernelStartError("the kernel is closed", folder=self.folder)
                if woken.rung:
                    raise KernelBusyError("the wait for the notebook's kernel was interrupted", folder=self.folder)
                if not self._process.alive():
                    raise KernelStartError(f"the notebook's kernel: {self._process.how}", folder=self.folder)
                reply = self._take_reply(numbers)
                if reply and reply.get("status") != "aborted":
                    self._met = True
                    return reply
                if reply or time.monotonic() - asked > _ASK_SECONDS:  # what was sent during a restart is lost
                    numbers.add(self._wire.request_kernel_info())
                    asked = time.monotonic()
                    if asked - began > _GONE_SECONDS and not self._process.is_there():
                        raise KernelStartError(f"{self.target}: {_NOBODY}", folder=self.folder)
                if says and time.monotonic() - began > _SAY_SECONDS:
                    says = False
                    reason = f"is busy with a cell of yours; waiting {seconds:g} s for its end at most"
                    if not self._process.is_there():
                        if not self._process.alive():
                            continue  # its server has said so
                        if not self._met:
                            raise KernelStartError(f"{self.target}: {_NOBODY}", folder=self.folder)
                        reason = f"has ended, or is restarted; waiting {min(seconds, _GONE_SECONDS):g} s for it"
                    self._on_wait(f"the notebook's kernel {reason}")
        finally:
            self._executing = executing
            poller.close()
        raise KernelBusyError(
            f"the notebook's kernel did not answer within {seconds:g} s: a cell of yours runs there, or it is gone. "
            "Nothing was run; ask again when it is free",
            folder=self.folder,
        )

    def _read_pid(self) -> int:
        """Return the number of the kernel's process, as code there says; 0 if it says none.

        Raises:
            KernelStartError: the kernel does not answer.
        """
        until = time.monotonic() + self._settings.start_seconds
        while (left := until - time.monotonic()) > 0:
            request = self._wire.request("", expressions={"pid": "__import__('os').getpid()"}, silent=True)
            reply = self._await_reply(request, left)
            if reply and reply.get("status") != "aborted":
                with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
                    return int(reply["user_expressions"]["pid"]["data"]["text/plain"])
                return 0
        raise KernelStartError(f"the kernel {self.target} does not answer", folder=self.folder)

    def _await_reply(self, request: str, seconds: float) -> dict[str, Any] | None:
        """Return the content of a request's reply; None if it does not come in time."""
        until = time.monotonic() + seconds
        poller = Poller(self._wire, self._process, self._wakeup)
        try:
            while (left := until - time.monotonic()) > 0:
                poller.wait(int(min(left, 0.1) * 1000) + 1)
                if reply := self._take_reply({request}):
                    return reply
                if "shell" in self._wire.reconnect_cut():
                    break
        finally:
            poller.close()
        return None

    def _take_reply(self, requests: Container[str]) -> dict[str, Any] | None:
        """Return the content of the reply to one of these requests, if it is there; output is the user's, and dropped.

        Args:
            requests: Their ids.
        """
        until = time.monotonic() + _READ_SECONDS
        while (message := self._wire.receive("iopub")) is not None and time.monotonic() < until:
            self._heard = self._heard or message["parent_header"].get("msg_id") in requests
        until = time.monotonic() + _READ_SECONDS
        while (message := self._wire.receive("shell")) is not None:
            if message["parent_header"].get("msg_id") in requests:
                return dict(message["content"])
            if time.monotonic() > until:
                break
        return None


class AttachedRequest(PendingRequest):
    """One request in a kernel that others use too: takes its own messages only, and interrupts nothing else."""

    _process: AttachedProcess
    _begun = False
    _tries = 1
    _result: str | None = None
    _shown_chars = 0

    def wait(self) -> RawResult:
        """Wait until it is over; see `PendingRequest.wait`."""
        outcome = super().wait()
        if outcome.answer_lost and not outcome.died:
            outcome.report = {"error": f"This cell was run, but {ANSWER_LOST}."}
        elif outcome.reply is None and not outcome.died:
            outcome.died = self._give_up_kernel("it gave no answer to this cell, as one that is restarted")
        reply = outcome.reply or {}
        if reply.get("status") == "error" and not outcome.died:
            lines = reply.get("traceback")
            text = "\n".join(map(str, lines)) if isinstance(lines, list) else ""
            error = _ANSI.sub("", text) or f"{reply.get('ename')}: {reply.get('evalue')}"
            foreign = reply.get("ename") == "KeyboardInterrupt" and not outcome.stopped
            outcome.report = {"error": f"{_INTERRUPTED}\n{error}" if foreign else error}
        if self._result is not None:
            outcome.report["result"] = self._result
        return outcome

    def _read_output(self) -> bool:
        came = False
        for message in self._messages("iopub"):
            came = self.outcome.heard = True
            if message["parent_header"].get("msg_id") != self._request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status":
                self._note_begun()
                self._idle = self._idle or content.get("execution_state") == "idle"
            elif kind == "stream" and content.get("name") in ("stdout", "stderr"):
                self._take_output(content["name"], str(content.get("text", "")))
            elif kind in ("execute_result", "display_data") and len(self.outcome.shown) < _MAX_SHOWN:
                data = content["data"] if isinstance(content.get("data"), dict) else {}
                self._keep_picture(data)
                if kind == "execute_result":
                    self._result = str(data.get("text/plain", ""))
        return came

    def _keep_picture(self, data: Mapping[str, Any]) -> None:
        """Keep a picture that was displayed, of all that it is displayed as, until they take too much together."""
        picture = next((one for one in _PICTURES if isinstance(data.get(one), str)), None)
        if picture is None:
            return
        self._shown_chars += len(data[picture])
        if self._shown_chars > _MAX_SHOWN_CHARS:
            self.outcome.output_lost = True
            return
        text = str(data.get("text/plain", ""))[:_SHOWN_WORDS_CHARS]
        self.outcome.shown.append({picture: data[picture], "text/plain": text})

    def _note_begun(self) -> None:
        """Count the time limit from here: until now a cell of the user's may have been running."""
        if not self._begun:
            self._begun = True
            self._deadline = time.monotonic() + self._seconds

    def _read_reply(self) -> None:
        super()._read_reply()
        reply = self.outcome.reply or {}
        if reply.get("status") == "aborted" and self._tries < _MAX_TRIES and not self.outcome.stopped:
            self._send_again()
            return
        if any(str(result.get("evalue")) == f"No module named {PACKAGE!r}" for result in expression_results(reply)):
            self.outcome.died = self.outcome.died or self._give_up_kernel("it was restarted")

    def _send_again(self) -> None:
        """Send the request again: a cell of the user's failed, and Jupyter drops what waits behind such a cell."""
        self._tries += 1
        self.outcome.reply, self.outcome.report = None, {}
        self._idle = self._begun = False
        self._give_up_at = self._drained_by = float("inf")
        self._deadline = time.monotonic() + self._seconds
        self._request = self._send()

    def _stop(self, why: str, *, ends: bool = True) -> None:
        if self._answered() or self._idle:
            return  # the cell is over, and what runs now is the user's
        if self._begun:
            super()._stop(why, ends=ends)
            return
        self.outcome.stopped = why
        leave = call_expression("answer", _LEAVE, module="attached")
        self._connection.request("", expressions={"a": leave}, silent=True)
        self.outcome.died = self._give_up_kernel("this cell waits behind one of yours, and will still run after it")

    def _watch_clock(self) -> None:
        super()._watch_clock()
        self.outcome.killed = False  # the process runs on

    def _give_up_kernel(self, how: str) -> str:
        self._process.lose(how)
        return self._process.end()
