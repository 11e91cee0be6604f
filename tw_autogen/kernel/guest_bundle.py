"""The texts that are sent into a kernel: the package `guest`, and what starts a local process."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

PACKAGE = "tw_guest"
"""What `guest` is called in the kernel, where tw_autogen need not be installed."""

_ALONE = ("boot.py", "bundle_importer.py")


@functools.cache
def boot_text() -> str:
    """Return the text that a kernel's process runs first where nothing else starts it."""
    return _read("boot.py")


@functools.cache
def install_expression() -> str:
    """Return a Python expression that makes the bundle importable in a kernel; it leaves no name behind."""
    sources = dict(sorted(_module_sources(PACKAGE, resources.files("tw_autogen.kernel.guest"))))
    return f"exec({_read('bundle_importer.py') + chr(10) + 'install(sources)'!r}, {{'sources': {sources!r}}})"


def _module_sources(package: str, folder: Traversable) -> Iterator[tuple[str, str]]:
    """Return the full name and the text of each module of a package, and of the packages in it."""
    for path in folder.iterdir():
        if path.is_dir() and path.joinpath("__init__.py").is_file():
            yield from _module_sources(f"{package}.{path.name}", path)
        elif path.name.endswith(".py") and path.name not in _ALONE:
            yield package if path.name == "__init__.py" else f"{package}.{path.name[:-3]}", path.read_text("utf-8")


def call_expression(function: str, argument: str, *, module: str = "bridge") -> str:
    """Return a Python expression that calls a function of a module of the bundle with one text.

    Args:
        function: Its name.
        argument: The text that it gets.
        module: `bridge`, or `attached` in a kernel that the user has open.
    """
    return f"__import__('{PACKAGE}.{module}', fromlist=['{module}']).{function}({argument!r})"


def _read(name: str) -> str:
    return resources.files("tw_autogen.kernel.guest").joinpath(name).read_text(encoding="utf-8")
