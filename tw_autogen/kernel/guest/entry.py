"""Where the host's requests come in: functions that take one text, around the one bridge of this kernel."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from json import loads  # held here: code may overwrite it in the module

from .bridge import Bridge

_REHEARSAL = {
    "session_id": "",
    "output_chars": 1000,
    "result_chars": 1000,
    "max_artifacts": 0,
    "max_artifact_bytes": 0,
    "arrow": True,
}


def start(options: str) -> None:
    """Make the kernel's one bridge, unless it was rehearsed, and begin the session; a second time nothing happens.

    Args:
        options: JSON, see `Bridge.settle`.
    """
    package = _package()
    if not hasattr(package, "session_of_this_kernel"):
        _made().settle(loads(options))
        package.session_of_this_kernel = True  # type: ignore[attr-defined] # modules take attributes


def warm_up(modules: str) -> None:
    """Make the bridge in a kernel that waits for a session, which is then there sooner.

    Cells that run before `start` leave nothing behind but the variables that they make.

    Args:
        modules: Names of modules to import, with commas between; what is not installed, or is broken, is left out.
    """
    _made().settle(_REHEARSAL)
    for name in filter(None, modules.split(",")):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def answer(request: str) -> None:
    """Answer through the kernel's bridge."""
    _bridge().answer(request)


def answer_file(name: str) -> None:
    """Answer through the kernel's bridge what lies in a file."""
    _bridge().answer_file(name)


def _made() -> Bridge:
    package = _package()
    if not hasattr(package, "bridge_of_this_kernel"):
        from IPython import get_ipython  # deferred: the host imports this module too, to check it, without a shell

        package.bridge_of_this_kernel = Bridge(get_ipython())  # type: ignore[attr-defined] # as above
    return _bridge()


def _bridge() -> Bridge:
    bridge: Bridge = vars(_package())["bridge_of_this_kernel"]
    return bridge


def _package() -> types.ModuleType:
    return sys.modules[__package__ or "tw_inside"]
