"""`LazyModule`, `lazy_face`: modules that are imported when they are first used, because that takes long."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

_LAZY: set[str] = set()
_RUNNING: list[threading.Thread] = []


class LazyModule:
    """Stands for a module; each attribute is looked up in it, and the first one imports it.

    For a type checker, import the module below `if TYPE_CHECKING:` under the same name.

    Args:
        name: The module's, with dots.
        also: Modules that it imports later itself: `import_all` imports them too.

    Example:
        >>> LazyModule("math").gcd(12, 18)
        6
    """

    def __init__(self, name: str, *, also: Sequence[str] = ()) -> None:
        self._name = name
        _LAZY.update((name, *also))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the module.

        Raises:
            ImportError: the module can't be imported.
            AttributeError: it has no such attribute.
        """
        return getattr(importlib.import_module(self._name), name)


def lazy_face(
    package: str, names: Mapping[str, Sequence[str]], old: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, with which whoever needs one of its names imports one module, not all of them.

    `dir()` of the package has them too.

    For a type checker, import the names below `if TYPE_CHECKING:`.

    Args:
        package: Its dotted name.
        names: The public names by the module of the package that defines them.
        old: Finds names of the last release, as `deprecated.old_names` does.

    Raises:
        AttributeError: by the function, for a name that is neither.
    """
    home = {name: f"{package}.{module}" for module, found in names.items() for name in found}
    _LAZY.update(home.values())
    module = sys.modules[package]
    module.__dict__["__dir__"] = lambda: sorted({*vars(module), *home})

    def find(name: str) -> Any:
        if name in home:
            value = getattr(importlib.import_module(home[name]), name)
            setattr(module, name, value)
            return value
        if old is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return old(name)

    return find


def import_soon(*names: str) -> None:
    """Begin to import modules on a thread of their own, so that they are there when needed; return at once.

    Args:
        *names: The modules', one after the other; whether they can be imported is seen when they are used.
    """
    left = [name for name in names if name not in sys.modules]
    if left:
        thread = threading.Thread(target=lambda: [*map(_try_import, left)], name=f"tw-import-{left[0]}", daemon=True)
        _RUNNING.append(thread)
        thread.start()


def wait_for_imports() -> None:
    """Wait until what `import_soon` began is imported: before code runs that may write where modules are looked for."""
    for thread in list(_RUNNING):  # it stays there: it has ended, and there are few
        thread.join()


@contextmanager
def without_collector() -> Iterator[None]:
    """Import many modules without the garbage collector, which takes a tenth of the time and finds nothing.

    What is there at the end is never looked through again: for a program of ours, not for one that imports us.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.freeze()
            gc.enable()


def import_all() -> None:
    """Import now what would be imported later, where code may write to a folder that modules are looked for in."""
    wait_for_imports()
    done: set[str] = set()
    while left := _LAZY - done:  # what is imported now may import more later
        for name in sorted(left):
            _try_import(name)
        done |= left


def _try_import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - any module's own failure; whoever uses the module gets it again
        return
