"""Names of the last release that have another name or place now: they work for one more release, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def old_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__` by which old names give what has a new one.

    Args:
        package: Its dotted name.
        names: By the old name: the new one in the same package, or the dotted one of another module, whole.

    Raises:
        AttributeError: by the function, for a name that is neither.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, new = names[name].rpartition(".")
        where = f"to be imported from {module}" if new == name else f"called {names[name]}"
        warnings.warn(f"{package}.{name} is {where} now", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(module or package), new)

    return find
