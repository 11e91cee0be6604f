"""What every probe finds in its cell: system calls by number, and a runner that tries each way in a process of its own.

The text of this module is sent into the kernel in front of a probe's class; the standard library is all it needs.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import re
import select
import shutil
import signal
import stat
import time
from types import FunctionType, SimpleNamespace

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
ARM = platform.machine() == "aarch64"
NUMBERS = {  # x86_64, aarch64
    "open_by_handle_at": (304, 265), "execveat": (322, 281), "memfd_create": (319, 279), "io_uring_setup": (425, 425),
    "unshare": (272, 97), "clone": (56, 220), "clone3": (435, 435), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "fsopen": (430, 430), "open_tree": (428, 428),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "kill": (62, 129), "tgkill": (234, 131), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "keyctl": (250, 219), "add_key": (248, 217), "userfaultfd": (323, 282),
    "bpf": (321, 280), "perf_event_open": (298, 241), "openat": (257, 56), "openat2": (437, 437), "kcmp": (312, 272),
    "syslog": (103, 116), "reboot": (169, 142), "init_module": (175, 105), "swapon": (167, 224),
    "fanotify_init": (300, 262), "getdents64": (217, 61), "name_to_handle_at": (303, 264), "mq_open": (240, 180),
    "mq_timedreceive": (243, 183), "shmat": (30, 196), "msgrcv": (70, 188), "iopl": (172, -1),
    "modify_ldt": (154, -1), "statx": (332, 291), "ioprio_set": (251, 30), "ioprio_get": (252, 31),
    "io_setup": (206, 0), "vmsplice": (278, 75), "statmount": (457, 457), "listmount": (458, 458),
}  # fmt: skip
SECRET = re.compile(rb"tw-secret-[0-9a-f]{32}")


def call(name, *arguments, number=None):
    """Make a system call by its number; give what it returns, raise OSError where that is an error."""
    number = NUMBERS[name][ARM] if number is None else number
    plain = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *plain)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return result


def libc(name, *arguments):
    """Call a function of the C library; raise OSError where it gives -1."""
    ctypes.set_errno(0)
    function = getattr(LIBC, name)
    result = function(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return result


def call32(number, *arguments):
    """Make a system call of the 32-bit gate (`int 0x80`), behind which a filter for 64-bit numbers may be blind."""
    import mmap

    if platform.machine() != "x86_64":
        raise OSError("no such gate on this machine")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("5389f889f387ca4489c6cd8048985bc3"))  # eax, ebx, ecx, edx, esi from the arguments
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    gate = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 5)(address)
    result = gate(number, *arguments, *[0] * (4 - len(arguments)))
    if -4096 < result < 0:
        raise OSError(-result, os.strerror(-result), f"int80 {number}")
    return result


def low_text(text):
    """Give the address, below 4 GB, of a page that begins with a text; the rest is zero."""
    LIBC.mmap.restype = ctypes.c_void_p
    where = LIBC.mmap(None, ctypes.c_size_t(65536), 3, 0x62, -1, ctypes.c_long(0))  # private, anonymous, 32BIT
    ctypes.memmove(where, text + b"\0", len(text) + 1)
    return where


def found(world, data):
    """Tell whether data holds the planted secret, of which a cell knows the digest only."""
    data = data.encode(errors="replace") if isinstance(data, str) else bytes(data)
    return any(hashlib.sha256(match).hexdigest() == world.digest for match in SECRET.findall(data))


def same(world, path):
    """Tell whether a path leads to the very folder or file that it leads to in the host."""
    status = os.stat(path)
    return [status.st_dev, status.st_ino] == world.inodes.get(path)


def writable(world, path):
    """Tell whether a file can be made in a folder of the host's; it has no name, so nothing stays."""
    if not same(world, path):
        raise OSError(f"{path} is another one here")
    try:
        os.close(os.open(path, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except OSError as error:
        if error.errno not in (95, 21):  # this file system makes no files without a name
            raise
        name = f"{path}/.tw-sandbox-{world.nonce}"
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(name)
    return True


def device(path, flags=os.O_RDONLY | os.O_NONBLOCK):
    """Tell whether a device can be opened; nothing is read or written."""
    opened = os.open(path, flags)
    try:
        return stat.S_ISCHR(os.fstat(opened).st_mode) or stat.S_ISBLK(os.fstat(opened).st_mode)
    finally:
        os.close(opened)


def descendants(root):
    """Give the numbers of processes that are below one; there may be none to see."""
    parents = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(entry)}/stat", "rb") as file:
                parents[int(entry)] = int(file.read().rsplit(b")", 1)[1].split()[1])
        except (ValueError, OSError):
            continue
    below, ring = set(), {root}
    while ring:
        ring = {child for child, parent in parents.items() if parent in ring} - below
        below |= ring
    return below


def all_of(world, ways):
    """Try a function with each of several arguments until one succeeds; raise the last error if none does."""
    last = None
    for way in ways:
        try:
            answer = way()
        except (OSError, ValueError, RuntimeError) as error:
            last = error
            continue
        if answer is True or (answer not in (None, False) and found(world, answer)):
            return True
    if last is not None:
        raise last
    return False


def own_namespace():
    """Become root of a new user and mount namespace, in which nothing shows outside."""
    user, group = os.getuid(), os.getgid()
    call("unshare", 0x10000000 | 0x00020000)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    LIBC.mount(None, b"/", None, ctypes.c_ulong(0x44000), None)


def remove_tree(path, *, below):
    """Remove a folder with all in it, after a look that it is ours: absolute, below a planted one, no link."""
    if not (os.path.isabs(path) and os.path.isabs(below) and "/tw-" in below and path.startswith(f"{below}/")):
        raise ValueError(f"not ours to remove: {path}")
    if os.path.realpath(path) != os.path.realpath(below) + path[len(below) :]:
        raise ValueError(f"a link leads elsewhere: {path}")
    shutil.rmtree(path)


def first(world):
    """Give the number of the first process, where it is one of the sandbox's own and not the host's."""
    status = os.stat("/proc/self/ns/pid")
    return [] if [status.st_dev, status.st_ino] == world.namespaces["pid"] else [1]


def mark(world, way):
    """Give what a way sends, by which the host knows it."""
    return f"{world.nonce}:{way};".encode()


def targets(world):
    """Give the processes whose memory holds the secret at a known place."""
    return [one for one in (world.keeper, world.host, world.sibling) if one.get("address")]


def vector(address, length):
    """Give an iovec."""
    return (ctypes.c_size_t * 2)(address, length)


def not_for_lack_of_rights(function):
    """Tell whether a call that is wrong anyway is refused for what it asks, and not because it may not ask."""
    try:
        function()
    except OSError as error:
        return error.errno not in (1, 13, 38)
    return True


def judge(world, answer):
    """Tell from what a way gave whether it got through: True, or a text that holds the secret."""
    return answer is True or (isinstance(answer, str | bytes | bytearray) and found(world, answer))


def say(function, world):
    """Run one way; give [breach, error]."""
    try:
        return [judge(world, function(world)), ""]
    except BaseException as error:
        return [False, f"{type(error).__name__}: {error}"[:200]]


def attempt(function, world, seconds):
    """Run one way in a child that is ended in time; where no child can be had, here."""
    readable, writing = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(readable)
        os.close(writing)
        folder = os.open(".", os.O_RDONLY)
        try:
            return say(function, world)
        finally:
            os.fchdir(folder)  # the next way starts where this one did
            os.close(folder)
    if child == 0:
        try:
            os.close(readable)
            LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # ends with its parent
            for one in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM):
                signal.signal(one, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            signal.alarm(max(1, round(seconds)))
            os.write(writing, json.dumps(say(function, world)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    ready = select.select([readable], [], [], seconds + 1)[0]
    text = os.read(readable, 65536) if ready else b""
    os.close(readable)
    ended = _collect(child)
    return json.loads(text) if text else [False, f"ended without a word: {ended}"]


def _collect(child):
    for patience in range(40):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        if patience == 20:
            with contextlib.suppress(OSError):  # its alarm ends it
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return "still running"


def report(probe, world):
    """Try all ways of a probe; print one JSON line: breach, how, tried, errors."""
    world = SimpleNamespace(**world)
    here = getattr(probe, "here", ())  # what shows in the kernel's own process only
    how, errors, tried = [], {}, 0
    for name, function in list(vars(probe).items()):
        if name.startswith("_") or not isinstance(function, FunctionType):
            continue
        tried += 1
        through, error = (
            say(function, world) if name in here else attempt(function, world, getattr(probe, "seconds", 5))
        )
        if through:
            how.append(name)
        elif error:
            errors[name] = error
    print(json.dumps({"breach": bool(how), "how": how, "tried": tried, "errors": errors}))
