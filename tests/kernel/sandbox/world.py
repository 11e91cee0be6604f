"""What is planted in the host for probes to reach: files, processes, listeners, keys; and what became of it."""

import contextlib
import ctypes
import hashlib
import os
import pty
import re
import resource
import secrets
import select
import shutil
import site
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import tty
from pathlib import Path

from tests.kernel.sandbox.inside import call, libc

SECRET = f"tw-secret-{secrets.token_hex(16)}"
"""The one thing that no cell may get at; cells are told its digest."""

_KEEPER = """
import ctypes, os, signal, sys, tempfile
secret = os.environ["OPENAI_API_KEY"].encode()
buffer = ctypes.create_string_buffer(secret)
file = tempfile.TemporaryFile()
file.write(secret)
file.flush()
for one in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGIO, signal.SIGURG, signal.SIGTERM, signal.SIGINT):
    signal.signal(one, lambda *_: os.write(1, b"signalled "))
os.write(1, b"%d %d\\n" % (ctypes.addressof(buffer), file.fileno()))
while os.read(0, 1):
    pass
"""


class World:
    """A host with things in it that are ours to lose; use as a context manager.

    Args:
        sibling: Facts about another session's kernel: folder, file, pid, runtime.
    """

    def __init__(self, sibling=None):
        self._stack = contextlib.ExitStack()
        self.nonce = secrets.token_hex(6)
        self.sibling = sibling or {}
        self.heard = {}
        self._sockets = {}

    def __enter__(self):
        try:
            self._plant()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error):
        self._stack.close()

    def facts(self):
        """Give what a cell is told, as plain values; the secret is not among them."""
        keeper = {"pid": self.keeper.pid, "address": self._address, "fd": self._fd}
        return {
            "nonce": self.nonce,
            "digest": hashlib.sha256(SECRET.encode()).hexdigest(),
            "home": str(self.home),
            "outside": str(self.outside),
            "secret": str(self.home / "secret.txt"),
            "victim": str(self.outside / "victim.txt"),
            "keeper": keeper,
            "host": {"pid": os.getpid(), "address": ctypes.addressof(self._buffer)},
            "tcp": self._sockets["tcp"].getsockname()[1],
            "udp": self._sockets["udp"].getsockname()[1],
            "unix": str(self.outside / "listener"),
            "log": str(self.outside / "log"),
            "abstract": f"tw-sandbox-{self.nonce}",
            "inodes": self._inodes(),
            "namespaces": {one: _inode(f"/proc/self/ns/{one}") for one in ("user", "mnt", "pid", "net", "ipc", "uts")},
            "interfaces": sorted(name for _, name in socket.if_nameindex()),
            "hostname": socket.gethostname(),
            "imports": _imports(),
            "core_pattern": Path("/proc/sys/kernel/core_pattern").read_text(),
            "watches": int(Path("/proc/sys/fs/inotify/max_user_instances").read_text()),
            "prefix": sys.prefix,
            "packages": sysconfig.get_path("purelib"),
            "sibling": self.sibling,
            **self._shared,
        }

    def seen(self):
        """Give in words what happened to the planted things since they were planted."""
        words = []
        self._listen()
        for name, data in self.heard.items():
            ways = re.findall(f"{self.nonce}:(\\w+);".encode(), data)
            words += [f"{name} heard {way.decode()}" for way in dict.fromkeys(ways)]
        words += [f"changed: {difference}" for difference in _differences(self._files, self._snapshot())]
        words += self._about_keeper()
        words += self._about_shared()
        shm = Path("/dev/shm")
        if shm.is_dir():
            words += [f"made: {path}" for path in shm.iterdir() if path.name == f"tw-sandbox-made-{self.nonce}"]
            Path(shm, f"tw-sandbox-made-{self.nonce}").unlink(missing_ok=True)
        marker = self.sibling.get("folder") and Path(self.sibling["folder"], f"reached-{self.nonce}")
        if marker and marker.exists():
            words.append("the other session did as told")
        return words

    def grown(self):
        """Give by how many bytes this process's memory grew at its height."""
        return _memory("VmHWM") - self._memory_was

    # Planting.

    def _plant(self):
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the most memory that was used is counted from here
        self._memory_was = _memory("VmRSS")
        self._buffer = ctypes.create_string_buffer(SECRET.encode())
        self.home = Path(tempfile.mkdtemp(prefix=".tw-sandbox-", dir=_home()))
        self._stack.callback(shutil.rmtree, self.home, ignore_errors=True)
        self.outside = Path(tempfile.mkdtemp(prefix="tw-sandbox-"))
        self._stack.callback(shutil.rmtree, self.outside, ignore_errors=True)
        self._plant_files()
        self._listeners()
        self._shared = {**self._plant_ipc(), **self._plant_terminal(), **self._plant_key(), **self._handle()}
        self._start_keeper()
        self._files = self._snapshot()

    def _plant_files(self):
        (self.home / ".ssh").mkdir()
        (self.home / ".aws").mkdir()
        for name in ("secret.txt", ".ssh/id_ed25519", ".aws/credentials", ".netrc"):
            (self.home / name).write_text(SECRET)
        (self.home / ".bashrc").write_text("# planted\n")
        (self.outside / "victim.txt").write_text("planted\n")
        (self.outside / "folder").mkdir()
        (self.outside / "folder" / "inner.txt").write_text("planted\n")
        if os.geteuid() == 0 and Path("/usr/bin/id").exists():  # a program that runs as somebody else
            shutil.copy("/usr/bin/id", self.outside / "as-other")
            os.chown(self.outside / "as-other", 65534, 65534)
            (self.outside / "as-other").chmod(0o4755)

    def _listeners(self):
        for name, kind, address in (
            ("tcp", socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("udp", socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("unix", socket.SOCK_STREAM, str(self.outside / "listener")),
            ("log", socket.SOCK_DGRAM, str(self.outside / "log")),
            ("abstract", socket.SOCK_STREAM, f"\0tw-sandbox-{self.nonce}"),
        ):
            family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
            one = self._stack.enter_context(socket.socket(family, kind))
            one.bind(address)
            if isinstance(address, str) and not address.startswith("\0"):
                os.chmod(address, 0o777)  # as a system's log has it
            one.setblocking(False)
            if kind == socket.SOCK_STREAM:
                one.listen(16)
            self._sockets[name] = one

    def _start_keeper(self):
        environment = {"OPENAI_API_KEY": SECRET, "TW_KEEPER": self.nonce}
        self.keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _KEEPER, f"keeper-{self.nonce}"],
            env=environment, cwd=self.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._stack.callback(self._stop_keeper)
        self._address, self._fd = map(int, self.keeper.stdout.readline().split())
        os.set_blocking(self.keeper.stdout.fileno(), False)
        self._keeper_was = _traits(self.keeper.pid)

    def _stop_keeper(self):
        self.keeper.kill()
        self.keeper.wait()
        self.keeper.stdin.close()
        self.keeper.stdout.close()

    def _plant_ipc(self):
        shared = {"shm_file": f"/dev/shm/tw-sandbox-{self.nonce}"}
        if Path("/dev/shm").is_dir():
            Path(shared["shm_file"]).write_text(SECRET)
            self._stack.callback(Path(shared["shm_file"]).unlink, missing_ok=True)
        with contextlib.suppress(OSError):
            shared["shm"] = libc("shmget", 0, ctypes.c_size_t(4096), 0o1600)
            self._stack.callback(libc, "shmctl", shared["shm"], 0, None)
            ctypes.CDLL(None).shmat.restype = ctypes.c_void_p
            attach = ctypes.CDLL(None)
            attach.shmat.restype = ctypes.c_void_p
            self._segment = attach.shmat(shared["shm"], None, 0)
            self._stack.callback(attach.shmdt, ctypes.c_void_p(self._segment))
            ctypes.memmove(self._segment, SECRET.encode(), len(SECRET))
        with contextlib.suppress(OSError):
            shared["msg"] = libc("msgget", 0, 0o1600)
            self._stack.callback(libc, "msgctl", shared["msg"], 0, None)
            text = ctypes.create_string_buffer((1).to_bytes(8, sys.byteorder) + SECRET.encode())
            libc("msgsnd", shared["msg"], text, ctypes.c_size_t(len(SECRET)), 0)
        with contextlib.suppress(OSError, AttributeError):
            name = f"/tw-sandbox-{self.nonce}"
            queue = libc("mq_open", name.encode(), os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o600, None)
            self._stack.callback(libc, "mq_unlink", name.encode())
            self._stack.callback(os.close, queue)
            libc("mq_send", queue, SECRET.encode(), ctypes.c_size_t(len(SECRET)), 0)
            shared["mq"] = name
        return shared

    def _plant_terminal(self):
        self._master = self._slave = None
        with contextlib.suppress(OSError):
            self._master, self._slave = pty.openpty()
            self._stack.callback(os.close, self._slave)
            self._stack.callback(os.close, self._master)
            tty.setraw(self._slave)
            return {"terminal": os.ttyname(self._slave)}
        return {}

    def _plant_key(self):
        with contextlib.suppress(OSError):
            name = f"tw-sandbox-{self.nonce}".encode()
            key = call("add_key", b"user", name, SECRET.encode(), len(SECRET), -4)  # the user's keyring
            self._stack.callback(_quietly, lambda: call("keyctl", 21, key))  # invalidate
            call("keyctl", 5, key, 0x3F3F0000)  # for this user, too
            return {"key": key, "key_name": name.decode()}
        return {}

    def _handle(self):
        with contextlib.suppress(OSError):
            buffer = ctypes.create_string_buffer(136)
            ctypes.c_uint.from_buffer(buffer).value = 128
            mount = ctypes.c_int()
            path = str(self.home / "secret.txt").encode()
            call("name_to_handle_at", -100, path, buffer, ctypes.byref(mount), 0)
            return {"handle": buffer.raw[: 8 + ctypes.c_uint.from_buffer(buffer).value].hex()}
        return {}

    def _inodes(self):
        paths = ["/", "/etc", "/usr", "/usr/lib", "/var/tmp", "/tmp", "/dev/shm", "/opt", "/usr/local", "/var", "/run",
                 str(_home()), sys.prefix, sys.base_prefix, sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"),
                 site.getusersitepackages(), str(self.home), str(self.outside), "/etc/cron.d",
                 "/dev", *self.sibling.get("paths", {}).values(), *_imports()]  # fmt: skip
        return {path: _inode(path) for path in dict.fromkeys(paths) if os.path.exists(path)}

    # What became of it.

    def _listen(self):
        for name, one in self._sockets.items():
            with contextlib.suppress(OSError):
                while True:
                    if one.type == socket.SOCK_DGRAM:
                        data = one.recv(4096)
                    else:
                        peer = one.accept()[0]
                        with peer:
                            peer.settimeout(0.5)
                            data = peer.recv(4096)
                    self.heard[name] = self.heard.get(name, b"") + data

    def _about_keeper(self):
        if self.keeper.poll() is not None:
            return ["the keeper ended"]
        words = []
        with contextlib.suppress(OSError):
            while select.select([self.keeper.stdout], [], [], 0.02)[0]:
                if not os.read(self.keeper.stdout.fileno(), 4096):
                    break
                words = ["the keeper was signalled"]
        now = _traits(self.keeper.pid)
        return words + [f"the keeper's {name} changed" for name, was in self._keeper_was.items() if now[name] != was]

    def _about_shared(self):
        words = []
        if self._slave is not None:
            with contextlib.suppress(OSError):
                for end, what in ((self._slave, "typed into"), (self._master, "shown on")):
                    while select.select([end], [], [], 0)[0]:
                        if self.nonce.encode() in os.read(end, 4096):
                            words.append(f"{what} the terminal")
        if "shm" in self._shared and ctypes.string_at(self._segment, 200) != SECRET.encode().ljust(200, b"\0"):
            words.append("changed: shared memory")
        return words

    def _snapshot(self):
        return {str(path): _print(path) for root in (self.home, self.outside) for path in [root, *root.rglob("*")]}


def _home():
    home = Path.home()
    return home if os.access(home, os.W_OK) else Path(tempfile.gettempdir())


def _imports():
    """Give the folders of this interpreter and this project from which Python imports."""
    ours = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))
    return [path for path in sys.path if path.startswith(ours) and os.path.isdir(path)]


def _inode(path):
    status = os.stat(path)
    return [status.st_dev, status.st_ino]


def _print(path):
    status = path.lstat()
    plain = stat.S_ISREG(status.st_mode)
    return (
        status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_mtime_ns,
        os.listxattr(path, follow_symlinks=False), path.read_bytes() if plain else None,
    )  # fmt: skip


def _differences(before, after):
    changed = [path for path, state in after.items() if path in before and before[path] != state]
    return [
        *sorted(changed),
        *(f"+{key}" for key in after.keys() - before),
        *(f"-{key}" for key in before.keys() - after),
    ]


def _traits(pid):
    with open(f"/proc/{pid}/oom_score_adj") as file:
        badness = file.read()
    return {
        "niceness": os.getpriority(os.PRIO_PROCESS, pid),
        "processors": os.sched_getaffinity(pid),
        "limits": resource.prlimit(pid, resource.RLIMIT_NOFILE),
        "badness": badness,
    }


def _memory(which):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(which))


def _quietly(function):
    with contextlib.suppress(OSError):
        function()
