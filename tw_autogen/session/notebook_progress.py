"""What a question does while it runs, in the output of the notebook cell that asks it."""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import singledispatchmethod
from typing import Any

from tw_autogen.conversation import Plan, Status
from tw_autogen.events import (
    ApprovalAsked,
    ApprovalDecided,
    CellOutput,
    CellRan,
    CellStarted,
    Event,
    Handler,
    ModelDelayed,
    PlanChanged,
    PostOpened,
    RoundClosed,
)
from tw_autogen.notebook_traceback import users_frames
from tw_autogen.session.answer_html import note_html, output_html, plan_html
from tw_autogen.text_escaping import NO_FORMULAS, visible

_TICK_SECONDS = 0.5
_OUTPUT_LINES = 6
_LINE_CHARS = 300


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook; imports nothing."""
    shell = sys.modules.get("IPython.core.getipython")
    running = shell.get_ipython() if shell is not None else None
    return getattr(running, "kernel", None) is not None


@contextlib.contextmanager
def shown_progress(
    subscribe: Callable[[Handler], None], unsubscribe: Callable[[Handler], None], *, wanted: bool
) -> Iterator[None]:
    """Show what happens in this block in one output, replaced in place; outside a notebook nothing is shown.

    Args:
        subscribe: Hands the session's events to a handler.
        unsubscribe: Ends that.
        wanted: Whether it is to be shown.
    """
    if not (wanted and in_notebook()):
        yield
        return
    shown = NotebookProgress()
    subscribe(shown)
    try:
        with users_frames():
            yield
    except BaseException:
        shown.fail()
        raise
    finally:
        unsubscribe(shown)
        shown.close()


def last_lines(before: list[str], text: str) -> list[str]:
    r"""Return the last lines of an output, the one that goes on included, each from its last carriage return on.

    Args:
        before: Those until now.
        text: What is printed next.

    Example:
        >>> last_lines(["a", ""], "\r 10 %|#   |\r 20 %|##  |")
        ['a', ' 20 %|##  |']
    """
    lines = "\n".join(before) + text
    shown = []
    for line in lines.split("\n")[-_OUTPUT_LINES:]:
        whole = line.rstrip("\r")
        end = "\r" * (whole != line)  # what is printed next takes the line's place
        shown.append(whole.rpartition("\r")[2][-_LINE_CHARS:] + end)
    return shown


class NotebookProgress:
    """A handler of events that shows plan, step, last output and seconds, in the cell that is running.

    Once closed, one line is left: what was done, or why there is no answer.
    """

    def __init__(self) -> None:
        from IPython import display  # in a notebook it is there; elsewhere it is not needed

        self._handle: Any = display.DisplayHandle()  # type: ignore[no-untyped-call]
        self._context = contextvars.copy_context()  # says which cell's output it is, also in threads of models
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._plan: Plan | None = None
        self._doing = "starting"
        self._output: list[str] = []
        self._error = ""
        self._failed = False
        self._over = threading.Event()
        self._publish(first=True)
        self._thread = threading.Thread(target=self._publish_regularly, name="tw-progress", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        """Take one event; what changed is shown within half a second."""
        with self._lock:
            self._handle_event(event)

    def fail(self) -> None:
        """Take note that there is no answer; the reason is that of the round, if there was one."""
        with self._lock:
            self._failed = True

    def close(self) -> None:
        """Show the last line, and end."""
        self._over.set()
        self._thread.join()
        self._publish()

    @singledispatchmethod
    def _handle_event(self, event: Event) -> None:
        """Ignore what is not shown."""

    @_handle_event.register(PostOpened)
    def _post_opened(self, event: PostOpened) -> None:
        self._doing, self._output = f"{event.send_from} is thinking", []

    @_handle_event.register(PlanChanged)
    def _plan_changed(self, event: PlanChanged) -> None:
        self._plan = event.plan

    @_handle_event.register(ModelDelayed)
    def _model_delayed(self, event: ModelDelayed) -> None:
        self._doing = f"{event.caller}: {event.reason}"

    @_handle_event.register(CellStarted)
    def _cell_started(self, event: CellStarted) -> None:
        self._doing, self._output = f"running cell {event.cell}", []

    @_handle_event.register(CellOutput)
    def _cell_output(self, event: CellOutput) -> None:
        self._output = last_lines(self._output, event.text)

    @_handle_event.register(CellRan)
    def _cell_ran(self, event: CellRan) -> None:
        self._doing = f"cell {event.cell} {'has run' if event.ok else 'failed'}"

    @_handle_event.register(ApprovalAsked)
    def _approval_asked(self, event: ApprovalAsked) -> None:
        self._doing = "waiting for your decision"

    @_handle_event.register(ApprovalDecided)
    def _approval_decided(self, event: ApprovalDecided) -> None:
        self._doing = "approved" if event.approved else "refused"

    @_handle_event.register(RoundClosed)
    def _round_closed(self, event: RoundClosed) -> None:
        self._error = event.error

    def _publish_regularly(self) -> None:
        while not self._over.wait(_TICK_SECONDS):
            self._publish()

    def _publish(self, *, first: bool = False) -> None:
        with self._lock:
            page, plain = self._render()
            data = {"text/html": f"<div {NO_FORMULAS}>{page}</div>", "text/plain": plain}
            show: Any = self._handle.display if first else self._handle.update
            self._context.run(show, data, raw=True)

    def _render(self) -> tuple[str, str]:
        """Return HTML and plain text of what is to be seen now."""
        seconds = f"{time.monotonic() - self._began:.0f} s"
        if self._over.is_set():
            line = f"Answered after {seconds}"
            if self._error or self._failed:
                line = f"No answer: {self._error}" if self._error else "No answer"
            return note_html(line), visible(line)
        steps = self._plan.steps if self._plan else ()
        position = next((number for number, step in enumerate(steps, 1) if step.status is Status.current), 0)
        line = " · ".join([*([f"step {position} of {len(steps)}"] if position else []), self._doing, seconds])
        text = "\n".join(self._output).replace("\r", "").strip("\n")
        parts = [plan_html(self._plan) if self._plan else "", note_html(line), output_html(text) if text else ""]
        return "".join(parts), visible(line)
