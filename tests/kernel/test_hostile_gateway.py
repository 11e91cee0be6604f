"""A server in a gateway's place that means harm: its answers lead elsewhere, or do not end."""

import json
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel import GatewayKernel, KernelSettings
from tw_autogen.kernel.gateway_client import Gateway, GatewayProcess, WebsocketWire

pytest.importorskip("websocket", reason="needs the extra `gateway`")

START = KernelSettings(start_seconds=2.0)


class Answers(BaseHTTPRequestHandler):
    """Starts kernels that aren't there; what comes of their websockets is the server's `channels`."""

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        if "/channels" in self.path:
            self.server.channels(self)
        elif self.path == "/slow":
            drip(self)
        else:
            self.answer({"kernelspecs": {"python3": {}}} if self.path.endswith("kernelspecs") else {}, 200)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"id": "k1"}, 201)

    def do_DELETE(self):
        self.server.channels = drip  # gone from now on
        self.answer({}, 404)

    def answer(self, body, status):
        data = json.dumps(body).encode()
        self.send_response(404 if self.path.endswith("/k1") else status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        """Print nothing."""


def drip(handler):
    """Send a header byte for byte until the client leaves."""
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not handler.server.closed.wait(0.1):
            handler.wfile.write(b"a")
    except OSError:
        return


@pytest.fixture
def server():
    """Start a server; give it with its address as `url`, and what was asked as `seen`."""
    with ExitStack() as stack:

        def start(channels=drip):
            made = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Answers))
            made.seen, made.channels, made.closed = [], channels, threading.Event()
            made.url = f"http://127.0.0.1:{made.server_port}"
            threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}).start()
            stack.callback(made.shutdown)
            stack.callback(made.closed.set)
            return made

        yield start


def test_the_token_follows_no_redirect_of_the_websocket(server):
    other = server()

    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", other.url.replace("http", "ws") + "/steal")
        handler.end_headers()

    first = server(redirect)
    with pytest.raises(KernelStartError, match="opens no websocket"):
        GatewayKernel(gateway_url=first.url, token="secret", settings=START).execute("1", seconds=5)

    assert any(token == "token secret" for _, token in first.seen)
    assert other.seen == []


def test_an_attach_that_fails_claims_no_start_of_a_kernel(server, tmp_path):
    gateway = Gateway(server(lambda handler: handler.send_error(403)).url, "", None, tmp_path)
    process = GatewayProcess(gateway, "k1")
    try:
        with pytest.raises(
            KernelStartError, match=r"the Jupyter server http\S+ has the kernel, but opens no websocket"
        ):
            WebsocketWire(gateway, "k1", process, attached=True)
    finally:
        process.forget()


def test_an_answer_that_comes_byte_for_byte_ends_in_time(server, tmp_path):
    gateway = Gateway(server().url, "", None, tmp_path)
    calls = [one for one in threading.enumerate() if one.name == "server call"]

    with pytest.raises(TimeoutError, match=r"no whole answer within 5\.5 s"):
        gateway.call("GET", "slow", seconds=0.5)
    for one in threading.enumerate():
        if one.name == "server call" and one not in calls:
            one.join(5)
            assert not one.is_alive()


def test_a_websocket_that_opens_byte_for_byte_ends_in_time(server):
    with pytest.raises(KernelStartError, match="no whole answer within 2 s"):
        GatewayKernel(gateway_url=server(drip).url, token="secret", settings=START).execute("1", seconds=5)


def test_a_kernel_that_ended_as_it_started_is_named_so(server, tmp_path):
    gateway = Gateway(server(lambda handler: handler.send_error(500)).url, "", None, tmp_path)
    process = GatewayProcess(gateway, "k1")  # the server answers with 404
    try:
        with pytest.raises(KernelStartError, match="The kernel's process has ended"):
            WebsocketWire(gateway, "k1", process)
    finally:
        process.forget()
