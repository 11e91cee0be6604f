"""What Python processes outside a sandbox import: those that the host starts, never what code may have written."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tw_autogen.kernel.launcher.first import sitecustomize
from tw_autogen.kernel.launcher.known_paths import is_below
from tw_autogen.lazy_module import import_all

_log = logging.getLogger(__name__)
_warned: set[str] = set()

FIRST = str(Path(sitecustomize.__file__).parent)
"""The folder of `sitecustomize`, which is to run before anything else is imported."""


def isolated(environment: Mapping[str, str], path: str = "") -> dict[str, str]:
    """Return variables with which an interpreter imports installed packages only, those of its user included.

    Args:
        environment: The variables of the process.
        path: The PYTHONPATH that `sitecustomize` keeps for a kernel.
    """
    return {**environment, "PYTHONPATH": FIRST, sitecustomize.PATH: path}


def guard_own_imports(folders: Iterable[Path | str]) -> None:
    """Log, once for each, entries of `sys.path` and LD_LIBRARY_PATH that code may write: this process loads from them.

    Then what this package would import later is imported, before any code runs.

    Args:
        folders: Those that code may write, without links.
    """
    loaded = [one for one in sys.path if not sitecustomize.installed(one)]
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):  # an empty part is the current folder, an empty value none
        loaded += os.environ[name].split(os.pathsep) if os.environ.get(name) else []
    for entry in dict.fromkeys(map(os.path.realpath, loaded)):
        if entry not in _warned and any(is_below(entry, str(folder)) for folder in folders):
            _warned.add(entry)
            import_all()
            _log.warning(
                "%s: code may write here, and this program imports from it, or loads libraries: what code writes can "
                "run outside the sandbox, with the next import or start; let code write to another folder, or run the "
                "program from one",
                entry,
            )
