"""Calls from a cell to the host, over the kernel's own stdin channel."""

import contextvars
import threading
import time

import pytest

from tw_autogen.errors import KernelBusyError
from tw_autogen.kernel import KernelSettings, LocalKernel

SECONDS = 30


def test_calls_run_side_by_side_when_they_are_submitted(kernel):  # C48
    together = threading.Barrier(3, timeout=SECONDS)

    def meet(name):
        together.wait()
        return f"{name} was there"

    kernel.serve("meet", meet)
    ran = kernel.execute("[t.result() for t in [meet.submit(n) for n in 'abc']]", seconds=SECONDS)

    assert ran.result == "['a was there', 'b was there', 'c was there']"


def test_an_ordinary_call_waits_for_its_answer(kernel):  # C44
    seen = []
    kernel.serve("note", lambda word: seen.append(word) or len(seen))
    ran = kernel.execute("print(note('a'), note('b'))", seconds=SECONDS)

    assert (ran.stdout, seen) == ("1 2\n", ["a", "b"])


def test_a_ticket_says_when_it_is_done_and_gives_the_same_result_twice(kernel):
    gate = threading.Event()
    kernel.serve("wait", lambda: gate.wait(SECONDS))
    kernel.serve("open_gate", gate.set)
    ran = kernel.execute(
        "t = wait.submit()\nbefore = t.done()\nopen_gate()\n(before, t.result(), t.result(), t.done())", seconds=SECONDS
    )

    assert ran.result == "(False, True, True, True)"


def test_an_error_of_a_submitted_call_comes_out_of_its_result(kernel):
    def fail():
        raise ValueError("no such thing")

    kernel.serve("fail", fail)
    ran = kernel.execute("t = fail.submit()\nt.result()", seconds=SECONDS)

    assert not ran.ok
    assert "HostCallError: fail: ValueError: no such thing" in ran.error


def test_a_ticket_ends_with_its_cell(kernel):
    kernel.serve("one", lambda: 1)
    kernel.execute("t = one.submit()", seconds=SECONDS)
    ran = kernel.execute("t.result()", seconds=SECONDS)

    assert "a ticket ends with its cell" in ran.error


def test_a_call_that_takes_too_long_is_given_up_and_the_cell_goes_on(kernel):
    gate = threading.Event()
    kernel.serve("slow", lambda: gate.wait(SECONDS), seconds=0.2)
    kernel.serve("quick", lambda: "here")
    ran = kernel.execute("try:\n    slow()\nexcept Exception as error:\n    print(error)\nquick()", seconds=SECONDS)
    gate.set()

    assert ran.stdout == "slow: TimeoutError: no answer within 0.2 s; ask for less, or split the work\n"
    assert ran.result == "'here'"
    threads = [one for one in threading.enumerate() if one.name.startswith("host call")]
    for one in threads:
        one.join(SECONDS)
    assert not any(one.is_alive() for one in threads)


def test_time_in_the_host_is_not_the_cells(kernel):  # C47
    gate = threading.Event()
    kernel.serve("think", lambda: gate.wait(1.5))
    ran = kernel.execute("think()\n'done'", seconds=1.0)

    assert ran.ok, ran.error
    assert ran.seconds < 1.0


def test_an_interrupt_stops_a_cell_that_waits_for_the_host(kernel):
    began, gate = threading.Event(), threading.Event()

    def hold():
        began.set()
        return gate.wait(SECONDS)

    kernel.serve("hold", hold)
    threading.Thread(target=lambda: began.wait(SECONDS) and kernel.interrupt()).start()
    started = time.monotonic()
    ran = kernel.execute("kept = 1\nhold()", seconds=SECONDS)
    after = kernel.execute("kept", seconds=SECONDS)
    gate.set()

    assert ran.error.startswith("Stopped interrupted")
    assert after.result == "1"
    assert time.monotonic() - started < SECONDS


def test_a_function_sees_the_context_of_the_thread_that_runs_the_cell(kernel):
    who = contextvars.ContextVar("who", default="nobody")
    kernel.serve("who", who.get)
    who.set("me")

    assert kernel.execute("who()", seconds=SECONDS).result == "'me'"


def test_a_function_that_uses_the_busy_kernel_is_refused_at_once(kernel):  # C46
    def again():
        with pytest.raises(KernelBusyError, match="running a cell"):
            kernel.execute("1", seconds=SECONDS)
        return "refused"

    kernel.serve("again", again)

    assert kernel.execute("again()", seconds=SECONDS).result == "'refused'"


def test_only_values_that_cross_are_taken(kernel):  # C45
    kernel.serve("one", lambda *values: len(values))
    lock = kernel.execute("import threading\none(threading.Lock())", seconds=SECONDS)

    assert "TypeError: a value of type lock doesn't cross between kernel and host" in lock.error


def test_input_in_a_cell_is_refused_in_words(kernel):  # C49
    assert "nobody sits at this kernel" in kernel.execute("input('name? ')", seconds=SECONDS).error


def test_no_more_submitted_calls_run_at_once_than_the_setting_says(tmp_path):
    running, most, guard = 0, 0, threading.Lock()
    pause = threading.Event()

    def count():
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        pause.wait(0.02)
        with guard:
            running -= 1

    with LocalKernel(tmp_path, settings=KernelSettings(host_threads=2)) as kernel:
        kernel.serve("count", count)
        kernel.execute("[t.result() for t in [count.submit() for _ in range(8)]]", seconds=SECONDS)

    assert most == 2
