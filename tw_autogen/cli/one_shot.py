"""`tw-autogen -p`: one question; its answer alone on standard output, all else on standard error."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from tw_autogen.cli.answer_warnings import answer_warnings
from tw_autogen.cli.approval_prompt import ApprovalPrompt
from tw_autogen.cli.event_printer import EventPrinter
from tw_autogen.cli.exit_codes import Exit, exit_of_error, exit_of_stop
from tw_autogen.cli.options import Options
from tw_autogen.cli.round_summary import RoundSummary
from tw_autogen.cli.session_opening import copy_files_of_answers, lines_of_resumed, open_session_for
from tw_autogen.cli.signals import StopSignals, Terminated
from tw_autogen.cli.standard_streams import words_of_os_error
from tw_autogen.cli.terminal import markdown, stderr_console, stdout_console
from tw_autogen.errors import RoundError, TwAutogenError
from tw_autogen.events import Event, EventLines, Handler
from tw_autogen.session import Saved, Session, fence_printed_output
from tw_autogen.text_escaping import json_controls_escaped, visible

_SCHEMA_VERSION = 1
"""Of the object of `--output-format json`, and of the lines of `stream-json`; new fields don't change it."""
_RESULT = "Result"
"""The last line's `event`: the object of `--output-format json`."""
STREAM = "stream-json"


def answer_once(prompt: str, files: Sequence[Path], options: Options, *, form: str, quiet: bool) -> Exit:
    """Answer one question.

    Args:
        prompt: The question.
        files: What it is about.
        options: What the shared options said.
        form: `text`; `json`: write one JSON object in place of the answer's text, also where there is no answer;
            `stream-json`: write a line of JSON for each event as it happens, and the object as the last line; if none
            can be written any more, the round is stopped.
        quiet: Write nothing to standard error but errors.

    Returns:
        With what to end the program.

    Raises:
        BrokenPipeError: the reader of standard output has left.
    """
    screen = stdout_console(color=not options.no_color)
    console = stderr_console(color=not options.no_color)
    show = EventPrinter(console, answer=False)
    once, asker = _Once(show.tally), ApprovalPrompt(console, show)
    handlers: list[Handler] = [show.tally if quiet else show]
    lines = _StreamedLines()
    if form == STREAM:
        handlers.append(lines)

    try:
        approve = asker.approve if asker.somebody else None
        say: Callable[[str], None] = (lambda message: None) if quiet else show.say
        with open_session_for(options, handlers, say, approve, warn=once.keeping(show.say)) as session:
            resumed, once.lost = lines_of_resumed(session)
            for line in [] if quiet else resumed:
                show.say(line)
            once.ask(session, prompt, files, asker, options, lines)
            show.stop()
            show.saved(once.saved, quiet=quiet)
            for warning in [] if quiet else [*once.lost, *once.warnings]:
                show.warn(warning)
            if form == "text":
                with suppress(OSError):  # it comes again below
                    once.show(screen)  # before the session is closed, which takes a moment
    except TwAutogenError as error:
        once.fail(
            error, Exit.terminated if once.terminated else exit_of_error(error, timed=options.timeout is not None)
        )
        of_round = error.round.id if isinstance(error, RoundError) else ""
        if (quiet and not lines.reason) or not of_round:  # else the end of the round has said it
            words = str(error).removeprefix(f"{of_round}: ")
            console.print(f"tw-autogen: {visible(words)}", soft_wrap=True)
        if not quiet and any(cell["ok"] for cell in show.tally.cells):
            how = f"what code made so far is kept; resume it: tw-autogen --resume {once.session_id}"
            console.print(how, soft_wrap=True)
    except OSError as error:
        once.fail(error, Exit.failed, words_of_os_error(error))
        console.print(f"tw-autogen: {visible(words_of_os_error(error))}", soft_wrap=True)
    except KeyboardInterrupt as error:
        terminated = isinstance(error, Terminated)
        once.fail(error, Exit.terminated if terminated else Exit.interrupted)
        console.print(f"tw-autogen: {'terminated' if terminated else 'stopped'}")
    finally:
        show.stop()
    for warning in show.tally.hooks if quiet else []:  # the session's end may have found some
        show.warn(warning)
    if form != "text":
        once.write(in_line=form == STREAM)
    else:
        once.show(screen)
    sys.stdout.flush()
    return once.exit


def print_failure(kind: str, message: str, *, in_line: bool = False) -> None:
    """Write the object of `--output-format json` for a call that is wrong, before any session is opened.

    Args:
        kind: Name of the error's class.
        message: Its words.
        in_line: Write it as the last line of `stream-json`.
    """
    once = _Once(RoundSummary())
    once.refuse(kind, message)
    once.write(in_line=in_line)
    sys.stdout.flush()


class _StreamedLines:
    """Writes events to standard output; stops the round if its reader has left (`| head -1`), or the disk is full."""

    def __init__(self) -> None:
        self.reason = ""
        """Why the round ends, as a clause; empty while the lines are written."""
        self.stop: Callable[[], None] | None = None
        """Called once, on a thread of its own; None while there is no round."""
        self._write = EventLines(sys.stdout, head={"schema_version": _SCHEMA_VERSION})

    def __call__(self, event: Event) -> None:
        try:
            self._write(event)
        except OSError as error:
            unread = isinstance(error, BrokenPipeError)
            why = "is read by no program any more" if unread else f"can't be written to: {error.strerror}"
            self.reason = f"standard output {why}"
            if self.stop is not None:
                threading.Thread(target=self.stop, name="stop-unread", daemon=True).start()
                self.stop = None


class _Once:
    """What came of one question."""

    def __init__(self, tally: RoundSummary) -> None:
        self.exit = Exit.failed
        self.answer = self.shown = ""
        self.terminated = False
        self.saved: list[Saved] = []
        self.warnings: list[str] = []
        self.lost: list[str] = []
        self.folder_warnings: list[str] = []
        self._tally = tally
        self.session_id: str | None = None
        self._error: dict[str, str] | None = None
        self._started = time.monotonic()
        self._is_shown = False

    def keeping(self, say: Callable[[str], None]) -> Callable[[str], None]:
        """Return a function that says a line about an untrusted folder and keeps it for the warnings."""

        def keep(line: str) -> None:
            self.folder_warnings.append(line)
            say(line)

        return keep

    def ask(
        self,
        session: Session,
        prompt: str,
        files: Sequence[Path],
        asker: ApprovalPrompt,
        options: Options,
        lines: _StreamedLines,
    ) -> None:
        self.session_id = session.id
        landing = copy_files_of_answers(session, options)

        def stop() -> None:
            asker.stop()
            session.interrupt(reason=signals.reason or lines.reason)

        with StopSignals(stop) as signals:
            lines.stop = stop
            try:
                answer = session.ask(prompt, files)
            finally:
                self.terminated = bool(signals.terminated)
        self.answer, self.exit = answer.text, exit_of_stop(answer.stop)
        self.shown = fence_printed_output(answer.text, answer.round.posts)
        self.saved = landing.land(answer.artifacts, prompt, earlier=session.artifacts)
        self.warnings = answer_warnings(session, answer)

    def show(self, screen: Console) -> None:
        if self.answer and not self._is_shown:
            if screen.is_terminal:
                screen.print(markdown(self.shown))
            else:
                sys.stdout.write(self.answer + "\n")
            sys.stdout.flush()
            self._is_shown = True

    def fail(self, error: BaseException, code: Exit, message: str = "") -> None:
        self.exit = code
        self._error = {"type": type(error).__name__, "message": message or str(error) or code.name}

    def refuse(self, kind: str, message: str) -> None:
        self.exit, self._error = Exit.usage, {"type": kind, "message": message}

    def write(self, *, in_line: bool) -> None:
        shown = {"event": _RESULT, **self.to_dict()} if in_line else self.to_dict()
        text = json.dumps(shown, ensure_ascii=False, indent=None if in_line else 2)
        sys.stdout.write(json_controls_escaped(text) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `--output-format json`.

        `cost_usd` is null where a price is not known, `saved_as` where a file was not copied.
        """
        tally, usage = self._tally, self._tally.usage.to_dict()
        dollars = usage.pop("dollars")
        unsaved = [f"not saved: {one.problem}" for one in self.saved if one.path is None]
        saved_as = {str(one.source): str(one.path) for one in self.saved if one.path is not None}
        return {
            "schema_version": _SCHEMA_VERSION,
            "session_id": self.session_id,
            "status": self.exit.name,
            "answer": self.answer,
            "artifacts": [
                {**artifact, "saved_as": saved_as.get(artifact["path"])} for artifact in tally.artifacts.values()
            ],
            "code_cells": tally.cells,
            "usage": usage,
            "cost_usd": dollars,
            "duration_s": round(time.monotonic() - self._started, 3),
            "model_s": round(tally.model_seconds, 3),
            "kernel_s": round(tally.kernel_seconds, 3),
            "warnings": [*self.folder_warnings, *tally.warnings, *tally.hooks, *self.lost, *unsaved, *self.warnings],
            "error": self._error,
        }
