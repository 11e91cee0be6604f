"""Runs first in the interpreters that make kernels: before a sandbox is set up, they import installed packages only.

A folder of PYTHONPATH, or of a package that is installed to be edited, may be one that code writes to: a `pandas.py` or
`sitecustomize.py` there would run in the host. Kernels get the whole path back once their sandbox is set up.
"""

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder

PATH = "TW_PYTHONPATH"
"""The environment variable that carries PYTHONPATH here; PYTHONPATH itself names this file's folder."""


def installed(entry: str) -> bool:
    """Return whether an entry of sys.path holds the standard library or installed packages."""
    library = [os.path.join(prefix, "lib") for prefix in (sys.base_prefix, sys.base_exec_prefix)]
    return os.path.basename(entry) in ("site-packages", "dist-packages") or entry.startswith(tuple(library))


def _set_import_path() -> None:
    given = os.environ.pop(PATH, "")
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if entry and os.path.abspath(entry) != here]
    whole = [*(entry for entry in given.split(os.pathsep) if entry), *others]
    sys.path[:] = [entry for entry in whole if installed(entry)]
    if importlib.util.find_spec("ipykernel") is None:  # all that is installed is found by PYTHONPATH
        sys.path[:] = whole
    vars(sys)["tw_path"] = whole
    os.environ.pop("PYTHONPATH", None)
    if given:
        os.environ["PYTHONPATH"] = given


if __name__ == "sitecustomize":
    _set_import_path()
    if PathFinder.find_spec("sitecustomize") is not None:  # the one that is installed
        del sys.modules["sitecustomize"]  # else this one stays, or the import of it fails
        importlib.import_module("sitecustomize")
