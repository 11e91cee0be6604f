"""Cells: what is kept, what is told, what comes out."""

from __future__ import annotations

import threading

from tests.support.kernel_checks.bench import (
    SECONDS,
    KernelFactory,
    ends,
    expect,
    expect_within,
    fail,
    run,
)

_MUCH = 5_000_000


def it_remembers(factory: KernelFactory) -> None:
    """What one cell makes, the next one has; a new value replaces an old one."""
    with factory() as kernel:
        run(kernel, "kept = [1, 2]\ndef more(x):\n    return x + kept")
        run(kernel, "kept = [3]")
        expect(run(kernel, "more([0])").result, "[0, 3]", "result")


def the_last_expression_is_the_result(factory: KernelFactory) -> None:
    """Its text is the result; a cell that ends in a statement, or in a semicolon, has none."""
    with factory() as kernel:
        found = {code: run(kernel, code).result for code in ("6 * 7", "x = 1", "6 * 7;", "None", "'a'")}
        expect(found, {"6 * 7": "42", "x = 1": None, "6 * 7;": None, "None": None, "'a'": "'a'"}, "results")


def any_text_ends_in_an_execution(factory: KernelFactory) -> None:
    """Nothing that a model may write harms the kernel: no code at all, half characters, zeros, foreign line ends."""
    with factory() as kernel:
        run(kernel, "kept = 1")
        for code in ("", "# only a comment", "'\ud800'", "a = 1\r\nb = 2\r\n", "\x00", "(", "\tx", "é = 1"):
            ends(kernel, code, seconds=SECONDS)
            expect(run(kernel, "kept").result, "1", f"the variable behind the cell {code!r}")


def a_failed_cell_keeps_what_it_did(factory: KernelFactory) -> None:
    """An exception ends its cell only; what stood before it has happened."""
    with factory() as kernel:
        for _ in range(3):
            failed = fail(kernel, "print('on the way')\nkept = 5\n1 / 0\nkept = 6")
            expect((failed.state_lost, failed.stdout, failed.result), (False, "on the way\n", None), "the failed cell")
        expect(run(kernel, "kept").result, "5", "the variable behind it")


def an_error_is_told_as_a_model_should_read_it(factory: KernelFactory) -> None:
    """With the cell's own line and the exception's, without paths of the machine."""
    with factory() as kernel:
        run(kernel, "first = 1")
        error = fail(kernel, "second = 2\nraise ValueError('told here')").error
        for part in ("raise ValueError('told here')", "ValueError: told here", "line 2"):
            expect_within(part, error, "the error")
        for path in (str(kernel.folder), "site-packages"):
            expect(path in error, False, f"the error names a path of this machine: {error!r}")
        expect_within("SyntaxError", fail(kernel, "b = (2").error, "the error")


def code_runs_in_the_folder(factory: KernelFactory) -> None:
    """What a cell writes lies in `folder` behind it; what the host lays there, the next cell reads."""
    with factory() as kernel:
        run(kernel, "with open('made.txt', 'w') as file:\n    file.write('by code');")
        expect((kernel.folder / "made.txt").read_text(encoding="utf-8"), "by code", "the file, for the host")
        (kernel.folder / "given.txt").write_text("by the host", encoding="utf-8")
        expect(run(kernel, "open('given.txt').read()").result, "'by the host'", "the file, for code")


def input_is_refused_at_once(factory: KernelFactory) -> None:
    """Nobody sits at this kernel; a cell that asks is told so, and waits for nobody."""
    with factory() as kernel:
        asked = ends(kernel, "input('name? ')", seconds=SECONDS)
        expect((asked.ok, asked.state_lost, bool(asked.error)), (False, False, True), "ok, state_lost, has an error")
        expect(asked.seconds < SECONDS, True, f"it took {asked.seconds:g} s, less than its time")


def exit_is_survived(factory: KernelFactory) -> None:
    """`exit()` either ends nothing, or the loss is told; the next cell runs."""
    with factory() as kernel:
        run(kernel, "kept = 1")
        lost = ends(kernel, "exit()", seconds=SECONDS).state_lost
        expect(run(kernel, "'kept' in globals()").result, repr(not lost), "the variable is there")


def the_time_of_a_cell_is_told(factory: KernelFactory) -> None:
    """In seconds of the clock on the wall."""
    with factory() as kernel:
        expect(0.2 < run(kernel, "import time\ntime.sleep(0.3)").seconds < SECONDS, True, "0.2 < seconds")
        expect(0.0 <= run(kernel, "1").seconds < SECONDS, True, "0 <= seconds")


def output_and_errors_are_kept_apart(factory: KernelFactory) -> None:
    """In order, with every character, each cell's own."""
    with factory() as kernel:
        run(kernel, "print('of the cell before')")
        ran = run(kernel, "import sys\nprint('aé', end='')\nprint('err', file=sys.stderr)\nprint(' b\\n')\n1")
        expect((ran.stdout, ran.stderr, ran.result), ("aé b\n\n", "err\n", "1"), "stdout, stderr, result")


def output_arrives_while_the_cell_runs(factory: KernelFactory) -> None:
    """`on_output` gets it at once; in the end it has had all that the execution says."""
    heard: list[tuple[str, str]] = []
    there = threading.Event()

    def hear(stream: str, text: str) -> None:
        heard.append((stream, text))
        there.set()

    with factory() as kernel:
        kernel.serve("was_heard", lambda: there.wait(5.0))
        code = "import sys\nprint('now', flush=True)\nheard = was_heard()\nprint('err', file=sys.stderr)\nheard"
        ran = kernel.execute(code, seconds=SECONDS, on_output=hear)
        expect(ran.result, "True", "the host heard it before the cell's end")
        for stream, text in (("stdout", "now\n"), ("stderr", "err\n")):
            expect("".join(said for where, said in heard if where == stream), text, f"what was heard on {stream}")


def much_output_is_cut_in_the_middle(factory: KernelFactory) -> None:
    """Neither prints nor results fill the host's memory or the model's window; head and tail stay."""
    with factory() as kernel:
        ran = run(kernel, f"print('BEGIN' + 'a' * {_MUCH} + 'END')\n'b' * {_MUCH}")
        expect(len(ran.stdout) < _MUCH, True, f"less than {_MUCH} characters of output: {len(ran.stdout)}")
        expect((ran.stdout[:6], ran.stdout[-5:]), ("BEGINa", "aEND\n"), "its head and tail")
        result = len(ran.result or "")
        expect(0 < result < _MUCH, True, f"more than none and less than {_MUCH} characters of result: {result}")
        expect(run(kernel, "1").result, "1", "the next cell")


def an_object_that_can_not_be_shown_breaks_nothing(factory: KernelFactory) -> None:
    """Its `repr` raises, and it is a variable and a result all the same."""
    with factory() as kernel:
        run(kernel, "class Bad:\n    def __repr__(self):\n        raise RuntimeError('no words')\nbad = Bad()")
        ends(kernel, "bad", seconds=SECONDS)
        expect(run(kernel, "'alive'").result, "'alive'", "the next cell")
        expect("bad" in [variable.name for variable in kernel.variables()], True, "it is among the variables")


CELLS = (
    it_remembers,
    the_last_expression_is_the_result,
    any_text_ends_in_an_execution,
    a_failed_cell_keeps_what_it_did,
    an_error_is_told_as_a_model_should_read_it,
    code_runs_in_the_folder,
    input_is_refused_at_once,
    exit_is_survived,
    the_time_of_a_cell_is_told,
)
OUTPUT = (
    output_and_errors_are_kept_apart,
    output_arrives_while_the_cell_runs,
    much_output_is_cut_in_the_middle,
    an_object_that_can_not_be_shown_breaks_nothing,
)
