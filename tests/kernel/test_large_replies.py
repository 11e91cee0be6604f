"""Replies that are larger than the host takes: the kernel cuts them, and nothing waits where it could not."""

import threading
import time

import pytest
import zmq

from tw_autogen.kernel import LocalKernel
from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.guest.json_size import LARGEST_PART, fits_message
from tw_autogen.kernel.pending_request import ANSWER_LOST
from tw_autogen.kernel.transport import CHANNELS
from tw_autogen.kernel.zmtp import wait_for_messages

SECONDS = 60.0
SOON = 30.0
"""Well below the time limit of a cell, and far above what one of these takes."""
LARGE = 70_000_000
FORGED = f"""
from IPython import get_ipython
session = get_ipython().kernel.session
sent = session.send
def send(stream, kind, content=None, *args, **named):
    if kind == "execute_reply":
        content = dict(content, large="x" * {LARGE})
        if ONCE:
            session.send = sent
    return sent(stream, kind, content, *args, **named)
session.send = send
print("printed")
"""
ASKED = f"""
from IPython import get_ipython
kernel = get_ipython().kernel
type(kernel).raw_input(kernel, "x" * {LARGE})
"""


def timed(kernel, code):
    began = time.monotonic()
    ran = kernel.execute(code, seconds=SECONDS)
    assert time.monotonic() - began < SOON
    return ran


@pytest.fixture
def filled(kernel):
    assert kernel.execute("kept = 41", seconds=SECONDS).ok
    return kernel


@pytest.mark.parametrize(
    ("code", "beginning"),
    [
        (f"raise ValueError('x' * {LARGE})", "ValueError: xxx"),
        (f"raise SystemExit('x' * {LARGE})", "SystemExit: xxx"),
        (f"raise KeyboardInterrupt('x' * {LARGE})", "KeyboardInterrupt: xxx"),
        (f"import asyncio\nawait asyncio.sleep(0)\nraise KeyError('x' * {LARGE})", "KeyError: 'xxx"),
        (f"class E(Exception):\n    pass\nE.__name__ = 'E' * {LARGE}\nraise E('why')", "E: why"),
    ],
)
def test_of_a_long_exception_type_and_beginning_are_told_and_variables_stay(filled, code, beginning):
    ran = timed(filled, code)

    assert not ran.ok
    assert not ran.state_lost
    assert beginning in ran.error
    assert len(ran.error) < 10_000
    assert filled.execute("kept", seconds=SECONDS).result == "41"


@pytest.mark.parametrize(
    "code",
    [
        f"globals()['n' * {LARGE}] = 1",
        f"from IPython import get_ipython\nget_ipython().set_next_input('x' * {LARGE})",
        f"class T:\n    pass\nT.__name__ = 'T' * {LARGE}\nt = T()",
    ],
)
def test_a_cell_whose_names_or_payloads_are_long_ends_well(filled, code):
    ran = timed(filled, code)

    assert ran.ok, ran.error
    assert filled.execute("kept", seconds=SECONDS).result == "41"


def test_a_value_that_is_longer_than_a_message_is_an_error_and_costs_nothing_else(filled):
    assert filled.execute(f"long = 'x' * {LARGE}", seconds=SECONDS).ok
    began = time.monotonic()
    with pytest.raises(TypeError, match="more than one message may be"):
        filled.get("long")
    assert time.monotonic() - began < SOON
    assert filled.get("kept") == 41


def test_a_host_call_that_is_longer_than_a_message_is_an_error_in_the_cell(filled):
    filled.serve("count", len)
    ran = timed(filled, f"count('x' * {LARGE})")
    assert "HostCallError: count: the arguments are a text of 66 MB, of 60 at most" in ran.error
    assert filled.execute("count('abc') + kept", seconds=SECONDS).result == "44"


def test_a_forged_reply_that_is_too_large_costs_the_answer_and_no_variables():
    with LocalKernel() as kernel:
        ran = timed(kernel, "kept = 41\n" + FORGED.replace("ONCE", "True"))

        assert ran.error == f"This cell was run, but {ANSWER_LOST}; variables are kept."
        assert ran.stdout == "printed\n"
        assert kernel.execute("kept", seconds=SECONDS).result == "41"


def test_a_kernel_that_sends_nothing_but_too_large_replies_is_ended_with_the_reason():
    with LocalKernel() as kernel:
        ran = timed(kernel, FORGED.replace("ONCE", "False"))

        assert ran.state_lost
        assert "its answers were larger than one message may be, or no messages, and it was ended" in ran.error
        assert timed(kernel, "6 * 7").result == "42"


def test_a_question_that_is_too_large_is_answered(filled):
    assert timed(filled, ASKED).result == "'{}'"
    assert filled.execute("kept", seconds=SECONDS).result == "41"


def test_cells_after_a_cut_can_be_stopped_and_ended():
    with LocalKernel() as kernel:
        timed(kernel, FORGED.replace("ONCE", "True"))
        began = time.monotonic()
        assert "Stopped after 1 s" in kernel.execute("while True: pass", seconds=1.0).error

        threading.Timer(0.5, kernel.kill).start()
        assert kernel.execute("while True: pass", seconds=SECONDS).state_lost
        assert time.monotonic() - began < SOON


@pytest.fixture
def lines():
    """A connection, and the sockets of a kernel that would answer it."""
    connection = Connection(binds=False)
    with connection.begin() as new, zmq.Context() as context:
        servers = {channel: context.socket(zmq.XPUB if channel == "iopub" else zmq.ROUTER) for channel in CHANNELS}
        for one, server in servers.items():
            server.setsockopt(zmq.LINGER, 0)
            if one != "iopub":
                server.setsockopt(zmq.ROUTER_HANDOVER, 1)  # as ipykernel
            server.bind(f"ipc://{new.folder / 'k-'}{connection.info[f'{one}_port']}")
        connection.join(lambda: True, 5)
        yield connection, servers
        connection.close()
        for server in servers.values():
            server.close()


@pytest.mark.parametrize("channel", ["shell", "stdin"])
def test_a_line_that_was_cut_takes_what_is_sent_at_once_and_is_there_again(lines, channel):
    connection, servers = lines

    def send():
        return connection.request("1") if channel == "shell" else connection.answer_input("1")

    def cut():
        servers[channel].send_multipart([who, b"x" * (LARGEST_PART + 1)])
        assert wait_for_messages([line], 10) == set()
        assert line.cut

    line = connection._channels[channel]
    send()
    line.flush(5)
    who = servers[channel].recv_multipart()[0]
    assert connection.reconnect_cut() == ()

    cut()
    assert connection.reconnect_cut() == (channel,)
    assert connection.reconnect_cut() == ()
    send()
    line.flush(5)
    assert servers[channel].poll(5000)
    servers[channel].recv_multipart()

    cut()
    send()  # nobody has looked before
    line.flush(5)
    assert servers[channel].poll(5000)


def test_text_fits_a_message_by_what_it_takes_there():
    assert fits_message("x" * (59 << 20))
    assert not fits_message("x" * (61 << 20))
    assert not fits_message('"' * (31 << 20))
    assert not fits_message("é" * (31 << 20))
    assert fits_message("\U0001f600" * (8 << 20))
