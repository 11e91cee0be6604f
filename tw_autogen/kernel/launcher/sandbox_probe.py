"""Sets a sandbox up in a process that ends at once: whether it can be is then known without a kernel."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from . import namespaces
from .bubblewrap import run_wrapped, wanted_mounts
from .exit_status import describe_exit
from .sandbox import BUBBLEWRAP, NAMESPACES, Sandbox
from .system_calls import CLONE_NEWPID, unshare

STUB = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.util import module_from_spec, spec_from_file_location
folder = sys.argv[1]
spec = spec_from_file_location("tw_launcher", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["tw_launcher"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["tw_launcher"])
from tw_launcher.sandbox_probe import main
main(sys.argv[2:])
"""
"""Run with `python -I -S -c`, this package's folder, and what `main` takes."""


_BEHIND = "behind"
_SAID_CHARS = 2000


def main(arguments: Sequence[str]) -> None:
    """Try a sandbox; print why it can't be set up, or nothing.

    Args:
        arguments: The plan, as `Sandbox` takes it, JSON; for the process that bubblewrap starts, also `behind`, the
            descriptor to which it writes, and that of `wanted_mounts`.
    """
    plan = json.loads(arguments[0])
    if arguments[1:2] == [_BEHIND]:
        _put_up(plan, int(arguments[2]), reached=_BEHIND, wanted=int(arguments[3]))
    if plan["level"] == BUBBLEWRAP:
        _report_failure(_try_wrapped(plan))
        return
    try:
        if plan["level"] == NAMESPACES:
            if os.geteuid() != 0:
                namespaces.own_user()
            unshare(CLONE_NEWPID)
        child = os.fork()
    except OSError as error:
        _report_failure(error.strerror or str(error))
        return
    if child == 0:
        _put_up(plan, 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        _report_failure(describe_exit(code))


def _try_wrapped(plan: Mapping[str, Any]) -> str:
    """Start bubblewrap around a process that ends at once; return why that failed, empty if it did not."""
    here = os.path.dirname(os.path.abspath(__file__))
    log = os.path.join(plan["write"][0], "log")
    with open(log, "xb") as file:
        os.dup2(file.fileno(), 2)
    said, theirs = os.pipe()
    python = os.path.realpath(sys.executable)  # behind the links of an environment, which need not be seen for this
    command = [python, "-I", "-S", "-c", STUB, here, json.dumps(plan), _BEHIND, str(theirs)]
    request = {"sandbox": plan, "assignment": {"read": [], "write": []}, "log": log}
    why = run_wrapped(
        request, [os.path.dirname(os.path.dirname(python)), sys.base_prefix, here], (), command, (theirs,)
    )
    os.close(theirs)
    with open(said, encoding="utf-8", errors="replace") as pipe:
        answer = pipe.read(_SAID_CHARS)
    if why or answer:
        return why or answer.removeprefix(_BEHIND)
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = file.read(_SAID_CHARS).strip().splitlines()
    return f"bwrap started no process{f': {lines[-1]}' if lines else ''}"


def _put_up(plan: Mapping[str, Any], said: int, *, reached: str = "", wanted: int = -1) -> NoReturn:
    """Set up what a kernel's process does for its sandbox; write why it can't be set up, and end.

    Args:
        plan: As `Sandbox` takes it.
        said: The descriptor that takes it.
        reached: What is written first.
        wanted: The descriptor of `wanted_mounts`; -1: there is none.
    """
    try:
        os.write(said, reached.encode())
        os.chdir("/")
        assignment: dict[str, Any] = {"read": [], "write": []}
        if wanted >= 0:
            assignment["mounts"] = wanted_mounts(wanted)
        sandbox = Sandbox(plan)
        sandbox.around_supervisor()
        sandbox.admit(assignment)
        sandbox.around_kernel(assignment)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the host is told
        os.write(said, (str(error) or type(error).__name__).encode())
    finally:
        os._exit(0)


def _report_failure(why: str) -> None:
    os.write(1, why.encode())
