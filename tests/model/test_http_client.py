import gzip
import json
import threading
import time
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat

import httpx
import pytest

from tw_autogen.errors import ModelError
from tw_autogen.model import ModelSettings, OpenAIModel
from tw_autogen.model.http_client import ConnectionFailed, HttpClient, ServerRefusal, event_data

EVENTS = b'data: {"a": 1}\n\ndata: {"b":\ndata: 2}\r\n\r\n: comment\nevent: x\n\ndata:[DONE]'


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_the_same_however_the_stream_is_cut(size):
    pieces = [EVENTS[at : at + size] for at in range(0, len(EVENTS), size)]

    assert list(event_data(pieces)) == [b'{"a": 1}', b'{"b":\n2}', b"[DONE]"]


@pytest.mark.parametrize(
    "piece", [b"data: " + bytes(1 << 20), b"data: " + bytes(1 << 20) + b"\n"], ids=["line without an end", "many lines"]
)
def test_an_event_without_an_end_is_an_error_before_it_fills_the_memory(piece):
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield piece

    with pytest.raises(ValueError, match="longer than 16 MB"):
        list(event_data(endless()))
    assert read < 20


def test_a_long_line_in_many_pieces_is_joined_once():
    pieces = [b"data: ", *[b"x" * 100] * 100_000, b"\n\n"]  # a minute, were it joined with each piece

    assert [len(one) for one in event_data(pieces)] == [10_000_000]


class Answers(BaseHTTPRequestHandler):
    """Answers with the server's bytes, whatever is asked."""

    def do_GET(self):
        self.send_response(self.server.status)
        for name, value in {"Content-Type": "application/json", **self.server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # the client has left
            for piece in self.server.pieces:
                self.wfile.write(piece)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *words):
        """Print nothing."""


@pytest.fixture
def client():
    """Make a client of a server that answers with some pieces."""
    with ExitStack() as stack:

        def make(pieces, status=200, headers=()):
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Answers))
            server.pieces, server.status, server.headers = pieces, status, dict(headers)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
            stack.callback(server.shutdown)
            made = HttpClient(f"http://127.0.0.1:{server.server_port}", "", trust_env=False, environment_headers=False)
            stack.callback(made.close)
            made.url = f"http://127.0.0.1:{server.server_port}/v1"
            return made

        yield make


ENDLESS = repeat(b" " * (1 << 20))
PACKED = [gzip.compress(gzip.compress(bytes(1 << 28)))]
DEEP = [b"[" * 100_000 + b"]" * 100_000]


@pytest.mark.parametrize(
    ("pieces", "words"), [(ENDLESS, "longer than 64 MB"), (DEEP, "nested more than 100 deep")], ids=["endless", "deep"]
)
def test_an_answer_without_an_end_or_bottom_is_an_error(client, pieces, words):
    with pytest.raises(ValueError, match=words):
        client(pieces).get("/models", seconds=10)


def test_a_packed_answer_is_an_error_before_it_is_unpacked(client):
    with pytest.raises(ValueError, match=r"packed \(gzip, gzip\)"):
        client(PACKED, headers={"Content-Encoding": "gzip, gzip"}).get("/models", seconds=10)


def test_an_event_without_a_bottom_is_an_error(client):
    asked = client([b"data: ", *DEEP, b"\n\n"]).stream("/chat/completions", {}, seconds=10, max_tries=1)

    with pytest.raises(ValueError, match="nested more than 100 deep"):
        next(asked)


@pytest.mark.parametrize("pieces", [ENDLESS, DEEP], ids=["endless", "deep"])
def test_a_refusal_without_an_end_or_bottom_is_a_refusal(client, pieces):
    with pytest.raises(ServerRefusal, match="Error code: 400") as refused:
        client(pieces, status=400).post("/chat/completions", {}, seconds=10, max_tries=1)
    assert refused.value.status_code == 400


def test_a_redirect_is_followed_to_no_other_address(client, monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "api-key: canary")
    asked = []

    class Other(Answers):
        def do_POST(self):
            asked.append(self.headers["api-key"])
            super().do_POST()

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        other.pieces, other.status, other.headers = [b"{}"], 200, {}
        threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.02}).start()
        there = f"http://127.0.0.1:{other.server_port}/v1"
        settings = ModelSettings(base_url=client([], status=307, headers={"Location": f"{there}?key=1"}).url, name="m")
        model = OpenAIModel(settings)
        with pytest.raises(ModelError, match=rf"refused \(307\): the server is at '{there}' now, it says: set that"):
            model.complete([{"role": "user", "content": "canary"}])
        other.shutdown()

    assert asked == []


@pytest.mark.parametrize("said", ["Mon, 01 Jan 99999 00:00:00 GMT", "soon", "-1", "nan"])
def test_a_pause_that_is_none_leaves_the_refusal_as_it_is(client, said):
    with pytest.raises(ServerRefusal, match="Error code: 429"):
        client([b"{}"], status=429, headers={"Retry-After": said}).get("/models", seconds=10)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("in 20s.", 20), ("in 2m59.5s", 179.5), ("in 500 ms", 0.5), ("in 1h2m3s.", 3723), ("in a while", None)],
)
def test_a_pause_is_read_from_the_words_of_a_refusal(client, words, seconds):
    body = json.dumps([{"error": {"message": f"Please try again {words}", "code": 429}}]).encode()
    with pytest.raises(ServerRefusal) as refusal:
        client([body], status=429).get("/models", seconds=10)

    assert refusal.value.asked_for == seconds
    assert refusal.value.code == "429"


def drip(begin):
    """Yield an answer that begins well and goes on inside the head of a chunk, byte for byte, for two minutes."""
    yield begin
    for _ in range(1200):
        time.sleep(0.1)
        yield b"a"


CHUNKED = {"Transfer-Encoding": "chunked"}


@pytest.mark.parametrize(("status", "error"), [(200, ConnectionFailed), (400, ServerRefusal)])
def test_an_answer_that_drips_inside_the_head_of_a_chunk_ends_in_time(client, status, error):
    begun = time.monotonic()
    with pytest.raises(error):
        client(drip(b"1;"), status=status, headers=CHUNKED).get("/models", seconds=0.5)
    assert time.monotonic() - begun < 5


def test_a_stream_that_drips_inside_the_head_of_a_chunk_ends_in_time(client):
    asked = client(drip(b"b\r\ndata: {}\n\n \r\n1;"), headers=CHUNKED).stream("/c", {}, seconds=0.5, max_tries=1)

    assert next(asked) == {}
    with pytest.raises(httpx.ReadTimeout, match="no whole part of its answer came in time"):
        next(asked)


def test_a_call_that_nobody_waits_for_leaves_no_thread_at_a_server_that_drips(client):
    url = client(drip(b"1;"), headers=CHUNKED).url
    before = {*threading.enumerate()}
    model = OpenAIModel(ModelSettings(base_url=url, name="m", seconds=60.0))
    with pytest.raises(ModelError, match=r"no answer within 0\.5 s"):
        model.complete([{"role": "user", "content": "x"}], seconds=0.5)

    ours = [one for one in {*threading.enumerate()} - before if one.name in ("model call", "server call")]
    for our in ours:
        our.join(5)
    assert ours
    assert not any(our.is_alive() for our in ours)


def test_requests_one_after_the_other_use_one_connection(client):
    ports = []

    class Kept(Answers):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            ports.append(self.client_address[1])
            super().do_GET()

    with ThreadingHTTPServer(("127.0.0.1", 0), Kept) as server:
        server.pieces, server.status, server.headers = [b"{}"], 200, {"Content-Length": "2"}
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        kept = HttpClient(f"http://127.0.0.1:{server.server_port}", "", trust_env=False, environment_headers=False)
        assert [kept.get("/models", seconds=10) for _ in range(3)] == [{}, {}, {}]
        kept.close()
        server.shutdown()

    assert len(set(ports)) == 1
