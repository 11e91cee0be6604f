"""Calls from a cell to the host."""

from __future__ import annotations

import contextvars
import threading
import time
from typing import Any

from tests.support.kernel_checks.bench import SECONDS, KernelFactory, ends, expect, expect_within, fail, run
from tw_autogen.errors import KernelBusyError

_CAUGHT = "try:\n    {0}\nexcept Exception as error:\n    print(type(error).__name__, '|', error)"


def json_values_cross_both_ways(factory: KernelFactory) -> None:
    """As arguments, in order and by name, and as what is returned."""
    value: dict[str, Any] = {"n": None, "yes": True, "list": [1, 2.5, "é\n"], "deep": {"er": []}}
    heard: list[Any] = []

    def echo(*values: Any, **named: Any) -> Any:
        heard.append((values, named))
        return {"values": list(values), "named": named}

    with factory() as kernel:
        kernel.serve("echo", echo)
        ran = run(
            kernel,
            f"value = {value!r}\necho(1, value, more=value) == {{'values': [1, value], 'named': {{'more': value}}}}",
        )
        expect(ran.result, "True", "what came back equals what was sent")
        expect(heard, [((1, value), {"more": value})], "what the host was given")


def tables_cross_both_ways(factory: KernelFactory) -> None:
    """With columns, types and missing values."""
    kinds: list[dict[str, str]] = []

    def grow(table: Any, by: int) -> Any:
        kinds.append({name: str(kind) for name, kind in table.dtypes.items()})
        return table.assign(n=table.n + by)

    with factory() as kernel:
        kernel.serve("grow", grow)
        table = "pd.DataFrame({'n': [1, 2], 'r': [0.5, None], 'day': pd.to_datetime(['2024-01-01', None])})"
        ran = run(
            kernel,
            f"import pandas as pd\ntable = {table}\ngrown = grow(table, 10)\n"
            "(list(grown.n), grown.drop(columns='n').equals(table.drop(columns='n')))",
        )
        expect(ran.result, "([11, 12], True)", "what came back")
        expect([{name: kind[:8] for name, kind in one.items()} for one in kinds],
               [{"n": "int64", "r": "float64", "day": "datetime"}], "the types that the host saw")  # fmt: skip


def an_exception_of_the_host_is_one_of_the_cell(factory: KernelFactory) -> None:
    """A `HostCallError` whose text begins with the function's name and the exception's type; the cell may catch it."""

    def refuse() -> None:
        raise PermissionError("not on Sundays")

    with factory() as kernel:
        kernel.serve("refuse", refuse)
        said = run(kernel, _CAUGHT.format("refuse()")).stdout
        expect(said, "HostCallError | refuse: PermissionError: not on Sundays\n", "what the cell caught")
        expect_within("refuse: PermissionError: not on Sundays", fail(kernel, "refuse()").error, "the error")
        expect(run(kernel, "1").result, "1", "the next cell")


def only_what_crosses_is_taken(factory: KernelFactory) -> None:
    """A value that doesn't cross is an exception in the cell, in both directions, and breaks nothing."""
    with factory() as kernel:
        kernel.serve("take", lambda *values: len(values))
        kernel.serve("give", threading.Lock)
        for call in ("take(__import__('threading').Lock())", "give()"):
            expect_within("TypeError", run(kernel, _CAUGHT.format(call)).stdout, f"what the cell caught of {call}")
        expect(run(kernel, "take(1)").result, "1", "a call behind it")
        expect_within("NameError", fail(kernel, "never_served()").error, "the error of what was never served")


def calls_run_in_order_one_at_a_time(factory: KernelFactory) -> None:
    """Also those that threads of the cell make."""
    running, most, order = 0, 0, []
    guard = threading.Lock()

    def note(word: str) -> str:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with guard:
            running -= 1
        order.append(word)
        return word

    with factory() as kernel:
        kernel.serve("note", note)
        expect(run(kernel, "[note(one) for one in 'abc']").result, "['a', 'b', 'c']", "what came back")
        expect(order, ["a", "b", "c"], "the order")
        code = "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(4).map(note, 'abcdef'))"
        expect(run(kernel, code).result, "['a', 'b', 'c', 'd', 'e', 'f']", "what came back to threads")
        expect(most, 1, "calls at once")


def submitted_calls_run_side_by_side(factory: KernelFactory) -> None:
    """`submit` gives a ticket at once; `result` waits, gives the same twice, and raises what the call raised."""
    together = threading.Barrier(3, timeout=SECONDS / 4)

    def meet(name: str) -> str:
        together.wait()
        return name.upper()

    def refuse() -> None:
        raise ValueError("no such thing")

    with factory() as kernel:
        kernel.serve("meet", meet)
        kernel.serve("refuse", refuse)
        ran = run(
            kernel, "ts = [meet.submit(one) for one in 'abc']\n[t.result() + t.result() for t in ts], ts[0].done()"
        )
        expect(ran.result, "(['AA', 'BB', 'CC'], True)", "the results")
        said = run(kernel, "t = refuse.submit()\n" + _CAUGHT.format("t.result()")).stdout
        expect_within("refuse: ValueError: no such thing", said, "what `result` raised")


def a_call_back_into_the_busy_kernel_is_refused_at_once(factory: KernelFactory) -> None:
    """The function that a cell calls is told that the kernel is busy; nobody waits for himself."""
    heard: list[str] = []
    with factory() as kernel:

        def again() -> int:
            for act in (lambda: kernel.execute("1", seconds=SECONDS), lambda: kernel.get("x"), kernel.restart):
                try:
                    act()
                except KernelBusyError as error:
                    heard.append(str(error))
            return len(heard)

        kernel.serve("again", again)
        ran = ends(kernel, "again()", seconds=SECONDS)
        expect((ran.result, all(heard)), ("3", True), "refusals (execute, get, restart) of three, each in words")


def time_in_the_host_is_not_the_cells(factory: KernelFactory) -> None:
    """Neither for its limit nor in what is told."""
    with factory() as kernel:
        thought = []

        def think() -> None:
            began = time.monotonic()
            threading.Event().wait(2.0)
            thought.append(time.monotonic() - began)

        kernel.serve("think", think)
        run(kernel, "1")
        began = time.monotonic()
        ran = kernel.execute("think()\n'done'", seconds=1.5)
        own = time.monotonic() - began - sum(thought)
        expect(
            (ran.result, ran.seconds <= own),
            ("'done'", True),
            f"result ({ran.error}), seconds ({ran.seconds:g}) <= {own:g}",
        )


def a_call_that_takes_too_long_is_given_up(factory: KernelFactory) -> None:
    """The cell gets a TimeoutError and goes on; what the function still does disturbs no later call."""
    gate = threading.Event()
    try:
        with factory() as kernel:
            kernel.serve("slow", lambda: gate.wait(SECONDS), seconds=0.2)
            kernel.serve("quick", lambda: "here")
            ran = run(kernel, _CAUGHT.format("slow()") + "\nquick()")
            expect_within("slow: TimeoutError", ran.stdout, "what the cell caught")
            expect(ran.result, "'here'", "the next call")
    finally:
        gate.set()


def an_interrupt_stops_a_cell_that_waits_for_the_host(factory: KernelFactory) -> None:
    """The late answer is dropped; the variables are kept, and the next cell's calls are its own."""
    began, gate, ended = threading.Event(), threading.Event(), []

    def hold() -> str:
        began.set()
        gate.wait(SECONDS)
        ended.append(True)
        return "late"

    def answer() -> str:
        gate.set()
        return "mine"

    try:
        with factory() as kernel:

            def stop() -> None:
                began.wait(SECONDS)
                kernel.interrupt()

            kernel.serve("hold", hold)
            kernel.serve("quick", answer)
            threading.Thread(target=stop, daemon=True).start()
            stopped = ends(kernel, "kept = 1\nhold()", seconds=SECONDS)
            expect((stopped.ok, stopped.state_lost), (False, False), "ok, state_lost")
            expect(ended, [], "host functions that have ended when the cell has")
            expect(run(kernel, "kept, quick()").result, "(1, 'mine')", "the next cell")
    finally:
        gate.set()


def calls_see_the_context_of_who_runs_the_cell(factory: KernelFactory) -> None:
    """Each call a copy of its own."""
    count = contextvars.ContextVar("count", default=0)

    def add() -> int:
        count.set(count.get() + 1)
        return count.get()

    with factory() as kernel:
        kernel.serve("add", add)
        token = count.set(40)
        ran = run(kernel, "add(), add(), add.submit().result()")
        expect((ran.result, count.get()), ("(41, 41, 41)", 40), "what the calls saw, and the thread itself")
        count.reset(token)


def a_function_may_be_replaced(factory: KernelFactory) -> None:
    """Serving a name again puts the new function in the place of the old one, at once."""
    with factory() as kernel:
        kernel.serve("version", lambda: 1)
        expect(run(kernel, "keep = version\nversion()").result, "1", "before")
        kernel.serve("version", lambda: 2)
        expect(run(kernel, "version(), keep()").result, "(2, 2)", "behind it")


CHECKS = (
    json_values_cross_both_ways,
    tables_cross_both_ways,
    an_exception_of_the_host_is_one_of_the_cell,
    only_what_crosses_is_taken,
    calls_run_in_order_one_at_a_time,
    submitted_calls_run_side_by_side,
    a_call_back_into_the_busy_kernel_is_refused_at_once,
    time_in_the_host_is_not_the_cells,
    a_call_that_takes_too_long_is_given_up,
    an_interrupt_stops_a_cell_that_waits_for_the_host,
    calls_see_the_context_of_who_runs_the_cell,
    a_function_may_be_replaced,
)
