"""Cells that print, show or raise too much, or what can't be sent: bounded, told, and the next one runs."""

import threading

import pytest

from tests.kernel.filled import filled, keep, linux, margin, run, works
from tw_autogen.kernel import KernelSettings

LIMIT = KernelSettings().output_chars + 60  # with the mark that says how much was left out


@pytest.fixture(scope="module")
def kernel():
    with filled() as kernel:
        yield kernel


MUCH = {
    "100 MB at once": "print('a' * 100_000_000)",
    "100 MB line by line": "line = 'a' * 999\nfor _ in range(100_000): print(line)",
    "1e5 prints": "for i in range(100_000): print(i)",
    "1e5 flushed prints": "for i in range(100_000): print(i, flush=True)",
    "1e5 writes to stderr": "import sys\nfor i in range(100_000): sys.stderr.write('a\\n')",
    "1e4 displays": "from IPython.display import display\nfor i in range(10_000): display(i)",
    "1e4 displayed pages": "from IPython.display import HTML, display\n"
    "for i in range(10_000): display(HTML(f'<b>{i}</b>'))",
    "a command's 100 MB": "!head -c 100000000 /dev/zero | tr '\\0' a",
    "100 MB to descriptor 1": "import os\nos.system(\"head -c 100000000 /dev/zero | tr '\\\\0' a\")",
}


@pytest.mark.parametrize("code", MUCH.values(), ids=MUCH.keys())
def test_output_without_end_is_cut_and_costs_nothing_but_its_time(kernel, code):
    keep(kernel)
    execution = run(kernel, code, seconds=30, within=8)

    assert execution.ok
    assert len(execution.stdout) <= LIMIT
    assert len(execution.stderr) <= LIMIT
    works(kernel)


def test_output_comes_again_after_a_message_that_was_too_large_and_the_loss_is_said(kernel):
    keep(kernel)
    code = "from comm import create_comm\nmade = create_comm(target_name='x', data={'a': 'A' * 70_000_000})"
    assert run(kernel, code, seconds=30, within=8).ok
    cut = run(kernel, "print('cut')", seconds=30, within=8)
    assert ["output of this cell was lost" in log.message for log in cut.logs] == [True]
    whole = run(kernel, "print('whole')", seconds=30, within=8)
    assert (whole.stdout, whole.logs) == ("whole\n", ())
    works(kernel)


LONG_WORDS = {
    "text": "raise ValueError('x' * 70_000_000)",
    "class": "class E(Exception): pass\nE.__name__ = 'E' * 70_000_000\nraise E('a')",
    "interrupt": "raise KeyboardInterrupt('x' * 70_000_000)",
    "exit": "raise SystemExit('x' * 70_000_000)",
}


@pytest.mark.parametrize("code", LONG_WORDS.values(), ids=LONG_WORDS.keys())
def test_an_exception_with_words_larger_than_a_message_fails_as_any_other_does(kernel, code):
    keep(kernel)
    failed = run(kernel, code, seconds=30, within=15)

    assert not failed.ok
    assert 0 < len(failed.error) < 10_000
    works(kernel)


def test_prints_that_are_flushed_cost_little_more_than_others_and_arrive_while_the_cell_runs(kernel):
    heard, arrived = [], threading.Event()

    def hear(stream, text):
        heard.append(text)
        arrived.set()

    kernel.serve("await_arrival", lambda: arrived.wait(30) and len(heard))
    plain = kernel.execute("for i in range(20_000): print(i)", seconds=30).seconds
    flushed = kernel.execute(
        "print('first', flush=True)\nearly = await_arrival()\n"
        "for i in range(20_000): print(i, flush=True)\nprint('end')",
        seconds=30,
        on_output=hear,
    )

    assert flushed.seconds < plain + margin()
    early = int(kernel.execute("early", seconds=30).result)
    assert "first\n".startswith("".join(heard[:early]))  # perhaps in two pieces
    assert early < len(heard)
    assert flushed.stdout.endswith("end\n")
    works(kernel)


def test_what_was_flushed_a_moment_before_a_crash_is_there(kernel):
    execution = kernel.execute("import os, time\nprint('before', flush=True)\ntime.sleep(0.1)\nos._exit(3)", seconds=30)

    assert execution.stdout == "before\n"
    works(kernel, kept=False)


def test_printing_takes_no_memory_that_stays():
    with filled() as kernel:
        size = "int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20"
        before = int(run(kernel, size, seconds=30).result)
        for _ in range(3):
            run(kernel, "for _ in range(20_000): print('a' * 2000)\n'b' * 10_000_000", seconds=30)

        assert int(run(kernel, size, seconds=30).result) < before + 60


TEXTS = {
    "a repr of 1e7 characters": ("'b' * 10_000_000", "result", "characters left out"),
    "a repr of its own of 1e7 characters": (
        "class Long:\n    def __repr__(self): return 'c' * 10_000_000\nLong()", "result", "characters left out",
    ),
    "a repr that raises": ("class Bad:\n    def __repr__(self): raise OSError('mute')\nBad()", "stderr", "mute"),
    "a repr that is no text": ("class Bad:\n    def __repr__(self): return 3\nBad()", "stderr", "TypeError"),
    "half a surrogate pair printed": ("print('a\\ud800b')", "stdout", "a?b\n"),
    "half a surrogate pair as result": ("'a\\udc00b'", "result", "'a\\udc00b'"),
    "half a surrogate pair in an error": ("raise ValueError('a\\ud800b')", "error", "ValueError: a?b"),
    "an error of 1e7 characters": ("raise ValueError('d' * 10_000_000)", "error", "characters left out"),
    "zeros and control characters": ("print('a\\0\\x1b[31mb')", "stdout", "a\0\x1b[31mb\n"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "where", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_a_text_that_is_too_long_or_can_not_be_sent_is_told_as_far_as_possible(kernel, code, where, text):
    keep(kernel)
    execution = run(kernel, code, seconds=30, within=3)

    assert text in getattr(execution, where)
    assert len(execution.error) < 10_000
    works(kernel)


@pytest.mark.skipif(not linux, reason="ipykernel reads descriptors on Linux and macOS only")
def test_what_goes_to_descriptors_is_the_cells_output(kernel):
    written = kernel.execute("import os\nos.write(1, b'a\\xff\\xfeb\\n')\nos.write(2, b'err\\n');", seconds=30)
    assert (written.stdout, written.stderr) == ("a\ufffd\ufffdb\n", "err\n")

    run(kernel, "import subprocess, sys\nsubprocess.run(['echo', 'led'], stdout=sys.stdout)", seconds=30)
    for number in range(50):
        assert kernel.execute(f"import os\nos.system('echo {number}');", seconds=30).stdout == f"{number}\n"
    works(kernel)


@pytest.mark.skipif(not linux, reason="ipykernel reads descriptors on Linux and macOS only")
def test_closed_descriptors_are_open_again_in_the_next_cell(kernel):
    keep(kernel)
    assert run(kernel, "import os\nfor number in range(3): os.close(number)", seconds=30).ok
    works(kernel)

    code = "import os\nwith open('mine', 'w') as file: print(file.fileno() > 2)\nos.system('echo heard');"
    assert sorted(kernel.execute(code, seconds=30).stdout.split()) == ["True", "heard"]


def test_what_a_thread_prints_between_two_cells_comes_with_the_next_one(kernel):
    run(kernel, "import threading\nsaid = threading.Event()\ngo = threading.Event()", seconds=30)
    late = "def late():\n    go.wait(30)\n    print('late', flush=True)\n    said.set()\n"
    assert run(kernel, f"{late}threading.Thread(target=late).start()", seconds=30).stdout == ""
    assert run(kernel, "threading.Timer(0.05, go.set).start()", seconds=30).stdout == ""
    threading.Event().wait(0.3)

    assert run(kernel, "said.wait(30)\nprint('mine')", seconds=30).stdout == "late\nmine\n"
    works(kernel)


def test_a_thread_that_prints_for_ever_hides_no_other_cells_end(kernel):
    keep(kernel)
    flood = "import threading\nstop = False\ndef flood():\n    while not stop: print('x' * 99)\n"
    run(kernel, f"{flood}thread = threading.Thread(target=flood)\nthread.start()", seconds=30)
    threading.Event().wait(0.5)

    execution = run(kernel, "stop = True\nthread.join()\nprint('mine')", seconds=30)
    assert len(execution.stdout) <= LIMIT
    assert execution.stdout.endswith("mine\n")
    works(kernel)


def test_the_ends_of_prints_are_known_and_long_output_is_kept_as_a_variable(kernel):
    first = run(kernel, "print('a', 'b'); print('c\\n' * 2500); print('no end', end='')\n'result'", seconds=30)
    again = run(kernel, "print(len(last_output))", seconds=30)
    run(kernel, "last_output = 'mine'\nprint('d' * 5000)", seconds=30)
    mine = run(kernel, "print(last_output)\ndel last_output", seconds=30)

    assert (first.print_ends, first.kept_as) == ((4, 5005), "last_output")
    assert "last_output" not in [variable.name for variable in first.variables]
    assert (again.stdout, again.kept_as) == (f"{4 + 5001 + 6 + 9}\n", "")
    assert mine.stdout == "mine\n"
