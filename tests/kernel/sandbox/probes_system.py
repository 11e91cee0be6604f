"""Probes of the system's own gates: new namespaces, mounts, and calls that widen what can be attacked."""

import ctypes
import os
import resource
import signal
import struct
import subprocess

from tests.kernel.sandbox.inside import (
    LIBC,
    all_of,
    call,
    call32,
    device,
    first,
    found,
    low_text,
    not_for_lack_of_rights,
    own_namespace,
    remove_tree,
)


class Namespaces:
    """Code becomes root of a namespace of its own, from where many faults of the system can be reached."""

    def unshares(w):
        libc = LIBC.unshare(0x10000000)
        return libc == 0

    def unshares_by_number(w):
        return call("unshare", 0x10000000) == 0

    def others(w):
        flags = [0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000, 0x00000080]
        return all_of(w, [lambda one=flag: call("unshare", one) == 0 for flag in flags])

    def clones(w):
        child = call("clone", 0x10000000 | int(signal.SIGCHLD), 0, 0, 0, 0)
        if child == 0:
            LIBC._exit(0)
        return child > 0

    def clones_the_new_way(w):
        arguments = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, int(signal.SIGCHLD))
        child = call("clone3", arguments, 88)
        if child == 0:
            LIBC._exit(0)
        return child > 0

    def by_a_program(w):
        return subprocess.run(["unshare", "-U", "true"], capture_output=True, timeout=4).returncode == 0

    def enters_the_hosts(w):
        return call("setns", os.open(f"/proc/{w.keeper['pid']}/ns/mnt", os.O_RDONLY), 0) == 0

    def enters_by_descriptor(w):
        return call("setns", call("pidfd_open", w.keeper["pid"], 0), 0x00020000) == 0

    def through_the_32_bit_gate(w):
        return call32(310, 0x10000000) == 0


class Mounts:
    """Code mounts something, or takes away what covers the host's files."""

    def mounts(w):
        if LIBC.unshare(0x00020000) == 0:  # so that a success stays in this child
            LIBC.mount(None, b"/", None, ctypes.c_ulong(0x44000), None)
        os.makedirs(f"mount-{w.nonce}")
        try:
            call("mount", b"none", f"mount-{w.nonce}".encode(), b"tmpfs", 0, None)
            call("umount2", f"mount-{w.nonce}".encode(), 2)
            return True
        finally:
            os.rmdir(f"mount-{w.nonce}")

    def in_a_namespace_of_its_own(w):
        own_namespace()
        os.makedirs(f"own-{w.nonce}")
        try:
            return call("mount", b"none", f"own-{w.nonce}".encode(), b"tmpfs", 0, None) == 0
        finally:
            call("umount2", f"own-{w.nonce}".encode(), 2)
            os.rmdir(f"own-{w.nonce}")

    def the_new_way(w):
        return call("fsopen", b"tmpfs", 0) > 0

    def takes_a_tree(w):
        tree = call("open_tree", -100, b"/", 1)
        return tree > 0 and found(w, os.read(os.open(w.secret[1:], os.O_RDONLY, dir_fd=tree), 99))

    def uncovers(w):
        own_namespace()
        for path in (b"/root", b"/home", b"/tmp", b"/proc", b"/etc", b"/"):
            LIBC.umount2(path, 2)
        return open(w.secret).read()

    def turns_the_root(w):
        own_namespace()
        os.makedirs(f"root-{w.nonce}", exist_ok=True)
        try:
            call("mount", b"none", f"root-{w.nonce}".encode(), b"tmpfs", 0, None)
            os.makedirs(f"root-{w.nonce}/old")
            return call("pivot_root", f"root-{w.nonce}".encode(), f"root-{w.nonce}/old".encode()) == 0
        finally:
            LIBC.umount2(f"root-{w.nonce}".encode(), 2)
            LIBC.rmdir(f"root-{w.nonce}".encode())


class Chroot:
    """Code climbs out of its root by changing it: a second root, then up beyond it."""

    def climbs(w):
        os.makedirs(f"cell-{w.nonce}", exist_ok=True)
        try:
            os.chroot(f"cell-{w.nonce}")
            for _ in range(40):
                os.chdir("..")
            os.chroot(".")
            return open(w.secret).read()
        finally:
            LIBC.rmdir(f"cell-{w.nonce}".encode())

    def climbs_by_descriptor(w):
        above = os.open("/", os.O_RDONLY)
        os.makedirs(f"deep-{w.nonce}", exist_ok=True)
        try:
            os.chroot(f"deep-{w.nonce}")
            os.fchdir(above)
            for _ in range(40):
                os.chdir("..")
            os.chroot(".")
            return open(w.secret).read()
        finally:
            LIBC.rmdir(f"deep-{w.nonce}".encode())

    def through_the_first_process(w):
        os.chroot(f"/proc/{[os.getppid(), *first(w)][-1]}/root")
        return open(w.secret).read()

    def through_the_keeper(w):
        os.chroot(f"/proc/{w.keeper['pid']}/root")
        return open(w.secret).read()


class RareCalls:
    """Code makes system calls that data work never needs and in which faults are found again and again."""

    def io_uring(w):
        return call("io_uring_setup", 4, ctypes.create_string_buffer(120)) > 0

    def io_uring_through_the_32_bit_gate(w):
        return call32(425, 4, low_text(b"")) > 0

    def userfaultfd(w):
        return call("userfaultfd", 1) > 0

    def userfaultfd_by_device(w):
        return device("/dev/userfaultfd")

    def bpf_map(w):
        return call("bpf", 0, struct.pack("=IIIII", 2, 4, 4, 1, 0) + bytes(100), 120) > 0

    def bpf_program(w):
        code = ctypes.create_string_buffer(bytes.fromhex("b7000000000000009500000000000000"))
        terms = ctypes.create_string_buffer(b"GPL")
        attributes = struct.pack("=IIQQ", 1, 2, ctypes.addressof(code), ctypes.addressof(terms)) + bytes(96)
        return call("bpf", 5, attributes, 120) > 0

    def perf(w):
        attributes = struct.pack("=IIQ", 1, 128, 1).ljust(40, b"\0") + struct.pack("=Q", 0x61) + bytes(80)
        return call("perf_event_open", attributes, 0, -1, -1, 0) > 0

    def keys(w):
        return call("add_key", b"user", f"own-{w.nonce}".encode(), b"x", 1, -1) > 0

    def key_rings(w):
        return call("keyctl", 1, None) > 0

    def watches_the_system(w):
        return call("fanotify_init", 0, 0) > 0

    def tracing(w):
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            return call("ptrace", 0x4206, child, 0, 0) == 0
        finally:
            os.kill(child, signal.SIGKILL)

    def old_segments(w):
        return call("modify_ldt", 0, ctypes.create_string_buffer(64), 64) >= 0

    def later_ones(w):
        def known(number):  # with arguments that do nothing
            try:
                call("later", -1, 0, 0, 0, 0, 0, number=number)
            except OSError as error:
                return error.errno not in (1, 38)
            return True

        return all_of(w, [lambda one=one: known(one) for one in (463, 464, 465, 466, *range(467, 500))])

    def asynchronous(w):
        return call("io_setup", 1, ctypes.create_string_buffer(8)) == 0

    def keeps_pages(w):
        _readable, writing = os.pipe()
        text = ctypes.create_string_buffer(b"x", 4096)
        return call("vmsplice", writing, (ctypes.c_size_t * 2)(ctypes.addressof(text), 4096), 1, 0) > 0

    def mounts_listed(w):
        return all_of(
            w,
            [
                lambda one=one: not_for_lack_of_rights(lambda: call(one, 0, 0, 0, 0))
                for one in ("statmount", "listmount")
            ],
        )

    def devices(w):
        names = [
            "kvm",
            "fuse",
            "loop-control",
            "net/tun",
            "vhost-net",
            "vsock",
            "mem",
            "port",
            "uinput",
            "zram0",
            "dri",
        ]
        return all_of(w, [lambda one=name: device(f"/dev/{one}") for name in names])

    def the_32_bit_gate(w):
        return call32(20) > 0


class SystemSettings:
    """Code sets what holds for the whole machine. Files are opened for writing and not written to."""

    def settings(w):
        names = [
            "kernel/core_pattern",
            "kernel/modprobe",
            "vm/drop_caches",
            "kernel/sysrq",
            "fs/file-max",
            "vm/swappiness",
        ]
        return all_of(w, [lambda one=name: os.open(f"/proc/sys/{one}", os.O_WRONLY) > 0 for name in names])

    def sysrq(w):
        return os.open("/proc/sysrq-trigger", os.O_WRONLY) > 0

    def programs_run_by_the_system(w):
        names = ["/sys/kernel/uevent_helper", "/proc/sys/kernel/hotplug", "/sys/kernel/mm/transparent_hugepage/enabled"]
        return all_of(w, [lambda one=name: os.open(one, os.O_WRONLY) > 0 for name in names])

    def modules(w):
        return not_for_lack_of_rights(lambda: call("init_module", 0, 0, b""))

    def restart(w):
        return not_for_lack_of_rights(lambda: call("reboot", 1, 2, 3, None))  # not the magic numbers: nothing happens

    def swap(w):
        return not_for_lack_of_rights(lambda: call("swapon", f"none-{w.nonce}".encode(), 0))

    def ports(w):
        return call("iopl", 3) == 0

    def host_name(w):
        here = os.stat("/proc/self/ns/uts")
        name = os.uname().nodename.encode()
        LIBC.sethostname.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        ours = [here.st_dev, here.st_ino] == w.namespaces["uts"]
        return ours and LIBC.sethostname(name, len(name)) == 0  # what it is called already


class CoreDump:
    """Code leaves an image of its memory where the system puts them, or has a program of the host's take it."""

    def core(w):
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if w.core_pattern.startswith("|"):
            return LIBC.prctl(3, 0, 0, 0, 0) == 1
        os.makedirs(f"core-{w.nonce}")
        os.chdir(f"core-{w.nonce}")
        try:
            child = os.fork()
            if child == 0:
                os.kill(os.getpid(), signal.SIGSEGV)
            _, status = os.waitpid(child, 0)
            return os.WCOREDUMP(status)
        finally:
            os.chdir("..")
            remove_tree(os.path.abspath(f"core-{w.nonce}"), below=os.getcwd())
