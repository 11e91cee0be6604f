"""Lines to a kernel: what libzmq says on the other end, and what code can say there in its place."""

import os
import random
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import contextmanager, suppress

import pytest
import zmq

from tw_autogen.kernel import zmtp
from tw_autogen.kernel.zmtp import ZmtpSocket, wait_for_messages

LARGEST = 1 << 16
SOON = 10.0
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
PING = b"\x04\x07\x04PING\0\0"


def command(name, body=b"", *, flags=4):
    data = bytes([len(name)]) + name + body
    return bytes([flags, len(data)]) + data


def property_of(name, value):
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


READY = command(b"READY", property_of(b"Socket-Type", b"ROUTER") + property_of(b"Identity", b""))
SHAKEN = GREETING + READY


def frame(data, *, more=False, size=None):
    return struct.pack(">BQ", 2 | more, len(data) if size is None else size) + data


def message(*parts):
    return b"".join(frame(part, more=at < len(parts) - 1) for at, part in enumerate(parts))


class Peer:
    """The other end of lines, which says what it is told; a Unix socket."""

    def __init__(self, path):
        self.path = str(path)
        self.listen()

    def listen(self):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(9)

    def accept(self):
        line = self.listening.accept()[0]
        line.settimeout(SOON)
        return line

    def line(self, kind="DEALER", largest=LARGEST):
        return ZmtpSocket(self.path, kind, largest_part=largest)

    @contextmanager
    def shaken(self, kind="DEALER", largest=LARGEST):
        """Give a line, and its other end behind the handshake."""
        mine = self.line(kind, largest)
        theirs = self.accept()
        theirs.sendall(SHAKEN)
        assert wait_for_messages([mine], 0.05) == set()
        with theirs:
            sent = theirs.recv(1000)
            assert sent[:64] == GREETING[:11] + b"\0" + GREETING[12:]
            yield mine, theirs
        mine.close()


@pytest.fixture
def peer(tmp_path):
    made = Peer(tmp_path / "s")
    yield made
    made.listening.close()


def received(line, seconds=SOON):
    wait_for_messages([line], seconds)
    return line.receive(0.0)


def all_of(line):
    """Return what comes until the line is closed."""
    data = b""
    while piece := line.recv(1 << 16):
        data += piece
    return data


@pytest.mark.parametrize(
    "said",
    [
        command(b"PING"),
        command(b"PING", b"\0"),
        PING,
        PING * 1000,
        command(b"PONG"),
        command(b"SUBSCRIBE"),
        command(b"ERROR", b"\x03why"),
        command(b""),
        b"\x04\x00",
        command(b"PING", flags=5),
        READY,
        b"\x06" + struct.pack(">Q", 1 << 62),
        b"\x08\x00",
        b"\x80\x00",
        b"\xff" * 9,
        frame(b"", size=LARGEST + 1),
        frame(b"", size=(1 << 64) - 1),
        frame(b"x", more=True) + PING,
        message(b"x" * LARGEST, b"x" * LARGEST, b"x"),
    ],
)
@pytest.mark.parametrize("kind", ["DEALER", "SUB"])
def test_what_is_no_message_or_too_large_cuts_the_line_and_is_not_answered(peer, kind, said):
    with peer.shaken(kind) as (line, end):
        end.sendall(message(b"before") + said)

        assert received(line) == [b"before"]
        assert wait_for_messages([line], SOON) == set()
        assert line.cut
        assert all_of(end) == b""
        began = time.monotonic()
        assert wait_for_messages([line], 0.2) == set()  # nothing that makes whoever waits spin
        assert time.monotonic() - began >= 0.2
        assert line.receive(time.monotonic() + 1) is None


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x01\x00",  # ZMTP 1.0
        GREETING[:9] + b"\x7e" + GREETING[10:],
        GREETING[:10] + b"\x01" + GREETING[11:],  # 2.0
        GREETING[:12] + b"PLAIN" + GREETING[17:],
        GREETING[:12] + b"CURVE" + GREETING[17:],
        GREETING + command(b"ERROR", b"\x00"),
        GREETING + command(b"PING"),
        GREETING + command(b"READY", flags=0),
        GREETING + command(b"READY", flags=5),
        GREETING + command(b"READ"),
        GREETING + b"\x06" + struct.pack(">Q", 1 << 40),
        GREETING + message(b"x"),
    ],
)
def test_another_greeting_cuts_the_line_and_a_new_one_is_made_on_request(peer, said):
    line = peer.line()
    line.send([b"lost"])
    with peer.accept() as end:
        end.sendall(said)
        assert wait_for_messages([line], SOON) == set()
        assert line.cut

        line.reconnect()
        assert not line.cut
        wait_for_messages([line], 0.05)
        with peer.accept() as again:
            again.sendall(SHAKEN + message(b"there"))
            assert received(line) == [b"there"]
            line.send([b"kept"])
            line.close(SOON)
            assert all_of(again).endswith(READY.replace(b"ROUTER", b"DEALER") + b"\x00\x04kept")


def test_a_message_of_endlessly_many_parts_takes_no_memory_and_time_only_as_long_as_allowed(peer):
    with peer.shaken() as (line, end):
        end.sendall(message(*[b"%d" % one for one in range(20)]))
        assert received(line) == [b"%d" % one for one in range(8)]

        parts = frame(b"x" * 10_000, more=True) * 10 + frame(b"", more=True) * 1000
        end.setblocking(False)
        tracemalloc.start()
        passed, own = 0, [tracemalloc.Filter(True, zmtp.__file__)]  # not what threads of other tests take meanwhile
        try:
            for most in (14 << 20, 28 << 20, 42 << 20):
                while passed < most:
                    try:
                        passed += end.send(parts[passed % len(parts) :])
                    except BlockingIOError:
                        assert line.receive(time.monotonic() + 0.01) is None
                held = tracemalloc.take_snapshot().filter_traces(own)
                assert sum(statistic.size for statistic in held.statistics("filename")) < 4 << 20
        finally:
            tracemalloc.stop()
        assert line.receive(time.monotonic() + 0.5) is None
        assert not line.cut

        end.settimeout(SOON)
        end.sendall(parts[passed % len(parts) :] + frame(b"the last") + message(b"the next"))
        assert len(received(line)) == 8
        assert received(line) == [b"the next"]


def test_a_part_behind_those_that_are_of_use_may_be_of_any_size(peer):
    with peer.shaken() as (line, end):
        end.sendall(message(*[b""] * 8, b"x" * 3) + message(*[b""] * 8)[:-9] + frame(b"", more=True))
        assert received(line) == [b""] * 8
        end.sendall(frame(b"y" * LARGEST, size=LARGEST + 1))
        assert received(line, 0.1) is None
        end.sendall(b"y" + message(b"z"))
        assert received(line) == [b""] * 8
        assert received(line) == [b"z"]


@pytest.mark.parametrize(
    "said", [b"", b"\xff", GREETING[:40], GREETING, GREETING + READY[:9], SHAKEN, SHAKEN + b"\x02"]
)
def test_half_of_it_is_waited_for_in_the_given_time_and_without_work(peer, said):
    line = peer.line()
    with peer.accept() as end:
        end.sendall(said)
        wait_for_messages([line], 0.05)
        began, worked = time.monotonic(), time.thread_time()
        assert wait_for_messages([line], 0.5) == set()
        assert 0.45 < time.monotonic() - began < SOON
        assert time.thread_time() - worked < 0.1
        assert not line.cut
        end.sendall((SHAKEN + message(b"all", b"of it"))[len(said) :] if said != SHAKEN + b"\x02" else bytes(8))
        assert received(line) == ([b""] if said == SHAKEN + b"\x02" else [b"all", b"of it"])
    line.close()


def test_where_a_stream_is_torn_makes_no_difference(peer):
    pick = random.Random(7)
    sent = [[pick.randbytes(pick.choice([0, 1, 255, 256, 3000])) for _ in range(pick.randint(1, 8))] for _ in range(60)]
    stream = SHAKEN + b"".join(
        b"".join(
            frame(part, more=at < len(parts) - 1)
            if len(part) > 255 or pick.random() < 0.5
            else bytes([at < len(parts) - 1, len(part)]) + part
            for at, part in enumerate(parts)
        )
        for parts in sent
    )
    line = peer.line()
    with peer.accept() as end:
        got = []
        while len(got) < len(sent):
            piece, stream = stream[: (cut := pick.choice([1, 2, 9, 300, 5000]))], stream[cut:]
            end.sendall(piece)
            while (one := received(line, 0)) is not None:
                got.append(one)
        assert got == sent
    line.close()


def test_whatever_comes_raises_nothing(peer):
    pick = random.Random(11)
    valid = SHAKEN + message(b"a", b"b" * 300) + b"\x01\x01x\x00\x01y" + PING
    for _ in range(300):
        said = bytearray(valid)
        for _ in range(pick.randint(1, 3)):
            said[pick.randrange(len(said))] = pick.randrange(256)
        line = peer.line()
        with peer.accept() as end:
            end.sendall(said[: pick.randrange(len(said) + 1)])
            for _ in range(5):
                wait_for_messages([line], 0)
                line.receive(0.0)
            line.close()


def test_after_the_end_of_a_line_the_next_one_takes_what_was_not_wholly_sent(peer):
    large = b"x" * (8 << 20)
    with peer.shaken(largest=len(large)) as (line, end):
        line.send([b"gone"])
        line.send([large])
        line.send([b"behind"])
        assert end.recv(1 << 10)
        end.close()
        wait_for_messages([line], 0.05)
        with peer.accept() as again:
            again.sendall(SHAKEN + message(b"3"))
            assert received(line) == [b"3"]
            again.setblocking(False)
            data = b""
            until = time.monotonic() + SOON
            while not data.endswith(b"behind"):
                assert time.monotonic() < until
                wait_for_messages([line], 0)
                try:
                    data += again.recv(1 << 20)
                except BlockingIOError:
                    continue
            assert data[64:] == READY.replace(b"ROUTER", b"DEALER") + message(large) + b"\x00\x06behind"


def test_what_was_said_before_the_end_of_a_line_is_received(peer):
    with peer.shaken() as (line, end):
        end.sendall(message(b"1") + message(b"2", b"3") + message(b"half")[:-1])
        end.close()
        with peer.listening:
            assert [received(line) for _ in range(2)] == [[b"1"], [b"2", b"3"]]
            assert received(line, 0.1) is None
            assert not line.cut


SENDING = """
import signal, sys, time
from tw_autogen.kernel.zmtp import ZmtpSocket, wait_for_messages
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
line = ZmtpSocket(sys.argv[1], "DEALER", largest_part=1 << 22)
print(wait_for_messages([line], 10) == {line}, line.receive(0.0), flush=True)
input()
for _ in range(3):
    line.send([b"x" * (1 << 20)])
print("lives")
"""


@pytest.mark.skipif(not hasattr(socket, "MSG_NOSIGNAL"), reason="this system has no such option")
def test_a_line_that_is_closed_ends_no_program_in_which_a_broken_pipe_does(peer):
    command = [sys.executable, "-c", SENDING, peer.path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as program, peer.accept() as end:
        end.sendall(SHAKEN + message(b"go"))
        assert program.stdout.readline() == "True [b'go']\n"
        end.shutdown(socket.SHUT_RD)
        assert program.communicate("\n", timeout=SOON) == ("lives\n", None)


def test_nobody_listens_yet_and_somebody_does_later(tmp_path):
    line = ZmtpSocket(str(tmp_path / "s"), "DEALER", largest_part=LARGEST)
    line.send([b"hello"])
    worked = time.thread_time()
    assert wait_for_messages([line], 0.3) == set()
    assert time.thread_time() - worked < 0.2
    later = Peer(tmp_path / "s")
    wait_for_messages([line], 0.05)
    with later.accept() as end:
        end.sendall(SHAKEN)
        line.close(SOON)
        assert all_of(end).endswith(b"\x00\x05hello")
    later.listening.close()


def test_a_queue_that_is_full_is_waited_for(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen(0)
        lines = [ZmtpSocket(str(tmp_path / "s"), "DEALER", largest_part=LARGEST) for _ in range(4)]
        for _ in lines:
            wait_for_messages(lines, 0.05)
            with listening.accept()[0] as end:
                end.sendall(SHAKEN + message(b"you"))
                (ready,) = wait_for_messages(lines, SOON)
                assert ready.receive(0.0) == [b"you"]
                ready.close()
        for line in lines:
            line.close()


def test_an_end_that_reads_nothing_keeps_no_one(peer):
    with peer.shaken(largest=20 << 20) as (line, end):
        began = time.monotonic()
        for _ in range(40):
            line.send([b"x" * (1 << 20)])
        end.sendall(message(b"here"))
        assert received(line) == [b"here"]
        line.flush(0.1)
        line.close(0.1)
        assert time.monotonic() - began < SOON


@pytest.mark.parametrize(("size", "most"), [(50_000, 20), (1, 1000)])
def test_an_end_that_reads_nothing_is_cut_before_what_waits_for_it_takes_much_memory(peer, size, most):
    with peer.shaken() as (line, _):
        sent = 0
        while not line.cut:
            line.send([b"x" * size])
            sent += 1
        assert 2 < sent < most
        line.reconnect()
        assert not line.cut


def test_nobody_who_listens_is_waited_for_by_nobody(tmp_path):
    line = ZmtpSocket(str(tmp_path / "s"), "DEALER", largest_part=LARGEST)
    line.send([b"x"])
    began = time.monotonic()
    line.flush(SOON)
    line.close(SOON)
    line.send([b"y"])
    line.close(SOON)
    assert time.monotonic() - began < SOON / 2


def test_what_was_said_before_is_received_also_where_something_is_sent_to_an_end_that_has_gone(place):
    there, here = place
    with server(zmq.ROUTER, there) as router:
        line = ZmtpSocket(here, "DEALER", identity=b"me", largest_part=LARGEST)
        line.send([b"hello"])
        line.flush(SOON)
        router.recv_multipart()
        for number in range(5):
            router.send_multipart([b"me", b"%d" % number])
        assert received(line) == [b"0"]
        time.sleep(0.3)
    line.send([b"to the next"])
    assert [received(line) for _ in range(4)] == [[b"%d" % one] for one in range(1, 5)]
    with server(zmq.ROUTER, there) as router:
        line.flush(SOON)
        wait_for_messages([line], 0.05)
        line.flush(SOON)
        assert router.recv_multipart() == [b"me", b"to the next"]
    line.close()


class FailingSelector(selectors.SelectSelector):
    """Refuses to wait for nothing, as Windows does."""

    def select(self, timeout=None):
        if not self.get_map():
            raise OSError(10022, "an invalid argument was supplied")
        return super().select(timeout)


def test_where_nothing_can_be_waited_for_the_time_passes(peer, monkeypatch):
    monkeypatch.setattr(zmtp, "_Selector", FailingSelector)
    line = peer.line()
    with peer.accept() as end:
        end.sendall(b"what?")
        assert wait_for_messages([line], SOON) == set()
    assert line.cut
    began = time.monotonic()
    assert wait_for_messages([line], 0.2) == set()
    assert time.monotonic() - began >= 0.2
    assert wait_for_messages([], 0.01, sending=[line]) == set()
    line.close(SOON)


def test_a_descriptor_whose_number_belongs_to_a_line_by_now_is_told_as_ready(peer):
    with peer.shaken() as (line, _):
        assert wait_for_messages([line], SOON, descriptors=[line.fileno()]) == {line.fileno()}


def test_an_end_that_closes_at_once_again_and_again_is_met_200_times_a_second_at_most(peer):
    peer.listening.setblocking(False)
    line, met = peer.line(), 0
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        wait_for_messages([line], 0.001)
        try:
            peer.listening.accept()[0].close()
            met += 1
        except BlockingIOError:
            pass
    assert 3 < met <= 101
    line.close()


def test_descriptors_are_told_beside_messages_and_while_messages_do_not_end(peer):
    ours, theirs = os.pipe()
    with peer.shaken() as (line, end):
        assert wait_for_messages([line], 0, descriptors=[ours]) == set()
        os.write(theirs, b"!")
        assert wait_for_messages([line], SOON, descriptors=[ours]) == {ours}
        end.sendall(message(b"x"))
        assert wait_for_messages([line], SOON, descriptors=[ours]) == {line, ours}
    os.close(ours)
    os.close(theirs)


class Interrupted(Exception):
    """What a signal's handler raises, as KeyboardInterrupt is."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no signals come at a chosen time")
def test_an_exception_between_any_two_steps_tears_no_stream(peer, request):
    def interrupt(*_):
        raise Interrupted

    count, sent = 4000, [b"%d" % one * 20 for one in range(4000)]
    said = SHAKEN + b"".join(message(b"topic", one, b"") for one in sent)
    before = signal.signal(signal.SIGALRM, interrupt)
    request.addfinalizer(lambda: signal.signal(signal.SIGALRM, before))
    request.addfinalizer(lambda: signal.setitimer(signal.ITIMER_REAL, 0))
    line = peer.line(largest=2 << 20)
    theirs, heard = peer.accept(), bytearray()

    def talk():
        """Send all of it, and keep what comes."""
        theirs.settimeout(0.001)
        rest = memoryview(said)
        while rest or not heard.endswith(b"\x00\x04last"):
            with suppress(TimeoutError):
                rest = rest[theirs.send(rest[:5000]) :]
            with suppress(TimeoutError):
                heard.extend(theirs.recv(1 << 16))

    other = threading.Thread(target=talk)
    other.start()
    got, interrupts, at = [], 0, 0
    until = time.monotonic() + 6 * SOON

    def exchange():
        """Send and receive; a function, since Python 3.13 leaves a `try` whose loop is interrupted where it begins."""
        nonlocal at
        signal.setitimer(signal.ITIMER_REAL, 0.0001 + (interrupts % 97) * 0.00001)
        while at < count or len(got) < count - interrupts:
            if at < count:
                at += 1
                line.send([b"%d" % at * 100])
            if (one := received(line, 0.01)) is not None:
                got.append(one)
        signal.setitimer(signal.ITIMER_REAL, 0)

    while (at < count or len(got) < count - interrupts) and time.monotonic() < until:
        try:
            exchange()
        except Interrupted:
            interrupts += 1
    line.send([b"last"])
    line.flush(SOON)
    while other.is_alive() and time.monotonic() < until:
        if (one := received(line, 0.01)) is not None:
            got.append(one)
    assert not other.is_alive()

    assert not line.cut
    assert interrupts > 100
    numbers = [sent.index(one) for _, one, _ in got]
    assert numbers == sorted(set(numbers))  # one for each exception may be lost, and nothing else is
    assert len(numbers) >= count - interrupts
    asked = [*frames_of(bytes(heard[len(GREETING) + len(READY) :]))]
    assert asked[-1] == b"last"
    known = {b"%d" % one * 100 for one in range(1, count + 1)}
    assert set(asked[:-1]) <= known
    assert len(asked) == len(set(asked))
    assert len(asked) > count - interrupts
    theirs.close()
    line.close()


def frames_of(data):
    """Yield the bodies of single frames."""
    while data:
        head, size = (9, int.from_bytes(data[1:9], "big")) if data[0] & 2 else (2, data[1])
        yield data[head : head + size]
        data = data[head + size :]


@contextmanager
def server(kind, place):
    """A socket of libzmq."""
    with zmq.Context() as context, context.socket(kind) as made:
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.SNDHWM, 0)
        if kind == zmq.ROUTER:
            made.setsockopt(zmq.ROUTER_HANDOVER, 1)
        made.setsockopt(zmq.IPV6, 1)
        made.setsockopt(zmq.RCVTIMEO, int(SOON * 1000))
        made.bind(place)
        yield made


@pytest.fixture(params=["ipc", "tcp", "ipv6"])
def place(request, tmp_path):
    """Where libzmq binds, and the same to a line."""
    if request.param == "ipc":
        return f"ipc://{tmp_path / 's'}", str(tmp_path / "s")
    host = "127.0.0.1" if request.param == "tcp" else "::1"
    with socket.socket(socket.AF_INET if request.param == "tcp" else socket.AF_INET6) as free:
        free.bind((host, 0))
        port = free.getsockname()[1]
    return f"tcp://{'[::1]' if request.param == 'ipv6' else host}:{port}", (host, port)


def test_a_router_of_libzmq_is_spoken_with_also_by_a_line_that_was_there_before_and_after_it(place):
    there, here = place
    line = ZmtpSocket(here, "DEALER", identity=b"me", largest_part=64 << 20)
    for large in (1, 255, 256, 40 << 20):
        with server(zmq.ROUTER, there) as router:
            line.send([b"a", b"", b"x" * large])
            line.flush(SOON)
            assert router.recv_multipart() == [b"me", b"a", b"", b"x" * large]
            router.send_multipart([b"me", b"y" * large, b"b"])
            assert received(line) == [b"y" * large, b"b"]
    line.close()


def test_a_publisher_of_libzmq_is_subscribed_to(place):
    there, here = place
    line = ZmtpSocket(here, "SUB", largest_part=1 << 20)
    for _ in range(2):
        with server(zmq.XPUB, there) as publisher:
            while not publisher.poll(1):
                wait_for_messages([line], 0.01)
            assert publisher.recv() == b"\x01"
            for number in range(2000):
                publisher.send_multipart([b"topic", b"%d" % number])
            assert [received(line) for _ in range(2000)] == [[b"topic", b"%d" % one] for one in range(2000)]
    line.close()


def test_a_line_that_was_cut_is_known_again_by_its_identity(tmp_path):
    with server(zmq.ROUTER, f"ipc://{tmp_path / 's'}") as router:
        line = ZmtpSocket(str(tmp_path / "s"), "DEALER", identity=b"me", largest_part=100)
        for _ in range(3):
            line.send([b"1"])
            line.flush(SOON)
            assert router.recv_multipart() == [b"me", b"1"]
            router.send_multipart([b"me", b"x" * 101])
            assert wait_for_messages([line], SOON) == set()
            assert line.cut
            line.reconnect()
        line.close()


def test_a_free_port_that_meets_itself_is_nobody(monkeypatch):
    made = socket.socket

    def bound(family, kind):
        """Make a socket whose own port is the one that it connects to, as chance can."""
        one = made(family, kind)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        return one

    with made() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(socket, "socket", bound)
    line = ZmtpSocket(("127.0.0.1", port), "DEALER", largest_part=LARGEST)
    line.send([b"to nobody"])
    assert received(line, 0.2) is None
    assert not line.cut
    line.close()


def test_a_path_that_is_too_long_is_an_error():
    with pytest.raises(OSError, match="path too long"):
        ZmtpSocket("x" * 200, "DEALER", largest_part=LARGEST)
