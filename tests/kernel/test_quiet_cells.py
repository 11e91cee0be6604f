"""What a kernel leaves out where nobody misses it: `idle` behind a reply that says all, and asking the same twice."""

import asyncio
import contextlib
import os

import pytest

from tw_autogen.kernel.guest.tamper_guard import suppress_status


class Kernel:
    """What of ipykernel's kernel has to do with statuses.

    Args:
        reply: Sends a reply.
    """

    def __init__(self, reply):
        self.published = []
        self.shell_handlers = {"execute_request": self._execute}
        self._publish_status = lambda status, channel, parent=None: self.published.append((status, channel))
        self._reply = reply

    async def _execute(self, stream, ident, parent):
        self._reply()

    def dispatch(self):
        """Do what ipykernel does about a request."""
        self._publish_status("busy", "shell")
        with contextlib.suppress(RuntimeError):
            asyncio.run(self.shell_handlers["execute_request"](None, None, {}))
        self._publish_status("idle", "shell")
        return self.published


def fail():
    """Be a reply that could not be sent."""
    raise RuntimeError


@pytest.mark.parametrize(
    ("quiet", "reply", "published"),
    [
        (True, lambda: None, []),
        (False, lambda: None, [("idle", "shell")]),
        (True, fail, [("idle", "shell")]),
    ],
)
def test_idle_is_left_out_only_behind_a_reply_that_was_sent_and_says_that_no_output_follows(quiet, reply, published):
    kernel = Kernel(reply)
    suppress_status(kernel, lambda: quiet)

    assert kernel.dispatch() == published


def test_the_end_of_an_interrupt_takes_no_cells_place():
    kernel = Kernel(lambda: kernel._publish_status("idle", "control"))
    suppress_status(kernel, lambda: True)
    suppress_status(kernel, lambda: True)  # as a kernel does that is rehearsed, and then begins

    assert kernel.dispatch() == [("idle", "control")]


def test_output_of_a_thread_comes_with_the_cell_in_which_it_was_printed(run):
    run("import threading\ngo, printed = threading.Event(), threading.Event()")
    run(
        "def later():\n    go.wait(30)\n    print('heard')\n    printed.set()\n"
        "thread = threading.Thread(target=later)\nthread.start()"
    )

    assert run("1 + 1").stdout == ""
    assert run("go.set()\nprinted.wait(30)").stdout == "heard\n"
    assert run("thread.join()").stdout == ""


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("7;", None),
        ("7;  # no more", None),
        ("7;\n# no more\n\n", None),
        ("1; 7", "7"),
        ("1;\n7", "7"),
        ("1\n7  # a; b", "7"),
        ("'''\n#''';", None),
        ("';'", "';'"),
    ],
)
def test_a_semicolon_at_the_end_of_the_code_hides_the_result(run, code, result):
    assert run(code).result == result


def test_a_cell_becomes_python_once_and_by_what_its_names_mean_then(run):
    run(
        "asked = []\n"
        "def count(lines):\n    asked.append(''.join(lines))\n    return lines\n"
        "get_ipython().input_transformers_cleanup.append(count)"
    )

    assert run("6 * 7").result == "42"
    assert run("asked.count('6 * 7\\n')").result == "1"
    run("del get_ipython().input_transformers_cleanup[:]")
    changes = (
        "ask = get_ipython().transform_cell\nbefore = ask('pwd')\npwd = 3\n'magic' in before, 'magic' in ask('pwd')"
    )
    assert run(changes).result == "(False, False)"  # a magic needs its sign, whatever the names mean


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("forks", ["this cell", "a cell before"])
def test_what_forked_processes_print_comes_with_the_cell_that_waits_for_them(run, forks):
    children = (
        "import os\ndef speak(read):\n    if os.fork() == 0:\n        os.read(read, 1)\n"
        "        print('child speaks', flush=True)\n        os._exit(0)\n"
        "ends = os.pipe()\n"
    )
    say = "_ = [(os.write(ends[1], b'.'), os.wait()) for _ in range(3)]"
    fork = "for _ in range(3): speak(ends[0])\n"
    for number in range(30):
        if forks == "this cell":
            heard = run(children + fork + say)
        else:
            assert run(children + fork).stdout == ""
            heard = run(say)
        assert heard.stdout == "child speaks\n" * 3, number
        assert run("os.close(ends[0]), os.close(ends[1])").stdout == ""
