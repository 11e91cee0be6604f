"""`run_abandonable`: wait for a call that can't be cancelled, until a time limit or a cancellation."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tw_autogen.errors import ModelError
from tw_autogen.model.chat_model import Completion

OnText = Callable[[str], None]
Work = Callable[[OnText, threading.Event], Completion]
"""Asks the model; takes a function for new text, and an event that is set once the call is abandoned."""

_GLANCE_SECONDS = 0.05  # a queue can't wait for an event as well, so the event is looked at this often


@dataclass(frozen=True)
class _Failure:
    error: BaseException


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
    news: queue.SimpleQueue[str | Completion | _Failure] = queue.SimpleQueue()
    abandoned = threading.Event()

    def tell() -> None:
        try:
            news.put(work(news.put, abandoned))
        except BaseException as error:  # noqa: BLE001 - not swallowed: raised again in the thread that waits
            news.put(_Failure(error))

    worker = threading.Thread(target=contextvars.copy_context().run, args=(tell,), daemon=True, name="model call")
    try:
        _stop_if(cancelled, where)
        worker.start()
        while True:
            left = deadline - time.monotonic()
            try:
                piece = news.get(timeout=max(0.0, min(_GLANCE_SECONDS, left)))
            except queue.Empty:
                _stop_if(cancelled, where)
                if left <= 0:
                    raise ModelError(f"{where}: no answer within {seconds:.3g} s{remedy}") from None
                continue
            _stop_if(cancelled, where)
            if isinstance(piece, _Failure):
                raise piece.error
            if isinstance(piece, Completion):
                return piece
            if on_text:
                on_text(piece)
    finally:
        abandoned.set()


def _stop_if(cancelled: threading.Event | None, where: str) -> None:
    if cancelled is not None and cancelled.is_set():
        raise ModelError(f"{where}: the call was cancelled")
