"""Waits for one request: output as it comes, host calls, the time limit, the end of the process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.kernel.guest.host_calls import MARK
from tw_autogen.kernel.guest.output_capture import ClippedBuffer
from tw_autogen.kernel.guest.report_marks import QUIET, SOURCE
from tw_autogen.kernel.host_calls import HostCalls
from tw_autogen.kernel.kernel import OnOutput
from tw_autogen.kernel.kernel_process import Process
from tw_autogen.kernel.transport import Channel, Poller, Wire, await_kernel_info

_MORE_CHARS = 10_000
_DRAIN_SECONDS = 2.0
"""How long output may trail behind the reply, and a reply behind `idle`."""

_RECONNECT_SECONDS = 0.5
"""How long it is waited for output after iopub was connected again."""

_LONGEST_DRAIN_SECONDS = 30.0
"""How long it is read in all, as long as some comes."""

_LOOK_SECONDS = 0.1
"""How often a process is looked at where the system has no descriptor that tells of its end."""

_FLUSH_SECONDS = 1.0
"""How long an answer that is not wholly sent when a request is over keeps it."""

_SAY_SECONDS, _MAX_PIECES = 0.05, 4
"""How often output is handed on, and in how many pieces at once; further ones are put to the last of their stream."""

_READ_SECONDS = 0.1
"""How long messages of one socket are read before the clock is looked at."""


ANSWER_LOST = "the kernel's answer was lost: it was larger than one message may be, or no message"

ON_REQUEST = "on request"
"""Why a cell was stopped that was interrupted."""

_UNREAD = "{}"
"""Answers a host call that could not be read: the code that waits for it is told that the answer was lost."""


@dataclass
class RawResult:
    """What came of a request.

    Args:
        stdout: What was printed, within the limit.
        stderr: The same of standard error.
        reply: The content of `execute_reply`; None if none came.
        report: What the bridge in the kernel said.
        stopped: Why it was stopped, in words; empty if it was not.
        died: How the process ended; empty if it lives.
        killed: The process was ended because an interrupt did not help.
        heard: Something came on iopub, so that its subscription stands.
        output_lost: The line on which output comes was cut before the end; it is connected again.
        answer_lost: The line on which the reply comes was cut, by a message that was too large; it is connected again.
        shown: What the cell displayed, by MIME type; of kernels without our hooks only.
        called: Whether a call to the host was asked for, waited for or not.
        host_seconds: Time spent in host calls.
        seconds: Time in all.
    """

    stdout: ClippedBuffer
    stderr: ClippedBuffer
    reply: dict[str, Any] | None = None
    report: dict[str, Any] = field(default_factory=dict)
    stopped: str = ""
    died: str = ""
    killed: bool = False
    heard: bool = False
    output_lost: bool = False
    answer_lost: bool = False
    shown: list[dict[str, Any]] = field(default_factory=list)
    called: bool = False
    host_seconds: float = 0.0
    seconds: float = 0.0


class PendingRequest:
    """One request, sent when this is made.

    Args:
        connection: Where its messages come from.
        process: What is interrupted and killed.
        send: Sends it; returns its id.
        seconds: Its time limit, without the time of host calls; calls of other threads than its own, beside which it
            may go on, hold its clock up for so long together at most.
        grace_seconds: From an interrupt until the kill.
        ends_unresponsive: Kill also after an interrupt of another thread's; otherwise the time limit stays, and `kill`.
        output_chars: How much of each stream is kept.
        calls: Makes what takes host calls, given what wakes this.
        waiting: What is waited on.
        on_output: Told of output as it comes, some 20 times a second at most: of each stream somewhat more than twice
            what is kept, which is more than a kernel sends unless code forges its messages.
        crash_output: Gives what was flushed for a stream and a request, where a crash kept it from coming.
    """

    def __init__(
        self,
        connection: Wire,
        process: Process,
        send: Callable[[], str],
        *,
        seconds: float,
        grace_seconds: float,
        ends_unresponsive: bool,
        output_chars: int,
        calls: Callable[[Callable[[], None]], HostCalls],
        waiting: Poller,
        on_output: OnOutput | None,
        crash_output: Callable[[str, str], str],
    ) -> None:
        self._connection = connection
        self._process = process
        self._send = send
        connection.reconnect_cut()  # cut since the last request, which is over
        self._request = send()
        self._grace = grace_seconds
        self._ends = ends_unresponsive
        self._waiting = waiting
        self._calls = calls(waiting.answers.wake)
        self._on_output = on_output
        self._crash_output = crash_output
        self._began = time.monotonic()
        self._seconds = seconds
        self._deadline = self._began + seconds
        self._beside_left = seconds
        self._kill_at = float("inf")
        self._nudge_at = float("inf")
        self._give_up_at = self._drained_by = float("inf")
        self._idle = False
        self._unsaid: list[tuple[str, list[str]]] = []
        self._say_at = 0.0
        self._room = dict.fromkeys(("stdout", "stderr"), 2 * output_chars + _MORE_CHARS)
        self.outcome = RawResult(ClippedBuffer(output_chars), ClippedBuffer(output_chars))

    def wait(self) -> RawResult:
        """Wait until it is over; ends by itself within time limit, grace and a moment.

        An exception in this thread, such as KeyboardInterrupt or what `on_output` raises, first stops the cell as the
        time limit would, so that the kernel is ready for the next one, and then goes on. A KeyboardInterrupt after an
        interrupt kills the process at once.
        """
        try:
            self._wait()
        except BaseException as error:
            self._on_output = None
            self._ends = True
            if self.outcome.stopped and isinstance(error, KeyboardInterrupt):
                self.kill()
            self._stop(ON_REQUEST)
            try:
                self._wait()
            except BaseException:  # asked twice: no more patience
                self.outcome.died = self._process.end()
                raise
            raise
        finally:
            self._abandon_calls()
            if not self.outcome.died:
                self._connection.flush(_FLUSH_SECONDS)
            self.outcome.seconds = time.monotonic() - self._began
            self.outcome.called, self.outcome.host_seconds = self._calls.begun, self._calls.spent_seconds
        return self.outcome

    def insist(self) -> None:
        """End the process also if an interrupt of another thread's does not help."""
        self._ends = True

    def kill(self) -> None:
        """End the process, from any thread; `wait` returns soon after."""
        self.outcome.killed = True
        self._process.end()
        self._waiting.answers.wake()

    def _wait(self) -> None:
        while not self._is_over():
            woken = self._waiting.wait(self._wait_milliseconds())
            if woken.rung:
                self._stop(ON_REQUEST, ends=self._ends)
            if "iopub" in woken.channels and self._read_output():
                self._give_up_at = min(max(self._give_up_at, time.monotonic() + _DRAIN_SECONDS), self._drained_by)
            if "shell" in woken.channels:
                self._read_reply()
            self._serve_calls(asked="stdin" in woken.channels)
            self._pass_on_output()
            self._look_for_cuts()
            self._watch_clock()
            if woken.ended and not self.outcome.died and not self._process.alive():
                self._read_reply()  # what it sent before it ended; of that, the last may still be under way
                self._read_output()
                until = time.monotonic() + _DRAIN_SECONDS
                while self._connection.await_output() and self._read_output() and time.monotonic() < until:
                    pass
                self.outcome.died = self._process.end()
                self._read_crash_output()
        self._pass_on_output(at_once=True)
        if self._answered() and not (self._idle or self.outcome.died):
            self._reconnect_output()

    def _look_for_cuts(self) -> None:
        """Connect again what a message over the limit of one has cut; the reply comes no more then."""
        cut = self._connection.reconnect_cut()
        if "shell" in cut:
            self._read_reply()  # what came before
            self.outcome.answer_lost = self.outcome.reply is None
        if "stdin" in cut:  # the cell waits for an answer
            self._connection.answer_input(_UNREAD)

    def _answered(self) -> bool:
        return self.outcome.reply is not None or self.outcome.answer_lost

    def _reconnect_output(self) -> None:
        """Connect iopub again: no `idle` came behind the reply, as after a message over the limit of one."""
        self._idle = True
        self.outcome.output_lost = not self.outcome.answer_lost
        self._connection.reconnect_output()
        await_kernel_info(self._connection, self._process.alive, _RECONNECT_SECONDS)

    def _is_over(self) -> bool:
        if self.outcome.died:
            return True
        if self._answered() and self._idle:
            return True
        if (self._answered() or self._idle) and self._give_up_at == float("inf"):
            self._give_up_at = time.monotonic() + _DRAIN_SECONDS
            self._drained_by = time.monotonic() + _LONGEST_DRAIN_SECONDS
        return time.monotonic() > self._give_up_at

    def _wait_milliseconds(self) -> int | None:
        say_at = self._say_at if self._unsaid else float("inf")
        next_at = min(
            self._cell_deadline(), self._calls.deadline, self._kill_at, self._nudge_at, self._give_up_at, say_at
        )
        if self._process.death is None:
            next_at = min(next_at, time.monotonic() + _LOOK_SECONDS)
        return None if next_at == float("inf") else int(max(0.0, next_at - time.monotonic()) * 1000) + 1

    def _cell_deadline(self) -> float:
        """Return when the cell is to be stopped if the host call that it waits for now goes on."""
        held = self._beside_left if self._calls.waiting_beside else float("inf") if self._calls.waiting else 0.0
        return self._deadline + held

    def _watch_clock(self) -> None:
        now = time.monotonic()
        if self._answered() or self._idle:
            return
        if now >= self._cell_deadline():
            self._stop(f"after {round(self._seconds, 2):g} s, its time limit")
        elif now >= self._kill_at:
            self.outcome.killed = True
            self.outcome.died = self._process.end()
        elif now >= self._nudge_at:
            self._nudge_at = float("inf")
            self._process.interrupt()  # the first one may have met a single `except:`

    def _stop(self, why: str, *, ends: bool = True) -> None:
        """Interrupt the cell, once.

        Args:
            why: In words.
            ends: Kill the process after the grace time, or at once if the cell was interrupted before.
        """
        now = time.monotonic()
        if ends and self._kill_at == float("inf"):
            self._deadline, self._kill_at = float("inf"), now + (0.0 if self.outcome.stopped else self._grace)
        if not self.outcome.stopped:
            self.outcome.stopped = why
            self._nudge_at = now + self._grace / 2
            self._process.interrupt()
            self._abandon_calls()

    def _messages(self, channel: Channel) -> Iterator[dict[str, Any]]:
        """Yield the messages that are there, for a moment: a flood must not keep the clock from being looked at."""
        until = time.monotonic() + _READ_SECONDS
        while (message := self._connection.receive(channel)) is not None:
            yield message
            if time.monotonic() > until:
                return

    def _read_output(self) -> bool:
        """Take what has come; tell whether there was any."""
        came = False
        for message in self._messages("iopub"):
            came = self.outcome.heard = True
            content = message["content"]
            if message["msg_type"] == "status" and message["parent_header"].get("msg_id") == self._request:
                self._idle = self._idle or content.get("execution_state") == "idle"
            # Of any request: what a thread prints carries the name of the cell that started it, which may be over.
            elif message["msg_type"] == "stream" and content.get("name") in ("stdout", "stderr"):
                self._take_output(content["name"], str(content.get("text", "")))
        return came

    def _take_output(self, stream: str, text: str) -> None:
        (self.outcome.stdout if stream == "stdout" else self.outcome.stderr).add(text)
        if self._on_output is None or not (said := text[: self._room[stream]]):
            return
        self._room[stream] -= len(said)
        if not self._unsaid:
            self._say_at = max(self._say_at, time.monotonic())
        if len(self._unsaid) < _MAX_PIECES and (not self._unsaid or self._unsaid[-1][0] != stream):
            self._unsaid.append((stream, []))
        next(pieces for name, pieces in reversed(self._unsaid) if name == stream).append(said)

    def _pass_on_output(self, *, at_once: bool = False) -> None:
        """Hand on what has come, some 20 times a second at most: code can send single characters.

        Args:
            at_once: Nothing follows.
        """
        while self._unsaid and self._on_output is not None and (at_once or time.monotonic() >= self._say_at):
            unsaid, self._unsaid = self._unsaid, []
            self._say_at = time.monotonic() + _SAY_SECONDS
            for stream, pieces in unsaid:
                self._on_output(stream, "".join(pieces))

    def _read_crash_output(self) -> None:
        """Take what was flushed and did not come, where all that came is the beginning of it."""
        for stream, kept in (("stdout", self.outcome.stdout), ("stderr", self.outcome.stderr)):
            output, came = self._crash_output(stream, self._request), kept.text()
            if output.startswith(came) and len(output) > len(came):
                self._take_output(stream, output[len(came) :])

    def _read_reply(self) -> None:
        for message in self._messages("shell"):
            if message["parent_header"].get("msg_id") == self._request and message["msg_type"] == "execute_reply":
                self.outcome.reply = message["content"]
                self.outcome.report = _bridge_report(message["content"])
                self._idle = self._idle or self.outcome.report.get(QUIET) is True

    def _serve_calls(self, *, asked: bool) -> None:
        message = self._connection.receive("stdin") if asked else None
        before, beside, answer = self._calls.spent_seconds, self._calls.waiting_beside, None
        if message is not None and message["msg_type"] == "input_request":
            prompt = str(message["content"].get("prompt", ""))
            answer = self._calls.ask(prompt[len(MARK) :]) if prompt.startswith(MARK) else "\x04"  # nobody sits here
        answer = answer or self._calls.take()
        held = self._calls.spent_seconds - before
        if beside:
            held = min(held, self._beside_left)
            self._beside_left -= held
        self._deadline += held
        if answer is not None:
            self._connection.answer_input(answer)

    def _abandon_calls(self) -> None:
        self._calls.abandon()
        answer = self._calls.refuse()
        if answer is not None and not self.outcome.died:
            self._connection.answer_input(answer)


def expression_results(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a reply says of the expressions that went with its request; code may have written any of it."""
    results = reply.get("user_expressions")
    return [one for one in results.values() if isinstance(one, dict)] if isinstance(results, dict) else []


def _bridge_report(reply: dict[str, Any]) -> dict[str, Any]:
    """Take the bridge's report out of a reply's payload; empty if it has none."""
    payload = reply.get("payload")
    for one in payload if isinstance(payload, list) else ():  # code may have written any of it
        if isinstance(one, dict) and one.get("source") == SOURCE and isinstance(one.get("report"), str):
            with contextlib.suppress(ValueError):
                report = bounded_json.loads(one["report"])
                return report if isinstance(report, dict) else {}
    return {}
