"""A gateway, or code in a kernel behind one, that forges what a kernel says: shapes, sizes and files of its choice."""

import asyncio
import json
import threading
import time
import uuid

import pytest

from tw_autogen.errors import KernelError, KernelStartError
from tw_autogen.kernel import AttachedKernel, GatewayKernel, KernelSettings
from tw_autogen.kernel.attached_connection import LocalAttachedProcess
from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.gateway_client import _parse_message
from tw_autogen.kernel.guest.report_marks import SOURCE

pytest.importorskip("websocket", reason="needs the extra `gateway`")
web = pytest.importorskip("tornado.web", reason="comes with Jupyter's server")
websocket = pytest.importorskip("tornado.websocket")

HELLO = {"ok": {"python": "3.11", "arrow": False}, "variables": []}
START = KernelSettings(start_seconds=40)


class Rest(web.RequestHandler):
    """Starts a kernel that is not there."""

    def get(self, path):
        if path.endswith("kernelspecs"):
            self.finish({"kernelspecs": {"python3": {}}})
        elif path.endswith("kernels"):
            self.finish(json.dumps([{"id": "k1"}]))
        else:
            self.set_status(404)

    def post(self, path):
        self.set_status(201)
        self.finish({"id": "k1"})

    def delete(self, path):
        self.set_status(204)


class Channels(websocket.WebSocketHandler):
    """Speaks as a kernel does; how it answers a request for code is the application's `speak`."""

    def on_message(self, text):
        asked = json.loads(text)
        header, kind = asked["header"], asked["header"]["msg_type"]
        if kind == "kernel_info_request":
            self.say("iopub", "status", {"execution_state": "busy"}, header)
            self.say("shell", "kernel_info_reply", self.application.about, header)
        elif kind == "execute_request":
            self.application.asked += 1
            self.application.speak(self, header, self.application.asked)

    def say(self, channel, kind, content, parent):
        header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "k"}
        self.write_message(
            json.dumps({"channel": channel, "header": header, "parent_header": parent, "content": content})
        )

    def reply(self, parent, report, **content):
        payload = [{"source": SOURCE, "report": json.dumps(report)}]
        self.say("iopub", "status", {"execution_state": "busy"}, parent)
        self.say("shell", "execute_reply", {"status": "ok", "payload": payload, **content}, parent)
        self.say("iopub", "status", {"execution_state": "idle"}, parent)


@pytest.fixture
def gateway():
    """Start a gateway that speaks as it is told; give its address."""
    loops, threads = [], []

    def start(speak, about=None):
        app = web.Application([(r"/api/kernels/k1/channels", Channels), (r"/(.*)", Rest)])
        app.speak, app.asked, app.about = speak, 0, about or {"language_info": {"name": "python"}}
        ready, place = threading.Event(), []

        async def serve():
            server = app.listen(0, "127.0.0.1")
            loops.append((asyncio.get_running_loop(), asyncio.Event()))
            place.append(next(iter(server._sockets.values())).getsockname()[1])
            ready.set()
            await loops[-1][1].wait()
            server.stop()

        threads.append(threading.Thread(target=lambda: asyncio.run(serve()), daemon=True))
        threads[-1].start()
        ready.wait(10)
        return f"http://127.0.0.1:{place[0]}"

    yield start
    for loop, over in loops:
        loop.call_soon_threadsafe(over.set)
    for thread in threads:
        thread.join(10)


def kernel_of(url, folder):
    return GatewayKernel(folder, gateway_url=url, token="t", settings=START)


@pytest.mark.parametrize(
    ("report", "content"),
    [
        ({"ok": True}, {}),
        ({"ok": [1]}, {}),
        ({}, {"user_expressions": [1, 2]}),
        ({}, {"user_expressions": {"a": 5}}),
        ({}, {"user_expressions": 7, "ename": ["x"]}),
    ],
)
def test_a_greeting_of_any_shape_is_a_kernel_that_gave_no_answer(report, content, gateway, tmp_path):
    url = gateway(lambda line, header, number: line.reply(header, report, **content))

    with kernel_of(url, tmp_path) as kernel, pytest.raises(KernelError, match="the kernel gave no answer"):
        kernel.execute("1", seconds=30)


def test_a_greeting_without_the_fields_that_it_should_have_is_taken(gateway, tmp_path):
    url = gateway(lambda line, header, number: line.reply(header, {"ok": {"python": 5}, "variables": []}))

    with kernel_of(url, tmp_path) as kernel:
        assert kernel.execute("1", seconds=30).ok


@pytest.mark.parametrize("field", ["msg_id", "session", "execution_state"])
def test_a_message_with_a_list_in_a_text_s_place_costs_nothing(field, gateway, tmp_path):
    def speak(line, header, number):
        if field == "execution_state":
            line.say("iopub", "status", {"execution_state": ["idle"]}, header)
        else:
            line.say("shell", "execute_reply", {}, {**header, field: ["x"]})
        line.reply(header, HELLO)

    with kernel_of(gateway(speak), tmp_path) as kernel:
        began = time.monotonic()
        assert kernel.execute("1", seconds=100).ok
        assert time.monotonic() - began < 60


def test_files_of_any_shape_are_few_short_words(gateway, tmp_path):
    def speak(line, header, number):
        files = [[["a", 1e999], ["b", 1]], ["x" * 10_000] * 2000]
        line.reply(header, {**HELLO, "files": files if number % 2 else [[], ["x" * 10_000] * 2000]})

    with kernel_of(gateway(speak), tmp_path) as kernel:
        said = [log for _ in range(3) for log in kernel.execute("1", seconds=20).logs]

    assert len(said) < 4000
    assert max(len(one.message) for one in said) <= 1000


def test_a_message_that_would_take_much_memory_is_none():
    header = '{"channel": "iopub", "header": {"msg_type": "x"}, "parent_header": {}, "content": {"a": ['

    assert _parse_message(f"{header}1]}}}}".encode())["content"] == {"a": [1]}
    assert _parse_message((header + "[]," * 5_000_000 + "1]}}").encode()) is None


def write(transfer, name, data="YWFhYWFhYWE="):
    transfer.answer({"what": "write", "file": name, "place": 0, "data": data, "last": True})


@pytest.mark.parametrize("name", ["sub", "file/below"])
def test_what_cannot_be_put_in_its_place_takes_no_room(name, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "file").write_text("a", encoding="utf-8")
    transfer = FileTransfer(tmp_path, 1000, max_total_bytes=50)

    for _ in range(10):
        with pytest.raises(OSError, match=name) as caught:
            write(transfer, name)

    assert "part-" not in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "file"]


def test_folders_above_a_file_are_few(tmp_path):
    with pytest.raises(PermissionError, match="lies more than 30 deep"):
        write(FileTransfer(tmp_path, 1000), "a/" * 300 + "b")

    assert list(tmp_path.iterdir()) == []


def test_an_attached_kernel_that_describes_itself_in_another_form_is_no_python(gateway, tmp_path):
    url = gateway(lambda line, header, number: line.reply(header, HELLO), {"language_info": ["python"]})

    with (
        pytest.raises(KernelStartError, match="runs None, not Python"),
        AttachedKernel(f"{url}#k1", token="t", folder=tmp_path) as kernel,
    ):
        kernel.execute("1", seconds=30)


def test_an_attached_kernel_s_expressions_may_have_any_shape(gateway, tmp_path):
    def speak(line, header, number):
        line.reply(header, HELLO, user_expressions=[1] if number > 2 else {})

    url = gateway(speak)
    with AttachedKernel(f"{url}#k1", token="t", folder=tmp_path, approval="never") as kernel:
        assert kernel.execute("1", seconds=30).ok
        assert kernel.execute("1", seconds=30).ok


@pytest.mark.parametrize("pid", [10**40, -5, 1, 1 << 31])
def test_a_number_that_no_process_has_is_watched_by_nobody(pid, tmp_path):
    process = LocalAttachedProcess(tmp_path / "kernel.json", lambda: None)

    process.watch(pid)

    assert process.pid == 0
