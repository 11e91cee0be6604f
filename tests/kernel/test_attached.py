"""The kernel that a notebook has open: ours in it beside the user, by connection file and through a Jupyter server."""

import contextlib
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
import zmq
from click.testing import CliRunner
from jupyter_client.manager import KernelManager

from tests.kernel.test_gateway import SERVER, TOKEN, gateway
from tw_autogen.cli.main import main
from tw_autogen.errors import (
    ApprovalNeeded,
    ConfigError,
    KernelBusyError,
    KernelError,
    KernelStartError,
    PluginLoadError,
    SettingsError,
)
from tw_autogen.kernel import AttachedKernel, Kernel, KernelSettings, Loadable
from tw_autogen.kernel.attached_connection import FileConnection, LocalAttachedProcess, Target
from tw_autogen.kernel.attached_kernel import AttachedRequest
from tw_autogen.kernel.client import KernelClient, KernelHandle
from tw_autogen.kernel.guest_bundle import install_expression
from tw_autogen.kernel.host_calls import HostFunctions
from tw_autogen.kernel.pending_request import ANSWER_LOST
from tw_autogen.kernel.transport import WakeupSocket
from tw_autogen.session import open_session, read_settings
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

SECONDS = 30
QUICK = KernelSettings(grace_seconds=3.0)
STATE = """
import builtins, sys
from IPython import get_ipython
_shell = get_ipython()
_hooks = [sys.stdout, sys.stderr, sys.displayhook, _shell.showtraceback, _shell.ask_exit, _shell.kernel.raw_input,
          _shell.automagic, sys.excepthook, list(sys.meta_path), dict(_shell.events.callbacks), builtins.input,
          _shell.display_formatter.formatters["text/html"].type_printers.copy(), hasattr(builtins, "describe")]
print(hash(repr(_hooks)), sorted(one for one in sys.modules if "tw_" in one), "ask" in globals())
"""


class User:
    """The notebook's own client."""

    def __init__(self, manager):
        self.manager = manager
        self.client = manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(60)

    def run(self, code):
        """Run a cell to its end; return what it printed, or its error."""
        said = []

        def take(message):
            content = message["content"]
            said.append(content.get("text") or content.get("ename") or "")

        self.client.execute_interactive(code, timeout=60, output_hook=take, allow_stdin=False)
        return "".join(said)

    def begin(self, code):
        """Send a cell; return when it has begun."""
        number = self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=30)
            if message["msg_type"] == "execute_input" and message["parent_header"].get("msg_id") == number:
                return number

    def end(self, number):
        """Return the status of the reply to a cell."""
        while True:
            message = self.client.get_shell_msg(timeout=30)
            if message["parent_header"].get("msg_id") == number:
                return message["content"]["status"]


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    manager = KernelManager(kernel_name="python3")
    place = tmp_path_factory.mktemp("notebook")
    manager.start_kernel(cwd=str(place))
    user = User(manager)
    user.place = place
    try:
        yield user
    finally:
        user.client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(user):
    with AttachedKernel(user.manager.connection_file, settings=QUICK, busy_seconds=10) as kernel:
        yield kernel


def test_code_and_user_share_variables_and_folder(user, kernel):
    user.run("import pandas as pd\nloads = pd.DataFrame({'x': [1, 2, 3]})")
    assert isinstance(kernel, Kernel)
    assert [str(variable) for variable in kernel.variables() if variable.name == "loads"] == [
        "loads: DataFrame, 3 x 1, columns x: int64"
    ]

    ran = kernel.execute("import os\ntotal = int(loads.x.sum())\nprint('said')\nos.getcwd()", seconds=SECONDS)

    assert (ran.ok, ran.stdout, ran.result, ran.error) == (True, "said\n", repr(str(user.place)), "")
    assert "total" in {variable.name for variable in ran.variables}
    assert user.run("print(total)") == "6\n"
    assert kernel.get("total") == 6
    kernel.put("given", pd.DataFrame({"y": [4.5]}))
    assert user.run("print(given.y.sum())") == "4.5\n"
    pd.testing.assert_frame_equal(kernel.get("loads"), pd.DataFrame({"x": [1, 2, 3]}))


def test_an_error_is_told_as_ipython_tells_it_and_variables_made_before_it_are_there(kernel):
    ran = kernel.execute("before = 1\nprint('x')\n1 / 0", seconds=SECONDS)

    assert not ran.ok
    assert ran.stdout == "x\n"
    assert "ZeroDivisionError: division by zero" in ran.error
    assert "\x1b" not in ran.error
    assert "before" in {variable.name for variable in ran.variables}


def test_a_chart_is_saved_in_the_folder_of_the_session(kernel):
    ran = kernel.execute(
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", seconds=SECONDS
    )

    (chart,) = ran.artifacts
    assert chart.path.parent == kernel.folder
    assert chart.path.read_bytes().startswith(b"\x89PNG")


def test_nothing_of_ours_stays_behind(user):
    before = user.run(STATE)
    with AttachedKernel(user.manager.connection_file) as kernel:
        user.run("ask = 'mine'")
        kernel.serve("ask", lambda words: f"host: {words}")
        ran = kernel.execute("said = ask('a'); said", seconds=SECONDS)
        assert ran.result == "'host: a'"
        assert "HostCallError" in user.run("ask('b')")
    assert user.run("print(ask)\ndel ask") == "mine\n"

    assert user.run(STATE) == before
    assert user.run("print(said)") == "host: a\n"


def test_a_cell_of_the_users_is_waited_for_with_a_word_and_not_for_ever(user):
    said = []
    with AttachedKernel(user.manager.connection_file, busy_seconds=1.5, on_wait=said.append) as kernel:
        kernel.execute("1", seconds=SECONDS)
        number = user.begin("import time\ntime.sleep(2.5)")
        with pytest.raises(KernelBusyError, match=r"within 1\.5 s: a cell of yours runs there.*Nothing was run"):
            kernel.execute("never = 1", seconds=SECONDS)
        assert said == ["the notebook's kernel is busy with a cell of yours; waiting 1.5 s for its end at most"]
        kernel.interrupt()
        assert user.end(number) == "ok"
        assert kernel.execute("2", seconds=SECONDS).result == "2"
        assert "never" not in {variable.name for variable in kernel.variables()}


def test_output_of_the_users_cell_is_not_ours(user, kernel):
    kernel.execute("1", seconds=SECONDS)
    number = user.begin("import time\ntime.sleep(0.5)\nprint('of the user')")
    ran = kernel.execute("print('ours')", seconds=SECONDS)

    assert user.end(number) == "ok"
    assert ran.stdout == "ours\n"


def test_the_time_limit_interrupts_our_cell_only_and_nothing_is_lost(user, kernel):
    ran = kernel.execute("kept = 1\nimport time\ntime.sleep(60)", seconds=0.5)

    assert not ran.ok
    assert not ran.state_lost
    assert ran.error.startswith("Stopped after 0.5 s, its time limit, by an interrupt; variables are kept.")
    assert user.run("print(kept)") == "1\n"


def test_a_cell_that_ignores_interrupts_is_left_running_and_the_kernel_lives(user):
    code = "import time\nfor _ in range(3):\n    try: time.sleep(1)\n    except KeyboardInterrupt: pass"
    with AttachedKernel(user.manager.connection_file, settings=KernelSettings(grace_seconds=0.4)) as kernel:
        ran = kernel.execute(f"still = 1\n{code}", seconds=0.5)

        assert ran.state_lost
        assert "did not react to an interrupt and still runs in your kernel" in ran.error
        assert kernel.execute("still", seconds=SECONDS).result == "1"
    assert user.manager.is_alive()


@pytest.mark.parametrize("attached", [False, True], ids=["first", "again"])
def test_closing_ends_the_wait_for_a_cell_of_the_users_and_nothing_runs_after_it(user, attached):
    waits = threading.Event()
    with (
        ThreadPoolExecutor() as threads,
        AttachedKernel(user.manager.connection_file, settings=QUICK, on_wait=lambda said: waits.set()) as kernel,
    ):
        if attached:
            kernel.execute("1", seconds=SECONDS)
        number = user.begin("import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass")
        with (
            AttachedKernel(user.manager.connection_file, busy_seconds=0.3) as other,
            pytest.raises(KernelBusyError, match=r"within 0\.3 s: a cell of yours runs there"),
        ):
            other.execute("1", seconds=SECONDS)
        running = threads.submit(kernel.execute, "after_close = 1", seconds=SECONDS)
        assert waits.wait(30)
        began = time.monotonic()
        kernel.close()
        assert time.monotonic() - began < 4
        with pytest.raises(KernelStartError, match=r"the kernel is closed"):
            running.result(5)
        user.manager.interrupt_kernel()
        assert user.end(number) == "ok"
    assert user.run("print('after_close' in globals())") == "False\n"
    assert "[]" in user.run(STATE)


def test_closing_interrupts_a_cell_of_ours_and_leaves(user):
    began = threading.Event()
    code = "begun = 1\nimport time\nprint('begun', flush=True)\ntime.sleep(60)"
    settings = KernelSettings(grace_seconds=3.0, end_unresponsive=False)
    with (
        ThreadPoolExecutor() as threads,
        AttachedKernel(user.manager.connection_file, settings=settings) as kernel,
    ):
        running = threads.submit(kernel.execute, code, seconds=SECONDS, on_output=lambda *said: began.set())
        assert began.wait(30)
        kernel.close()
        ran = running.result(0.1)

    assert not ran.state_lost
    assert ran.error.startswith("Stopped on request, by an interrupt; variables are kept.")
    assert user.run("print(begun)") == "1\n"
    assert "[]" in user.run(STATE)


@pytest.fixture
def stranger():
    """Run a process that is no kernel, and whose command line names a connection file; return it."""
    with subprocess.Popen([sys.executable, "-c", "input()", "kernel.json"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("number", [-1, 0, 1, "own", "stranger"])
def test_a_process_that_is_not_the_kernels_is_not_watched(number, stranger):
    process = LocalAttachedProcess(Path("kernel.json"), lambda: None)
    process.watch({"own": os.getpid(), "stranger": stranger.pid}.get(number, number))

    assert process.pid == 0


@pytest.mark.skipif(sys.platform != "linux", reason="watches processes of Linux")
def test_a_kernel_is_watched_by_a_link_to_its_connection_file(tmp_path):
    file, link = tmp_path / "kernel-1.json", tmp_path / "mine.json"
    link.symlink_to(file)
    code = "print(1, flush=True); input()"  # what it prints comes when its command line is there for certain
    with subprocess.Popen(
        [sys.executable, "-c", code, "-f", str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout.readline() == b"1\n"
        process = LocalAttachedProcess(link, lambda: None)
        process.watch(started.pid)
        known, runs = process.pid, process.alive()
        started.kill()

    assert (known, runs, process.alive()) == (started.pid, True, False)
    process.release()


@pytest.mark.parametrize(("listens", "words"), [(True, "still runs in your kernel"), (False, "its process ended")])
def test_a_kernel_whose_process_is_not_known_is_said_to_run_only_where_it_listens(listens, words):
    process = LocalAttachedProcess(Path("copy.json"), lambda: None, lambda: listens)

    assert process.alive()
    assert words in process.end()


def test_no_process_is_interrupted_on_the_kernels_word(user, stranger):
    asked = f"lambda: {stranger.pid} if sys._getframe(1).f_code.co_filename == '<string>' else real()"
    user.run(f"import os, sys\nreal = os.getpid\nos.getpid = {asked}")
    with AttachedKernel(user.manager.connection_file, settings=QUICK) as kernel:
        ran = kernel.execute("import time\ntime.sleep(60)", seconds=0.5)
    user.run("os.getpid = real")

    assert ran.error.startswith("Stopped after 0.5 s, its time limit, by an interrupt; variables are kept.")
    assert stranger.poll() is None


def test_two_sessions_in_one_kernel_leave_each_other_alone(user):
    with AttachedKernel(user.manager.connection_file, settings=QUICK) as first:
        first.serve("who", lambda: "first")
        first.serve("ask", lambda: "first")
        assert first.execute("who(), ask()", seconds=SECONDS).result == "('first', 'first')"
        with AttachedKernel(user.manager.connection_file, settings=QUICK) as second:
            second.serve("ask", lambda: "second")
            assert second.execute("ask()", seconds=SECONDS).result == "'second'"
            assert first.execute("who(), ask()", seconds=SECONDS).result == "('first', 'first')"
            assert "HostCallError" in user.run("ask()")
        ran = first.execute("who(), ask()", seconds=SECONDS)
        assert (ran.result, ran.error) == ("('first', 'first')", "")
    assert user.run("print('ask' in globals(), 'who' in globals())") == "False False\n"
    assert "[]" in user.run(STATE)


def test_what_a_crashed_host_has_served_is_removed_when_another_one_attaches(user):
    script = (
        "import os\nfrom tw_autogen.kernel import AttachedKernel\n"
        f"kernel = AttachedKernel({user.manager.connection_file!r})\n"
        "kernel.serve('ask', lambda: 'lost')\nprint(kernel.execute('ask()', seconds=30).result, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    user.run("ask = 'mine'")
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "'lost'\n"
    assert "HostCallError" in user.run("ask()")

    with AttachedKernel(user.manager.connection_file, settings=QUICK) as kernel:
        assert kernel.execute("ask", seconds=SECONDS).result == "'mine'"
    assert user.run("print(ask)\ndel ask") == "mine\n"
    assert "[]" in user.run(STATE)


def test_served_functions_are_there_again_after_a_reset(user, kernel):
    kernel.serve("ask", lambda: "host")
    kernel.execute("1", seconds=SECONDS)
    user.run("%reset -f")
    assert kernel.execute("ask()", seconds=SECONDS).result == "'host'"
    kernel.execute("%reset -f", seconds=SECONDS)
    assert kernel.execute("ask()", seconds=SECONDS).result == "'host'"


def test_what_jupyter_drops_behind_a_failed_cell_is_sent_again(user, tmp_path):
    wire, process = Target.parse(user.manager.connection_file).connect(tmp_path)
    handle = KernelHandle(
        wire,
        process,
        module="attached",
        options={"owner": "test", "host": 0},
        request_type=AttachedRequest,
        release=process.release,
    )
    wakeup = WakeupSocket()
    client = KernelClient(tmp_path, settings=QUICK, handle=handle, served=HostFunctions(1 << 20), wakeup=wakeup)
    try:
        number = user.begin("import time\ntime.sleep(1)\n1 / 0")
        answer = client.ask("put", name="given", value=client.codec.pack(5))
        assert user.end(number) == "error"
        assert "ok" in answer
        number = user.begin("import time\ntime.sleep(1)\n1 / 0")
        assert client.start_cell("given += 1", seconds=SECONDS).wait().reply["status"] == "ok"
        assert user.end(number) == "error"
        assert user.run("print(given)") == "6\n"
        client.ask("leave")
    finally:
        client.end()
        wakeup.close()


def test_pictures_of_a_cell_take_little_memory_together_and_what_is_none_takes_nothing(kernel):
    show = "from IPython.display import display\nfor one in range({}): display({}, raw=True)"

    ran = kernel.execute(show.format(4, "{'image/png': 'A' * 30_000_000, 'text/plain': 'p' * 1_000_000}"), seconds=60)
    other = kernel.execute(show.format(60, "{'application/x-none': 'a'}"), seconds=SECONDS)

    assert len(ran.artifacts) == 2
    assert "output of this cell was lost" in ran.logs[0].message
    assert other.ok
    assert other.logs == ()


def test_too_large_a_message_costs_its_own_output_only_and_that_is_said(user, kernel):
    kernel.execute("1", seconds=SECONDS)
    user.begin("print('A' * 70_000_000)")
    ran = kernel.execute("print('ours')", seconds=SECONDS)
    assert (ran.stdout, ran.logs) == ("ours\n", ())

    ran = kernel.execute("print('A' * 70_000_000)\n5", seconds=SECONDS)
    assert [(log.level, log.tag) for log in ran.logs] == [("warning", "output")]
    assert "output of this cell was lost" in ran.logs[0].message
    ran = kernel.execute("print('next')\n6", seconds=SECONDS)
    assert (ran.stdout, ran.result, ran.logs) == ("next\n", "6", ())


def test_too_large_a_reply_costs_the_answer_only_and_that_is_said_at_once(user, kernel):
    kernel.execute("kept = 41", seconds=SECONDS)
    ran = kernel.execute("raise ValueError('A' * 70_000_000)", seconds=10 * SECONDS)
    assert ran.error == f"This cell was run, but {ANSWER_LOST}."
    assert not ran.state_lost
    assert ran.seconds < 2 * SECONDS
    assert kernel.execute("kept", seconds=SECONDS).result == "41"


@pytest.mark.parametrize("python", ["python3.9", sys.executable])
def test_our_end_in_the_kernel_is_imported_on_python_3_9(python):
    script = f"{install_expression()}\n__import__('tw_guest.attached', fromlist=['attached']).start"
    try:
        subprocess.run([python, "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no {python} here")
    ran = subprocess.run([python, "-"], input=script, capture_output=True, text=True)

    assert ran.stderr == ""


@pytest.mark.parametrize("how", ["killed", "restarted"])
def test_the_end_of_the_users_kernel_is_an_error_in_plain_words(how):
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    user = User(manager)
    try:
        with AttachedKernel(manager.connection_file, settings=QUICK, busy_seconds=10) as kernel:
            kernel.execute("1", seconds=SECONDS)
            began = threading.Event()
            code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
            with ThreadPoolExecutor() as threads:
                running = threads.submit(
                    kernel.execute, code, seconds=SECONDS, on_output=lambda stream, text: began.set()
                )
                assert began.wait(30)
                if how == "killed":
                    os.kill(kernel.pid, signal.SIGKILL)
                else:
                    manager.restart_kernel(now=True)
                ran = running.result(20)
            assert ran.state_lost
            assert "its process ended: it was restarted, shut down, or has crashed" in ran.error
            if how == "restarted":
                user.client.wait_for_ready(60)
                assert kernel.execute("6 * 7", seconds=SECONDS).result == "42"
                manager.restart_kernel(now=True)  # between two cells
                user.client.wait_for_ready(60)
                assert kernel.execute("6 * 7", seconds=SECONDS).state_lost
                assert kernel.execute("6 * 7", seconds=SECONDS).result == "42"
            else:
                with pytest.raises(KernelStartError, match=r"no kernel listens there: it has ended, and its conn"):
                    AttachedKernel(manager.connection_file).execute("1", seconds=1.0)
                with pytest.raises(KernelError, match=r"does not answer|did not answer"):
                    AttachedKernel(manager.connection_file, busy_seconds=0.5).execute("1", seconds=1.0)
    finally:
        user.client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_kernel_that_would_wait_for_itself_is_an_error(user):
    code = (
        "from tw_autogen.kernel import AttachedKernel\n"
        f"try: AttachedKernel({user.manager.connection_file!r})\nexcept Exception as error: print(error)"
    )
    assert "this code runs in that very kernel" in user.run(code)


def test_what_needs_a_kernel_of_our_own_is_refused(kernel):
    assert "can be undone" in kernel.execute("undone = 1", seconds=SECONDS, undo=True).error
    assert "undone" not in {variable.name for variable in kernel.variables()}
    with pytest.raises(PluginLoadError, match=r"not put into the kernel of a notebook"):
        kernel.load(Loadable("note", "def note(): ..."))
    with pytest.raises(KernelError, match=r"is the user's; restart it there"):
        kernel.restart()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("no json", "is no connection file of a kernel"),
        ({"key": ""}, "the kernel's messages are not signed"),
        ({"ip": "192.0.2.7"}, r"runs on 192\.0\.2\.7; attach to it through its Jupyter server"),
        ({"transport": "udp"}, "unknown transport 'udp'; known: tcp, ipc"),
        ({"shell_port": 700000, "stdin_port": 0}, "no number of a port: shell_port 700000, stdin_port 0"),
        ({"ip": "::1"}, r"did not answer within 0\.2 s"),
        ({"iopub_port": math.inf}, "is no connection file of a kernel"),
        ({"transport": "ipc", "ip": "x" * 300}, "no socket of a kernel: AF_UNIX path too long"),
    ],
)
def test_a_bad_connection_file_is_an_error(tmp_path, content, problem):
    ports = {f"{one}_port": at for at, one in enumerate(("shell", "iopub", "stdin", "control"), 1)}
    whole = {"transport": "tcp", "ip": "127.0.0.1", "key": "k", **ports}
    file = tmp_path / "kernel.json"
    file.write_text(content if isinstance(content, str) else json.dumps({**whole, **content}))

    with pytest.raises(KernelError, match=problem):
        AttachedKernel(file, busy_seconds=0.2).execute("1", seconds=1.0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_a_fifo_in_place_of_a_connection_file_is_not_waited_for(tmp_path):
    file = tmp_path / "kernel.json"
    file.write_text("{}")
    kernel = AttachedKernel(file)
    file.unlink()
    os.mkfifo(file)

    with pytest.raises(KernelError, match="is no connection file of a kernel"):
        kernel.execute("1", seconds=1.0)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("/nowhere/kernel.json", r"there is no connection file /nowhere/kernel\.json"),
        ("http://127.0.0.1:8888", "expected URL#kernel_id"),
        ("http://127.0.0.1:8888?token=a#b", "with the token apart"),
    ],
)
def test_a_target_that_is_none_is_an_error_at_once(target, problem):
    with pytest.raises(ConfigError, match=problem):
        AttachedKernel(target)


def session_of(kernel, folder, *, asked=None, settings=None, code="marked = 1\nmarked"):
    """Open a session in a kernel, with a model that runs one cell."""
    model = ScriptedModel([plans("mark"), codes(code), plans("Done.", to="User")])

    def approve(proposal):
        asked.append(proposal.text)
        return True

    given = {"code_interpreter.approval": "never", **(settings or {})}
    return open_session(model, kernel=kernel, folder=folder, settings=given, approve=None if asked is None else approve)


@pytest.mark.parametrize("settings", [{}, {"code_interpreter.approval": "findings"}], ids=["never", "findings"])
def test_each_cell_is_approved_whatever_the_settings_say(user, tmp_path, settings):
    asked = []

    def attach(folder):
        return AttachedKernel(user.manager.connection_file, folder=folder)

    with session_of(attach, tmp_path, asked=asked, settings=settings) as session:
        assert session.ask("mark").text == "Done."
        assert session["marked"] == 1
        assert "no sandbox, approval always" in session.where
    assert asked == ["marked = 1\nmarked"]


def test_where_nobody_can_be_asked_nothing_runs(user, kernel, tmp_path):
    user.run("marked = 0")
    with session_of(kernel, tmp_path) as session, pytest.raises(ApprovalNeeded, match=r"nobody can be asked"):
        session.ask("mark")
    assert user.run("print(marked)") == "0\n"


def test_the_caller_may_want_no_approval(user, tmp_path):
    with (
        AttachedKernel(user.manager.connection_file, approval="never") as kernel,
        session_of(kernel, tmp_path, code="marked = 2\nmarked") as session,
    ):
        assert session.ask("mark").text == "Done."
    assert user.run("print(marked)") == "2\n"


@pytest.mark.parametrize("key", ["kernel.attach", "kernel.attach_approval", "session.attach", "attach"])
@pytest.mark.parametrize("where", ["keyword", "environment", "file"])
def test_no_setting_attaches(tmp_path, monkeypatch, key, where):
    target = "http://127.0.0.1:1#kernel"
    if where == "environment":
        monkeypatch.setenv(f"TW_AUTOGEN_{key.replace('.', '__').upper()}", target)
    if where == "file":
        (tmp_path / "tw_autogen.yaml").write_text(f"{key}: {target}\n")
    with pytest.raises(SettingsError, match=r"unknown|no setting"):
        read_settings({key: target} if where == "keyword" else {}, project=tmp_path)


@pytest.mark.parametrize("service", ["mcp", "rerun", "scenario", "index"])
def test_no_service_and_no_other_command_attaches(service):
    ran = CliRunner().invoke(main, [service, "--attach", "http://127.0.0.1:1#kernel"])

    assert ran.exit_code == 2
    assert "No such option" in ran.output
    assert "--attach" in ran.output


def test_the_command_line_attaches_by_its_option(user, tmp_path):
    replies = [plans("mark"), codes("marked = 3\nmarked"), plans("Done.", to="User")]
    words = ["--attach", user.manager.connection_file, "--workspace", str(tmp_path), "-p", "mark it"]
    with replay_server(replies) as model:
        ran = CliRunner().invoke(main, ["--base-url", model.base_url, *words, "--attach-approval", "never"])
    assert "Done." in ran.output
    assert user.run("print(marked)") == "3\n"

    with replay_server(replies[:2]) as model:
        ran = CliRunner().invoke(main, ["--base-url", model.base_url, *words])
    assert ran.exit_code != 0
    assert "nobody can be asked" in ran.output


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    pytest.importorskip("jupyter_server", reason="needs the extra `gateway-server`")
    pytest.importorskip("websocket", reason="needs the extra `gateway`")
    with gateway(tmp_path_factory.mktemp("server"), "jupyter_server", SERVER) as (_, url):
        yield url + "/user/ada"


def call(server, method, path):
    request = urllib.request.Request(f"{server}/api/{path}", method=method, data=b"{}" if method == "POST" else None)
    request.add_header("Authorization", f"token {TOKEN}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or "null")


def test_a_kernel_of_a_jupyter_server_is_attached_to_and_lives_on(server):
    kernel_id = call(server, "POST", "kernels")["id"]
    with AttachedKernel(f"{server}#{kernel_id}", token=TOKEN, settings=QUICK) as kernel:
        assert kernel.execute("kept = 6 * 7\nprint('said')\nkept", seconds=SECONDS).result == "42"
        kernel.put("table", pd.DataFrame({"x": [1, 2]}))
        pd.testing.assert_frame_equal(kernel.get("table"), pd.DataFrame({"x": [1, 2]}))
        limited = kernel.execute("import time\ntime.sleep(60)", seconds=0.5)
        assert limited.error.startswith("Stopped after 0.5 s, its time limit, by an interrupt; variables are kept.")
    with AttachedKernel(f"{server}#{kernel_id}", token=TOKEN, settings=QUICK) as kernel:
        assert kernel.execute("kept", seconds=SECONDS).result == "42"
        began = threading.Event()
        code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
        with ThreadPoolExecutor() as threads:
            running = threads.submit(kernel.execute, code, seconds=SECONDS, on_output=lambda *said: began.set())
            assert began.wait(30)
            call(server, "POST", f"kernels/{kernel_id}/restart")
            ran = running.result(25)
        if not ran.state_lost:  # a server interrupts a kernel before it restarts it
            assert ran.error.startswith("Interrupted in the notebook by its user, or by a restart there.")
            ran = kernel.execute("lost = 1", seconds=SECONDS)
        assert ran.state_lost
        assert re.search("(it was|one that is) restarted", ran.error)
        assert "If it was restarted or ended, its variables are lost." in ran.error
        assert kernel.execute("1 + 1", seconds=SECONDS).result == "2"
        assert "kept" not in {variable.name for variable in kernel.variables()}
    assert [one["id"] for one in call(server, "GET", "kernels")] == [kernel_id]


def test_a_kernel_that_its_server_has_ended_is_not_busy(server):
    kernel_id, said = call(server, "POST", "kernels")["id"], []
    target = f"{server}#{kernel_id}"
    with AttachedKernel(target, token=TOKEN, settings=QUICK, busy_seconds=60, on_wait=said.append) as kernel:
        assert kernel.execute("1 + 1", seconds=SECONDS).result == "2"
        call(server, "DELETE", f"kernels/{kernel_id}")
        began = time.monotonic()
        with pytest.raises(KernelStartError, match=f"has no kernel {kernel_id}"):
            kernel.execute("1 + 1", seconds=SECONDS)

    assert time.monotonic() - began < 30
    assert said == []


@pytest.mark.parametrize(
    ("kernel_id", "token", "problem"),
    [("nothing", TOKEN, r"has no kernel nothing"), ("nothing", "wrong", r"refuses the token \(HTTP 403\)")],
)
def test_a_server_that_refuses_is_an_error(server, kernel_id, token, problem):
    with AttachedKernel(f"{server}#{kernel_id}", token=token) as kernel, pytest.raises(KernelStartError, match=problem):
        kernel.execute("1", seconds=1.0)


def test_both_roles_know_the_variables_of_the_notebook_and_what_is_new_there(user, tmp_path):
    user.run("import pandas as pd\nmeasured = pd.DataFrame({'load': [1, 2, 3]})\nsame = 7")
    model = ScriptedModel([plans("Three.", to="User"), plans("Four.", to="User")])

    def make(folder):
        return AttachedKernel(user.manager.connection_file, settings=QUICK, folder=folder, approval="never")

    with open_session(model, kernel=make, folder=tmp_path) as session:
        session.ask("how many loads?")
        user.run("measured = pd.DataFrame({'load': [1, 2, 3, 4]})")
        session.ask("and now?")

    first, second = (calls[-1]["content"] for calls in model.calls)
    assert "Variables that the User has in this kernel:\n" in first
    assert "- measured: DataFrame, 3 x 1, columns load: int64" in first
    assert "- same: int, 7" in first
    assert "- measured: DataFrame, 4 x 1, columns load: int64" in second
    assert "- same: int" not in second.split("and now?")[1]


def connection_to(ip):
    ports = {f"{one}_port": number for number, one in enumerate(("shell", "iopub", "stdin", "control"), 1)}
    return FileConnection({"transport": "ipc", "ip": ip, "key": "k", **ports})


@pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")
def test_an_interrupt_ends_where_replies_do_not(tmp_path):
    said = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48) + b"\x04\x06\x05READY" + b"\x00\x01x" * 30_000
    stop = threading.Event()

    def flood():
        line = listening.accept()[0]
        line.settimeout(5)
        with line, contextlib.suppress(OSError):
            line.sendall(said)
            while not stop.is_set():
                line.sendall(said[-90_000:])

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "k-4"))
        listening.listen()
        connection = connection_to(str(tmp_path / "k"))
        thread = threading.Thread(target=flood)
        thread.start()
        connection._control.flush(1.0)
        began = time.monotonic()
        for _ in range(3):
            connection.interrupt()
        connection.close()
        assert time.monotonic() - began < 10
        stop.set()
        thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="sockets without a file are Linux's")
def test_a_kernel_whose_sockets_have_no_file_is_found():
    name = f"@tw-{uuid.uuid4().hex}"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as shell:
        shell.setsockopt(zmq.LINGER, 0)
        shell.bind(f"ipc://{name}-1")
        connection = connection_to(name)
        assert connection.listens()
        connection.request("1")
        connection.flush(10.0)
        assert shell.poll(10_000)
        connection.close()
    assert not connection.listens()
