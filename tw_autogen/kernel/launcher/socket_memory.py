"""How much memory lies in sockets, asked of the system over netlink (`sock_diag`)."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Container, Iterable, Iterator

_NETLINK_SOCK_DIAG, _BY_FAMILY = 4, 20
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3
_HEAD = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_SHOW_PEER, _SHOW_QUEUES, _SHOW_MEMORY = 4, 16, 32
_PEER, _QUEUES, _MEMORY = 2, 4, 5
_SEND_BUFFER, _SENT = 3, 2
_ANSWER = 1 << 18
_MIN = 1 << 18
"""What a queue counts whose sender is gone: its bytes are known, what each of its packets takes is not."""
_FEW = 64
"""So few descriptors can't hold much."""


class Sockets:
    """Adds up what lies in the sockets of some processes.

    Args:
        own: All sockets of this process's network namespace are theirs; otherwise those that they have open.
        network: They may have other sockets than Unix ones.
    """

    def __init__(self, *, own: bool, network: bool) -> None:
        self._own = own
        self._network = network
        self._max_each = 2 * _largest_buffer()
        self._diag: socket.socket | None = None
        with contextlib.suppress(OSError, AttributeError):  # AttributeError where this is not Linux
            self._diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
            self._diag.setblocking(False)

    def memory(self, pids: Iterable[int]) -> int:
        """Return about how many bytes their sockets hold.

        Args:
            pids: The processes.
        """
        ours: Container[int] | None = None
        hidden = many = 0
        if not self._own:
            found = [one for pid in pids for one in open_sockets(pid)]
            hidden = self._max_each * in_flight(found)
            ours, many = {inode for _, inode in found}, len(found)
            if many < _FEW:
                return hidden
        try:
            return hidden + self._unix_bytes(ours) + (self._internet_bytes(ours) if self._network else 0)
        except OSError:  # this system has no `sock_diag`: each may be as full as they can be without being set to more
            return hidden + many * _MIN

    def _unix_bytes(self, ours: Container[int] | None) -> int:
        total = 0
        show = _SHOW_PEER | _SHOW_QUEUES | _SHOW_MEMORY
        request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, show, 0, 0)
        for answer in self._ask(request):
            inode = struct.unpack_from("=I", answer, 4)[0]
            if ours is not None and inode not in ours:
                continue
            facts = dict(_attributes(answer, 16))
            memory = struct.unpack_from("=4I", facts[_MEMORY]) if _MEMORY in facts else (0, 0, 0, _MIN)
            total += memory[0] + memory[_SENT]  # what it has sent, until it is read
            unread = struct.unpack_from("=I", facts[_QUEUES])[0] if _QUEUES in facts else 0
            peer = struct.unpack_from("=I", facts[_PEER])[0] if _PEER in facts else 0
            if unread and not peer:
                total += max(unread, memory[_SEND_BUFFER], _MIN)
        return total

    def _internet_bytes(self, ours: Container[int] | None) -> int:
        total = 0
        for family in (socket.AF_INET, socket.AF_INET6):
            for protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
                with contextlib.suppress(FileNotFoundError):  # the system has no such module
                    request = struct.pack("=BBBBI", family, protocol, 0, 0, 0xFFFFFFFF) + bytes(48)
                    for answer in self._ask(request):
                        _, received, sent, _, inode = struct.unpack_from("=5I", answer, 52)
                        total += received + sent if ours is None or inode in ours else 0
        return total

    def _ask(self, request: bytes) -> Iterator[bytes]:
        """Yield the answers, one for each socket.

        Raises:
            OSError: the system doesn't know it, or answers too late.
        """
        if self._diag is None:
            raise OSError("no netlink")
        self._diag.send(_HEAD.pack(_HEAD.size + len(request), _BY_FAMILY, _DUMP, 0, 0) + request)
        while True:
            packet = self._diag.recv(_ANSWER)
            at = 0
            while at < len(packet):
                length, kind, *_ = _HEAD.unpack_from(packet, at)
                body = packet[at + _HEAD.size : at + length]
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", body)[0]
                    raise OSError(number, os.strerror(number))
                yield body
                at += max(_HEAD.size, (length + 3) & ~3)


def _attributes(answer: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + _ATTRIBUTE.size <= len(answer):
        length, kind = _ATTRIBUTE.unpack_from(answer, at)
        yield kind, answer[at + _ATTRIBUTE.size : at + length]
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)


def open_sockets(pid: int) -> Iterator[tuple[str, int]]:
    """Yield where each socket that a process has open is told of, and its inode."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError, ValueError):
                kind, _, inode = os.readlink(f"/proc/{pid}/fd/{name}").partition(":[")
                if kind == "socket":
                    yield f"/proc/{pid}/fdinfo/{name}", int(inode[:-1])


def in_flight(found: Iterable[tuple[str, int]]) -> int:
    """Count the descriptors that were sent over sockets and not yet received: nobody has them open.

    Args:
        found: As `open_sockets` yields them.
    """
    counted = {}
    for path, inode in found:
        if inode not in counted:
            with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
                told = file.read().partition(b"scm_fds:")[2].split(None, 1)
                counted[inode] = int(told[0]) if told else 0  # of other than Unix sockets nothing is told
    return sum(counted.values())


def _largest_buffer() -> int:
    with contextlib.suppress(OSError, ValueError), open("/proc/sys/net/core/wmem_max", "rb") as file:
        return int(file.read())
    return _MIN
