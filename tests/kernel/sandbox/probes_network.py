"""Probes of the network and of terminals: nothing is reached from inside, nothing is heard."""

import array
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import termios
import urllib.request

from tests.kernel.sandbox.inside import all_of, call, call32, low_text, mark


class TcpToHost:
    """Code reaches a port of the host; the host looks whether it heard."""

    def connects(w):
        with socket.create_connection(("127.0.0.1", w.tcp), 2) as one:
            one.sendall(mark(w, "connects"))

    def by_name(w):
        with socket.create_connection(("localhost", w.tcp), 2) as one:
            one.sendall(mark(w, "by_name"))

    def by_the_other_family(w):
        with socket.socket(socket.AF_INET6) as one:
            one.settimeout(2)
            one.connect(("::ffff:127.0.0.1", w.tcp))
            one.sendall(mark(w, "by_the_other_family"))

    def without_connecting(w):
        with socket.socket() as one:
            one.sendto(mark(w, "without_connecting"), 0x20000000, ("127.0.0.1", w.tcp))  # MSG_FASTOPEN

    def by_a_library(w):
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            f"http://127.0.0.1:{w.tcp}/{w.nonce}:by_a_library;", None, 1
        )

    def by_a_shell(w):
        command = f"exec 3<>/dev/tcp/127.0.0.1/{w.tcp}; printf %s '{w.nonce}:by_a_shell;' >&3"
        subprocess.run(["bash", "-c", command], capture_output=True, timeout=4)

    def by_multipath(w):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as one:
            one.settimeout(2)
            one.connect(("127.0.0.1", w.tcp))
            one.sendall(mark(w, "by_multipath"))

    def through_the_32_bit_gate(w):
        where = low_text(b"")
        arguments = array.array("I", [2, 1, 0]).tobytes()
        ctypes.memmove(where, arguments, 12)
        fd = call32(102, 1, where)  # socketcall: socket
        address = struct.pack("<H", 2) + struct.pack(">H", w.tcp) + bytes([127, 0, 0, 1]) + bytes(8)
        ctypes.memmove(where + 64, address, 16)
        ctypes.memmove(where, array.array("I", [fd, where + 64, 16]).tobytes(), 12)
        call32(102, 3, where)
        os.write(fd, mark(w, "through_the_32_bit_gate"))


class UdpToHost:
    """Code sends packets to the host, as a query to a name server would."""

    def sends(w):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(mark(w, "sends"), ("127.0.0.1", w.udp))

    def connected(w):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.connect(("127.0.0.1", w.udp))
        one.send(mark(w, "connected"))

    def by_the_other_family(w):
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(
            mark(w, "by_the_other_family"), ("::ffff:127.0.0.1", w.udp)
        )

    def raw(w):
        text = mark(w, "raw")
        packet = struct.pack(">HHHH", 9, w.udp, 8 + len(text), 0) + text
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).sendto(packet, ("127.0.0.1", 0))

    def by_a_shell(w):
        command = f"printf %s '{w.nonce}:by_a_shell;' > /dev/udp/127.0.0.1/{w.udp}"
        subprocess.run(["bash", "-c", command], capture_output=True, timeout=4)


class UnixToHost:
    """Code reaches a socket of the host by its path, as it would docker's or ssh-agent's, or by its abstract name."""

    def by_path(w):
        one = socket.socket(socket.AF_UNIX)
        one.connect(w.unix)
        one.sendall(mark(w, "by_path"))

    def by_descriptor(w):
        folder = os.open(w.outside, os.O_PATH)
        one = socket.socket(socket.AF_UNIX)
        one.connect(f"/proc/self/fd/{folder}/listener")
        one.sendall(mark(w, "by_descriptor"))

    def by_symlink(w):
        os.symlink(w.unix, f"s-{w.nonce}")
        try:
            one = socket.socket(socket.AF_UNIX)
            one.connect(f"s-{w.nonce}")
            one.sendall(mark(w, "by_symlink"))
        finally:
            os.unlink(f"s-{w.nonce}")

    def through_the_root_of_a_process(w):
        one = socket.socket(socket.AF_UNIX)
        one.connect(f"/proc/{w.keeper['pid']}/root{w.unix}")
        one.sendall(mark(w, "through_the_root_of_a_process"))


class UnixDatagramToHost:
    """Code sends to a datagram socket of the host by its path, as it would to the system's log."""

    def sends(w):
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(mark(w, "sends"), w.log)

    def in_pieces(w):
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([mark(w, "in_pieces")], [], 0, w.log)

    def from_a_pair(w):
        one, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.sendto(mark(w, "from_a_pair"), w.log)

    def raw(w):
        socket.socket(socket.AF_UNIX, socket.SOCK_RAW).sendto(mark(w, "raw"), w.log)

    def connected(w):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.connect(w.log)
        one.send(mark(w, "connected"))

    def from_a_stream(w):
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).sendto(mark(w, "from_a_stream"), w.log)

    def from_a_sequence(w):
        one, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.sendto(mark(w, "from_a_sequence"), w.log)


class AbstractToHost:
    """Code reaches a socket of the host that has a name and no path."""

    def connects(w):
        one = socket.socket(socket.AF_UNIX)
        one.connect(f"\0{w.abstract}")
        one.sendall(mark(w, "connects"))

    def listed(w):
        return w.abstract in open("/proc/net/unix").read()

    def through_the_32_bit_gate(w):
        where = low_text(b"")
        ctypes.memmove(where, array.array("I", [1, 1, 0]).tobytes(), 12)
        fd = call32(102, 1, where)
        address = struct.pack("<H", 1) + b"\0" + w.abstract.encode()
        ctypes.memmove(where + 64, address, len(address))
        ctypes.memmove(where, array.array("I", [fd, where + 64, len(address)]).tobytes(), 12)
        call32(102, 3, where)
        os.write(fd, mark(w, "through_the_32_bit_gate"))


class NetworkSeen:
    """Code learns of the host's network: its interfaces, its open ports."""

    def ports(w):
        return f"0100007F:{w.tcp:04X}" in open("/proc/net/tcp").read()

    def ports_of_a_process(w):
        return f"0100007F:{w.tcp:04X}" in open(f"/proc/{w.keeper['pid']}/net/tcp").read()

    def ports_by_netlink(w):
        one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
        request = struct.pack("=BBBBI", 2, 6, 0, 0, 0xFFFFFFFF) + bytes(48)
        one.send(struct.pack("=IHHII", 16 + len(request), 20, 0x301, 1, 0) + request)
        one.settimeout(1)
        heard = one.recv(65536)
        return struct.pack(">H", w.tcp) in heard

    def interfaces(w):
        return len(w.interfaces) > 1 and sorted(name for _, name in socket.if_nameindex()) == w.interfaces

    def same_network(w):
        here = os.stat("/proc/self/ns/net")
        return [here.st_dev, here.st_ino] == w.namespaces["net"] and bool(socket.socket())

    def host_name(w):
        here = os.stat("/proc/self/ns/uts")
        return socket.gethostname() == w.hostname and [here.st_dev, here.st_ino] == w.namespaces["uts"]


class Listens:
    """Code opens a port that others can reach."""

    def tcp(w):
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        one.listen()
        here = os.stat("/proc/self/ns/net")
        return [here.st_dev, here.st_ino] == w.namespaces["net"]

    def udp(w):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind(("127.0.0.1", 0))
        here = os.stat("/proc/self/ns/net")
        return [here.st_dev, here.st_ino] == w.namespaces["net"]

    def unbound(w):
        one = socket.socket()
        one.listen()  # takes any port of any address
        here = os.stat("/proc/self/ns/net")
        return [here.st_dev, here.st_ino] == w.namespaces["net"]

    def abstract(w):
        socket.socket(socket.AF_UNIX).bind(f"\0made-{w.nonce}")
        here = os.stat("/proc/self/ns/net")
        return [here.st_dev, here.st_ino] == w.namespaces["net"]


class RareSockets:
    """Code gets sockets of families in which faults of the system are found: raw, packet, vsock, netlink, crypto."""

    def raw(w):
        return bool(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))

    def packet(w):
        return bool(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))

    def vsock(w):
        return bool(socket.socket(40, socket.SOCK_STREAM))

    def crypto(w):
        return bool(socket.socket(38, socket.SOCK_SEQPACKET))

    def routes(w):
        return bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))

    def filters(w):
        return bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))

    def others(w):
        families = [4, 9, 15, 16, 21, 29, 30, 31, 41, 44]
        return all_of(w, [lambda one=family: bool(socket.socket(one, socket.SOCK_DGRAM)) for family in families])


class Terminal:
    """Code types into the user's terminal, or writes on it."""

    def types(w):
        os.setsid()
        fd = os.open(w.terminal, os.O_RDWR)
        for one in w.nonce.encode():
            fcntl.ioctl(fd, termios.TIOCSTI, bytes([one]))

    def writes(w):
        os.write(os.open(w.terminal, os.O_WRONLY | os.O_NOCTTY), w.nonce.encode())

    def through_a_process(w):
        fds = os.listdir(f"/proc/{w.host['pid']}/fd")
        paths = [f"/proc/{w.host['pid']}/fd/{fd}" for fd in fds]
        ours = [path for path in paths if os.readlink(path) == w.terminal]
        return all_of(w, [lambda one=our: os.write(os.open(one, os.O_WRONLY | os.O_NOCTTY), b"x") == 1 for our in ours])

    def types_by_number(w):
        os.setsid()
        fd = os.open(w.terminal, os.O_RDWR)
        for one in w.nonce.encode():
            call("ioctl", fd, 0x5412, bytes([one]), number=16)
