"""The sandbox on macOS: a Seatbelt profile, made from what a Linux sandbox is given, around a kernel of its own.

It is meant to hold off: reading and writing files that were not granted (that one exists is said only of the folders
above granted ones), the network, signalling and looking into processes other than the kernel's own. It sets no limits:
memory, processes and the disk are not bounded, and it does not hold off services of the system that its own profile
`system.sb` lets every program ask. NOT TRIED: it was written without a Mac; tests read the text and the command line
and start kernels with a stand-in for `sandbox-exec`, which is no sandbox.

Source: the operations that Chromium's and Codex CLI's profiles name; `sandbox-exec(1)`, `sandbox_init(3)`.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.launcher.readable_files import environment_paths, font_folders, listed_and_read
from tw_autogen.named_folders import executable_search_path

SEATBELT = "seatbelt"
_ASK_SECONDS = 60.0
_ASK = (
    "import json, site, sys\n"
    "site.addsitepackages(site.venv(site.removeduppaths()))\n"
    "import sysconfig\n"  # it reads the prefix once
    "print(json.dumps([[sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()], sys.path]))"
)
PROGRAM = "sandbox-exec"

_SYSTEM = (
    "/System", "/usr/lib", "/usr/bin", "/usr/libexec", "/usr/share", "/bin", "/sbin", "/usr/sbin", "/Library/Apple",
    "/Library/Frameworks/Python.framework", "/Library/Fonts", "/private/etc/localtime", "/private/etc/ssl",
    "/private/var/db/timezone", "/private/var/db/dyld", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
)  # fmt: skip
_WITH_NETWORK = ("/private/etc/hosts", "/private/etc/resolv.conf", "/private/var/run/resolv.conf")
_HEAD = """\
(version 1)
(deny default)
(import "system.sb")
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))"""


def profile(
    assignment: Mapping[str, Any],
    *,
    own: Path,
    sockets: Path,
    python: Iterable[str],
    network: bool,
    links: bool,
    by_file: bool,
) -> str:
    """Return the text of a profile.

    Args:
        assignment: `read` and `write`: the session's folders; `kept`: what stays read-only in these.
        own: The folder of the kernel's process, where code may write.
        sockets: Where the kernel's sockets are bound, by the host.
        python: The folders of the interpreter and its packages.
        network: Code may open sockets.
        links: Code may make symbolic links.
        by_file: The kernel's sockets are files of `sockets`; otherwise it must listen on this machine's own address.
    """
    write = _real_paths([*assignment["write"], str(own)])
    listed, whole = listed_and_read([*python, *assignment["read"]])
    read = _real_paths([*(one for one in _SYSTEM if os.path.exists(one)), *whole])
    read += _real_paths(_WITH_NETWORK) if network else []
    lines = [
        _HEAD,
        _allow_rule("process-exec*", [_subpath_filter(fromkey) for fromkey in dict.fromkeys([*read, *write])]),
        _allow_rule("file-read*", [_subpath_filter(fromkey) for fromkey in dict.fromkeys([*read, *write])]),
        *([_allow_rule("file-read*", [f"(literal {quoted(one)})" for one in _real_paths(listed)])] if listed else []),
        _allow_rule("file-read-metadata", [f"(literal {quoted(one)})" for one in _parent_folders([*read, *write])]),
        _allow_rule("file-write*", [_subpath_filter(one) for one in write]),
    ]
    if kept := assignment.get("kept"):  # the last rule that matches is the one that holds
        lines.append("(deny file-write*\n  " + "\n  ".join(map(_subpath_filter, kept)) + ")")
    if not links:
        lines.append("(deny file-write-create (vnode-type SYMLINK))")
    if network:
        lines += ["(allow network*)", "(allow system-socket)"]
    else:
        mine, theirs = (_subpath_filter(os.path.realpath(one)) for one in (own, sockets))
        lines.append(f"(allow network-bind (local unix-socket {mine}))")
        lines.append(f"(allow network-inbound (local unix-socket {theirs}))")
        lines.append(f"(allow network-outbound (remote unix-socket {mine}))")
        if not by_file:
            lines.append('(allow network-bind network-inbound (local ip "localhost:*"))')
    return "\n".join(lines) + "\n"


def command(text: str) -> tuple[str, ...]:
    """Return what stands before a program's own command line, so that it runs behind a profile."""
    return (shutil.which(PROGRAM, path=executable_search_path()) or PROGRAM, "-p", text)


@functools.lru_cache(maxsize=8)
def interpreter_folders(python: str) -> list[str]:
    """Return the folders that an interpreter reads by itself, and that of our own code in it.

    It is asked, and isolated: the folder of the host's script and PYTHONPATH are not the kernel's, and no
    `sitecustomize` runs, which may lie in a folder that code writes.

    Raises:
        KernelStartError: it can't be asked.
    """
    program = shutil.which(python) or python
    try:
        asked = subprocess.run(
            [program, "-I", "-S", "-c", _ASK], capture_output=True, text=True, timeout=_ASK_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise KernelStartError(f"{python} can't be asked where its packages lie: {problem}") from problem
    own, paths = json.loads(asked.stdout)
    found = [*own, str(Path(program).parent.parent), str(Path(os.path.realpath(program)).parent.parent)]
    home = os.path.expanduser("~")
    return [*environment_paths(paths, home, found, packages=[str(Path(__file__).parents[1])]), *font_folders(home)]


def quoted(path: str) -> str:
    r"""Return a path as a string of the profile's language.

    Example:
        >>> print(quoted('a "b"'))
        "a \"b\""
    """
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _allow_rule(what: str, filters: Iterable[str]) -> str:
    return f"(allow {what}\n  " + "\n  ".join(filters) + ")"


def _subpath_filter(path: str) -> str:
    return f"(subpath {quoted(path)})"


def _real_paths(paths: Iterable[str]) -> list[str]:
    """Return paths as the system sees them: Seatbelt follows no links, and /tmp is one."""
    return list(dict.fromkeys(os.path.realpath(path) for path in paths))


def _parent_folders(paths: Iterable[str]) -> list[str]:
    """Name the folders above some paths, without which no path can be followed."""
    return sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents})
