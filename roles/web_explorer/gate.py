"""`Gate`: the only way out of the browser: a proxy on loopback that decides where each connection may go.

A browser resolves names and follows redirects by itself. So the decision is made where a connection is made: a name is
resolved once, its addresses are looked at, and the connection goes to one of them.
"""

import ipaddress
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

_HEAD_BYTES = 65_536
_PIECE = 65_536
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""Where a translator of the network (NAT64) stands for addresses of version 4, which are their last four bytes."""
_NOT_PUBLIC = [
    ipaddress.ip_network(one) for one in ("64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96", "fec0::/10", "192.88.99.0/24")
]
"""Further translators, and addresses that were private or led to relays in earlier standards."""
_OWN_HEADERS = ("proxy-connection", "proxy-authorization", "connection", "keep-alive")


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to no private network, no group, and not to this machine."""
    if any(address in one for one in _NOT_PUBLIC if one.version == address.version):
        return False
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    if address.version == 6 and address in _TRANSLATED:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return bool(address.is_global and inner.is_global and not address.is_multicast)


class Gate(ThreadingTCPServer):
    """A forward proxy for one browser, on a port of 127.0.0.1.

    Args:
        may: Says of an address whether it may be reached; `is_public` for the internet alone.
        max_bytes: How much may come through until `begin` is called again.
        seconds: How long nothing may come.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *, may: Callable[[Address], bool], max_bytes: int, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.may = may
        self.max_bytes = max_bytes
        self.seconds = seconds
        self.refused: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        self._left = max_bytes
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Begin another page: what was refused is forgotten, and the bytes count anew."""
        with self._lock:
            self._left, self.refused = self.max_bytes, []

    def take(self, count: int) -> bool:
        """Count bytes that have come; False if they are too many."""
        with self._lock:
            before, self._left = self._left, self._left - count
            if before >= 0 > self._left:
                self.refused.append(f"more than {self.max_bytes / 1e6:g} MB came for one page; the rest was cut off")
            return self._left >= 0

    def refuse(self, why: str) -> None:
        """Note what was not let through."""
        with self._lock:
            if why not in self.refused:
                self.refused.append(why)

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to a host, if one may.

        Raises:
            PermissionError: one may not; says why.
            OSError: it can't be reached.
        """
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for *_, address in found:
            if not self.may(ipaddress.ip_address(str(address[0]).partition("%")[0])):
                raise PermissionError(f"{host} is an address of a private network (role.web_explorer.private)")
        problem = OSError(f"{host} has no address")
        for family, kind, protocol, _, address in found:
            try:
                joined = socket.socket(family, kind, protocol)
                try:
                    joined.settimeout(self.seconds)
                    joined.connect(address)
                except BaseException:
                    joined.close()
                    raise
                return joined
            except OSError as error:
                problem = error
        raise problem

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a connection that breaks off is the browser's to tell."""

    def close(self) -> None:
        """Let nothing through any more."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Connection(StreamRequestHandler):
    """One connection of the browser: one request, or one tunnel."""

    server: Gate

    def handle(self) -> None:
        """Read where it is to go, and join both ends if it may."""
        self.connection.settimeout(self.server.seconds)
        line, headers = self._head()
        method, target, version = [*line.split(" ", 2), "", ""][:3]
        host, port = _tunnel(target) if method == "CONNECT" else _plain(target)
        if not host:
            self._answer("400 Bad Request", "this address can't be opened")
            return
        try:
            there = self.server.connect(host, port)
        except PermissionError as error:
            self.server.refuse(str(error))
            self._answer("403 Forbidden", str(error))
            return
        except (OSError, ValueError, UnicodeError) as error:
            self._answer("502 Bad Gateway", f"{host} can't be reached: {error}")
            return
        with there:
            if method == "CONNECT":
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                parts = urlsplit(target)
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                kept = [one for one in headers if one.partition(":")[0].lower() not in _OWN_HEADERS]
                head = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
                there.sendall("\r\n".join(head).encode("latin-1"))
            self._join(there)

    def _head(self) -> tuple[str, list[str]]:
        lines: list[str] = []
        size = 0
        while (line := self.rfile.readline(_HEAD_BYTES)).strip():
            size += len(line)
            if size > _HEAD_BYTES:
                break
            lines.append(line.decode("latin-1").rstrip("\r\n"))
        return (lines[0] if lines else ""), lines[1:]

    def _join(self, there: socket.socket) -> None:
        """Pass on what comes from either end, until one ends, or too much has come."""

        def out() -> None:
            with suppress(OSError):
                while piece := self.rfile.read1(_PIECE):
                    there.sendall(piece)
                there.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=out, daemon=True)
        sending.start()
        with suppress(OSError):
            while piece := there.recv(_PIECE):
                if not self.server.take(len(piece)):
                    break
                self.wfile.write(piece)
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        sending.join()

    def _answer(self, status: str, message: str) -> None:
        body = message.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        with suppress(OSError):
            self.wfile.write(f"{head}Connection: close\r\n\r\n".encode() + body)


def _tunnel(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    return (host.strip("[]"), int(port)) if port.isdigit() else ("", 0)


def _plain(target: str) -> tuple[str, int]:
    try:
        parts = urlsplit(target)
        return (parts.hostname or "", parts.port or 80) if parts.scheme == "http" else ("", 0)
    except ValueError:
        return "", 0
