"""`run_abandonable`: wait for a call that can't be cancelled, until a time limit or a cancellation."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from tw_autogen.deadline import threaded
from tw_autogen.errors import ModelError
from tw_autogen.model.chat_model import Completion

OnText = Callable[[str], None]
Work = Callable[[OnText, threading.Event], Completion]
"""Asks the model; takes a function for new text, and an event that is set once the call is abandoned."""

_POLL_SECONDS = 0.05  # a queue can't wait for an event as well, so the event is looked at this often


def run_abandonable(
    work: Work,
    *,
    where: str,
    seconds: float,
    on_text: OnText | None = None,
    cancelled: threading.Event | None = None,
    remedy: str = "",
) -> Completion:
    """Run the work on a thread of its own and return its result; a late result is dropped.

    Args:
        work: Runs in a copy of this thread's context variables, on a daemon thread.
        where: Who is asked, as an error's first words.
        seconds: Stop waiting after so long.
        on_text: Called in this thread, so that what it raises comes out here.
        cancelled: Stop waiting once it is set.
        remedy: What to do about a timeout, as the last words of its message.

    Raises:
        ModelError: cancelled or out of time; and whatever the work raised.
    """
    deadline = time.monotonic() + seconds
    news: queue.SimpleQueue[str | Future[Completion]] = queue.SimpleQueue()
    abandoned = threading.Event()
    late = f"{where}: no answer within {seconds:.3g} s{remedy}"

    try:
        _stop_if(cancelled, where)
        threaded(lambda: work(news.put, abandoned), name="model call").add_done_callback(news.put)
        while True:
            left = deadline - time.monotonic()
            try:
                piece = news.get(timeout=max(0.0, min(_POLL_SECONDS, left)))
            except queue.Empty:
                _stop_if(cancelled, where)
                if left <= 0:
                    raise ModelError(late) from None
                continue
            _stop_if(cancelled, where)
            if isinstance(piece, Future):
                return piece.result()
            if left <= 0:
                raise ModelError(late)
            if on_text:
                on_text(piece)
    finally:
        abandoned.set()


def _stop_if(cancelled: threading.Event | None, where: str) -> None:
    if cancelled is not None and cancelled.is_set():
        raise ModelError(f"{where}: the call was cancelled")
