"""Walking away from a call that can't be stopped."""

import contextvars
import threading

import pytest

from tw_autogen.errors import ModelError
from tw_autogen.model import Completion, run_abandonable

TRACE = contextvars.ContextVar("TRACE", default="")


def test_the_work_runs_on_a_daemon_thread_with_the_callers_context():
    def work(tell, abandoned):
        tell(TRACE.get())
        return Completion(str(threading.current_thread().daemon))

    pieces = []
    TRACE.set("span-7")
    assert run_abandonable(work, where="here", seconds=10, on_text=pieces.append).text == "True"
    assert pieces == ["span-7"]


def test_work_that_nobody_waits_for_is_told_so_and_its_late_words_are_dropped():
    ended, pieces = threading.Event(), []

    def work(tell, abandoned):
        if abandoned.wait(10):
            tell("late")
            ended.set()
        return Completion("late")

    with pytest.raises(ModelError, match=r"here: no answer within 0\.05 s; ask for less"):
        run_abandonable(work, where="here", seconds=0.05, on_text=pieces.append, remedy="; ask for less")
    assert ended.wait(10)
    assert pieces == []


def test_text_that_never_ends_is_no_reason_to_wait_longer():
    def work(tell, abandoned):
        while not abandoned.is_set():
            tell(" ")
        return Completion("")

    with pytest.raises(ModelError, match=r"here: no answer within 0\.2 s"):
        run_abandonable(work, where="here", seconds=0.2, on_text=lambda text: threading.Event().wait(0.01))


def test_whatever_the_work_raises_comes_out_here():
    def work(tell, abandoned):
        raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug"):
        run_abandonable(work, where="here", seconds=10)
