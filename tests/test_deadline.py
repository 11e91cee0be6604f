"""Answers that come byte for byte end in time, whatever they come over; no thread and no connection is left."""

import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, suppress
from unittest.mock import patch

import httpx
import pytest

from tw_autogen import deadline
from tw_autogen.deadline import TracedSockets, finish_within, parts_within, threaded, unless_given_up, until_given_up

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EMPTY = HEAD + b"Content-Length: 2\r\n\r\n{}"
IN_HEAD = HEAD + b"X: "
IN_CHUNK = HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1;"


class DrippingServer:
    """Answers each connection's requests in turn; behind the last answer a byte comes now and then.

    Args:
        answers: Bytes, one for each request of a connection.
        tls: The server's certificate, if any.
    """

    def __init__(self, answers, tls=None):
        self.answers, self.tls, self.left, self.closed = answers, tls, threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, name="dripping server")
        self.thread.start()

    def serve(self):
        with suppress(OSError):  # closed
            connection, _ = self.listener.accept()
            with self.tls.wrap_socket(connection, server_side=True) if self.tls else connection as line:
                try:
                    for answer in self.answers:
                        while not line.recv(65536).endswith((b"\r\n\r\n", b"}")):
                            pass
                        line.sendall(answer)
                    while not self.closed.wait(0.05):
                        line.sendall(b"a")
                except OSError:
                    self.left.set()

    def close(self):
        self.closed.set()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


@pytest.fixture
def serve():
    """Start servers."""
    with ExitStack() as stack:

        def start(*answers, tls=None):
            server = DrippingServer(answers, tls)
            stack.callback(server.close)
            return server

        yield start


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Make a certificate of this machine: a context of the server, one of the client."""
    if shutil.which("openssl") is None:
        pytest.skip("makes a certificate with openssl")
    folder = tmp_path_factory.mktemp("tls")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True, timeout=60)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "certificate.pem"))


def assert_ended(server, before):
    """Fail unless the client has left and no thread of it is alive."""
    assert server.left.wait(5)
    for one in {*threading.enumerate()} - before - {server.thread}:
        one.join(5)
        assert not one.is_alive(), one.name


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("earlier", [0, 1], ids=["new", "kept"])
def test_work_that_is_late_ends_over_any_connection(serve, request, encrypted, earlier):
    tls, trusted = request.getfixturevalue("certificate") if encrypted else (None, True)
    server, before = serve(*[EMPTY] * earlier, IN_HEAD, tls=tls), {*threading.enumerate()}
    sockets = TracedSockets()
    with httpx.Client(verify=trusted) as client:
        for _ in range(earlier):
            assert client.get(server.url, extensions={"trace": sockets}).json() == {}

        with pytest.raises(TimeoutError, match=r"no whole answer within 0\.5 s"):
            finish_within(0.5, lambda: client.get(server.url, extensions={"trace": sockets}), sockets.end)

        assert_ended(server, before)


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
def test_parts_that_are_late_end_where_no_whole_one_comes(serve, request, encrypted):
    tls, trusted = request.getfixturevalue("certificate") if encrypted else (None, True)
    server, before = serve(IN_CHUNK, tls=tls), {*threading.enumerate()}
    sockets, seen = TracedSockets(), []
    with (
        httpx.Client(verify=trusted) as client,
        client.stream("GET", server.url, extensions={"trace": sockets}) as answer,
    ):
        with pytest.raises(TimeoutError, match="its answer did not end in time"):
            seen.extend(parts_within(0.5, answer.iter_raw(), sockets.end))
        assert_ended(server, before)


def test_an_answer_that_ends_with_its_connection_is_not_taken_for_whole(serve):
    server, sockets = serve(HEAD + b"\r\n{}"), TracedSockets()
    with (
        httpx.Client() as client,
        client.stream("GET", server.url, extensions={"trace": sockets}) as answer,
        pytest.raises(TimeoutError, match="its answer did not end in time"),
    ):
        list(parts_within(0.5, answer.iter_raw(), sockets.end))


def test_a_connection_that_opens_too_late_is_shut_down(serve):
    server, sockets = serve(EMPTY), TracedSockets()
    sockets.end()
    with httpx.Client() as client, pytest.raises(httpx.HTTPError):
        client.get(server.url, extensions={"trace": sockets})


def test_what_is_done_with_a_part_takes_none_of_its_time():
    ended, read = threading.Event(), []
    for part in parts_within(0.3, iter("abc"), ended.set, each=True):
        read.append(part)
        time.sleep(0.4)
    assert (read, ended.is_set()) == (["a", "b", "c"], False)


def test_work_that_is_given_up_is_interrupted_also_where_it_asks_in_turn():
    given_up, ended = threading.Event(), []

    def wait():
        given_up.set()
        try:
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            ended.append(threading.current_thread())
            raise

    def ask():
        return unless_given_up(
            lambda: unless_given_up(wait, otherwise="inner", name="inner"), otherwise="outer", name="asked"
        )

    with until_given_up(given_up):
        assert threaded(ask, name="test").result(10) == "outer"
        ended[0].join(5)
        assert not ended[0].is_alive()
        assert ended[0].name == "asked"


class EndsAsItIsGivenUp(threading.Event):
    """Is set at the moment at which the work has ended, and another thread has begun that may have its number."""

    def __init__(self):
        super().__init__()
        self.gate, self.worker, self.interrupted = threading.Event(), [], []
        self.bystander = threading.Thread(target=self.stand_by, name="bystander")

    def work(self):
        self.worker.append(threading.current_thread())
        self.gate.wait(10)

    def stand_by(self):
        try:
            for _ in range(30):
                time.sleep(0.01)
        except KeyboardInterrupt:
            self.interrupted.append(threading.current_thread())

    def is_set(self):
        if self.worker and not self.gate.is_set():
            self.gate.set()
            self.worker[0].join(10)
            time.sleep(0.1)  # until the system has its number back
            self.bystander.start()
        return self.gate.is_set()


def test_a_thread_that_has_the_number_of_one_that_ended_is_not_interrupted():
    given_up = EndsAsItIsGivenUp()

    def ask():
        return unless_given_up(given_up.work, otherwise=None, name="asked")

    with until_given_up(given_up):
        threaded(ask, name="test").result(20)
    given_up.bystander.join(10)

    assert given_up.interrupted == []


class LateFuture(Future):
    """Has a result just after whoever waited for it has stopped waiting."""

    def result(self, timeout=None):
        if timeout is not None:
            raise FutureTimeout
        return super().result()


def test_a_result_that_comes_as_the_time_ends_counts():
    late, ended = LateFuture(), []
    late.set_result(42)
    with patch.object(deadline, "threaded", lambda work, name: late):
        assert finish_within(0.1, lambda: 42, lambda: ended.append(True)) == 42
    assert not ended


def test_a_time_out_of_the_works_own_is_raised_as_it_is():
    def fail():
        raise FutureTimeout("its own words")

    with pytest.raises(FutureTimeout, match="its own words"):
        finish_within(10, fail, lambda: None)


def test_work_of_the_main_thread_is_done_there():
    with until_given_up(threading.Event()):
        assert unless_given_up(threading.current_thread, otherwise=None, name="asked") is threading.main_thread()
