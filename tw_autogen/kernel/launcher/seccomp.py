"""A filter of system calls: those that code needs are allowed, every other one is refused.

`ALLOWED` lists what is allowed; a call that is not there, such as one of a later release of Linux, doesn't pass. Some
calls are allowed for some arguments, or with some settings, only: sockets other than Unix streams, symbolic links,
leases on files (whoever opens such a file waits), new namespaces in `clone`, typing into a terminal, large or huge-page
shared memory, and what is done to other processes. Reserving space on the disk is refused, because it takes no time in
which it could be watched. The filter doesn't look at paths (the file system's part of the sandbox does), and it can't
read structures that a call points to. Calls in another processor's numbering (32-bit, x32) are refused as a whole.
Tried by tests from inside kernels, as root and as an ordinary user.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import struct
from typing import Any

from .system_calls import PR_SET_SECCOMP, prctl_pointer

# Name: number on x86_64, on aarch64 (-1: it has none). A number above 423 is the same on both.
ALLOWED = {
    # files by path
    "open": (2, -1), "openat": (257, 56), "openat2": (437, 437), "creat": (85, -1), "access": (21, -1),
    "faccessat": (269, 48), "faccessat2": (439, 439), "stat": (4, -1), "lstat": (6, -1), "newfstatat": (262, 79),
    "fstat": (5, 80), "statx": (332, 291), "readlink": (89, -1), "readlinkat": (267, 78), "getcwd": (79, 17),
    "chdir": (80, 49), "fchdir": (81, 50), "mkdir": (83, -1), "mkdirat": (258, 34), "rmdir": (84, -1),
    "unlink": (87, -1), "unlinkat": (263, 35), "rename": (82, -1), "renameat": (264, 38), "renameat2": (316, 276),
    "link": (86, -1), "linkat": (265, 37), "symlink": (88, -1), "symlinkat": (266, 36), "mknod": (133, -1),
    "mknodat": (259, 33), "umask": (95, 166), "chmod": (90, -1), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "fchmod": (91, 52), "chown": (92, -1), "lchown": (94, -1), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88), "truncate": (76, 45),
    "ftruncate": (77, 46), "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10),
    "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "statfs": (137, 43), "fstatfs": (138, 44), "getdents": (78, -1),
    "getdents64": (217, 61),
    # descriptors
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287),
    "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436), "dup": (32, 23), "dup2": (33, -1),
    "dup3": (292, 24), "fcntl": (72, 25), "flock": (73, 32), "ioctl": (16, 29), "pipe": (22, -1),
    "pipe2": (293, 59), "sendfile": (40, 71), "copy_file_range": (326, 285), "splice": (275, 76), "tee": (276, 77),
    "fsync": (74, 82), "fdatasync": (75, 83), "sync": (162, 81), "syncfs": (306, 267), "sync_file_range": (277, 84),
    "readahead": (187, 213), "fadvise64": (221, 223), "fallocate": (285, 47), "poll": (7, -1), "ppoll": (271, 73),
    "select": (23, -1), "pselect6": (270, 72), "epoll_create": (213, -1), "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21), "epoll_wait": (232, -1), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441),
    "eventfd": (284, -1), "eventfd2": (290, 19), "signalfd": (282, -1), "signalfd4": (289, 74),
    "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "madvise": (28, 233),
    "msync": (26, 227), "mincore": (27, 232), "mlock": (149, 228), "mlock2": (325, 284), "munlock": (150, 229),
    "mlockall": (151, 230), "munlockall": (152, 231), "brk": (12, 214), "membarrier": (324, 283),
    "pkey_alloc": (330, 289), "pkey_free": (331, 290), "pkey_mprotect": (329, 288), "map_shadow_stack": (453, 453),
    "mseal": (462, 462), "get_mempolicy": (239, 236), "set_mempolicy": (238, 237), "mbind": (237, 235),
    # processes
    "clone": (56, 220), "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281),
    "exit": (60, 93), "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "getpid": (39, 172),
    "getppid": (110, 173), "gettid": (186, 178), "getpgid": (121, 155), "getpgrp": (111, -1), "setpgid": (109, 154),
    "getsid": (124, 156), "setsid": (112, 157), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "prctl": (157, 167), "arch_prctl": (158, -1), "set_tid_address": (218, 96),
    "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293), "futex": (202, 98),
    "futex_waitv": (449, 449), "futex_wake": (454, 454), "futex_wait": (455, 455), "futex_requeue": (456, 456),
    "getcpu": (309, 168), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
    "sched_setaffinity": (203, 122), "sched_getscheduler": (145, 120), "sched_setscheduler": (144, 119),
    "sched_getparam": (143, 121), "sched_setparam": (142, 118), "sched_getattr": (315, 275),
    "sched_setattr": (314, 274), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127), "getpriority": (140, 141), "setpriority": (141, 140),
    "ioprio_get": (252, 31), "ioprio_set": (251, 30), "getrlimit": (97, 163), "setrlimit": (160, 164),
    "prlimit64": (302, 261), "getrusage": (98, 165), "times": (100, 153), "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
    # users
    "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177),
    "getresuid": (118, 148), "getresgid": (120, 150), "getgroups": (115, 158), "setuid": (105, 146),
    "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147),
    "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151), "setfsgid": (123, 152),
    "capget": (125, 90), "capset": (126, 91),
    # signals and time
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132),
    "restart_syscall": (219, 128), "pause": (34, -1), "alarm": (37, -1), "getitimer": (36, 102),
    "setitimer": (38, 103), "timer_create": (222, 107), "timer_settime": (223, 110), "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109), "timer_delete": (226, 111), "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "gettimeofday": (96, 169), "time": (201, -1),
    # sockets
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "shutdown": (48, 210), "getsockname": (51, 204),
    "getpeername": (52, 205), "getsockopt": (55, 209), "setsockopt": (54, 208), "sendto": (44, 206),
    "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212), "sendmmsg": (307, 269),
    "recvmmsg": (299, 243),
    # system
    "uname": (63, 160), "sysinfo": (99, 179), "getrandom": (318, 278),
}  # fmt: skip


_SECCOMP_MODE_FILTER = 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _AND, _JUMP, _JUMP_EQUAL, _JUMP_FROM, _JUMP_ANY = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45
_RETURN = 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENT_AT = 0, 4, 16
_LONGEST_JUMP = 255
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COMMON_FROM = 424
"""From this number on, calls have one number on every machine, and libraries expect that a system has none of them."""

_NEW_NAMESPACES = 0x7E020080
_CLONE_THREAD, _CLONE_FILES = 0x00010000, 0x00000400
_UNIX, _STREAM, _SEQUENCED, _KIND_OF_SOCKET = 1, 1, 5, 0xF
_REQUESTS = (
    *range(0x5401, 0x540C), 0x5425,  # a terminal: its settings, breaks, what waits there
    *range(0x540C, 0x5412), 0x5413, 0x5414, 0x5420, 0x5422, 0x5429,  # whose it is, its size; not TIOCSTI, TIOCLINUX
    0x80045430, 0x40045431, 0x5441,  # a terminal of one's own
    0x541B, 0x5421, 0x5450, 0x5451, 0x5452,  # FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, FIOASYNC
    2, 0x80086601, 0x801C581F, 0xC020660B,  # of a file: FIGETBSZ, GETFLAGS, FSGETXATTR, FIEMAP
    0x40049409, 0x4020940D,  # FICLONE, FICLONERANGE: into a file that is open for writing
    0x8905,  # SIOCATMARK
)  # fmt: skip
"""What `ioctl` may ask for. File systems have requests that make, fill or share folders past the calls for that."""
_OF_NETWORK = (0x8910, 0x8912, 0x8913, 0x8915, 0x8919, 0x891B, 0x891D, 0x8921, 0x8927, 0x8933, 0x8946, 0x8948)
_OF_FILE_SYSTEMS = (0x9400, 0x6600, 0x5800, 0x7600, 0xBC00, 0xF500)
"""The kinds of requests, in their second byte, of btrfs, ext4, XFS, all, bcachefs and F2FS; keys of encryption too."""
_SET_OWNER, _SET_LEASE = (8, 15), (1024, 1040)  # F_SETOWN, F_SETOWN_EX; F_SETLEASE, F_SETDELEG (Linux 6.19)
_SHARED_WITHOUT_FILE, _HUGE_PAGES = 0x21, 0x40000
_THIS_PROCESS = {"setpriority": 0, "ioprio_set": 1}
"""What their first argument says where the second one is a process, and not a group or a user."""

_LINKS = ("symlink", "symlinkat")
_OTHER_NUMBERING = 0x40000000  # from here on, x32
_NEWER_CALLS = (425, 463, 466)  # io_uring_setup, setxattrat, removexattrat: other ways to what the rules refuse
_MEMFD_CREATE, _CLONE3 = (319, 279), (435, 435)
_MODE_AT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
_SET_USER_ID = 0o4000
_ATTRIBUTES = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
"""Extended attributes; an access control list is one of them, and their names can't be told apart here."""
_MARKS = (
    *_MODE_AT, "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat", *_ATTRIBUTES,
)  # fmt: skip
"""What is written about a file: mode, owner, times, extended attributes."""
_OF_PROCESS = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
"""Threads are named like processes there, and libraries do this to their own."""
_SIGNALS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tkill", "pidfd_send_signal", "fcntl")
_WITH_RULES = {
    "clone", "ioctl", "fallocate", "socket", "socketpair", "connect", "truncate", "mmap", "prlimit64", *_LINKS,
    *_SIGNALS, *_MARKS, *_OF_PROCESS, *_THIS_PROCESS,
}  # fmt: skip
_ALLOWED, _REFUSED, _MISSING = "", "refused", "missing"

_PACK = struct.Struct("HBBI").pack
_LINE = 8


def install_syscall_filter(
    *, network: bool, links: bool, signals: bool, truncates: bool, others: bool, shared_bytes: int
) -> None:
    """Filter system calls from now on, for this thread and all that it starts. It can't be undone.

    Args:
        network: Sockets of every family may be made and connected; otherwise Unix streams only, because a datagram can
            be sent to any path and its data is not counted where it lies, and none is connected: a folder that is
            mounted read-only may hold sockets of other programs, to which that is no obstacle. Without `others` no Unix
            socket is made where every other one is, because no folder hides those of other programs; pairs are.
        links: Symbolic links may be made; otherwise that fails as on a file system that has none, and what lies in a
            folder for other programs leads nowhere else. Links that are there can be renamed. Hard links may be made
            in any case: semaphores are made by them.
        signals: Processes may be signalled; otherwise only this one and its group.
        truncates: Files may be cut by their path.
        others: Files outside and other processes can't be named anyway, but for the supervisor, whose limits and
            priority can't be set; and no file that holds anything gets the mode by which it runs as its owner: whoever
            else may run it would become this user; and extended attributes can't be changed, because access control
            lists are among them. Otherwise mode, owner, times and extended attributes of a
            file stay as they are, of one that is open for reading too, without an error, because much code sets them
            for good measure; and so do the processors of a process that is not this one; its limits and priority can't
            be set.
        shared_bytes: How large one piece of shared memory may be, below 4 GB, and no files in memory outside a file
            system that counts them (`memfd_create`); 0 for no limit.

    Raises:
        OSError: the system has no such filter.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    filtering = program(
        machine,
        network=network,
        links=links,
        signals=signals,
        truncates=truncates,
        others=others,
        shared_bytes=shared_bytes,
    )
    body = ctypes.create_string_buffer(filtering)
    head = ctypes.create_string_buffer(struct.pack("HP", len(filtering) // _LINE, ctypes.addressof(body)))
    prctl_pointer(PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(head))


def program(
    machine: str, *, network: bool, links: bool, signals: bool, truncates: bool, others: bool, shared_bytes: int
) -> bytes:
    """Return the filter in classic BPF; arguments as of `install_syscall_filter`.

    It is remembered; a filter that names no process is the same in forked processes.

    Args:
        machine: As `platform.machine` names it.
        network: As of `install_syscall_filter`.
        links: As of `install_syscall_filter`.
        signals: As of `install_syscall_filter`.
        truncates: As of `install_syscall_filter`.
        others: As of `install_syscall_filter`.
        shared_bytes: As of `install_syscall_filter`.
    """
    ours = 0 if signals and others else os.getpid()
    return _bpf_program(machine, ours, network, links, signals, truncates, others, shared_bytes)


def container_filter(machine: str, *, links: bool) -> bytes:
    """Return a filter for where others keep the rest out: it refuses what code could leave for programs outside.

    These are symbolic links, files that run as their owner (set-user-ID), access control lists, and requests by which
    file systems change folders that may only be read, or drop the keys of encrypted ones.

    Args:
        machine: As `platform.machine` names it; where numbers of calls are not known for it, nothing is refused.
        links: As of `install_syscall_filter`.
    """
    if machine not in _MACHINES:
        return _instruction(_RETURN, _ALLOW)
    kinds = (_if_masked(1, 0xFF00, kind, _return_errno(errno.ENOTTY)) for kind in _OF_FILE_SYSTEMS)
    answers = {**_no_rights_that_stay(), "ioctl": _if_one_of(1, _REQUESTS, _YES) + b"".join(kinds) + _YES}
    answers |= {} if links else dict.fromkeys(_LINKS, _NO)
    column = list(_MACHINES).index(machine)
    numbered = {ALLOWED[name][column]: answer for name, answer in answers.items() if ALLOWED[name][column] >= 0}
    rules = (_instruction(_JUMP_EQUAL, one, 0, len(answer) // _LINE) + answer for one, answer in numbered.items())
    newer = b"".join(_instruction(_JUMP_EQUAL, call, 0, 1) + _NONE for call in _NEWER_CALLS)
    return (
        _machine_check_instructions(machine)
        + _instruction(_JUMP_FROM, _OTHER_NUMBERING, 0, 1)
        + _NONE
        + newer
        + b"".join(rules)
        + _YES
    )


@functools.lru_cache(maxsize=4)
def _bpf_program(
    machine: str, ours: int, network: bool, links: bool, signals: bool, truncates: bool, others: bool, shared_bytes: int
) -> bytes:
    rules: dict[str, bytes] = {
        "clone": _if_argument(0, _JUMP_ANY, _NEW_NAMESPACES, _NO)
        + _if_masked(0, _CLONE_THREAD | _CLONE_FILES, _CLONE_THREAD, _NO)  # would hide what it has open
        + _YES,
        "ioctl": _unless_one_of(1, (*_REQUESTS, *(_OF_NETWORK if network else ())), _return_errno(errno.ENOTTY)) + _YES,
        "fallocate": _return_errno(errno.EOPNOTSUPP),  # libc then writes zeros
        "fcntl": _if_one_of(1, _SET_LEASE, _NO) + _YES,
        "memfd_create": _NONE if shared_bytes else _YES,
    }
    if not network:
        rules["socket"] = rules["socketpair"] = _unix_streams() + _YES
        rules["connect"] = _NO
    elif not others:
        rules["socket"] = _if_one_of(0, (_UNIX,), _NO) + _YES
        rules["socketpair"] = _unix_streams() + _YES
    if not links:
        rules |= dict.fromkeys(_LINKS, _NO)
    if not truncates:
        rules["truncate"] = _NO
    if not signals:
        rules |= _own_signals(ours)
    rules |= _all_but_supervisor() if others else _own_files_and_processes(ours)
    if shared_bytes:
        rules["mmap"] = _small_shared_memory(min(shared_bytes, 0xFFFFFFFF)) + _YES
    answers = {_REFUSED: _NO, _MISSING: _NONE, **rules}
    ranges = [(first, answers.get(name, _YES)) for first, name in _call_number_ranges(list(_MACHINES).index(machine))]
    return _machine_check_instructions(machine) + _search_instructions(ranges)


def _machine_check_instructions(machine: str) -> bytes:
    """Return lines that refuse the numbering of other processors, and load a call's number."""
    ours = _instruction(_LOAD, _MACHINE_AT) + _instruction(_JUMP_EQUAL, _MACHINES[machine], 1, 0) + _NONE
    return ours + _instruction(_LOAD, _NUMBER_AT)


def _own_signals(ours: int) -> dict[str, bytes]:
    """Return rules that let this process signal itself and its group only."""
    return {
        **dict.fromkeys(_SIGNALS, _unless_one_of(0, (ours, 0, -ours & 0xFFFFFFFF), _NO) + _YES),
        "tkill": _NO,
        "pidfd_send_signal": _NO,
        "fcntl": _if_one_of(1, (*_SET_OWNER, *_SET_LEASE), _NO) + _YES,
    }


def _all_but_supervisor() -> dict[str, bytes]:
    """Return rules that keep limits and priority of the supervisor, which is the first process of the namespace."""
    return {
        **{
            name: _unless_one_of(0, (kind,), _NO) + _if_one_of(1, (1,), _NO) + _YES
            for name, kind in _THIS_PROCESS.items()
        },
        **dict.fromkeys((*_OF_PROCESS, "prlimit64"), _if_one_of(0, (1,), _NO) + _YES),
        **_no_rights_that_stay(),
    }


def _no_rights_that_stay() -> dict[str, bytes]:
    """Return rules that refuse a mode with which a file runs as its owner, and all access control lists.

    A folder's default list decides who may use what the host, or the user, makes there later.
    """
    return {
        **{name: _if_argument(at, _JUMP_ANY, _SET_USER_ID, _NO) + _YES for name, at in _MODE_AT.items()},
        **dict.fromkeys(_ATTRIBUTES, _return_errno(errno.EOPNOTSUPP)),  # as a file system without them: programs go on
    }


def _own_files_and_processes(ours: int) -> dict[str, bytes]:
    """Return rules that keep what the file system's part of the sandbox doesn't: marks of files, other processes."""
    nothing_done = _return_errno(0)
    own_priority = {
        name: _unless_one_of(0, (kind,), _NO) + _unless_one_of(1, (0, ours), _NO) + _YES
        for name, kind in _THIS_PROCESS.items()
    }
    return {
        **dict.fromkeys(_MARKS, nothing_done),
        **dict.fromkeys(_OF_PROCESS, _unless_one_of(0, (0, ours), nothing_done) + _YES),
        "prlimit64": _unless_one_of(0, (0, ours), _NO) + _YES,
        **own_priority,
    }


def _unix_streams() -> bytes:
    """Refuse sockets that are not Unix ones, and of those all that send to a path without being connected."""
    kind = _instruction(_LOAD, _argument_offset(1)) + _instruction(_AND, _KIND_OF_SOCKET)
    return _unless_one_of(0, (_UNIX,), _NO) + kind + _unless_loaded((_STREAM, _SEQUENCED), _NO)


def _small_shared_memory(limit: int) -> bytes:
    """Refuse huge pages, and to map memory that is shared and no file's from a size on."""
    no_memory = _return_errno(errno.ENOMEM)
    too_large = (
        _instruction(_LOAD, _argument_offset(1) + 4)
        + _instruction(_JUMP_EQUAL, 0, 1, 0)
        + no_memory
        + _if_argument(1, _JUMP_FROM, limit, no_memory)
    )
    shared = _instruction(_LOAD, _argument_offset(3)) + _instruction(_AND, _SHARED_WITHOUT_FILE)
    skip = _instruction(_JUMP_EQUAL, _SHARED_WITHOUT_FILE, 0, len(too_large) // _LINE)
    return _if_argument(3, _JUMP_ANY, _HUGE_PAGES, no_memory) + shared + skip + too_large


@functools.cache
def _call_number_ranges(column: int) -> list[tuple[int, str]]:
    """Return where each range of numbers with one answer begins, in order; the last one has no end.

    Args:
        column: The machine's, in `ALLOWED`.

    Returns:
        A range's first number, and the answer; of a call with rules of its own, its name.
    """
    named = {number[column]: name if name in _WITH_RULES else _ALLOWED for name, number in ALLOWED.items()}
    named |= {_MEMFD_CREATE[column]: "memfd_create", _CLONE3[column]: _MISSING}  # libc then takes clone
    named.pop(-1, None)
    found: list[tuple[int, str]] = []
    for number in range(max(*named, _COMMON_FROM) + 2):
        name = named.get(number, _REFUSED if number < _COMMON_FROM else _MISSING)
        if not found or found[-1][1] != name:
            found.append((number, name))
    return found


def prepare(**rules: Any) -> None:
    """Compute what the filters of kernels that are forked from this process have in common.

    Args:
        rules: As of `install_syscall_filter`: the whole filter of kernels that have these.
    """
    machine = platform.machine()
    if machine in _MACHINES:
        _call_number_ranges(list(_MACHINES).index(machine))
        if rules:
            program(machine, **rules)


def _search_instructions(ranges: list[tuple[int, bytes]]) -> bytes:
    """Return lines that find the range of the number that was loaded, by halves."""
    if len(ranges) == 1:
        return ranges[0][1]
    half = len(ranges) // 2
    below, above = _search_instructions(ranges[:half]), _search_instructions(ranges[half:])
    first, length = ranges[half][0], len(below) // _LINE
    if length <= _LONGEST_JUMP:
        return _instruction(_JUMP_FROM, first, length, 0) + below + above
    return _instruction(_JUMP_FROM, first, 0, 1) + _instruction(_JUMP, length) + below + above


def _instruction(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return _PACK(code, if_so, if_not, value)


def _return_errno(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


_YES, _NO, _NONE = _instruction(_RETURN, _ALLOW), _return_errno(errno.EPERM), _return_errno(errno.ENOSYS)


def _argument_offset(place: int) -> int:
    """Return where an argument's low half lies."""
    return _ARGUMENT_AT + 8 * place


# Each of these returns lines that end with `then`, an answer, in the case that it names, and go on otherwise. They see
# the low half of an argument.


def _if_argument(place: int, test: int, value: int, then: bytes) -> bytes:
    return _instruction(_LOAD, _argument_offset(place)) + _instruction(test, value, 0, 1) + then


def _if_masked(place: int, mask: int, value: int, then: bytes) -> bytes:
    return (
        _instruction(_LOAD, _argument_offset(place))
        + _instruction(_AND, mask)
        + _instruction(_JUMP_EQUAL, value, 0, 1)
        + then
    )


def _if_one_of(place: int, values: tuple[int, ...], then: bytes) -> bytes:
    return _instruction(_LOAD, _argument_offset(place)) + b"".join(
        _instruction(_JUMP_EQUAL, value, 0, 1) + then for value in values
    )


def _unless_one_of(place: int, values: tuple[int, ...], then: bytes) -> bytes:
    return _instruction(_LOAD, _argument_offset(place)) + _unless_loaded(values, then)


def _unless_loaded(values: tuple[int, ...], then: bytes) -> bytes:
    return (
        b"".join(_instruction(_JUMP_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)) + then
    )
