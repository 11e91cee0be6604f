"""The sandbox that the program `bwrap` builds, for systems that let it make namespaces and nobody else.

The kernel sees what it would see in a sandbox of namespaces: the system read-only, a small /etc, /tmp, /proc and /dev
of its own, its session's folders. What they hold off is the same. Where the host is root the supervisor is root in
there, and the kernel's process becomes another user, as in other sandboxes: a user namespace would have no other user.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .known_paths import resolve
from .mount_check import refuse_named, sources
from .namespaces import DEVICES, HOME, LINKS, etc_texts, hidden, outermost, writable_by_folder

_SAID_CHARS = 10_000


def run_wrapped(
    request: Mapping[str, Any], read: Iterable[str], kept: Iterable[str], command: Sequence[str], passed: Sequence[int]
) -> str:
    """Run a command as the first process in the sandbox, to its end.

    Args:
        request: As `supervisor.supervise` takes it, with `assignment`.
        read: The interpreter's folders.
        kept: Folders that stay read-only where they lie in one that may be written.
        command: The program and its arguments; one more is added: a descriptor, for `wanted_mounts`.
        passed: Descriptors that stay open for it.

    Returns:
        Why the sandbox can't be set up; empty if it was.

    Raises:
        FolderRefusedError: the session's folders can't be shown, or are no longer what the host has checked.
    """
    log, folders = request["log"], _session_folders(request, kept)
    said_before = os.path.getsize(log)
    pipes = {f"/etc/{name}": _text_pipe(text) for name, text in etc_texts(request["sandbox"]["uid"]).items()}
    wanted = os.memfd_create("wanted")
    try:
        written = request["assignment"]["write"]
        paths = [one for one in outermost([*request["sandbox"]["read"], *read]) if resolve(one, written)]
        shows = _mount_sources(request, [path for path in paths if not os.path.islink(path)])
        os.write(wanted, json.dumps({"shown": folders, **shows}).encode())
        command_line = ["bwrap", *_options(request, paths, folders, pipes), "--", *command, str(wanted)]
        code = subprocess.run(command_line, pass_fds=(*passed, wanted, *pipes.values()), check=False).returncode
    except OSError as error:
        return f"bwrap: {error.strerror}"
    finally:
        for pipe in (wanted, *pipes.values()):
            os.close(pipe)
    if code:
        with open(log, encoding="utf-8", errors="replace") as file:
            file.seek(said_before)
            output = file.read(_SAID_CHARS)  # the rest may be code's
        why = next((line.strip() for line in output.splitlines() if line.startswith("bwrap: ")), "")
        refuse_named(why, folders)
        return why
    return ""


def wanted_mounts(descriptor: int) -> dict[str, Any]:
    """Return what has to be mounted in the sandbox, as `check_mounts` takes it.

    Args:
        descriptor: The last argument of the command; closed.
    """
    with open(descriptor, encoding="utf-8") as file:
        file.seek(0)
        found: dict[str, Any] = json.load(file)
        return found


def _mount_sources(request: Mapping[str, Any], read: Iterable[str]) -> dict[str, Any]:
    """Return what mounts of the sandbox may show of this machine."""
    plan, assignment = request["sandbox"], request["assignment"]
    devices = [f"/dev/{name}" for name in DEVICES]
    asked = writable_by_folder(read=assignment["read"], write=assignment["write"], kept=())
    paths = {**dict.fromkeys(read, False), **asked, **dict.fromkeys([*devices, *plan["write"]], True)}
    return sources(paths, assignment.get("known", {}), assignment["write"])


def _session_folders(request: Mapping[str, Any], kept: Iterable[str]) -> dict[str, bool]:
    """Return the session's folders, as `shown` does."""
    assignment = request["assignment"]
    return writable_by_folder(
        read=assignment["read"], write=assignment["write"], kept=[*kept, *assignment.get("kept", ())]
    )


def _options(
    request: Mapping[str, Any], read: Iterable[str], folders: Mapping[str, bool], pipes: Mapping[str, int]
) -> list[str]:
    plan = request["sandbox"]
    options = ["--die-with-parent", "--as-pid-1", "--unshare-ipc", "--unshare-pid", "--unshare-uts"]
    options += ["--hostname", "kernel"]
    options += ["--unshare-cgroup-try", *([] if plan["network"] else ["--unshare-net"])]
    options += ["--cap-add", "ALL"] if plan["uid"] else ["--unshare-user"]
    room = plan["limits"]["memory_bytes"] // 4
    size = ["--size", str(room)] if room else []
    options += ["--perms", "1777", *size, "--tmpfs", "/tmp", "--perms", "0755", "--tmpfs", "/dev"]
    options += ["--perms", "1777", *size, "--tmpfs", "/dev/shm", "--perms", "0777", "--dir", HOME]
    for name in DEVICES:
        options += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in LINKS.items():
        options += ["--symlink", target, f"/dev/{name}"]
    options += ["--remount-ro", "/dev", "--proc", "/proc"]
    for path in hidden():
        options += ["--dev-bind", "/dev/null", path]
    for path, number in pipes.items():
        options += ["--perms", "0644", "--file", str(number), path]
    for path in read:
        options += _parent_folder_options(path)
        options += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    named = {path: "--bind" if writable else "--ro-bind" for path, writable in folders.items()}
    for path, how in [*sorted(named.items()), *((one, "--bind") for one in plan["write"])]:
        options += [*_parent_folder_options(path), how, path, path]  # what lies above comes first
    return [*options, "--remount-ro", "/", "--chdir", "/"]


def _parent_folder_options(path: str) -> list[str]:
    """Make the folders above a path; bwrap itself would make them as closed as they are outside."""
    above = [one for one in itertools.accumulate(path.split("/")[1:-1], os.path.join, initial="/") if one != "/"]
    return [word for one in above if not os.path.islink(one) for word in ("--perms", "0755", "--dir", one)]


def _text_pipe(text: str) -> int:
    """Return a descriptor that a short text can be read from."""
    ours, theirs = os.pipe()
    os.write(theirs, text.encode("ascii"))
    os.close(theirs)
    return ours
