"""Work that reads from a server ends when its time is over."""

import socket
import threading
from contextlib import closing

import pytest

from tw_autogen.deadline import OpenedSockets, finish_within


class Stream:
    """What httpcore says of a connection."""

    def __init__(self, opened):
        self._opened = opened

    def get_extra_info(self, what):
        return {"socket": self._opened}[what]


def test_work_ends_also_where_its_socket_was_wrapped_for_tls():
    ours, theirs = socket.socketpair()
    ended = threading.Event()

    def work():
        with socket.socket(fileno=ours.detach()) as wrapped:  # as `SSLContext.wrap_socket` does
            wrapped.recv(1)
        ended.set()

    with theirs, closing(OpenedSockets()) as opened:
        opened.trace("connection.connect_tcp.complete", {"return_value": Stream(ours)})
        with pytest.raises(TimeoutError, match=r"no whole answer within 0\.2 s"):
            finish_within(0.2, work, opened.all)

        assert ended.wait(10)
