"""Names of the last release that have another name now: they work for one more release, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def old_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__` by which old names give what has a new one.

    Args:
        package: Its dotted name.
        names: The new name by the old one; both stood, or stand, in the package's `__all__`.

    Raises:
        AttributeError: by the function, for a name that is neither.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(f"{package}.{name} is called {names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[package], names[name])

    return find
