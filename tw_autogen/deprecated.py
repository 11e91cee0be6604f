"""Earlier names of what is called otherwise or lies elsewhere now: they work until the next release, with a warning."""

from __future__ import annotations

import pkgutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def old_names(
    package: str, moved: Mapping[str, Sequence[str]], *, renamed: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a package's `__getattr__` by which old names give what has a new name or place.

    Args:
        package: Its dotted name.
        moved: The names that are called the same elsewhere, by where they are now, dotted from `tw_autogen` on.
        renamed: By the old name: the new one in the same package, or where it is now, dotted from `tw_autogen` on.

    Raises:
        AttributeError: by the function, for a name that is neither.
    """
    new_names = {**{name: f"{place}.{name}" for place, names in moved.items() for name in names}, **(renamed or {})}

    def find(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        new = new_names[name]
        warnings.warn(f"{package}.{name} is called {new} now", DeprecationWarning, stacklevel=2)
        return pkgutil.resolve_name(new) if "." in new else getattr(sys.modules[package], new)

    return find
