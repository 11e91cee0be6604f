"""The texts that are sent into a kernel: the package `guest`, and what starts a local process."""

from __future__ import annotations

import functools
from importlib import resources

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
    names = [one.name for one in resources.files("tw_autogen.kernel.guest").iterdir() if one.name.endswith(".py")]
    sources = {
        PACKAGE if name == "__init__.py" else f"{PACKAGE}.{name[:-3]}": _read(name)
        for name in sorted(names)
        if name not in _ALONE
    }
    return f"exec({_read('bundle_importer.py') + chr(10) + 'install(sources)'!r}, {{'sources': {sources!r}}})"


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
