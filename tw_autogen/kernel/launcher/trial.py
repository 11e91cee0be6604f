"""Puts a wall up in a process that ends at once: so it is known, without a kernel, whether that wall can stand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import namespaces
from .system import CLONE_NEWPID, unshare
from .wall import NAMESPACES, Wall

STUB = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.util import module_from_spec, spec_from_file_location
folder = sys.argv[1]
spec = spec_from_file_location("tw_launcher", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["tw_launcher"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["tw_launcher"])
from tw_launcher.trial import main
main(sys.argv[2:])
"""
"""Run with `python -I -S -c`, this package's folder, and what `main` takes."""


def main(arguments: Sequence[str]) -> None:
    """Try a wall; print why it can't stand, or nothing.

    Args:
        arguments: The plan, as `Wall` takes it, in JSON.
    """
    plan = json.loads(arguments[0])
    try:
        if plan["level"] == NAMESPACES:
            if os.geteuid() != 0:
                namespaces.own_user()
            unshare(CLONE_NEWPID)
        child = os.fork()
    except OSError as error:
        _say(error.strerror or str(error))
        return
    if child == 0:
        _stand(plan)
    os.waitpid(child, 0)


def _stand(plan: Mapping[str, Any]) -> None:
    try:
        os.chdir("/")
        assignment: dict[str, list[str]] = {"read": [], "write": []}
        wall = Wall(plan)
        wall.around_steward()
        wall.admit(assignment)
        wall.around_kernel(assignment)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the host is told
        _say(str(error) or type(error).__name__)
    finally:
        os._exit(0)


def _say(why: str) -> None:
    os.write(1, why.encode())
