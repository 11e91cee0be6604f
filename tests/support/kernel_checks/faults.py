"""Nothing hangs, and nothing is lost in silence: limits, deaths, restarts, threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.kernel_checks.bench import (
    DOUBLE,
    PATIENCE,
    SECONDS,
    KernelFactory,
    ends,
    expect,
    run,
)
from tw_autogen.kernel import Kernel

_SOON = 20.0
"""The time of cells that are stopped before it."""

_ENDLESS = "print('on', flush=True)\nwhile True: pass"


def a_cell_beyond_its_time_is_stopped(factory: KernelFactory) -> None:
    """Whether it computes or waits; the variables are kept."""
    with factory() as kernel:
        run(kernel, "kept = 5")
        for code in ("while True: pass", "import time\ntime.sleep(1e6)"):
            stopped = ends(kernel, code, seconds=0.5)
            expect((stopped.ok, stopped.state_lost, bool(stopped.error)), (False, False, True), f"{code}: ok, lost")
            expect(run(kernel, "kept").result, "5", "the variable behind it")


def a_cell_that_can_not_be_stopped_is_ended(factory: KernelFactory) -> None:
    """It ignores interrupts: its process is ended, the loss is told, the next cell is fresh."""
    with _filled(factory) as kernel:
        code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
        lost = ends(kernel, code, seconds=0.5)
        expect((lost.ok, lost.state_lost, bool(lost.error)), (False, True, True), "ok, state_lost, has an error")
        _is_fresh(kernel)


def an_interrupt_stops_the_cell(factory: KernelFactory) -> None:
    """From another thread, as often as one likes; the variables are kept."""
    with factory() as kernel:
        run(kernel, "kept = 9")

        def stop(stream: str, text: str) -> None:
            threading.Thread(target=kernel.interrupt).start()

        for _ in range(2):
            stopped = ends(kernel, _ENDLESS, seconds=_SOON, on_output=stop)
            expect((stopped.ok, stopped.state_lost, bool(stopped.error)), (False, False, True), "ok, state_lost")
            expect(stopped.seconds < _SOON, True, f"it ended after {stopped.seconds:g} s, before its time")
            expect(run(kernel, "kept").result, "9", "the variable behind it")


def a_cell_that_was_cancelled_before_it_began_is_stopped(factory: KernelFactory) -> None:
    """An interrupt that comes while the cell is still on its way counts, if `cancelled` was set before."""
    cancelled = threading.Event()
    cancelled.set()
    with factory() as kernel:
        run(kernel, "kept = 3")
        kernel.interrupt()
        stopped = ends(kernel, "while True: pass", seconds=_SOON, cancelled=cancelled)
        expect((stopped.ok, stopped.seconds < _SOON), (False, True), "ok, ended before its time")
        expect(run(kernel, "kept").result, "3", "the variable behind it")


def closing_ends_a_cell_that_runs(factory: KernelFactory) -> None:
    """`close` waits for no cell: from another thread it ends the one that runs."""
    with factory() as kernel:

        def close(stream: str, text: str) -> None:
            threading.Thread(target=kernel.close).start()

        began = time.monotonic()
        expect(ends(kernel, _ENDLESS, seconds=_SOON, on_output=close).ok, False, "ok")
        expect(time.monotonic() - began < _SOON, True, "it ended before its time")


def a_death_is_told_and_the_next_cell_is_fresh(factory: KernelFactory) -> None:
    """With plugins, served functions and put variables, whether the process exits, is killed or crashes."""
    with _filled(factory) as kernel:
        for code in (
            "import os\nos._exit(3)",
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "import ctypes\nctypes.string_at(0)",
        ):
            run(kernel, "kept = 5")
            lost = ends(kernel, code, seconds=SECONDS)
            expect((lost.ok, lost.state_lost, bool(lost.error)), (False, True, True), f"{code}: ok, state_lost, error")
            _is_fresh(kernel)


def a_death_between_two_cells_is_told(factory: KernelFactory) -> None:
    """The next execution says that all is lost; no cell meets a fresh kernel in silence."""
    with factory() as kernel:
        run(kernel, "kept = 5")
        run(kernel, "import os, threading\nthreading.Timer(0.3, os._exit, (1,)).start()")
        deadline = time.monotonic() + PATIENCE
        while not (ran := ends(kernel, "'kept' in globals()", seconds=SECONDS)).state_lost:
            expect(ran.result, "True", "the variable is there as long as no loss was told")
            expect(time.monotonic() < deadline, True, "the process has ended by now, and it was told")
        expect((ran.ok, bool(ran.error)), (False, True), "ok, has an error")
        expect(run(kernel, "'kept' in globals()").result, "False", "the variable behind it")


def a_restart_is_fresh(factory: KernelFactory) -> None:
    """With plugins, served functions and put variables, without what cells made; no loss is told."""
    with _filled(factory) as kernel:
        run(kernel, "import os\nkept = 5\npid = os.getpid()")
        expect("kept" in [variable.name for variable in kernel.variables()], True, "it is among the variables")
        kernel.restart()
        expect(
            "kept" in [variable.name for variable in kernel.variables()],
            False,
            "it is among the variables of a fresh one",
        )
        _is_fresh(kernel)


def threads_take_turns(factory: KernelFactory) -> None:
    """Cells of several threads run one behind another, each to its end, each with its own output."""
    came: list[tuple[str, str, str | None]] = []
    step = "seen = total\nimport time\ntime.sleep(0.02)\ntotal = seen + 1\nprint({0!r})\n{0!r}"
    with factory() as kernel:
        run(kernel, "total = 0")

        def work(name: str) -> None:
            for _ in range(3):
                ran = kernel.execute(step.format(name), seconds=SECONDS)
                kernel.put(f"last_{name}", name)
                came.append((name, ran.stdout.strip(), ran.result))

        threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        expect(sorted(came), sorted((name, name, repr(name)) for name in "abc" for _ in range(3)), "what came out")
        expect(run(kernel, "total, last_a, last_b, last_c").result, "(9, 'a', 'b', 'c')", "what was done")


@contextmanager
def _filled(factory: KernelFactory) -> Iterator[Kernel]:
    with factory() as kernel:
        kernel.load(DOUBLE)
        kernel.serve("ask", lambda: "answered")
        kernel.put("given", 7)
        run(kernel, "kept = 5")
        yield kernel


def _is_fresh(kernel: Kernel) -> None:
    found = run(kernel, "('kept' in globals(), given, double(4), ask())").result
    expect(found, "(False, 7, 8, 'answered')", "old variable there, put variable, plugin, served function")


LIMITS = (
    a_cell_beyond_its_time_is_stopped,
    a_cell_that_can_not_be_stopped_is_ended,
    an_interrupt_stops_the_cell,
    a_cell_that_was_cancelled_before_it_began_is_stopped,
    closing_ends_a_cell_that_runs,
)
FAULTS = (
    a_death_is_told_and_the_next_cell_is_fresh,
    a_death_between_two_cells_is_told,
    a_restart_is_fresh,
)
THREADS = (threads_take_turns,)
