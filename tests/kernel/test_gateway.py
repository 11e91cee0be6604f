"""A kernel behind a real Jupyter Kernel Gateway, on loopback, with a token."""

import base64
import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.request

import pandas as pd
import pytest

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.errors import KernelBusyError, KernelStartError, PluginLoadError
from tw_autogen.kernel import GatewayKernel, Kernel, KernelSettings, Loadable
from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.guest.exchange_folder import FOLDER
from tw_autogen.kernel.guest.remote_files import MAX_FILES, set_up_remote_session
from tw_autogen.planner import Planner
from tw_autogen.session import Session
from tw_autogen.testing import ScriptedModel, codes, plans

pytest.importorskip("kernel_gateway", reason="needs the real peer: pip install jupyter_kernel_gateway")
pytest.importorskip("websocket", reason="needs the extra `gateway`")

TOKEN = "a-token"
SECONDS = 30
QUICK = KernelSettings(grace_seconds=1.0)
PLUGIN = """
from tw_autogen.plugin import Plugin, register_plugin

@register_plugin
class note(Plugin):
    def __call__(self, text):
        self.ctx.log("info", "note", text)
        return self.ctx.add_artifact("a note", "note.txt", "txt", text)
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


GATEWAY = {
    "KernelGatewayApp.ip": "127.0.0.1",
    "KernelGatewayApp.port": "{port}",
    "KernelGatewayApp.port_retries": 0,
    "KernelGatewayApp.auth_token": TOKEN,
    "JupyterWebsocketPersonality.list_kernels": True,
    "KernelRestarter.time_to_dead": 0.5,
}
SERVER = {
    "ServerApp.ip": "127.0.0.1",
    "ServerApp.port": "{port}",
    "ServerApp.port_retries": 0,
    "ServerApp.open_browser": False,
    "ServerApp.allow_root": True,
    "ServerApp.base_url": "/user/ada",
    "IdentityProvider.token": TOKEN,
    "KernelRestarter.time_to_dead": 0.5,
}


@contextlib.contextmanager
def gateway(folder, module="kernel_gateway", options=GATEWAY):
    """Run a gateway; give its process and address."""
    port = free_port()
    words = [f"--{name}={str(value).format(port=port)}" for name, value in options.items()]
    home = {name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    with open(folder / "gateway.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **home},
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, (folder / "gateway.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert time.monotonic() < deadline, (folder / "gateway.log").read_text()
            threading.Event().wait(0.05)
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


# The first kernel ends since another process listens where it was to publish; the gateway waits for it for a minute.
THIEF = """
import socket, sys, time

with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    time.sleep(float(sys.argv[2]))
"""
ROBBED = """
import json, os, subprocess, sys, time

if not os.path.exists({begun!r}):
    open({begun!r}, "w").close()
    with open(sys.argv[-1]) as file:
        port = str(json.load(file)["iopub_port"])
    subprocess.Popen([sys.executable, "-c", {thief!r}, port, "60"], start_new_session=True)
    time.sleep(0.8)
    sys.exit(1)
os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with gateway(tmp_path_factory.mktemp("gateway")) as (_, url):
        yield url


@pytest.fixture(scope="module")
def kernel(url, tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    with GatewayKernel(folder, gateway_url=url, token=TOKEN, settings=QUICK) as kernel:
        kernel.load(Loadable("note", PLUGIN))
        kernel.put("given", 7)
        kernel.serve("ask", lambda: "answered")
        yield kernel


def running(url):
    """Give the ids of the kernels that the gateway runs."""
    request = urllib.request.Request(f"{url}/api/kernels", headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return {one["id"] for one in json.load(answer)}


def test_it_is_a_kernel_and_says_where_it_runs(kernel, url):
    assert isinstance(kernel, Kernel)
    kernel.execute("x = 20", seconds=SECONDS)
    ran = kernel.execute("print('there')\nx + 1", seconds=SECONDS)

    assert (ran.ok, ran.result, ran.stdout) == (True, "21", "there\n")
    assert kernel.where.startswith(f"gateway {url}, kernel python3, Python 3.")
    assert ("x", "int", "20") in [(variable.name, variable.type, variable.summary) for variable in kernel.variables()]


def test_output_is_told_while_the_cell_runs(kernel):
    said = []
    gate = threading.Event()
    kernel.serve("wait_for_output", lambda: gate.wait(SECONDS))

    def hear(stream, text):
        said.append((stream, text))
        gate.set()

    ran = kernel.execute("print('early', flush=True)\nwait_for_output()", seconds=SECONDS, on_output=hear)

    assert said[0] == ("stdout", "early\n")
    assert ran.result == "True"


def test_an_error_names_the_line_of_the_cell(kernel):
    ran = kernel.execute("a = 1\na / 0", seconds=SECONDS)

    assert not ran.ok
    assert "line 2" in ran.error
    assert "ZeroDivisionError" in ran.error


@pytest.mark.parametrize("code", ["while True: pass", "import time\ntime.sleep(1e6)"])
def test_a_cell_beyond_its_time_is_interrupted_and_the_variables_are_kept(kernel, code):
    kernel.execute("kept = 5", seconds=SECONDS)
    ran = kernel.execute(code, seconds=0.5)

    assert ran.error.startswith("Stopped after 0.5 s")
    assert not ran.state_lost
    assert kernel.execute("kept", seconds=SECONDS).result == "5"


LOST = {
    "ignores interrupts": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "exits": "import os\nos._exit(3)",
    "is killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("code", LOST.values(), ids=LOST.keys())
def test_a_lost_kernel_is_told_and_the_next_cell_gets_a_fresh_one_with_all_that_was_put_in(kernel, url, code):
    there = kernel.execute(
        "import os\nkept = 5\nprint(open('kept.txt', 'w').write('on disk'))\nprint(os.getcwd())", seconds=SECONDS
    )
    before = running(url)
    ran = kernel.execute(code, seconds=8.0 if "exit" in code or "KILL" in code else 1.0)

    assert ran.state_lost
    assert "All variables are lost" in ran.error
    after = kernel.execute("('kept' in globals(), given, note('x')[:4], ask(), open('kept.txt').read())", seconds=30)
    assert after.result == "(False, 7, 'note', 'answered', 'on disk')"
    assert not os.path.exists(there.stdout.split()[-1])  # the folder of a kernel that was killed
    assert len(running(url)) == len(before)
    assert running(url) != before


def test_a_death_between_two_cells_is_told(kernel):
    kernel.execute("import os, threading\nthreading.Timer(0.2, os._exit, [3]).start()", seconds=SECONDS)
    deadline = time.monotonic() + SECONDS
    while kernel.execute("1", seconds=SECONDS).ok:
        assert time.monotonic() < deadline
        threading.Event().wait(0.1)

    assert kernel.execute("given", seconds=SECONDS).result == "7"


def test_the_end_of_a_kernel_by_its_gateway_is_noticed_long_before_the_time_limit(url, tmp_path):
    others = running(url)
    with GatewayKernel(tmp_path, gateway_url=url, token=TOKEN, settings=QUICK) as kernel:
        kernel.execute("1", seconds=SECONDS)
        (ours,) = running(url) - others
        headers = {"Authorization": f"token {TOKEN}"}
        urllib.request.urlopen(urllib.request.Request(f"{url}/api/kernels/{ours}", method="DELETE", headers=headers))
        began = time.monotonic()
        ran = kernel.execute("1", seconds=120)

        assert "its gateway no longer knows it" in ran.error
        assert time.monotonic() - began < 40
        assert kernel.execute("1 + 1", seconds=SECONDS).result == "2"


def test_interrupt_from_another_thread_stops_the_cell(kernel):
    def stop(stream, text):
        threading.Thread(target=kernel.interrupt).start()

    ran = kernel.execute("kept = 9\nprint('on', flush=True)\nwhile True: pass", seconds=SECONDS, on_output=stop)

    assert "interrupt" in ran.error
    assert kernel.execute("kept", seconds=SECONDS).result == "9"


def test_frames_and_values_cross_in_both_directions(kernel):
    frame = pd.DataFrame({"n": [1, 2], "day": pd.to_datetime(["2024-01-01", None]), "text": ["a,b", None]})
    kernel.put("frame", frame)
    kernel.put("pair", (1, {"a": None}))

    pd.testing.assert_frame_equal(kernel.get("frame"), frame)
    assert kernel.get("pair") == (1, {"a": None})
    with pytest.raises(KeyError, match="nothing_here"):
        kernel.get("nothing_here")
    assert [path for path in (kernel.folder / ".tw-exchange").iterdir()] == []


def test_values_longer_than_a_message_may_be_cross_in_pieces(kernel):
    long = "ä" * 2_000_000  # six bytes each in JSON, and 10 MiB are too many for a gateway
    kernel.put("long", long)
    kernel.serve("more", lambda text: text + text)

    assert kernel.get("long") == long
    assert kernel.execute("len(more(long))", seconds=60).result == "4000000"


def test_code_calls_the_host_with_frames_and_side_by_side(kernel):
    together = threading.Barrier(2, timeout=SECONDS)
    kernel.serve("grow", lambda table, by: table.assign(n=table.n + by))
    kernel.serve("meet", lambda name: f"{together.wait() >= 0} {name}")
    code = "import pandas as pd\ntickets = [meet.submit(n) for n in 'ab']\ntable = pd.DataFrame({'n': [1, 2]})\n"
    code += "list(grow(table, 10).n), [one.result() for one in tickets]"

    assert kernel.execute(code, seconds=SECONDS).result == "([11, 12], ['True a', 'True b'])"


def test_time_in_the_host_is_not_the_cells_and_its_errors_are(kernel):
    def slow():
        threading.Event().wait(2.2)
        raise PermissionError("not on Sundays")

    kernel.serve("slow", slow)
    ran = kernel.execute("slow()", seconds=2.0)

    assert "HostCallError: slow: PermissionError: not on Sundays" in ran.error
    assert ran.seconds < 2.0


def test_a_call_back_into_the_busy_kernel_is_refused(kernel):
    def again():
        with pytest.raises(KernelBusyError, match="running a cell"):
            kernel.execute("1", seconds=SECONDS)
        return "refused"

    kernel.serve("again", again)

    assert kernel.execute("again()", seconds=SECONDS).result == "'refused'"


def test_a_plugin_that_does_not_load_names_its_line(kernel):
    with pytest.raises(PluginLoadError, match="ZeroDivisionError"):
        kernel.load(Loadable("bad", "from tw_autogen.plugin import register_plugin\n1 / 0\n"))


def test_artifacts_made_there_lie_in_the_hosts_folder(kernel):
    ran = kernel.execute(
        "from IPython.display import HTML, display\ndisplay(HTML('<b>hi</b>'))\nnote('said')", seconds=30
    )

    assert [(artifact.kind, artifact.path.parent, artifact.path.read_text()) for artifact in ran.artifacts] == [
        ("html", kernel.folder, "<b>hi</b>"),
        ("txt", kernel.folder, "said"),
    ]
    assert [log.message for log in ran.logs] == ["said"]


def test_files_of_the_host_are_there_and_files_made_there_are_here(kernel):
    (kernel.folder / "sub").mkdir(exist_ok=True)
    (kernel.folder / "sub" / "in.csv").write_text("a\n1\n")
    (kernel.folder / ".secret").write_text("stays")
    code = "import os\ntext = open('sub/in.csv').read()\nos.makedirs('new')\nopen('new/out.csv', 'w').write(text * 2)"
    kernel.execute(code + "\nopen('sub/in.csv', 'a').write('2\\n')", seconds=SECONDS)

    assert (kernel.folder / "new" / "out.csv").read_text() == "a\n1\na\n1\n"
    assert (kernel.folder / "sub" / "in.csv").read_text() == "a\n1\n2\n"
    assert kernel.execute("os.path.exists('.secret')", seconds=SECONDS).result == "False"
    (kernel.folder / "sub" / "in.csv").write_text("b\n")
    assert kernel.execute("open('sub/in.csv').read()", seconds=SECONDS).result == "'b\\n'"


def test_a_function_of_the_host_sees_files_of_the_cell_and_the_cell_those_of_the_function(kernel):
    def shout(name):
        (kernel.folder / "loud.txt").write_text((kernel.folder / name).read_text().upper())
        return "loud.txt"

    kernel.serve("shout", shout)
    code = "open('quiet.txt', 'w').write('{}')\n{}"
    called = kernel.execute(code.format("hush", "open(shout('quiet.txt')).read()"), seconds=SECONDS)
    submitted = kernel.execute(
        code.format("hush hush", "open(shout.submit('quiet.txt').result()).read()"), seconds=SECONDS
    )

    assert (called.result, submitted.result) == ("'HUSH'", "'HUSH HUSH'")


@pytest.mark.parametrize("described", [False, True])
def test_a_file_that_is_too_large_stays_and_is_told_once(described, url, tmp_path):
    with GatewayKernel(tmp_path, gateway_url=url, token=TOKEN, file_bytes=1000) as kernel:
        (tmp_path / "here.bin").write_bytes(bytes(2000))
        if described:
            kernel.describe_files([(str(tmp_path / "here.bin"), "here.bin")], seconds=5.0)
        first = kernel.execute("open('there.bin', 'wb').write(bytes(3000))", seconds=SECONDS)
        second = kernel.execute("1", seconds=SECONDS)

    assert [log.message.split(":")[0] for log in first.logs] == [
        "here.bin stays where it is",
        "there.bin stays where it is",
    ]
    assert not (tmp_path / "there.bin").exists()
    assert second.logs == ()


def test_a_file_of_several_pieces_arrives_whole(kernel):
    body = os.urandom(2_500_000)
    (kernel.folder / "big.bin").write_bytes(body)
    ran = kernel.execute("body = open('big.bin', 'rb').read()\nopen('back.bin', 'wb').write(body[::-1])", seconds=60)

    assert ran.ok
    assert (kernel.folder / "back.bin").read_bytes() == body[::-1]


@pytest.mark.parametrize("name", ["../out.txt", "/etc/passwd", ".ssh/key", "a/../../b", "", "a/.git/config"])
def test_a_kernel_reaches_no_other_files_of_the_host(tmp_path, name):
    transfer = FileTransfer(tmp_path, 1000)

    with pytest.raises(PermissionError, match="not a file that travels"):
        transfer.answer({"what": "read", "file": name, "place": 0, "size": 10})
    with pytest.raises(PermissionError, match="not a file that travels"):
        transfer.answer({"what": "write", "file": name, "place": 0, "data": "", "last": True})


@pytest.mark.parametrize(("place", "size"), [(0, -1), (-1, 10)])
def test_a_kernel_asks_for_no_negative_piece_of_a_file(tmp_path, place, size):
    (tmp_path / "a.txt").write_text("abc")

    with pytest.raises(PermissionError, match="bytes at"):
        FileTransfer(tmp_path, 1000).answer({"what": "read", "file": "a.txt", "place": place, "size": size})


def test_what_has_come_of_a_file_goes_with_the_kernel_that_sent_it(tmp_path):
    transfer = FileTransfer(tmp_path, 1000)
    transfer.answer({"what": "write", "file": "a.txt", "data": "YWI=", "place": 0, "last": False})
    assert len(list((tmp_path / FOLDER).iterdir())) == 1

    transfer.close()

    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_kernel_fills_no_more_of_the_hosts_disk_than_it_may(tmp_path):
    transfer = FileTransfer(tmp_path, 3)
    asked = {"what": "write", "file": "a.txt", "data": "YWI=", "last": False}
    transfer.answer({**asked, "place": 0})

    with pytest.raises(PermissionError, match="more than 3 bytes: 'a.txt'"):
        transfer.answer({**asked, "place": 2})


def piece(name, place=0, size=1, *, last=True):
    data = base64.b64encode(b"x" * size).decode()
    return {"what": "write", "file": name, "place": place, "data": data, "last": last}


FILLING = {
    "one file in pieces": lambda count: (piece("a", place, last=False) for place in range(count)),
    "a table in pieces": lambda count: (piece(f"{FOLDER}/a", place, last=False) for place in range(count)),
    "many files": lambda count: (piece(f"f{one}") for one in range(count)),
    "many tables": lambda count: (piece(f"{FOLDER}/f{one}") for one in range(count)),
    "many parts of files": lambda count: (piece(f"f{one}", last=False) for one in range(count)),
    "many empty parts": lambda count: (piece(f"f{one}", size=0, last=False) for one in range(count)),
    "folders of files with impossible names": lambda count: (
        piece(f"{one}/{'n' * 300}", size=0) for one in range(count)
    ),
}


@pytest.mark.parametrize("pieces", FILLING.values(), ids=FILLING)
def test_a_kernel_elsewhere_fills_no_more_of_the_hosts_disk_than_all_its_files_may_take(pieces, tmp_path):
    transfer = FileTransfer(tmp_path, 10**9, max_total_bytes=500)
    for one in pieces(700):
        with contextlib.suppress(PermissionError, KeyError):
            transfer.answer(one)

    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(one.stat().st_size for one in found) <= 500
    assert len(list(tmp_path.rglob("*"))) <= 2000
    for one in found:
        one.unlink()
    fresh = FileTransfer(tmp_path, 10**9, max_total_bytes=500)
    for _ in range(50):  # what is replaced, or read and removed, counts no more
        fresh.answer(piece("again", size=200))
        fresh.answer(piece(f"{FOLDER}/t", size=200))
        fresh.answer({"what": "remove", "file": f"{FOLDER}/t"})


def test_a_kernel_elsewhere_names_no_endless_number_of_files_to_be_fetched(tmp_path):
    asked = []

    def ask(op, names, seconds):
        asked.extend(names)
        return {"ok": []}

    report = {"files": [[[f"f{one}", 1 << 24] for one in range(5000)], ["no"] * 5000]}
    said = FileTransfer(tmp_path, 10**9).fetch(ask, report, seconds=SECONDS)

    assert (len(asked), len(said)) == (1000, 1000)


def test_files_that_were_not_moved_within_their_time_are_named_and_tried_again(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(bytes(9 << 20))
    transfer = FileTransfer(tmp_path, 10**9)
    asked = []

    def ask(op, names, seconds):
        asked.extend(names)
        time.sleep(0.2)
        return {"ok": []}

    said = transfer.send(ask, seconds=0.3)
    again = transfer.send(ask, seconds=SECONDS)

    assert asked == ["a", "b", "c"]
    assert [one.message for one in said] == [
        "not copied, or not wholly, and tried again with the next cell (0.3 s were over): 1 files: c"
    ]
    assert again == []


def test_what_was_not_copied_or_changed_meanwhile_is_sent_again(tmp_path):
    for name in ("fails", "changes", "stays"):
        (tmp_path / name).write_text("old")
    transfer = FileTransfer(tmp_path, 10**9)
    asked = []

    def ask(op, names, seconds):
        asked.append(names)
        (tmp_path / "changes").write_text("a new text")
        return {"ok": ["fails was not copied: [Errno 28] No space left on device"]}

    transfer.send(ask, seconds=SECONDS)
    transfer.send(ask, seconds=SECONDS)

    assert [sorted(names) for names in asked] == [["changes", "fails", "stays"], ["changes", "fails"]]


def test_a_folder_with_more_files_than_are_kept_the_same_is_said_once(tmp_path):
    for number in range(MAX_FILES + 1):
        (tmp_path / str(number)).touch()
    transfer = FileTransfer(tmp_path, 10**9)
    said = [transfer.send(lambda *asked: {"ok": []}, seconds=SECONDS) for _ in range(2)]

    assert [[log.message[:40] for log in logs] for logs in said] == [["the folder holds 1000 files or more: tho"], []]


SLOW = """
import gc, time
kept = 5
open("begun.txt", "w").close()
folder = next(one for one in gc.get_objects() if type(one).__name__ == "RemoteFolder")
give = folder.send_to_host
def endless(names):
    give(["begun.txt"])
    while True:
        {step}
folder.changed = lambda: ([[f"f{{one}}.bin", 20 << 20] for one in range(1000)], [])
folder.send_to_host = endless
"""
CALLS = """
        try:
            slow()
        except Exception:
            pass
"""
DEAF = """
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            pass
"""


@pytest.fixture
def slow_kernel(url, tmp_path):
    """Give what makes a kernel with a limit of so many seconds for its files."""
    with contextlib.ExitStack() as made:

        def make(seconds):
            settings = KernelSettings(grace_seconds=1.0, load_seconds=seconds)
            kernel = made.enter_context(GatewayKernel(tmp_path, gateway_url=url, token=TOKEN, settings=settings))
            kernel.serve("slow", lambda: time.sleep(1))
            kernel.execute("1", seconds=SECONDS)
            return kernel

        yield make


@pytest.mark.parametrize("step", ["time.sleep(0.1)", CALLS], ids=["sleeps", "calls the host"])
def test_files_come_back_from_a_kernel_in_a_bounded_time_and_its_variables_stay(step, slow_kernel):
    kernel = slow_kernel(3)
    began = time.monotonic()
    ran = kernel.execute(SLOW.format(step=step), seconds=SECONDS)

    assert time.monotonic() - began < 10
    assert ran.ok
    assert "1000 files: f0.bin, f1.bin" in ran.logs[-1].message
    assert kernel.execute("folder.changed = lambda: ([], [])\nkept", seconds=SECONDS).result == "5"


@pytest.mark.parametrize("step", ["time.sleep(0.1)", DEAF], ids=["sleeps", "ignores interrupts"])
@pytest.mark.parametrize("stop", ["interrupt", "kill", "close"])
def test_an_interrupt_and_a_kill_reach_a_kernel_whose_files_come_back(stop, step, slow_kernel, tmp_path):
    kernel = slow_kernel(SECONDS)
    took = []

    def wait_and_stop():
        while not (tmp_path / "begun.txt").exists():
            time.sleep(0.01)
        time.sleep(0.3)  # the loop has begun
        took.append(time.monotonic())
        getattr(kernel, stop)()

    thread = threading.Thread(target=wait_and_stop)
    thread.start()
    ran = kernel.execute(SLOW.format(step=step), seconds=SECONDS)
    ended = time.monotonic()
    thread.join()

    assert ran.ok
    assert ended - took[0] < 10
    if stop != "close":
        lives = (stop, step) == ("interrupt", "time.sleep(0.1)")
        after = kernel.execute("folder.changed = lambda: ([], [])\nkept", seconds=SECONDS)
        assert (after.state_lost, after.result) == ((False, "5") if lives else (True, None))


@pytest.mark.slow
def test_a_kernel_whose_port_another_process_took_is_replaced(tmp_path, monkeypatch):
    spec = tmp_path / "share/kernels/robbed"
    spec.mkdir(parents=True)
    (spec / "start.py").write_text(ROBBED.format(begun=str(tmp_path / "begun"), thief=THIEF))
    words = [sys.executable, str(spec / "start.py"), "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": words, "display_name": "r", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))

    with gateway(tmp_path) as (_, url), GatewayKernel(gateway_url=url, token=TOKEN, kernel_name="robbed") as kernel:
        assert kernel.execute("6 * 7", seconds=SECONDS).result == "42"


def test_a_gateways_endless_answer_is_cut(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection = server.accept()[0]
            with contextlib.suppress(OSError), connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
                while True:
                    connection.sendall(b" " * 65_536)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        kernel = GatewayKernel(tmp_path, gateway_url=f"http://127.0.0.1:{server.getsockname()[1]}", token="")
        with pytest.raises(KernelStartError, match="its answer does not end, after [0-9]+ bytes") as raised:
            kernel.execute("1", seconds=SECONDS)
        cut_after = int(re.search("after ([0-9]+) bytes", str(raised.value))[1])
        assert 4 << 20 < cut_after < 5 << 20
        thread.join(SECONDS)
        assert not thread.is_alive()


@pytest.mark.parametrize("name", ["..", "/", "/etc", "tw-kernel-", "tw-kernel-" + "0" * 32 + "/.."])
def test_no_folder_but_a_kernels_own_is_ever_removed(name):
    with pytest.raises(ValueError, match="not the name of a kernel's folder"):
        set_up_remote_session({}, folder_name="tw-kernel-" + "0" * 32, leftover=name)


def test_a_link_in_the_hosts_folder_leads_a_kernel_nowhere(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("s")
    (inside / "link").symlink_to(outside)
    transfer = FileTransfer(inside, 1000)

    with pytest.raises(OSError, match="link"):
        transfer.answer({"what": "read", "file": "link/secret", "place": 0, "size": 10})
    with pytest.raises(PermissionError, match="a link is in the way"):
        transfer.answer({"what": "write", "file": "link/secret", "place": 0, "data": "", "last": True})
    assert (outside / "secret").read_text() == "s"


def test_only_the_environment_that_is_allowed_is_sent(url, tmp_path, monkeypatch):
    monkeypatch.setenv("PLUGIN_sql_key", "sent")
    monkeypatch.setenv("A_SECRET", "kept")
    with GatewayKernel(tmp_path, gateway_url=url, token=TOKEN) as kernel:
        ran = kernel.execute("import os\nos.environ.get('PLUGIN_sql_key')", seconds=SECONDS)

    assert ran.result == "'sent'"


def test_restart_gives_a_fresh_process_and_close_leaves_none(url, tmp_path):
    before = running(url)
    kernel = GatewayKernel(tmp_path, gateway_url=url, token=TOKEN)
    kernel.put("given", 7)
    kernel.execute("kept = 5", seconds=SECONDS)
    first = running(url) - before
    kernel.restart()
    second = running(url) - before

    assert kernel.execute("('kept' in globals(), given)", seconds=SECONDS).result == "(False, 7)"
    assert len(first) == len(second) == 1
    assert first != second
    kernel.close()
    kernel.close()
    assert running(url) == before
    with pytest.raises(KernelStartError, match="closed"):
        kernel.execute("1", seconds=SECONDS)


def test_close_from_another_thread_ends_the_cell(url, tmp_path):
    kernel = GatewayKernel(tmp_path, gateway_url=url, token=TOKEN)
    before = running(url)

    def close(stream, text):
        threading.Thread(target=kernel.close).start()

    ran = kernel.execute("print('on', flush=True)\nwhile True: pass", seconds=60, on_output=close)

    assert ran.state_lost
    assert running(url) <= before


def test_what_keeps_a_kernel_from_starting_is_told_with_a_remedy(url, tmp_path):
    nobody = f"http://127.0.0.1:{free_port()}"
    for options, words in {
        ("nobody", nobody, TOKEN, "python3"): rf"gateway {nobody} does not answer .*Start it .*gateway_url",
        ("token", url, "wrong", "python3"): rf"gateway {url} refuses the token \(HTTP 401\)\. Pass the one",
        ("no token", url, "", "python3"): rf"gateway {url} refuses requests without a token",
        ("line end", url, "wrong\n", "python3"): rf"gateway {url} refuses the token \(HTTP 401\)",
        ("lines", url, "two\nlines", "python3"): "can't be sent this token: it holds line ends, or .* ASCII$",
        ("no ASCII", url, "Schlüssel", "python3"): "can't be sent this token: it holds line ends, or .* ASCII$",
        ("spec", url, TOKEN, "python4"): r"knows no kernelspec 'python4'; it has: .*python3.*kernel_name",
        ("address", "127.0.0.1:8888", TOKEN, "python3"): r"is no address of a gateway; it begins with http://",
    }.items():
        _, address, token, name = options
        kernel = GatewayKernel(tmp_path, gateway_url=address, token=token, kernel_name=name)
        with pytest.raises(KernelStartError, match=words):
            kernel.execute("1", seconds=SECONDS)


class Cable:
    """Forwards a port to the gateway, until it is cut."""

    def __init__(self, url):
        self._target = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._server = socket.create_server(("127.0.0.1", 0))
        self._other = {}
        self._guard = threading.Lock()
        self._done = threading.Event()
        self._from_gateway = set()
        self.swallows = ""
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def cut(self):
        with self._guard:
            for one in self._other:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def inject(self, data):
        """Send something to the client as if it came from the gateway."""
        with self._guard:
            clients = [self._other[one] for one in self._from_gateway if one in self._other]
        for client in clients:
            with contextlib.suppress(OSError):  # it has hung up
                client.sendall(data)

    def close(self):
        self._done.set()
        self._thread.join(SECONDS)
        for one in (*self._other, self._server):
            one.close()

    def _carry(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            while not self._done.is_set():
                for key, _ in selector.select(0.05):
                    if key.fileobj is self._server:
                        self._add(selector)
                    elif key.fileobj in self._other and not self._forward(key.fileobj):
                        self._remove(selector, key.fileobj)

    def _add(self, selector):
        here, there = self._server.accept()[0], socket.create_connection(self._target)
        with self._guard:
            self._other.update({here: there, there: here})
            self._from_gateway.add(there)
        for one in (here, there):
            selector.register(one, selectors.EVENT_READ)

    def _forward(self, source):
        try:
            data = source.recv(1 << 16)
            if self.swallows != ("answers" if source in self._from_gateway else "requests"):
                self._other[source].sendall(data)
        except OSError:
            return False
        return bool(data)

    def _remove(self, selector, one):
        with self._guard:
            other = self._other.pop(one)
            self._other.pop(other)
        for side in (one, other):
            selector.unregister(side)
            side.close()


def test_a_line_that_breaks_is_taken_up_again_and_nothing_is_lost(url, tmp_path):
    with (
        contextlib.closing(Cable(url)) as cable,
        GatewayKernel(tmp_path, gateway_url=cable.url, token=TOKEN) as kernel,
    ):
        kernel.execute("kept = 5", seconds=SECONDS)
        cable.cut()
        between = kernel.execute("kept", seconds=SECONDS)
        during = kernel.execute(
            "import time\nprint('on', flush=True)\ntime.sleep(1)\nprint('still on')\nkept + 1",
            seconds=SECONDS,
            on_output=lambda stream, text: cable.cut() if text == "on\n" else None,
        )

    assert between.result == "5"
    assert (during.ok, during.result, during.stdout) == (True, "6", "on\nstill on\n")


def test_a_gateway_that_cuts_each_new_line_is_given_up_and_takes_little_time_until_then(url, tmp_path, cpu_seconds):
    with (
        contextlib.closing(Cable(url)) as cable,
        GatewayKernel(tmp_path, gateway_url=cable.url, token=TOKEN) as kernel,
    ):
        kernel.execute("kept = 5", seconds=SECONDS)
        over, cuts = threading.Event(), []

        def keep_cutting():
            while not over.wait(0.05):
                cuts.append(cable.cut())

        cutting = threading.Thread(target=keep_cutting)
        cutting.start()
        before = cpu_seconds()
        ran = kernel.execute("import time\ntime.sleep(60)", seconds=60)
        took = cpu_seconds() - before
        over.set()
        cutting.join()

    assert "cuts the line again and again" in ran.error or "is lost" in ran.error, ran.error
    assert took < 10


def test_a_gateways_endless_message_is_cut(url, tmp_path):
    piece = struct.pack(">BBQ", 0x00, 127, 30 << 20) + bytes(30 << 20)  # a frame of 30 MB that goes on in the next one
    with (
        contextlib.closing(Cable(url)) as cable,
        GatewayKernel(tmp_path, gateway_url=cable.url, token=TOKEN) as kernel,
    ):
        kernel.execute("kept = 5", seconds=SECONDS)

        def flood(stream, text):
            cable.inject(b"\x01" + piece[1:])
            for _ in range(2):
                cable.inject(piece)

        ran = kernel.execute("print('on', flush=True)\nwhile True: pass", seconds=60, on_output=flood)

    assert "sent a message of more than 67108864 bytes" in ran.error


@pytest.mark.parametrize("lost", ["requests", "answers"])
def test_a_cell_that_was_under_way_when_the_line_broke_runs_once(url, tmp_path, lost):
    with (
        contextlib.closing(Cable(url)) as cable,
        GatewayKernel(tmp_path, gateway_url=cable.url, token=TOKEN) as kernel,
    ):
        kernel.execute("count = 0", seconds=SECONDS)

        def heal():
            cable.swallows = ""
            cable.cut()

        cable.swallows = lost
        healing = threading.Timer(0.5, heal)
        healing.start()
        ran = kernel.execute("count += 1\ncount", seconds=SECONDS)
        healing.join()
        after = kernel.execute("count", seconds=SECONDS)

    assert not ran.state_lost
    assert ran.result == "1" or "The kernel gave no answer" in ran.error
    assert after.result == "1"
    assert lost == "answers" or ran.ok


def test_a_gateway_that_goes_ends_the_cell_and_is_told(tmp_path):
    (tmp_path / "host").mkdir()
    with gateway(tmp_path) as (process, address):
        kernel = GatewayKernel(tmp_path / "host", gateway_url=address, token=TOKEN)

        def kill(stream, text):
            os.killpg(process.pid, signal.SIGKILL)

        started = time.monotonic()
        ran = kernel.execute("print('on', flush=True)\nwhile True: pass", seconds=60, on_output=kill)

    assert ran.state_lost
    assert f"the way to gateway {address} is lost" in ran.error
    assert time.monotonic() - started < 40
    with pytest.raises(KernelStartError, match="does not answer"):
        kernel.execute("1", seconds=SECONDS)
    kernel.close()


def test_a_jupyter_server_below_a_path_does_as_well(tmp_path):
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "in.txt").write_text("from here")
    with gateway(tmp_path, "jupyter_server", SERVER) as (_, address):
        url = f"{address}/user/ada/"
        with pytest.raises(KernelStartError, match="refuses the token"):
            GatewayKernel(tmp_path / "host", gateway_url=url, token="wrong").execute("1", seconds=SECONDS)
        with GatewayKernel(tmp_path / "host", gateway_url=url, token=TOKEN, settings=QUICK) as kernel:
            kernel.serve("upper", str.upper)
            ran = kernel.execute("open('out.txt', 'w').write(upper(open('in.txt').read()))", seconds=SECONDS)
            stopped = kernel.execute("while True: pass", seconds=0.5)
            died = kernel.execute("import os\nos._exit(3)", seconds=SECONDS)

    assert ran.ok, ran.error
    assert (tmp_path / "host" / "out.txt").read_text() == "FROM HERE"
    assert (stopped.state_lost, died.state_lost) == (False, True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_a_gateway_with_a_certificate_of_its_own_needs_to_be_trusted(tmp_path):
    (tmp_path / "host").mkdir()
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True, timeout=60)
    options = {**GATEWAY, "KernelGatewayApp.certfile": certificate, "KernelGatewayApp.keyfile": key}
    trusted = ssl.create_default_context(cafile=str(certificate))
    with gateway(tmp_path, options=options) as (_, address):
        url = address.replace("http:", "https:")
        with GatewayKernel(tmp_path / "host", gateway_url=url, token=TOKEN, tls=trusted) as kernel:
            kernel.put("long", "x" * 3_000_000)
            assert kernel.execute("len(long)", seconds=SECONDS).result == "3000000"
            assert len(kernel.get("long")) == 3_000_000
        stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody
        with pytest.raises(KernelStartError, match="does not answer .*certificate verify failed"):
            GatewayKernel(tmp_path / "host", gateway_url=url, token=TOKEN, tls=stranger).execute("1", seconds=SECONDS)


def test_a_session_works_there_with_the_users_file_and_what_code_made(url, tmp_path):
    sales = tmp_path / "sales.csv"
    sales.write_text("units\n3\n4\n")
    code = "import pandas as pd\ntable = pd.read_csv('sales.csv')\n(table * 2).to_csv('twice.csv', index=False)"
    with (
        ScriptedModel([plans("double the units"), plans("Done.", to="User")]) as planner,
        ScriptedModel([codes(code)]) as coder,
        GatewayKernel(tmp_path / "there", gateway_url=url, token=TOKEN) as kernel,
    ):
        interpreter = CodeInterpreter(coder, kernel)
        with Session([Planner(planner, [interpreter]), interpreter], folder=tmp_path / "session") as session:
            answer = session.ask("Double the units.", files=[sales])

    assert answer.text == "Done."
    assert [artifact.name for artifact in answer.artifacts] == ["twice.csv"]
    assert answer.artifacts[0].path.read_text() == "units\n6\n8\n"
