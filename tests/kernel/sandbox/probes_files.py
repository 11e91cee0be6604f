"""Probes of files: what lies outside the session's folder is neither read nor written, nor listed."""

import ctypes
import glob
import mmap
import os
import shutil
import socket
import subprocess
import tempfile

from tests.kernel.sandbox.inside import (
    LIBC,
    all_of,
    call,
    call32,
    descendants,
    device,
    first,
    found,
    low_text,
    remove_tree,
    same,
    writable,
)


class HomeFile:
    """Code reads a file in the user's home."""

    def opened(w):
        return open(w.secret).read()

    def opened_by_number(w):
        fd = call("openat", -100, w.secret.encode(), 0, 0)
        return os.read(fd, 200)

    def opened_by_openat2(w):
        return os.read(call("openat2", -100, w.secret.encode(), bytes(24), 24), 200)

    def by_the_c_library(w):
        LIBC.fopen.restype = ctypes.c_void_p
        file, text = LIBC.fopen(w.secret.encode(), b"r"), ctypes.create_string_buffer(200)
        return bool(file) and bool(LIBC.fgets(text, 200, ctypes.c_void_p(file))) and text.value

    def by_a_program(w):
        return subprocess.run(["cat", w.secret], capture_output=True, timeout=4).stdout

    def by_a_shell(w):
        return subprocess.run(f"cat < '{w.secret}'", shell=True, capture_output=True, timeout=4).stdout

    def through_the_root_of_a_process(w):
        pids = [w.keeper["pid"], w.host["pid"], *first(w), os.getppid(), "self", "thread-self"]
        return all_of(w, [lambda pid=pid: open(f"/proc/{pid}/root{w.secret}").read() for pid in pids])

    def through_the_folder_of_a_process(w):
        pids = [w.keeper["pid"], w.host["pid"], *first(w), os.getppid()]
        return all_of(w, [lambda pid=pid: open(f"/proc/{pid}/cwd/secret.txt").read() for pid in pids])

    def through_the_files_of_a_process(w):
        return open(f"/proc/{w.keeper['pid']}/fd/{w.keeper['fd']}").read()

    def through_dots(w):
        return open("../" * 30 + w.secret.lstrip("/")).read()

    def through_own_descriptors(w):
        fds = os.listdir("/proc/self/fd")
        return all_of(w, [lambda fd=fd: open(f"/proc/self/fd/{fd}/{'../' * 30}{w.secret[1:]}").read() for fd in fds])

    def through_folders_that_were_left_open(w):
        def read(fd):
            return os.read(os.open("../" * 30 + w.secret[1:], os.O_RDONLY, dir_fd=fd), 200)

        return all_of(w, [lambda fd=fd: read(fd) for fd in range(3, 256)])

    def through_a_symlink(w):
        os.symlink(w.secret, f"link-{w.nonce}")
        try:
            return open(f"link-{w.nonce}").read()
        finally:
            os.unlink(f"link-{w.nonce}")

    def through_a_hard_link(w):
        os.link(w.secret, f"hard-{w.nonce}")
        try:
            return open(f"hard-{w.nonce}").read()
        finally:
            os.unlink(f"hard-{w.nonce}")

    def mapped(w):
        with open(w.secret, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
            return bytes(view)

    def moved_here(w):
        os.rename(w.secret, f"moved-{w.nonce}")
        try:
            return open(f"moved-{w.nonce}").read()
        finally:
            os.rename(f"moved-{w.nonce}", w.secret)

    def copied(w):
        shutil.copy(w.secret, f"copy-{w.nonce}")
        return open(f"copy-{w.nonce}").read()

    def by_a_program_without_a_file(w):
        fd = call("memfd_create", b"cat", 0)
        os.write(fd, open(shutil.which("cat"), "rb").read())
        readable, writing = os.pipe()
        if os.fork() == 0:
            os.dup2(writing, 1)
            names = (ctypes.c_char_p * 3)(b"cat", w.secret.encode(), None)
            try:
                call("execveat", fd, b"", names, (ctypes.c_char_p * 1)(None), 0x1000)
            finally:
                os._exit(1)
        os.close(writing)
        return os.read(readable, 200)

    def through_the_32_bit_gate(w):
        where = low_text(w.secret.encode())
        fd = call32(5, where, 0, 0)
        call32(3, fd, where + 8192, 200)
        return ctypes.string_at(where + 8192, 200)

    def by_a_number_of_x32(w):
        fd = call("openat", -100, w.secret.encode(), 0, 0, number=0x40000000 + 257)
        return os.read(fd, 200)

    def by_handle(w):
        handle = ctypes.create_string_buffer(bytes.fromhex(w.handle))
        below = ["/", ".", "/usr", "/tmp", w.outside]

        def read(path):
            return os.read(call("open_by_handle_at", os.open(path, os.O_RDONLY), handle, 0), 200)

        return all_of(w, [lambda path=path: read(path) for path in below])


class SystemSecrets:
    """Code reads what only root may: the file of passwords (one byte, which is thrown away), the disk, the log."""

    def passwords(w):
        return len(open("/etc/shadow", "rb").read(1)) == 1

    def passwords_by_a_program(w):
        return subprocess.run(["head", "-c1", "/etc/shadow"], capture_output=True, timeout=4).stdout != b""

    def host_keys(w):
        return any(len(open(path, "rb").read(1)) == 1 for path in glob.glob("/etc/ssh/ssh_host_*_key"))

    def disk(w):
        disks = glob.glob("/dev/vd[a-z]") + glob.glob("/dev/sd[a-z]") + glob.glob("/dev/nvme?n?") + ["/dev/mem"]
        return all_of(w, [lambda one=one: device(one) for one in disks])

    def disk_by_a_node_of_ones_own(w):
        number = os.stat("/").st_dev
        os.mknod(f"disk-{w.nonce}", 0o60600, number)
        try:
            return device(f"disk-{w.nonce}")
        finally:
            os.unlink(f"disk-{w.nonce}")

    def kernel_log(w):
        return call("syslog", 3, ctypes.create_string_buffer(4096), 4096) > 0

    def kernel_log_by_device(w):
        return device("/dev/kmsg")

    def kernel_addresses(w):
        return any(line.split()[0].strip("0") for line in open("/proc/kallsyms").readlines()[:5])


class HomeListing:
    """Code learns what the user's home holds: names, sizes, whether a file is there."""

    def listed(w):
        return "secret.txt" in os.listdir(w.home)

    def listed_by_number(w):
        fd, text = os.open(w.home, os.O_RDONLY | os.O_DIRECTORY), ctypes.create_string_buffer(4096)
        length = call("getdents64", fd, text, 4096)
        return b"secret.txt" in text.raw[:length]

    def globbed(w):
        return bool(glob.glob(f"{w.home}/sec*"))

    def listed_by_a_program(w):
        return b"secret.txt" in subprocess.run(["ls", w.home], capture_output=True, timeout=4).stdout

    def measured(w):
        return os.stat(w.secret).st_size > 20

    def measured_by_statx(w):
        return call("statx", -100, w.secret.encode(), 0, 0x7FF, ctypes.create_string_buffer(256)) == 0

    def asked_for(w):
        return os.access(w.secret, os.F_OK)

    def gone_to(w):
        os.chdir(w.home)
        return same(w, os.getcwd()) if os.getcwd() in w.inodes else True

    def opened_as_a_path(w):
        return os.open(w.secret, os.O_PATH) > 0


class WriteOutside:
    """Code makes, changes or removes files outside its folder; the host looks whether it did."""

    def makes_a_file(w):
        open(f"{w.outside}/made-{w.nonce}", "w").write("x")

    def makes_a_file_in_the_home(w):
        open(f"{w.home}/made-{w.nonce}", "w").write("x")

    def appends(w):
        open(w.victim, "a").write("x")

    def truncates(w):
        os.truncate(w.victim, 3)

    def removes(w):
        os.unlink(f"{w.outside}/folder/inner.txt")

    def removes_a_tree(w):
        remove_tree(f"{w.outside}/folder", below=w.outside)

    def renames(w):
        os.rename(w.victim, w.victim + ".was")

    def makes_a_folder(w):
        os.mkdir(f"{w.outside}/dir-{w.nonce}")

    def makes_a_symlink(w):
        os.symlink(w.victim, f"{w.outside}/sym-{w.nonce}")

    def makes_a_hard_link(w):
        open(f"own-{w.nonce}", "w").write("x")
        os.link(f"own-{w.nonce}", f"{w.outside}/hard-{w.nonce}")

    def makes_a_pipe(w):
        os.mkfifo(f"{w.outside}/pipe-{w.nonce}")

    def makes_a_socket(w):
        socket.socket(socket.AF_UNIX).bind(f"{w.outside}/s-{w.nonce}")

    def by_a_program(w):
        subprocess.run(["sh", "-c", f"echo x > '{w.outside}/shell-{w.nonce}'"], capture_output=True, timeout=4)

    def through_the_root_of_a_process(w):
        open(f"/proc/{w.keeper['pid']}/root{w.outside}/root-{w.nonce}", "w").write("x")

    def through_the_folder_of_a_process(w):
        open(f"/proc/{w.keeper['pid']}/cwd/cwd-{w.nonce}", "w").write("x")

    def through_the_32_bit_gate(w):
        call32(5, low_text(f"{w.outside}/gate-{w.nonce}".encode()), 0o101, 0o600)

    def through_the_files_of_a_process(w):
        return open(f"/proc/{w.keeper['pid']}/fd/{w.keeper['fd']}", "r+").write("x") == 1

    def in_shared_memory(w):
        open(f"/dev/shm/tw-sandbox-made-{w.nonce}", "w").write("x")


class ChangeAttributes:
    """Code changes what is written about a file outside: mode, times, owner, marks. Landlock does not look at these."""

    def mode(w):
        os.chmod(w.victim, 0o777)

    def mode_by_descriptor(w):
        os.chmod(f"/proc/self/fd/{os.open(w.victim, os.O_PATH)}", 0o777)

    def mode_of_a_folder(w):
        os.chmod(w.home, 0o777)

    def times(w):
        os.utime(w.victim, (1, 1))

    def owner(w):
        os.chown(w.victim, 65534, 65534)

    def marks(w):
        os.setxattr(w.victim, b"user.tw", b"x")

    def by_a_program(w):
        subprocess.run(["chmod", "777", w.victim], capture_output=True, timeout=4)

    def through_the_32_bit_gate(w):
        call32(15, low_text(w.victim.encode()), 0o666)


class WriteSystem:
    """Code can make files where the system or the interpreter keeps its own; they have no name and don't stay."""

    def system(w):
        return all_of(
            w, [lambda one=one: writable(w, one) for one in ("/etc", "/usr", "/usr/lib", "/usr/local", "/var")]
        )

    def timetable(w):
        return writable(w, "/etc/cron.d")

    def root(w):
        return writable(w, "/")

    def run(w):
        return writable(w, "/run")

    def home(w):
        return writable(w, os.path.dirname(w.home))

    def interpreter(w):
        return writable(w, w.prefix)

    def packages(w):
        return writable(w, w.packages)

    def anything_that_is_imported_from(w):
        paths = [path for path in w.imports if path in w.inodes]
        return all_of(w, [lambda path=path: writable(w, path) for path in paths])

    def folders_for_anybody(w):
        return all_of(w, [lambda one=one: writable(w, one) for one in ("/tmp", "/var/tmp", "/dev/shm")])

    def devices(w):
        return writable(w, "/dev")


class OtherSession:
    """Code reads or writes the folder of another session."""

    def reads(w):
        return open(w.sibling["file"]).read()

    def lists(w):
        return os.path.basename(w.sibling["file"]) in os.listdir(w.sibling["folder"])

    def finds(w):
        beside = os.path.dirname(w.sibling["folder"])
        return all_of(
            w, [lambda p=p: open(p).read() for p in glob.glob(f"{beside}/*/{os.path.basename(w.sibling['file'])}")]
        )

    def writes(w):
        open(f"{w.sibling['folder']}/reached-{w.nonce}", "w").write("x")

    def through_its_process(w):
        return open(f"/proc/{w.sibling['pid']}/cwd/{os.path.basename(w.sibling['file'])}").read()

    def through_its_process_writes(w):
        open(f"/proc/{w.sibling['pid']}/cwd/reached-{w.nonce}", "w").write("x")

    def through_all_processes(w):
        name = os.path.basename(w.sibling["file"])
        own = descendants(os.getpid()) | {os.getpid()}
        pids = [one for one in os.listdir("/proc") if one.isdigit() and int(one) not in own]
        return all_of(w, [lambda pid=pid: open(f"/proc/{pid}/cwd/{name}").read() for pid in pids])


class SharedFolders:
    """Code writes where another session's kernel looks for its settings: caches, profiles, temporary files."""

    def writes(w):
        return all_of(w, [lambda path=path: writable(w, path) for path in w.sibling["paths"].values()])

    def own_ones_are_the_same(w):
        names = [os.environ.get(name) for name in w.sibling["paths"]]
        return all_of(w, [lambda path=path: writable(w, path) for path in names if path in w.inodes])

    def temporary(w):
        return writable(w, tempfile.gettempdir())


class SharedMemory:
    """Code reads or changes memory, queues and keys that another process of the user left in the system."""

    def file(w):
        return open(w.shm_file).read()

    def file_by_name(w):
        from multiprocessing import resource_tracker, shared_memory

        resource_tracker.register = lambda *_: None
        one = shared_memory.SharedMemory(name=w.shm_file.rsplit("/", 1)[1])
        text = bytes(one.buf)
        one.close()
        return text

    def listed(w):
        return os.path.basename(w.shm_file) in os.listdir("/dev/shm")

    def segment(w):
        LIBC.shmat.restype = ctypes.c_void_p
        where = LIBC.shmat(w.shm, None, 0)
        if where in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "shmat")
        text = ctypes.string_at(where, 60)
        ctypes.memset(where + 100, 88, 4)
        return text

    def segment_by_number(w):
        return ctypes.string_at(call("shmat", w.shm, None, 0x1000), 60)

    def segments_listed(w):
        return any(line.split()[1] == str(w.shm) for line in open("/proc/sysvipc/shm").readlines()[1:])

    def segments_listed_by_a_program(w):
        said = subprocess.run(["ipcs", "-m"], capture_output=True, timeout=4).stdout.split()
        return str(w.shm).encode() in said

    def message(w):
        text = ctypes.create_string_buffer(200)
        call("msgrcv", w.msg, text, 190, 0, 0o4000)
        return text.raw

    def posix_message(w):
        text = ctypes.create_string_buffer(8192)
        queue = call("mq_open", w.mq[1:].encode(), os.O_RDWR | os.O_NONBLOCK, 0, None)
        call("mq_timedreceive", queue, text, 8192, None, None)
        return text.raw

    def key(w):
        def read(keyring):
            key = call("keyctl", 10, keyring, b"user", w.key_name.encode(), 0)
            text = ctypes.create_string_buffer(200)
            call("keyctl", 11, key, text, 200)
            return text.raw

        return all_of(w, [lambda ring=ring: read(ring) for ring in (-3, -4, -5)])

    def key_by_number(w):
        call("keyctl", 8, -4, -2)  # the user's keyring into this process's
        text = ctypes.create_string_buffer(200)
        call("keyctl", 11, w.key, text, 200)
        return text.raw

    def keys_listed(w):
        return any(w.key_name in line for line in open("/proc/keys"))

    def key_through_the_32_bit_gate(w):
        where = low_text(b"")
        call32(288, 8, -4, -2)
        call32(288, 11, w.key, where, 200)
        return found(w, ctypes.string_at(where, 200))
