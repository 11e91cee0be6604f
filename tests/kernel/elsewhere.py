"""Run with `python -m tests.kernel.elsewhere SYSTEM CODE`: our modules come to a system that this is not.

What only Linux has, or only POSIX, is taken away before they are imported; other packages are there already. It shows
what is asked for at import and what is said; how a system behaves, it can't show.
"""

import ctypes
import importlib
import os
import signal
import socket
import sys
import sysconfig

LINUX = {
    os: ("pidfd_open", "O_PATH", "sched_setaffinity", "memfd_create", "waitid"),
    signal: ("pidfd_send_signal",),
    socket: ("SO_PASSCRED", "SCM_CREDENTIALS", "SOCK_SEQPACKET"),
}
POSIX = {
    os: (
        "fork", "getuid", "geteuid", "getpgrp", "killpg", "sysconf", "setsid", "chown", "chroot", "statvfs", "mkfifo",
        "WNOHANG", "O_NOFOLLOW", "register_at_fork",
    ),
    signal: ("SIGKILL", "SIGALRM", "SIGCHLD", "SIGHUP", "alarm", "setitimer"),
    socket: ("send_fds", "recv_fds"),
}  # fmt: skip
FIRST = ("tw_autogen.cli", "tw_autogen.kernel.pool", "tw_autogen.session", "tw_autogen.testing")
"""With them all that they import of others."""
MODULES = ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty")


class NoLibrary:
    """A C library that has nothing of Linux."""

    def __init__(self, name=None, **options):
        if name is None and sys.platform == "win32":
            raise TypeError("bad argument type for built-in operation")

    def __getattr__(self, name):
        raise AttributeError(f"dlsym(RTLD_DEFAULT, {name}): symbol not found")


def leave(system):
    """Take away what a system does not have, and our own modules."""
    for name in FIRST:
        importlib.import_module(name)
    taken = [LINUX, POSIX] if system == "win32" else [LINUX]
    for one in taken:
        for module, names in one.items():
            for name in names:
                if hasattr(module, name):
                    delattr(module, name)
    if system == "win32":
        sys.modules.update(dict.fromkeys(MODULES))
    sysconfig.get_config_vars()  # read once, from a file that is named after the system
    ctypes.CDLL = NoLibrary
    sys.platform = system
    for name in [name for name in sys.modules if name.partition(".")[0] == "tw_autogen"]:
        del sys.modules[name]


if __name__ == "__main__":
    leave(sys.argv[1])
    exec(sys.argv[2], {"__name__": "elsewhere"})
