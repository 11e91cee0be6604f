"""Probes of what belongs to a session: its channel to the host, its folder, its end."""

import glob
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

from tests.kernel.sandbox.inside import LIBC, all_of


class OtherChannel:
    """Code gets at the channel of another session's kernel to the host: reads its key, speaks or answers on it."""

    seconds = 12

    def key(w):
        return _key(w, open(w.sibling["connection"]).read())

    def key_by_searching(w):
        beside = os.path.dirname(os.path.dirname(os.environ.get("IPYTHONDIR", "/tmp/x/y")))
        name = os.path.basename(w.sibling["connection"])
        paths = [
            path for place in ("/tmp", "/var/tmp", "/run/user/*", beside) for path in glob.glob(f"{place}/*/{name}")
        ]
        return w.sibling["connection"] in paths and _key(w, open(w.sibling["connection"]).read())

    def key_by_command_line(w):
        words = open(f"/proc/{w.sibling['pid']}/cmdline").read().split("\0")
        return any(_key(w, open(word).read()) for word in words if word.endswith(".json"))

    def key_by_memory(w):
        with open(f"/proc/{w.host['pid']}/mem", "rb", 0) as file:
            file.seek(w.sibling["key_address"])
            return hashlib.sha256(file.read(32)).hexdigest() == w.sibling["key_digest"]

    def greeted(w):
        def greet(path):
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(2)
            one.connect(path)
            return one.recv(1) == b"\xff"  # what a zmq socket says first

        return all_of(w, [lambda path=path: greet(path) for path in w.sibling["sockets"]])

    def greeted_on_ports(w):
        def greet(port):
            with socket.create_connection(("127.0.0.1", port), 2) as one:
                return one.recv(1) == b"\xff"

        return all_of(w, [lambda port=port: greet(port) for port in w.sibling["ports"]])

    def commands(w):
        import zmq
        from jupyter_client.session import Session

        with open(w.sibling["connection"]) as file:
            info = json.load(file)
        session = Session(key=info["key"].encode(), signature_scheme=info["signature_scheme"])
        shell = zmq.Context().socket(zmq.DEALER)
        shell.linger = 500
        joint = "-" if info["transport"] == "ipc" else ":"
        shell.connect(f"{info['transport']}://{info['ip']}{joint}{info['shell_port']}")
        code = f"open('reached-{w.nonce}', 'w').close()"
        session.send(shell, "execute_request", {"code": code, "silent": True, "user_expressions": {}})
        shell.poll(3000)
        for _ in range(30):
            if os.path.exists(f"{w.sibling['folder']}/reached-{w.nonce}"):
                return True
            time.sleep(0.1)
        return False

    def answers(w):
        """Listen where the host would look for the other session's kernel."""
        path = f"{os.path.dirname(w.sibling['connection'])}/posing-{w.nonce}"
        socket.socket(socket.AF_UNIX).bind(path)
        os.unlink(path)
        return True

    def takes_the_place(w):
        """Move the other kernel's socket aside, and back; an impostor would bind its own in between."""
        path = w.sibling["sockets"][0]
        os.rename(path, f"{path}-{w.nonce}")
        os.rename(f"{path}-{w.nonce}", path)
        return True


class HostReads:
    """Code lays links and false reports, so that the host itself reads or writes files outside for it."""

    here = ("reports_files_outside",)

    def links_the_exchange(w):
        """Put a link in the place of the hidden folder in which tables cross."""
        os.rename(".tw-exchange", f".tw-{w.nonce}")
        os.symlink(w.outside, ".tw-exchange")

    def reports_files_outside(w):
        """Report links to the secret, and its path, as artifacts of this cell."""
        links = [
            f"soft-{w.nonce}.txt",
            f"hard-{w.nonce}.txt",
            f"dir-{w.nonce}/secret.txt",
            w.secret,
            "../" * 30 + w.secret[1:],
        ]
        for make, source, name in (
            (os.symlink, w.secret, links[0]), (os.link, w.secret, links[1]), (os.symlink, w.home, f"dir-{w.nonce}"),
        ):  # fmt: skip
            try:
                make(source, name)
            except OSError:
                continue
        bridge = sys.modules["tw_guest"].bridge_of_this_kernel
        bridge._send = lambda content, send=bridge._send: send(
            {**content, "artifacts": [[f"a{at}", "file", link, ""] for at, link in enumerate(links)]}
        )


class HostWrites:
    """Code puts something else in the place of its own folder, so that the host writes there."""

    here = ("moves_the_folder",)

    def moves_the_folder(w):
        """Put a link to a folder outside in the place of the session's own."""
        folder = os.getcwd()
        os.rename(folder, f"{folder}-{w.nonce}")
        os.symlink(w.outside, folder)


class HostMemory:
    """Code sends the host so much at once that its memory grows by 150 MB."""

    here = ("in_one_message", "in_the_report")

    def in_one_message(w):
        """Send a message past the stream that cuts long output."""
        kernel = get_ipython().kernel  # noqa: F821 - of the kernel
        text = "x" * (100 << 20) + "\n"
        kernel.session.send(kernel.iopub_socket, "stream", {"name": "stdout", "text": text}, parent=kernel.get_parent())

    def in_the_report(w):
        """Send a result past the display that cuts long ones."""
        bridge = sys.modules["tw_guest"].bridge_of_this_kernel
        bridge._send = lambda content, send=bridge._send: send({**content, "result": "x" * (100 << 20)})


class Outlives:
    """Code leaves something that runs on when the session has ended; it ends by itself after some seconds."""

    def daemon(w):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for one in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
                    signal.signal(one, signal.SIG_IGN)
                _beat("beat-daemon")
            os._exit(0)

    def program(w):
        code = "for i in range(80):\n open('beat-program', 'a').write('x')\n time.sleep(0.1)"
        subprocess.Popen([sys.executable, "-c", f"import time\n{code}"], start_new_session=True)

    def shell(w):
        loop = "i=0; while [ $i -lt 80 ]; do echo x >> beat-shell; sleep 0.1; i=$((i+1)); done"
        subprocess.Popen(f"(setsid nohup sh -c '{loop}' >/dev/null 2>&1 &)", shell=True).wait()

    def without_a_parent(w):
        LIBC.prctl(36, 1, 0, 0, 0)  # a reaper of its own
        if os.fork() == 0:
            os.setsid()
            LIBC.prctl(1, 0, 0, 0, 0)
            _beat("beat-orphan")


def _key(world, text):
    return any(
        hashlib.sha256(match.encode()).hexdigest() == world.sibling["key_digest"]
        for match in re.findall("[0-9a-f]{32}", text)
    )


def _beat(name):
    for _ in range(80):
        with open(name, "a") as file:
            file.write("x")
        time.sleep(0.1)
    os._exit(0)
