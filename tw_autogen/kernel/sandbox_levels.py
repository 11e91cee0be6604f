"""Which sandbox a kernel gets: the levels that are wanted, tried, and failed here, and the plan that each holds."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tw_autogen.errors import SandboxError
from tw_autogen.kernel.environment_variables import clean_environment
from tw_autogen.kernel.folder_ownership import OWNERSHIP, USER_NUMBERS, USERS, hand_over
from tw_autogen.kernel.launcher import sandbox_probe
from tw_autogen.kernel.launcher.sandbox import BUBBLEWRAP, LANDLOCK, NAMESPACES, OFF
from tw_autogen.kernel.seatbelt import PROGRAM, SEATBELT, interpreter_folders, profile
from tw_autogen.kernel.seatbelt import command as before
from tw_autogen.kernel.settings import KernelSettings

LEVELS = {"linux": (NAMESPACES, LANDLOCK, BUBBLEWRAP), "darwin": (SEATBELT,)}
"""By system, from the strongest down; `auto` takes the first that can be set up."""

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/localtime", "/etc/mime.types", "/etc/os-release",
    "/etc/pki/tls/certs", "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
    "/var/cache/fontconfig", "/sys/devices/system/cpu", "/sys/devices/system/node",
    # to which links of programs in /usr lead; each that is there costs a start 0.2 ms
    "/etc/ImageMagick-6", "/etc/ImageMagick-7", "/etc/OpenCL", "/etc/R", "/etc/matplotlibrc", "/etc/texmf",
    *(f"/etc/java-{version}-openjdk" for version in (8, 11, 17, 21, 25)),
)  # fmt: skip
_WITH_NETWORK = ("/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", "/run/systemd/resolve")

_WORDS = {
    NAMESPACES: "namespaces, a root of its own, a filter of system calls, limits",
    LANDLOCK: "Landlock, a filter of system calls, limits",
    BUBBLEWRAP: "bubblewrap, a filter of system calls, limits",
    SEATBELT: "seatbelt, no limits; this level was never tried by its authors",
}
_REMEDIES = {
    NAMESPACES: "user namespaces for ordinary users (sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0)",
    LANDLOCK: "a Linux kernel with Landlock (5.13 or newer, `lsm=landlock`)",
    BUBBLEWRAP: "the package bubblewrap, whose program bwrap may make namespaces",
    SEATBELT: "macOS with its program sandbox-exec",
}
_ELSEWHERE = "Linux, for one in WSL or in a container (`ContainerKernel`)"
_PROGRAMS = {BUBBLEWRAP: "bwrap", SEATBELT: PROGRAM}

_PASSING = tuple(map(os.strerror, (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR)))
"""What the system says where it lacks memory, processes or open files for the moment."""
_PAUSES_SECONDS = (0.1, 0.4, 1.0)
"""How long is waited before a level that failed so is tried again."""

_failed: dict[str, str] = {}
_working: set[tuple[str, str]] = set()
"""Levels that could be set up in this process, and by which interpreter."""


def level_attempts(settings: KernelSettings) -> Iterator[str]:
    """Yield the levels to try, the strongest first; ends with an error if none is left.

    A level that fails for the moment only is yielded again, and none below it.

    Args:
        settings: `sandbox` says which.

    Raises:
        SandboxError: none can be set up here, and nobody has said that code may run without one; or the strongest that
            could be can't at the moment.
    """
    if settings.sandbox == OFF:
        yield OFF
        return
    system = "linux" if sys.platform.startswith("linux") else sys.platform
    here = LEVELS.get(system, ())
    wanted = here if settings.sandbox == "auto" else (settings.sandbox,)
    reasons = {}
    for level in wanted:
        reasons[level] = f"not on {system}" if level not in here else _reason_unavailable(level)
        pauses = iter(_PAUSES_SECONDS)
        while not reasons[level]:
            yield level
            reasons[level] = _reason_unavailable(level)
            if not reasons[level]:
                _pause(level, pauses)
    said = "; ".join(f"{level}: {why}" for level, why in reasons.items()) or f"none of ours on {system}"
    raise SandboxError(
        f"no sandbox can be set up here ({said}), so no code is run. {SandboxError.REMEDY} "
        f"{' or '.join(_REMEDIES[level] for level in wanted) or _ELSEWHERE}. "
        "To run code with all that this user may do, set kernel.sandbox to 'off'"
    )


def _pause(level: str, pauses: Iterator[float]) -> None:
    """Wait before a level that has failed for the moment is tried again.

    Args:
        level: The sandbox level.
        pauses: How long, each time.

    Raises:
        SandboxError: it was tried often enough.
    """
    seconds = next(pauses, None)
    if seconds is None:
        raise SandboxError(
            f"{level}: this sandbox can't be set up at the moment ({_failed.get(level)}), and no weaker one is taken "
            f"for it, so no code is run. {SandboxError.REMEDY} more memory, or fewer other processes. "
            "Then try again, or name a weaker one in kernel.sandbox"
        )
    time.sleep(seconds)


def _reason_unavailable(level: str) -> str:
    """Return why a level of this system can't be set up; empty: it can, or it has not been tried.

    That a program is missing is not remembered: it may be installed meanwhile. Nor is what passes.
    """
    program = _PROGRAMS.get(level)
    missing = program is not None and shutil.which(program) is None
    why = _failed.get(level, "")
    return why if why and not _may_work_later(level, why) else f"no program {program}" if missing else ""


def _may_work_later(level: str, why: str) -> bool:
    """Return whether a level may work later: it has worked before, or something is lacking for the moment."""
    return any(one == level for one, _ in _working) or any(one in why for one in _PASSING)


def record_failure(level: str, why: str) -> bool:
    """Remember that a level can't be set up on this machine; return whether that is so for good.

    Args:
        level: The sandbox level.
        why: The reason, in words.
    """
    _failed[level] = why
    return not _may_work_later(level, why)


STARTED_OTHERWISE = "no sandbox of ours: the process was started by the `start` that was given"
"""Says the same where somebody else makes the process."""


def describe_sandbox(level: str, settings: KernelSettings) -> str:
    """Describe a sandbox in one line, and what a stronger one would need.

    Args:
        level: The sandbox level.
        settings: Say which levels may be used.
    """
    if level == OFF:
        return "no sandbox (kernel.sandbox='off'): code may do what this user may do"
    network = "network allowed, with the host's own loopback" if settings.allow_network else "no network"
    order = next(known for known in LEVELS.values() if level in known)
    weaker = [one for one in order[: order.index(level)] if _reason_unavailable(one) and settings.sandbox == "auto"]
    stronger = f"; stronger: {_REMEDIES[weaker[0]]}" if weaker else ""
    return f"sandbox: {_WORDS[level]}; {network}{stronger}"


def system_paths(settings: KernelSettings) -> list[str]:
    """Return what of this system every kernel may read; not all of it need exist.

    Args:
        settings: With the network more is needed.
    """
    return [*_SYSTEM, *(_WITH_NETWORK if settings.allow_network else ())]


def sandbox_plan(level: str, settings: KernelSettings, uid: int, *, stage: Path, own: Path) -> dict[str, Any]:
    """Return what the launcher needs to set a sandbox up.

    Args:
        level: One of `LEVELS`, or `off`.
        settings: Limits and network.
        uid: The user that its process becomes; 0: this one.
        stage: An empty folder, where a root for the kernel is mounted; code can't write to it.
        own: The folder of the kernel's process, which its code may write to.
    """
    limits = {
        name.replace("_mb", "_bytes"): most << 20 if name.endswith("_mb") else most
        for name, most in settings.limits.items()
    }
    return {
        "level": level,
        "stage": str(stage),
        "read": system_paths(settings),
        "write": [str(own)],
        "network": settings.allow_network,
        "links": settings.allow_symlinks,
        "uid": uid,
        "limits": limits,
    }


def hint_options(level: str, settings: KernelSettings, assignment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what hints of errors in a kernel need to know of its sandbox; the folders alone without one.

    Args:
        level: One of `LEVELS`, or `off`.
        settings: Limits and network.
        assignment: `read` and `write`: the session's folders.
    """
    folders = {"read": assignment["read"], "write": assignment["write"]}
    if level == OFF:
        return folders
    return {
        **folders,
        "level": level,
        "network": settings.allow_network,
        "links": settings.allow_symlinks,
        "kept": assignment.get("kept", []),
        "system": _SYSTEM,
        **settings.limits,
    }


def user_for(level: str, folder: Path | None = None) -> int:
    """Return the user that a kernel's process becomes where the host is root, held until freed; 0 elsewhere.

    Args:
        level: That of its sandbox.
        folder: Where it will work; None: not known yet.
    """
    if level == OFF or os.geteuid() != 0:
        return 0
    if folder is not None and (known := OWNERSHIP.user(folder)):
        return USER_NUMBERS.share(known)
    mapped = _user_number_count()
    wanted = USERS if mapped > USERS.stop else range(max(1, mapped // 2), mapped)
    return USER_NUMBERS.take(wanted) if wanted else 0


def _user_number_count() -> int:
    """Count the user numbers that exist here: containers may have few."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            return max(int(line.split()[0]) + int(line.split()[2]) for line in file)
    except (OSError, ValueError):
        return 0


_SECONDS = 10.0
_HERE = Path(sandbox_probe.__file__).parent
_trying = threading.Lock()


def available_level(settings: KernelSettings) -> str:
    """Return the level that kernels get: one that a kernel had before, else the first that a process can set up.

    Args:
        settings: `sandbox` says which are wanted, `python` who sets it up.

    Raises:
        SandboxError: none can be set up here.
    """
    for level in level_attempts(settings):
        if level == OFF or (level, settings.python) in _working:
            return level
        with _trying:  # a second thread waits for what the first one finds
            why = "" if (level, settings.python) in _working else _try_sandbox(level, settings)
        if not why:
            record_success(level, settings)
            return level
        record_failure(level, why)
    raise AssertionError("`level_attempts` ends with an error")


def record_success(level: str, settings: KernelSettings) -> None:
    """Remember that a sandbox could be set up.

    Args:
        level: The sandbox level.
        settings: With which it has worked.
    """
    _working.add((level, settings.python))


def _try_sandbox(level: str, settings: KernelSettings) -> str:
    """Try a sandbox; return why it can't be set up, empty if it can or if that can't be known before a kernel tries."""
    with tempfile.TemporaryDirectory(prefix="tw-trial-", ignore_cleanup_errors=True) as folder, ExitStack() as undo:
        uid = user_for(level)
        undo.callback(USER_NUMBERS.free, uid)
        stage = Path(folder, "root")
        stage.mkdir()
        wanted = sandbox_plan(level, settings, uid, stage=stage, own=Path(folder))
        hand_over(Path(folder), uid)
        command = [settings.python, "-I", "-S", "-c", sandbox_probe.STUB, str(_HERE), json.dumps(wanted)]
        if level == SEATBELT:
            folders = interpreter_folders(settings.python)
            text = profile(
                {"read": [], "write": []},
                own=Path(folder),
                sockets=Path(folder),
                python=folders,
                network=False,
                links=False,
                by_file=True,
            )
            command = [*before(text), settings.python, "-I", "-S", "-c", ""]
        environment = clean_environment(os.environ)
        try:
            done = subprocess.run(
                command, env=environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    if done.returncode and level == SEATBELT:
        return done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
    return done.stdout.decode(errors="replace").strip()
