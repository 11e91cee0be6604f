"""Calls from a cell to the host, over the kernel's own stdin channel."""

import contextvars
import inspect
import os
import signal
import threading
import time

import pytest

from tw_autogen.errors import KernelBusyError
from tw_autogen.kernel import KernelSettings, LocalKernel

SECONDS = 30

FORGED = "calls = next(one.cell_contents for one in quick.__closure__ if hasattr(one.cell_contents, 'ask'))\n"


@pytest.fixture
def gate():
    """What host functions wait for; open at the end, so that none is left behind."""
    gate = threading.Event()
    yield gate
    gate.set()


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


def test_an_error_whose_text_fails_ends_the_call(kernel):
    class Wordless(Exception):
        def __str__(self):
            return self.missing

    def fail():
        raise Wordless

    kernel.serve("fail", fail)
    assert "fail: Wordless" in kernel.execute("fail()", seconds=5).error


def test_a_ticket_ends_with_its_cell(kernel):
    kernel.serve("one", lambda: 1)
    kernel.execute("t = one.submit()", seconds=SECONDS)
    ran = kernel.execute("t.result()", seconds=SECONDS)

    assert "a ticket ends with its cell" in ran.error


def test_a_call_that_takes_too_long_is_given_up_and_the_cell_goes_on(kernel):
    before, gate = threading.enumerate(), threading.Event()
    kernel.serve("slow", lambda: gate.wait(SECONDS), seconds=0.2)
    kernel.serve("quick", lambda: "here")
    ran = kernel.execute("try:\n    slow()\nexcept Exception as error:\n    print(error)\nquick()", seconds=SECONDS)
    gate.set()

    assert ran.stdout == "slow: TimeoutError: no answer within 0.2 s; ask for less, or split the work\n"
    assert ran.result == "'here'"
    threads = [one for one in threading.enumerate() if one.name.startswith("host call") and one not in before]
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def test_time_in_the_host_is_not_the_cells(kernel):  # C47
    gate = threading.Event()
    kernel.serve("think", lambda: gate.wait(2.2))
    ran = kernel.execute("think()\n'done'", seconds=2.0)

    assert ran.ok, ran.error
    assert ran.seconds < 2.0


@pytest.mark.parametrize("calls", ["hold()", "while True: quick()"])
def test_calls_of_another_thread_hold_up_the_cells_clock_only_as_long_as_its_limit(kernel, gate, calls):
    kernel.serve("hold", lambda: gate.wait(SECONDS))
    kernel.serve("quick", lambda: time.sleep(0.1))
    code = f"""
import threading
def work():
    {calls}
threading.Thread(target=work, daemon=True).start()
while True:
    pass
"""
    started = time.monotonic()
    ran = kernel.execute(code, seconds=1.0)

    assert ran.error.startswith("Stopped after 1 s, its time limit")
    assert 1.0 < time.monotonic() - started < 10.0


def test_time_of_calls_in_a_pool_of_threads_is_not_the_cells(kernel):
    kernel.serve("think", lambda: time.sleep(1.2))
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n    pool.submit(think)"
    )

    assert kernel.execute(code, seconds=1.0).ok


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

    assert ran.error.startswith("Stopped on request")
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


def test_waiting_for_a_turn_is_not_the_calls_time(tmp_path):
    with LocalKernel(tmp_path, settings=KernelSettings(host_threads=1)) as kernel:
        kernel.serve("think", lambda x: threading.Event().wait(0.3) or x, seconds=0.8)
        ran = kernel.execute("[t.result() for t in [think.submit(x) for x in range(3)]]", seconds=SECONDS)

    assert ran.result == "[0, 1, 2]", ran.error


def test_an_ordinary_call_needs_no_turn_and_a_waiting_one_no_thread(tmp_path, gate):
    def count():
        return sum(one.name == "host call hold" for one in threading.enumerate())

    with LocalKernel(tmp_path, settings=KernelSettings(host_threads=2)) as kernel:
        kernel.serve("hold", lambda: gate.wait(SECONDS))
        kernel.serve("count", count)
        kernel.serve("open_gate", gate.set)
        code = "ts = [hold.submit() for _ in range(20)]\nn = count()\nopen_gate()\nn, all(t.result() for t in ts)"
        ran = kernel.execute(code, seconds=SECONDS)

    assert ran.result == "(2, True)", ran.error


def test_a_submitted_call_that_hangs_gives_its_turn_back(tmp_path, gate):
    with LocalKernel(tmp_path, settings=KernelSettings(host_threads=1)) as kernel:
        kernel.serve("hang", lambda: gate.wait(SECONDS), seconds=0.2)
        kernel.serve("quick", lambda: "here")
        code = "a, b = hang.submit(), quick.submit()\nprint(b.result(), a.done())\na.result()"
        ran = kernel.execute(code, seconds=SECONDS)

    assert ran.stdout == "here True\n"
    assert "hang: TimeoutError: no answer within 0.2 s" in ran.error


def test_each_call_has_its_own_copy_of_the_context(kernel):
    count = contextvars.ContextVar("count", default=0)

    def add():
        count.set(count.get() + 1)
        return count.get()

    kernel.serve("add", add)

    assert kernel.execute("add(), add(), add.submit().result()", seconds=SECONDS).result == "(1, 1, 1)"
    assert count.get() == 0


CALLS_FROM_A_THREAD = """
import os, threading, time
def call():
    try:
        hold()
    except Exception as error:
        said.append(str(error))
said = []
thread = threading.Thread(target=call)
thread.start()
while not os.path.exists("began"):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("stopped", [True, False])
def test_a_thread_in_the_kernel_that_waits_for_the_host_holds_up_no_later_cell(tmp_path, gate, stopped):
    with LocalKernel(tmp_path) as kernel:

        def hold():
            if stopped:
                kernel.interrupt()
            (tmp_path / "began").touch()
            gate.wait(SECONDS)

        kernel.serve("hold", hold)
        kernel.serve("quick", lambda: "here")
        first = kernel.execute(CALLS_FROM_A_THREAD + "thread.join()" * stopped, seconds=SECONDS)
        after = kernel.execute("thread.join()\nprint(*said)\nquick()", seconds=SECONDS)

    assert first.ok is not stopped
    assert after.result == "'here'", after.error
    assert after.stdout == "hold: InterruptedError: the cell that made this call was stopped or is over\n"


def test_a_cell_whose_threads_wait_for_the_host_can_be_stopped_without_a_kill(kernel, gate):
    kernel.serve("hold", lambda: kernel.interrupt() or gate.wait(SECONDS))
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n    pool.submit(hold)"
    )
    ran = kernel.execute(code, seconds=SECONDS)

    assert ran.error.startswith("Stopped on request, by an interrupt; variables are kept")
    assert not ran.state_lost


def test_a_late_answer_is_given_to_no_later_request(kernel, gate):
    began, ended = threading.Event(), threading.Event()

    def hold():
        began.set()
        gate.wait(SECONDS)
        ended.set()
        return "late"

    def quick():
        gate.set()
        ended.wait(SECONDS)
        return "mine"

    kernel.serve("hold", hold)
    kernel.serve("quick", quick)
    threading.Thread(target=lambda: began.wait(SECONDS) and kernel.interrupt()).start()
    stopped = kernel.execute("hold()", seconds=SECONDS)
    after = kernel.execute("quick(), quick.submit().result()", seconds=SECONDS)

    assert "KeyboardInterrupt" in stopped.error
    assert after.result == "('mine', 'mine')"


def test_a_cell_that_goes_on_after_its_interrupt_is_refused_further_calls(kernel, gate):
    began = threading.Event()
    kernel.serve("hold", lambda: began.set() or gate.wait(SECONDS))
    threading.Thread(target=lambda: began.wait(SECONDS) and kernel.interrupt()).start()
    again = "    try:\n        hold()\n    except Exception as error:\n        print(error)"
    ran = kernel.execute(f"try:\n    hold()\nexcept KeyboardInterrupt:\n{again}", seconds=SECONDS)

    assert ran.stdout == "hold: InterruptedError: the cell that made this call was stopped or is over\n"


IMPATIENT = """
import _thread, os, threading, time
def hurry():
    while not os.path.exists("began"):
        time.sleep(0.01)
    _thread.interrupt_main()
threading.Thread(target=hurry).start()
try:
    hold()
except KeyboardInterrupt:
    print(quick())
"""


def test_a_call_that_the_cell_itself_breaks_off_holds_up_no_later_one(tmp_path, gate):
    held = []
    with LocalKernel(tmp_path) as kernel:

        def hold():
            (tmp_path / "began").touch()
            held.append(gate.wait(SECONDS))

        kernel.serve("hold", hold)
        kernel.serve("quick", lambda: held)
        ran = kernel.execute(IMPATIENT, seconds=SECONDS)

    assert ran.stdout == "[]\n", ran.error


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to one thread")
def test_ctrl_c_in_the_thread_that_waits_is_seen_during_a_call_and_the_kernel_stays(kernel, gate):
    me = threading.get_ident()

    def press():
        signal.pthread_kill(me, signal.SIGINT)
        return gate.wait(SECONDS)

    kernel.serve("press", press)
    kernel.execute("kept = 3", seconds=SECONDS)
    with pytest.raises(KeyboardInterrupt, match="^$"):
        kernel.execute("press()", seconds=SECONDS)

    assert kernel.execute("kept", seconds=SECONDS).result == "3"


def test_the_kernels_death_during_a_call_ends_the_cell(kernel, gate):
    def kill():
        os.kill(kernel.pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
        return gate.wait(SECONDS)

    kernel.serve("kill", kill)
    ran = kernel.execute("kill()", seconds=SECONDS)

    assert ran.state_lost
    assert "The kernel died" in ran.error


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ("calls.call('open', ('x', 'w'), {})", "open: LookupError: the host serves no function 'open'"),
        ("calls.ask('quick')", "quick: ValueError: a request to 'call' has no 'args'"),
        ("calls.ask('quick', op='result', ticket=[])", "quick: ValueError: a request to 'result' has no 'ticket'"),
        (
            "calls.ask('quick', args=[], kwargs={'__class__': {'$': 'pickle'}})",
            "nothing that crosses is marked 'pickle'",
        ),
    ],
)
def test_only_what_is_served_can_be_reached_also_by_forged_requests(kernel, forged, message):  # C45
    kernel.serve("quick", lambda **_: "here")
    ran = kernel.execute(FORGED + forged, seconds=SECONDS)

    assert message in ran.error
    assert kernel.execute("quick()", seconds=SECONDS).result == "'here'"


def test_names_that_a_function_does_not_have_reach_none_of_what_it_wraps(kernel):
    def inner(order, **more):
        return f"{order} {more}"

    def outer(*args, **kwargs):
        return inner(*args, **kwargs)

    outer.__signature__ = inspect.Signature([inspect.Parameter("order", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    kernel.serve("quick", outer)
    pairs = "{'$': 'dict', 'items': [['order', 'o'], ['more', 'm']]}"
    ran = kernel.execute(f"{FORGED}calls.ask('quick', op='call', args=[], kwargs={pairs})", seconds=SECONDS)

    assert not ran.ok
    assert "got an unexpected keyword argument 'more'" in ran.error
    assert kernel.execute("quick('o')", seconds=SECONDS).result == "'o {}'"
