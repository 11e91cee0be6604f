"""A filter of system calls: what no data work needs, and what would lead around the rest of the wall.

It holds off: sockets other than Unix ones, io_uring, tracing and reading other processes, mounts and new namespaces,
kernel keyrings, modules, BPF, performance counters, inotify (whose number is one for all of a user), System V memory
and queues, large pieces of shared memory, and reserving space on the disk in no time, which nothing could watch. It
doesn't look at paths (the file system's part of the wall does), and it can't look into structures that a call points
to. Calls in another processor's numbering (32-bit, x32) are refused as a whole. Tried by tests from inside kernels, as
root and as an ordinary user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from .system import PR_SET_SECCOMP, prctl_pointer

_SECCOMP_MODE_FILTER = 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _AND, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT, _FOURTH_ARGUMENT_AT = 0, 4, 16, 24, 40
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020080
_UNIX = 1
_TYPE_TO_TERMINAL = 0x5412
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Name: number on x86_64, on aarch64 (-1: it has none). One number above 424 is the same everywhere.
_REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "setns": (308, 268),
    "unshare": (272, 97), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "iopl": (172, -1), "ioperm": (173, -1), "modify_ldt": (154, -1), "syslog": (103, 116),
    "lookup_dcookie": (212, 18), "vhangup": (153, 58), "move_pages": (279, 239), "migrate_pages": (256, 238),
    "personality": (135, 92), "fanotify_init": (300, 262), "uselib": (134, -1), "sysfs": (139, -1),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "semget": (64, 190), "semop": (65, 193), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "nfsservctl": (180, 42), "memfd_secret": (447, 447), "process_madvise": (440, 440), "cachestat": (451, 451),
}  # fmt: skip
_INOTIFY = [(253, -1), (294, 26)]
_FALLOCATE, _MMAP = (285, 47), (9, 222)
_SHARED_WITHOUT_FILE = 0x21
_CLONE, _CLONE3, _SOCKET, _IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)
_CONNECT = (42, 203)
_TRUNCATE = (76, 45)
_MARKS = {
    "chmod": (90, -1), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1), "lchown": (94, -1),
    "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "removexattr": (197, 14), "lremovexattr": (198, 15),
}  # fmt: skip
"""What is written about a file: mode, owner, times."""
_TIMES = (280, 88)
_OF_PROCESS = {
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}  # fmt: skip
"""Threads are named like processes there, and libraries do this to their own."""
_LIMITS = (302, 261)
_OF_SOMEBODY = {"setpriority": (141, 140), "ioprio_set": (251, 30)}
"""Their second argument says whose."""
_SIGNALS = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
}  # fmt: skip


def refuse(*, network: bool, connects: bool, signals: bool, truncates: bool, others: bool, shared_bytes: int) -> None:
    """Refuse system calls from now on, for this thread and all that it starts. It can't be undone.

    Args:
        network: Sockets of every family may be made; otherwise Unix ones only.
        connects: Unix sockets may be connected; where the file system's part of the wall hides those of the host.
        signals: Processes may be signalled; otherwise only this one and its group.
        truncates: Files may be cut by their path.
        others: Files outside and other processes can't be named anyway. Otherwise mode, owner and times of a file that
            is given by its path stay as they are, without an error, because much code sets them for good measure;
            and so do priority and processors of a process that is not this one; its limits can't be set.
        shared_bytes: How large one piece of shared memory may be, below 4 GB; 0 for no limit.

    Raises:
        OSError: the system has no such filter.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    program = _program(
        machine,
        network=network,
        connects=connects,
        signals=signals,
        truncates=truncates,
        others=others,
        shared_bytes=min(shared_bytes, 0xFFFFFFFF),
    )
    body = ctypes.create_string_buffer(program)
    head = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(body)))
    prctl_pointer(PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(head))


def _program(
    machine: str, *, network: bool, connects: bool, signals: bool, truncates: bool, others: bool, shared_bytes: int
) -> bytes:
    column = list(_MACHINES).index(machine)
    refused = [*_REFUSED.values(), *_INOTIFY]
    if not (network or connects):
        refused.append(_CONNECT)
    if not truncates:
        refused.append(_TRUNCATE)
    if not signals:
        refused += [_SIGNALS["tkill"], _SIGNALS["pidfd_send_signal"]]
    no, unknown = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    lines = [
        _line(_LOAD, _MACHINE_AT),
        _line(_JUMP_EQUAL, _MACHINES[machine], 1, 0),
        _line(_RETURN, unknown),
        _line(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        lines += [_line(_JUMP_ABOVE, _X32, 0, 1), _line(_RETURN, unknown)]
    lines += _if_number(_CLONE3[column], [_line(_RETURN, unknown)])  # libc then takes clone, whose flags can be seen
    lines += _if_number(_CLONE[column], _if_argument(_JUMP_ANY, _FIRST_ARGUMENT_AT, _NEW_NAMESPACES, no))
    lines += _if_number(_IOCTL[column], _if_argument(_JUMP_EQUAL, _SECOND_ARGUMENT_AT, _TYPE_TO_TERMINAL, no))
    if not network:
        lines += _if_number(_SOCKET[column], _unless_argument([_UNIX], no))
    lines += _about_others(column, signals=signals, others=others)
    lines += _if_number(_FALLOCATE[column], [_line(_RETURN, _ERRNO | errno.EOPNOTSUPP)])  # libc then writes zeros
    if shared_bytes:
        lines += _if_number(_MMAP[column], _unless_small(shared_bytes))
    for numbers in refused:
        lines += _if_number(numbers[column], [_line(_RETURN, no)])
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _about_others(column: int, *, signals: bool, others: bool) -> list[bytes]:
    """Refuse, or pass over, what is done to files outside and to other processes."""
    lines: list[bytes] = []
    no = _ERRNO | errno.EPERM
    ours = os.getpid()
    if not others:
        for numbers in _MARKS.values():
            lines += _if_number(numbers[column], [_line(_RETURN, _ERRNO)])
        lines += _if_number(_TIMES[column], _unless_argument([0], _ERRNO, _SECOND_ARGUMENT_AT))
        for numbers in _OF_PROCESS.values():
            lines += _if_number(numbers[column], _unless_argument([0, ours], _ERRNO))
        lines += _if_number(_LIMITS[column], _unless_argument([0, ours], no))
        for numbers in _OF_SOMEBODY.values():
            lines += _if_number(numbers[column], _unless_argument([0, ours], no, _SECOND_ARGUMENT_AT))
    if not signals:
        for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
            lines += _if_number(_SIGNALS[name][column], _unless_argument([ours, 0, -ours & 0xFFFFFFFF], no))
    return lines


def _line(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_so, if_not, value)


def _if_number(number: int, then: list[bytes]) -> list[bytes]:
    return [] if number < 0 else [_line(_JUMP_EQUAL, number, 0, len(then)), *then]


def _if_argument(test: int, place: int, value: int, answer: int) -> list[bytes]:
    """Answer if an argument's low half passes a test, else allow."""
    return [_line(_LOAD, place), _line(test, value, 0, 1), _line(_RETURN, answer), _line(_RETURN, _ALLOW)]


def _unless_argument(allowed: list[int], answer: int, place: int = _FIRST_ARGUMENT_AT) -> list[bytes]:
    """Answer unless an argument's low half is one of a few numbers."""
    lines = [_line(_LOAD, place)]
    for number, value in enumerate(allowed):
        lines.append(_line(_JUMP_EQUAL, value, len(allowed) - number, 0))
    return [*lines, _line(_RETURN, answer), _line(_RETURN, _ALLOW)]


def _unless_small(limit: int) -> list[bytes]:
    """Refuse to map memory that is shared and no file's, from a size on."""
    no_memory = _line(_RETURN, _ERRNO | errno.ENOMEM)
    return [
        _line(_LOAD, _FOURTH_ARGUMENT_AT),
        _line(_AND, _SHARED_WITHOUT_FILE),
        _line(_JUMP_EQUAL, _SHARED_WITHOUT_FILE, 1, 0),
        _line(_RETURN, _ALLOW),
        _line(_LOAD, _SECOND_ARGUMENT_AT + 4),
        _line(_JUMP_EQUAL, 0, 1, 0),
        no_memory,
        _line(_LOAD, _SECOND_ARGUMENT_AT),
        _line(_JUMP_ABOVE, limit, 0, 1),
        no_memory,
        _line(_RETURN, _ALLOW),
    ]
