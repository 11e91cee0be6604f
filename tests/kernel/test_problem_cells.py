"""Cells that break things: each is told as a value, and the cell behind it works."""

import threading

import pytest

from tw_autogen.kernel import LocalKernel

OVERWRITTEN = {
    "stdout": "import sys\nsys.stdout = None",
    "closed stdout": "import sys\nsys.stdout.close()",
    "builtins.print": "import builtins\nbuiltins.print = None",
    "builtins.open": "import builtins\nbuiltins.open = None",
    "builtins.isinstance": "import builtins\nbuiltins.isinstance = None",
    "json": "import json\njson.dumps = json.loads = None",
}


@pytest.fixture
def kernel():
    with LocalKernel() as kernel:
        kernel.serve("ask", lambda: "answered")
        yield kernel


@pytest.mark.parametrize("code", OVERWRITTEN.values(), ids=OVERWRITTEN.keys())
def test_what_a_cell_overwrites_is_no_loss_to_the_next_one(kernel, code):
    kernel.execute("kept = 5", seconds=30)
    assert not kernel.execute(code, seconds=30).state_lost

    after = kernel.execute("print(open)\n(kept, ask())", seconds=30)
    assert after.result == "(5, 'answered')"
    assert "open" in after.stdout


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise ValueError('\ud800')", "ValueError"),
        ("class Mute(Exception):\n    def __str__(self): raise RuntimeError('no words')\nraise Mute", "no words"),
    ],
)
def test_an_exception_whose_text_cannot_be_sent_is_told(kernel, code, told):
    kernel.execute("kept = 5", seconds=30)
    execution = kernel.execute(code, seconds=30)

    assert not execution.ok
    assert told in execution.error
    assert execution.seconds < 10  # of 30
    assert kernel.execute("kept", seconds=30).result == "5"


def test_half_a_surrogate_pair_in_the_code_means_itself(kernel):
    assert kernel.execute("len('\ud800')", seconds=30).result == "1"


def test_two_threads_have_one_turn_each(kernel):
    inside = threading.Event()
    told = {}

    def second():
        told["second"] = kernel.execute("first, 'second'", seconds=30)

    waits = threading.Thread(target=second)

    def begin(stream, text):
        if not inside.is_set():
            inside.set()
            waits.start()

    code = "import time\nprint('on', flush=True)\ntime.sleep(0.3)\nfirst = 'first'\nprint('end')"
    first = kernel.execute(code, seconds=30, on_output=begin)
    waits.join(30)

    assert first.stdout == "on\nend\n"
    assert told["second"].result == "('first', 'second')"
