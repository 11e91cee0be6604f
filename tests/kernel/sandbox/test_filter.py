"""What the filter of system calls answers, read from its program: for every number, on both machines, at each level."""

import errno
import os
import re
import struct
from pathlib import Path

import pytest

from tw_autogen.kernel.launcher.seccomp import ALLOWED, container_filter, program

COLUMNS = {"x86_64": 0, "aarch64": 1}
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LANDLOCK = {"network": False, "links": False, "signals": True, "truncates": True, "others": False}
OLD_LANDLOCK = {**LANDLOCK, "signals": False, "truncates": False}
NAMESPACES = {"network": False, "links": False, "signals": True, "truncates": True, "others": True}
NETWORK = {**NAMESPACES, "network": True}
LINKS = {**NAMESPACES, "links": True}
LEVELS = {
    "landlock": LANDLOCK, "old landlock": OLD_LANDLOCK, "namespaces": NAMESPACES, "network": NETWORK, "links": LINKS
}  # fmt: skip
ALLOW, PASSED_OVER = "allowed", "passed over"
ATTRIBUTES = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
NO_ATTRIBUTES = errno.errorcode[errno.EOPNOTSUPP]
HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


def answer(code, number, *arguments, audit):
    """Run a filter's program as Linux does; return what it answers to a call."""
    data = struct.pack("=iIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    at = held = 0
    while True:
        kind, if_so, if_not, value = struct.unpack_from("HBBI", code, 8 * at)
        at += 1
        if kind == 0x06:
            numbered = value & 0xFFFF
            return ALLOW if value == 0x7FFF0000 else errno.errorcode[numbered] if numbered else PASSED_OVER
        if kind == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        elif kind == 0x54:
            held &= value
        elif kind == 0x05:
            at += value
        else:
            passed = {0x15: held == value, 0x35: held >= value, 0x45: held & value != 0}[kind]
            at += if_so if passed else if_not


def asked(machine, level, name, *arguments, shared_bytes=1 << 20):
    number = ALLOWED[name][COLUMNS[machine]] if isinstance(name, str) else name
    code = program(machine, **LEVELS[level], shared_bytes=shared_bytes)
    return answer(code, number, *arguments, audit=AUDIT[machine])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("machine", COLUMNS)
def test_a_number_that_is_not_listed_does_not_pass(machine, level):
    listed = {numbers[COLUMNS[machine]] for numbers in ALLOWED.values()}
    code = program(machine, **LEVELS[level], shared_bytes=1 << 20)

    for number in {*range(1200), 0x3FFFFFFF, -1, *(0x40000000 + one for one in range(600))} - listed:
        assert answer(code, number, audit=AUDIT[machine]) == ("EPERM" if 0 <= number < 424 and number != {
            "x86_64": 319, "aarch64": 279}[machine] else "ENOSYS"), number  # fmt: skip


@pytest.mark.parametrize("machine", COLUMNS)
def test_what_is_listed_passes_at_the_strongest_level_unless_its_arguments_are_judged(machine):
    code = program(machine, **NAMESPACES, shared_bytes=1 << 20)
    found = {
        name: answer(code, numbers[COLUMNS[machine]], 1, 1, audit=AUDIT[machine])
        for name, numbers in ALLOWED.items()
        if numbers[COLUMNS[machine]] >= 0
    }

    of_the_supervisor = {name for name in ALLOWED if name.startswith("sched_set")} | {"prlimit64", "ioprio_set"}
    of_a_group = {"setpriority"}
    links = {"symlink", "symlinkat"} & set(found)
    assert {name for name, one in found.items() if one != ALLOW} == {
        "fallocate", "connect", "ioctl", *ATTRIBUTES
    } | of_the_supervisor | of_a_group | links  # fmt: skip


def test_calls_in_the_numbering_of_another_processor_do_not_pass():
    code = program("x86_64", **NAMESPACES, shared_bytes=0)

    assert answer(code, ALLOWED["read"][0], audit=0x40000003) == "ENOSYS"  # i386


@pytest.mark.skipif(not HEADER.exists(), reason="this system has no headers of Linux")
def test_the_numbers_are_those_of_the_systems_header():
    known = {name: int(number) for name, number in re.findall(r"__NR_(\w+) (\d+)", HEADER.read_text())}

    assert {name: ALLOWED[name][0] for name in ALLOWED if name in known} == {
        name: known[name] for name in ALLOWED if name in known
    }
    assert [
        name for name, (ours, _) in ALLOWED.items() if ours not in known.values() and 0 <= ours <= max(known.values())
    ] == []


OURS, OTHER = os.getpid(), os.getpid() + 1
STREAM, DATAGRAM, RAW, SEQUENCED, CLOEXEC = 1, 2, 3, 5, 0o2000000


@pytest.mark.parametrize("machine", COLUMNS)
@pytest.mark.parametrize(
    ("level", "name", "arguments", "expected"),
    [
        ("landlock", "socket", (1, STREAM | CLOEXEC), ALLOW),
        ("landlock", "socket", (1, SEQUENCED), ALLOW),
        ("landlock", "socket", (1, DATAGRAM), "EPERM"),
        ("landlock", "socket", (1, DATAGRAM | CLOEXEC), "EPERM"),
        ("landlock", "socket", (1, RAW), "EPERM"),  # Linux makes a datagram socket of it
        ("landlock", "socketpair", (1, DATAGRAM), "EPERM"),  # a datagram can go to a path from there as well
        ("landlock", "socketpair", (1, STREAM), ALLOW),
        ("namespaces", "socket", (1, DATAGRAM), "EPERM"),
        ("namespaces", "socketpair", (2, STREAM), "EPERM"),
        ("network", "socket", (2, DATAGRAM), ALLOW),
        ("landlock", "connect", (3,), "EPERM"),
        ("namespaces", "connect", (3,), "EPERM"),
        ("network", "connect", (3,), ALLOW),
        ("namespaces", "symlinkat", (4096, 3, 4096), "EPERM"),
        ("landlock", "symlinkat", (4096, 3, 4096), "EPERM"),
        ("old landlock", "symlinkat", (4096, 3, 4096), "EPERM"),
        ("network", "symlinkat", (4096, 3, 4096), "EPERM"),
        ("links", "symlinkat", (4096, 3, 4096), ALLOW),
        ("namespaces", "linkat", (3, 4096, 3, 4096), ALLOW),
        ("landlock", "setpriority", (0, 0, 5), ALLOW),
        ("landlock", "setpriority", (0, OURS, 5), ALLOW),
        ("landlock", "setpriority", (0, OTHER, 5), "EPERM"),
        ("landlock", "setpriority", (1, 0, 5), "EPERM"),  # of a group
        ("landlock", "setpriority", (2, 0, 5), "EPERM"),  # of a user
        ("namespaces", "setpriority", (0, 0, 5), ALLOW),
        ("namespaces", "setpriority", (0, 2, 5), ALLOW),
        ("namespaces", "setpriority", (0, 1, 5), "EPERM"),  # the supervisor's
        ("namespaces", "setpriority", (2, 0, 5), "EPERM"),  # of a user
        ("namespaces", "ioprio_set", (1, 2, 5), ALLOW),
        ("namespaces", "sched_setscheduler", (2,), ALLOW),
        ("namespaces", "sched_setscheduler", (1,), "EPERM"),
        ("namespaces", "prlimit64", (2,), ALLOW),
        ("namespaces", "prlimit64", (1,), "EPERM"),
        ("landlock", "ioprio_set", (1, 0, 5), ALLOW),
        ("landlock", "ioprio_set", (1, OTHER, 5), "EPERM"),
        ("landlock", "ioprio_set", (2, 0, 5), "EPERM"),
        ("landlock", "ioprio_set", (3, 0, 5), "EPERM"),
        ("landlock", "sched_setaffinity", (OTHER,), PASSED_OVER),
        ("landlock", "prlimit64", (OTHER,), "EPERM"),
        ("landlock", "utimensat", (5, 0), PASSED_OVER),
        ("landlock", "fchmod", (5, 0o777), PASSED_OVER),
        ("landlock", "fchown", (5, 0, 0), PASSED_OVER),
        ("landlock", "fsetxattr", (5, 4096), PASSED_OVER),
        ("landlock", "fremovexattr", (5, 4096), PASSED_OVER),
        ("namespaces", "fchmod", (5, 0o777), ALLOW),
        ("namespaces", "fchmod", (5, 0o2775), ALLOW),
        ("namespaces", "fchmod", (5, 0o4755), "EPERM"),
        ("namespaces", "fchmodat", (-100 & 0xFFFFFFFF, 4096, 0o6755), "EPERM"),
        ("namespaces", "fchmodat2", (-100 & 0xFFFFFFFF, 4096, 0o4000, 0), "EPERM"),
        ("network", "fchmod", (5, 0o4755), "EPERM"),
        *((level, name, (4096, 4096), NO_ATTRIBUTES) for level in ("namespaces", "network") for name in ATTRIBUTES),
        ("landlock", "utimensat", (-100 & 0xFFFFFFFF, 4096), PASSED_OVER),
        ("landlock", "fchmodat", (5, 4096), PASSED_OVER),
        ("old landlock", "truncate", (4096,), "EPERM"),
        ("old landlock", "kill", (OTHER, 15), "EPERM"),
        ("old landlock", "kill", (OURS, 15), ALLOW),
        ("old landlock", "kill", (-OURS & 0xFFFFFFFF, 15), ALLOW),
        ("old landlock", "tkill", (OURS, 15), "EPERM"),
        ("old landlock", "fcntl", (3, 8, OTHER), "EPERM"),  # F_SETOWN
        ("old landlock", "fcntl", (3, 15, OTHER), "EPERM"),  # F_SETOWN_EX
        ("old landlock", "fcntl", (3, 1024, 1), "EPERM"),  # F_SETLEASE
        ("landlock", "fcntl", (3, 1024, 1), "EPERM"),
        ("namespaces", "fcntl", (3, 1024, 1), "EPERM"),
        ("network", "fcntl", (3, 1024, 1), "EPERM"),
        ("namespaces", "fcntl", (3, 1040, 1), "EPERM"),  # F_SETDELEG
        ("landlock", "fcntl", (3, 1040, 1), "EPERM"),
        ("namespaces", "fcntl", (3, 8, OTHER), ALLOW),  # F_SETOWN
        ("old landlock", "fcntl", (3, 2), ALLOW),
        ("namespaces", "ioctl", (3, 0x40305828), "ENOTTY"),  # FS_IOC_RESVSP, takes room on the disk in no time
        ("landlock", "ioctl", (3, 0x4030582A), "ENOTTY"),
        ("landlock", "ioctl", (3, 0x40086602), "ENOTTY"),  # FS_IOC_SETFLAGS, also of a file that is open for reading
        ("landlock", "ioctl", (3, 0x80086601), ALLOW),
        ("namespaces", "ioctl", (0, 0x5412), "ENOTTY"),  # TIOCSTI
        ("namespaces", "ioctl", (0, 0x541C), "ENOTTY"),  # TIOCLINUX
        ("namespaces", "ioctl", (0, 0x8901), "ENOTTY"),  # FIOSETOWN
        ("namespaces", "ioctl", (0, 0x5423), "ENOTTY"),  # TIOCSETD
        ("landlock", "ioctl", (3, 0x5000940E), "ENOTTY"),  # BTRFS_IOC_SUBVOL_CREATE
        (
            "landlock",
            "ioctl",
            (3, 0x50009401),
            "ENOTTY",
        ),  # BTRFS_IOC_SNAP_CREATE: a folder in one that may only be read
        ("namespaces", "ioctl", (3, 0x50009417), "ENOTTY"),  # BTRFS_IOC_SNAP_CREATE_V2
        ("namespaces", "ioctl", (3, 0x4008941A), "ENOTTY"),  # BTRFS_IOC_SUBVOL_SETFLAGS
        ("landlock", "ioctl", (3, 0x40806685), "ENOTTY"),  # FS_IOC_ENABLE_VERITY
        ("landlock", "ioctl", (3, 0x4004BC10), "ENOTTY"),  # a file system that is not known yet
        ("namespaces", "ioctl", (3, 0xC0406618), "ENOTTY"),  # FS_IOC_REMOVE_ENCRYPTION_KEY: closes the user's files
        ("landlock", "ioctl", (3, 0x8927), "ENOTTY"),  # SIOCGIFHWADDR, also of a socket that reaches no network
        ("network", "ioctl", (3, 0x8927), ALLOW),
        ("namespaces", "ioctl", (3, 0x40049409), ALLOW),  # FICLONE
        ("namespaces", "ioctl", (0, 0x5401), ALLOW),
        ("namespaces", "ioctl", (0, 0x541B), ALLOW),
        ("namespaces", "ioctl", (0, 0x5413), ALLOW),
        ("namespaces", "clone", (0x10000000,), "EPERM"),
        ("namespaces", "clone", (0x3D0F00,), ALLOW),  # a thread
        ("namespaces", "clone", (0x3D0B00,), "EPERM"),  # a thread with descriptors of its own
        ("namespaces", "clone", (0x1200011,), ALLOW),  # a fork
        ("namespaces", "mmap", (0, 1 << 30, 3, 0x22), ALLOW),
        ("namespaces", "mmap", (0, 1 << 19, 3, 0x21), ALLOW),
        ("namespaces", "mmap", (0, 1 << 20, 3, 0x21), "ENOMEM"),
        ("namespaces", "mmap", (0, 1 << 32, 3, 0x21), "ENOMEM"),
        ("namespaces", "mmap", (0, 1 << 19, 3, 0x40022), "ENOMEM"),  # huge pages
        ("namespaces", {"x86_64": 319, "aarch64": 279}, (4096,), "ENOSYS"),  # memfd_create
        ("namespaces", {"x86_64": 435, "aarch64": 435}, (4096,), "ENOSYS"),  # clone3
    ],
)
def test_a_call_is_judged_by_its_arguments(machine, level, name, arguments, expected):
    assert asked(machine, level, name if isinstance(name, str) else name[machine], *arguments) == expected


@pytest.mark.parametrize("machine", COLUMNS)
def test_without_a_limit_memory_is_not_judged(machine):
    assert asked(machine, "namespaces", "mmap", 0, 1 << 40, 3, 0x21, shared_bytes=0) == ALLOW
    assert asked(machine, "namespaces", {"x86_64": 319, "aarch64": 279}[machine], shared_bytes=0) == ALLOW


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(("machine", "column"), COLUMNS.items())
def test_the_filter_for_sandboxes_of_others_refuses_what_code_could_leave_for_programs_outside(
    machine, column, allowed
):
    code, audit = container_filter(machine, links=allowed), AUDIT[machine]
    links = set() if allowed else {ALLOWED[name][column] for name in ("symlink", "symlinkat")} - {-1}
    found = {number: answer(code, number, audit=audit) for number in range(1200)}

    attributes = {ALLOWED[name][column] for name in ATTRIBUTES}
    newer = {425, 463, 466}  # io_uring_setup, setxattrat, removexattrat
    assert {number for number, one in found.items() if one != ALLOW} == {*links, *attributes, *newer}
    assert {found[number] for number in links} == ({"EPERM"} if links else set())
    assert {found[number] for number in attributes} == {NO_ATTRIBUTES}
    assert {found[number] for number in newer} == {"ENOSYS"}
    number = ALLOWED["ioctl"][column]
    for request in (0xC0406618, 0x50009401, 0x4008941A, 0x40086602, 0x401C5820, 0x4004BC10):
        assert answer(code, number, 3, request, audit=audit) == "ENOTTY"
    for request in (0x5401, 0x40049409, 0x80086601, 0xC020462A):  # the last one is a graphics card's
        assert answer(code, number, 3, request, audit=audit) == ALLOW
    for name, at in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2)):
        for mode, expected in ((0o755, ALLOW), (0o4755, "EPERM"), (0o2755, ALLOW)):
            number = ALLOWED[name][column]
            assert number < 0 or answer(code, number, *[0] * at, mode, audit=audit) == expected
    assert answer(code, 0x40000000 + ALLOWED["symlinkat"][column], audit=audit) == "ENOSYS"  # x32
    assert answer(code, ALLOWED["symlinkat"][column], audit=0x40000003) == "ENOSYS"  # i386


def test_where_the_numbers_of_a_machine_are_not_known_nothing_is_refused():
    assert answer(container_filter("riscv64", links=False), ALLOWED["symlinkat"][0], audit=0xC00000F3) == ALLOW
