"""How this package, and the one that runs in kernels, come into a process that has neither installed."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Mapping
from typing import Any

STUB = """\
import gc, sys
gc.disable()
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.util import module_from_spec, spec_from_file_location
for name, folder in zip(("tw_guest", "tw_launcher"), sys.argv[1:3]):
    spec = spec_from_file_location(name, folder + "/__init__.py", submodule_search_locations=[folder])
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
from tw_launcher.fork_server import main
main(sys.argv[3:])
"""
"""Run with `python -c`, the folders of the two packages, and what `fork_server.main` takes."""

_GUEST = "tw_guest"


def load() -> None:
    """Import ipykernel, and our end of the bridge, so that kernels forked from here have them.

    Garbage is collected from here on, but none of this: a collection in a child would copy it for that process.
    """
    importlib.import_module(f"{_GUEST}.boot").load()
    importlib.import_module(f"{_GUEST}.bridge")
    gc.freeze()
    gc.enable()


def prepare() -> None:
    """Make what kernels that are forked from here have in common; see `guest.boot.prepare`."""
    importlib.import_module(f"{_GUEST}.boot").prepare()


def kernel_app(connection_file: str, *, heartbeat: bool, sockets: Mapping[int, int]) -> Any:
    """Make a kernel that listens; see `guest.boot.make`.

    Args:
        connection_file: Path of the JSON with ports and key.
        heartbeat: Whether heartbeats are answered.
        sockets: Descriptors by port.
    """
    return importlib.import_module(f"{_GUEST}.boot").make(connection_file, heartbeat=heartbeat, sockets=sockets)
