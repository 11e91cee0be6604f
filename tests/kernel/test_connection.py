"""Sockets that a process binds where its code can write: the host connects to these and to nothing else."""

import os
import select
import socket
import sys
from pathlib import Path

import pytest
import zmq

from tw_autogen.kernel.connection import Connection
from tw_autogen.kernel.transport import CHANNELS
from tw_autogen.kernel.zmtp import wait_for_messages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs descriptors of sockets")


def listening(path):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(str(path))
    made.listen(9)
    return made


def was_called(server, seconds=0.3):
    return bool(select.select([server], [], [], seconds)[0])


@pytest.fixture
def canary(tmp_path_factory):
    """A service of the host that code must not have connected to."""
    path = tmp_path_factory.mktemp("c") / "s"
    with listening(path) as server:
        yield path, server


@pytest.fixture
def begun():
    connection = Connection(binds=False)
    with connection.begin() as new:
        yield connection, [new.folder / f"k-{connection.info[f'{channel}_port']}" for channel in CHANNELS]
    connection.close()


@pytest.mark.parametrize("way", ["link", "hard link", "file"])
def test_what_is_put_in_a_sockets_place_is_not_connected_to(begun, canary, way):
    connection, paths = begun
    path, server = canary
    for one in paths:
        if way == "link":
            one.symlink_to(path)
        elif way == "hard link":
            os.link(path, one)
        else:
            one.write_text("no socket")

    connection.join(lambda: True, 0.1)
    connection.request("1")

    assert not was_called(server)


def test_a_link_that_takes_a_sockets_place_later_leads_nowhere(begun, canary):
    connection, paths = begun
    path, server = canary
    bound = [listening(one) for one in paths]

    connection.join(lambda: True, 5)
    assert all(was_called(one, 5) for one in bound)
    for one in paths:
        one.unlink()
        one.symlink_to(path)
    for one in bound:
        one.close()  # the host's sockets try again
    connection.request("1")

    assert not was_called(server)


def test_nobody_waits_for_a_process_that_has_ended(begun):
    connection, _ = begun
    connection.join(lambda: False, 1e9)
    assert connection.receive("shell") is None


def test_descriptors_are_closed_with_the_connection():
    before = len(os.listdir("/proc/self/fd"))
    connection = Connection(binds=False)
    with connection.begin() as new:
        bound = [listening(Path(new.folder, f"k-{connection.info[f'{channel}_port']}")) for channel in CHANNELS]
        connection.join(lambda: True, 5)
    held = [name for name in os.listdir("/proc/self/fd") if "/k-" in link_of(name)]
    assert len(held) == len(CHANNELS)
    connection.close()
    for one in bound:
        one.close()
    assert not [name for name in os.listdir("/proc/self/fd") if "/k-" in link_of(name)]
    assert len(os.listdir("/proc/self/fd")) == before


def link_of(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


def test_what_is_passed_over_does_not_keep_the_reader_for_longer_than_a_moment():
    connection = Connection(binds=False)
    with connection.begin() as new, zmq.Context() as context:
        servers = {channel: context.socket(zmq.XPUB if channel == "iopub" else zmq.ROUTER) for channel in CHANNELS}
        for one, server in servers.items():
            server.setsockopt(zmq.LINGER, 0)
            server.setsockopt(zmq.SNDHWM, 0)
            server.bind(f"ipc://{new.folder / 'k-'}{connection.info[f'{one}_port']}")
        connection.join(lambda: True, 5)
        output = servers["iopub"]
        assert not connection.await_output()
        assert output.recv() == b"\x01"  # the subscription
        wrong = [b"<IDS|MSG>", b"0" * 64, b"{}", b"{}", b"{}", b" " * (8 << 20)]
        for _ in range(60):
            output.send_multipart(wrong, copy=False)
        assert wait_for_messages([connection.iopub], 5)

        assert connection.receive("iopub") is None

        assert wait_for_messages([connection.iopub], 5)  # more of it is there
        connection.close()
        for server in servers.values():
            server.close()
