"""Probes of processes: those of the host and of other sessions are not seen, read, signalled or changed."""

import ctypes
import fcntl
import os
import pathlib
import resource
import signal
import socket
import subprocess
import time

from tests.kernel.sandbox.inside import LIBC, all_of, call, call32, descendants, first, found, targets, vector


class Environment:
    """Code reads the host's OPENAI_API_KEY."""

    def own(w):
        return "\n".join(f"{name}={value}" for name, value in os.environ.items())

    def at_the_start(w):
        return open("/proc/self/environ", "rb").read()

    def of_the_parent(w):
        return open(f"/proc/{os.getppid()}/environ", "rb").read()

    def of_known_processes(w):
        return all_of(w, [lambda pid=target["pid"]: open(f"/proc/{pid}/environ", "rb").read() for target in targets(w)])

    def of_all_processes(w):
        pids = {*descendants(w.host["pid"]), *first(w)}  # not what others run on this machine
        return all_of(w, [lambda pid=pid: open(f"/proc/{pid}/environ", "rb").read() for pid in pids])

    def of_threads(w):
        pid = w.keeper["pid"]
        return open(f"/proc/{pid}/task/{pid}/environ", "rb").read()

    def by_a_program(w):
        return subprocess.run(
            ["ps", "eww", "-p", f"{w.keeper['pid']},{w.host['pid']}"], capture_output=True, timeout=4
        ).stdout

    def by_a_shell(w):
        return subprocess.run(f"cat /proc/{w.keeper['pid']}/environ", shell=True, capture_output=True, timeout=4).stdout


class Memory:
    """Code reads the memory of the host, of another process or of another session."""

    def by_file(w):
        def read(one):
            with open(f"/proc/{one['pid']}/mem", "rb", 0) as file:
                file.seek(one["address"])
                return file.read(60)

        return all_of(w, [lambda one=target: read(one) for target in targets(w)])

    def by_number(w):
        def read(one):
            text = ctypes.create_string_buffer(60)
            here = vector(ctypes.addressof(text), 60)
            call("process_vm_readv", one["pid"], here, 1, vector(one["address"], 60), 1, 0)
            return text.raw

        return all_of(w, [lambda one=target: read(one) for target in targets(w)])

    def by_tracing(w):
        pid, address = w.keeper["pid"], w.keeper["address"]
        call("ptrace", 16, pid, 0, 0)  # attach
        try:
            os.waitpid(pid, 0x40000000)
            words = [ctypes.c_long() for _ in range(6)]
            for at, word in enumerate(words):
                call("ptrace", 1, pid, ctypes.c_void_p(address + 8 * at), ctypes.byref(word))
            return b"".join(bytes(word) for word in words)
        finally:
            call("ptrace", 17, pid, 0, 0)

    def by_seizing(w):
        call("ptrace", 0x4206, w.keeper["pid"], 0, 0)
        call("ptrace", 0x4207, w.keeper["pid"], 0, 0)
        return True

    def map_of_it(w):
        return all_of(w, [lambda pid=target["pid"]: bool(open(f"/proc/{pid}/maps").read(10)) for target in targets(w)])

    def by_a_file_of_a_thread(w):
        with open(f"/proc/{w.keeper['pid']}/task/{w.keeper['pid']}/mem", "rb", 0) as file:
            file.seek(w.keeper["address"])
            return file.read(60)

    def through_the_32_bit_gate(w):
        return call32(26, 16, w.keeper["pid"], 0) == 0 and call("ptrace", 17, w.keeper["pid"], 0, 0) == 0

    def written(w):
        with open(f"/proc/{w.keeper['pid']}/mem", "r+b", 0) as file:
            file.seek(w.keeper["address"])
            return found(w, file.read(60))


class FdCapture:
    """Code takes open files from other processes, or finds them left open in its own."""

    def taken(w):
        def take(one, fd):
            pidfd = call("pidfd_open", one["pid"], 0)
            fd = call("pidfd_getfd", pidfd, fd, 0)
            os.lseek(fd, 0, 0)
            return os.read(fd, 60)

        return take(w.keeper, w.keeper["fd"])

    def reopened(w):
        return open(f"/proc/{w.keeper['pid']}/fd/{w.keeper['fd']}", "rb").read()

    def left_open(w):
        inherited = []
        for name in os.listdir("/proc/self/fd"):
            try:
                where = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue
            if where in w.inodes or where.startswith((w.home, w.outside, w.sibling.get("folder", w.home) + "/")):
                inherited.append(where)
        return bool([one for one in inherited if one not in ("/dev", os.getcwd())])

    def compared(w):
        return call("kcmp", os.getpid(), w.keeper["pid"], 0, 1, 1) >= 0


class Seen:
    """Code learns which other processes there are and what they were started with."""

    def listed(w):
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
        marks = []
        for pid in pids:
            try:
                marks.append(w.nonce.encode() in open(f"/proc/{pid}/cmdline", "rb").read())
            except OSError:
                continue
        return any(marks)

    def asked_for(w):
        return f"keeper-{w.nonce}".encode() in open(f"/proc/{w.keeper['pid']}/cmdline", "rb").read()

    def by_a_program(w):
        return f"keeper-{w.nonce}".encode() in subprocess.run(["ps", "ax"], capture_output=True, timeout=4).stdout

    def programs(w):
        return os.readlink(f"/proc/{w.keeper['pid']}/exe") != ""

    def status(w):
        return "Name:" in open(f"/proc/{w.keeper['pid']}/status").read()


class Signals:
    """Code signals the host's processes or another session's; the host looks whether one came."""

    def by_kill(w):
        for pid in (w.keeper["pid"], w.sibling.get("pid", w.keeper["pid"])):
            os.kill(pid, signal.SIGURG)

    def by_number(w):
        call("kill", w.keeper["pid"], int(signal.SIGURG))

    def by_thread(w):
        call("tgkill", w.keeper["pid"], w.keeper["pid"], int(signal.SIGURG))

    def by_thread_alone(w):
        call("tkill", w.keeper["pid"], int(signal.SIGURG))

    def by_queue(w):
        info = ctypes.create_string_buffer(128)
        ctypes.memmove(info, (ctypes.c_int * 3)(int(signal.SIGURG), 0, -1), 12)
        call("rt_sigqueueinfo", w.keeper["pid"], int(signal.SIGURG), info)

    def by_descriptor(w):
        call("pidfd_send_signal", call("pidfd_open", w.keeper["pid"], 0), int(signal.SIGURG), None, 0)

    def by_a_folder_of_proc(w):
        call("pidfd_send_signal", os.open(f"/proc/{w.keeper['pid']}", os.O_RDONLY), int(signal.SIGURG), None, 0)

    def by_a_program(w):
        subprocess.run(["kill", "-URG", str(w.keeper["pid"])], capture_output=True, timeout=4)

    def by_a_file_that_reports(w):
        readable, writing = os.pipe()
        fcntl.fcntl(readable, fcntl.F_SETOWN, w.keeper["pid"])
        fcntl.fcntl(readable, fcntl.F_SETSIG, int(signal.SIGURG))
        fcntl.fcntl(readable, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(writing, b"x")

    def by_a_socket_that_reports(w):
        one, other = socket.socketpair()
        fcntl.fcntl(one, fcntl.F_SETOWN, w.keeper["pid"])
        fcntl.fcntl(one, fcntl.F_SETSIG, int(signal.SIGURG))
        fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        other.send(b"x")

    def through_the_32_bit_gate(w):
        call32(37, w.keeper["pid"], int(signal.SIGURG))

    def to_the_other_session(w):
        os.kill(w.sibling["pid"], signal.SIGUSR2)

    def to_the_host_itself(w):
        os.kill(w.host["pid"], 0)
        return os.readlink(f"/proc/{w.host['pid']}/ns/pid") == f"pid:[{w.namespaces['pid'][1]}]"


class ChangeProcess:
    """Code changes how another process is run: its limits, processors, order, how soon it is killed for memory."""

    def limits(w):
        resource.prlimit(w.keeper["pid"], resource.RLIMIT_NOFILE, (100, 100))

    def limits_of_the_supervisor(w):
        kernel = pathlib.Path(f"/proc/{os.getppid()}/status").read_text()  # each way is tried in a child of it
        resource.prlimit(int(kernel.partition("PPid:")[2].split()[0]), resource.RLIMIT_NOFILE, (3, 3))

    def memory_of_the_supervisor(w):
        kernel = pathlib.Path(f"/proc/{os.getppid()}/status").read_text()
        supervisor = kernel.partition("PPid:")[2].split()[0]
        open(f"/proc/{supervisor}/mem", "r+b").close()

    def processors(w):
        os.sched_setaffinity(w.keeper["pid"], {min(os.sched_getaffinity(0))})

    def order(w):
        os.setpriority(os.PRIO_PROCESS, w.keeper["pid"], 15)

    def order_of_all(w):
        os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0))
        here = os.stat("/proc/self/ns/pid")
        return [here.st_dev, here.st_ino] == w.namespaces["pid"]

    def turn_on_the_disk(w):
        call("ioprio_set", 1, w.keeper["pid"], 3 << 13)  # when nobody else wants it
        return call("ioprio_get", 1, w.keeper["pid"]) == 3 << 13

    def turns_of_all_on_the_disk(w):
        call("ioprio_set", 3, os.getuid(), 0)
        here = os.stat("/proc/self/ns/pid")
        return [here.st_dev, here.st_ino] == w.namespaces["pid"]

    def badness(w):
        open(f"/proc/{w.keeper['pid']}/oom_score_adj", "w").write("500")

    def order_by_a_program(w):
        subprocess.run(["renice", "-n", "16", "-p", str(w.keeper["pid"])], capture_output=True, timeout=4)


class Privileges:
    """Code holds rights that an ordinary program of this user would not have, or gets them by a program."""

    def powers(w):
        lines = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
        here = os.stat("/proc/self/ns/user")
        return int(lines["CapEff"], 16) != 0 and [here.st_dev, here.st_ino] == w.namespaces["user"]

    def new_ones_allowed(w):
        return LIBC.prctl(39, 0, 0, 0, 0) == 0

    def becomes_root(w):
        here = os.stat("/proc/self/ns/user")
        os.setresuid(0, 0, 0)
        return [here.st_dev, here.st_ino] == w.namespaces["user"]

    def by_a_program_of_another(w):
        said = subprocess.run([f"{w.outside}/as-other", "-u"], capture_output=True, timeout=4).stdout
        return b"65534" in said

    def by_a_program_of_roots(w):
        child = subprocess.Popen(["su"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            time.sleep(0.2)
            ids = next(line for line in open(f"/proc/{child.pid}/status") if line.startswith("Uid:")).split()
            return ids[1] != "0" and ids[2] == "0"
        finally:
            child.kill()

    def more_badly_wanted(w):
        with open("/proc/self/oom_score_adj", "r+") as file:
            file.write("-500")
        return int(open("/proc/self/oom_score_adj").read()) == -500

    def first_in_line(w):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
        return os.getpriority(os.PRIO_PROCESS, 0) == -10

    def in_real_time(w):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return True

    def higher_limits(w):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most + 1))
        return True
